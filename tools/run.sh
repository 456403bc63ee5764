#!/usr/bin/env bash
# Starts sonde on this machine: profiles every Go program, keeps the history, and serves the page whose
# address is printed. Where no Go program with a heap profile runs, the demo is started beside it, so
# that there is something to see. Ctrl-C ends both.
set -euo pipefail
cd "$(dirname "$0")/.."
sonde=${1:-build/sonde}

# One line for all processes; fails where none of them has a heap profile.
summary='
import collections, json, sys
processes = json.load(sys.stdin)
kinds = collections.Counter(p["runtime"] or "native" for p in processes).most_common()
print(f"{len(processes)} processes run here:", ", ".join(f"{n} {kind}" for kind, n in kinds),
      f"({sys.argv[1]} ps lists them)")
sys.exit(not any(p["profiles"]["heap"]["available"] for p in processes))'
processes=$("$sonde" ps --json)
demo=
if ! python3 -c "$summary" "$sonde" <<<"$processes"; then
	echo "No Go program with a heap profile is among them: building and starting the demo."
	out=build/demo
	mkdir -p "$out"
	(cd tests/targets && GOTOOLCHAIN=local go build -o "../../$out/orders" ./demo)
	# It ends when its input does: give it one that stays open as long as we live.
	rm -f "$out/input"
	mkfifo "$out/input"
	exec 3<>"$out/input"
	"$out/orders" <&3 >"$out/orders.log" 2>&1 &
	demo=$!
	trap 'kill "$demo" 2>/dev/null || true; wait "$demo" 2>/dev/null || true' EXIT
fi
"$sonde" run &
agent=$!
trap 'kill "$agent" 2>/dev/null || true' INT TERM
status=0
wait "$agent" || status=$?
# Cut short by a signal: sonde stops in peace, and that is no failure.
if [[ $status -gt 128 ]]; then
	wait "$agent" || true
	status=0
fi
exit "$status"
