#!/usr/bin/env bash
# Starts `sonde run` on this machine, which prints the address of its web page: the last line, unless there
# are problems. If no Go process with a heap profile is running, also starts the demo. Ctrl-C stops both.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tools/progress.sh
source tools/progress.sh
sonde=${1:-build/sonde}

# Summarizes all processes in one line; fails if none has a heap profile.
summary='
import collections, json, sys
processes = json.load(sys.stdin)
kinds = collections.Counter(p["runtime"] or "native" for p in processes).most_common()
print(f"run: {len(processes)} processes:", ", ".join(f"{n} {kind}" for kind, n in kinds),
      f"({sys.argv[1]} ps lists them)")
sys.exit(not any(p["profiles"]["heap"]["available"] for p in processes))'
progress "run: looking at all processes"
processes=$("$sonde" ps --json)
progress_end
demo=
if ! python3 -c "$summary" "$sonde" <<<"$processes"; then
	out=build/demo
	mkdir -p "$out"
	progress_run "run: no Go process with a heap profile: building the demo" \
		env -C tests/targets GOTOOLCHAIN=local go build -o "$PWD/$out/orders" ./demo
	echo "run: started the demo, a Go service called orders"
	# The demo exits at the end of its input: give it one that stays open as long as we live.
	rm -f "$out/input"
	mkfifo "$out/input"
	exec 3<>"$out/input"
	"$out/orders" <&3 >"$out/orders.log" 2>&1 &
	demo=$!
	trap 'kill "$demo" 2>/dev/null || true; wait "$demo" 2>/dev/null || true' EXIT
fi
echo "run: starting sonde; Ctrl-C stops it"
"$sonde" run &
agent=$!
trap 'kill "$agent" 2>/dev/null || true' INT TERM
status=0
wait "$agent" || status=$?
# Interrupted by a signal: sonde shuts down cleanly, which is not a failure.
if [[ $status -gt 128 ]]; then
	wait "$agent" || true
	status=0
fi
exit "$status"
