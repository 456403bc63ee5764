#!/usr/bin/env bash
# Shows what can be profiled on this machine. Where no Go program with a heap profile runs, builds
# the demo, lets it allocate for a while, profiles it and stops it.
set -euo pipefail
cd "$(dirname "$0")/.."
sonde=${1:-build/sonde}

echo "\$ $sonde ps"
"$sonde" ps

first='
import json, sys
print(next((p["pid"] for p in json.load(sys.stdin) if p["profiles"]["heap"]["available"]), ""))'
pid=$("$sonde" ps --json | python3 -c "$first")
echo
if [[ -n $pid ]]; then
	echo "\$ $sonde heap $pid"
	# It may have ended since; then the demo is next.
	"$sonde" heap "$pid" && exit 0
fi

echo "No Go program with a heap profile runs here: starting the demo."
out=build/demo
mkdir -p "$out"
(cd tests/targets && GOTOOLCHAIN=local go build -o "../../$out/demo" ./demo)
# It ends when its input does: give it one that stays open as long as we live.
rm -f "$out/input"
mkfifo "$out/input"
exec 3<>"$out/input"
"$out/demo" <&3 >"$out/demo.log" 2>&1 &
demo=$!
trap 'kill "$demo" 2>/dev/null || true; wait "$demo" 2>/dev/null || true' EXIT

sleep 5
if ! kill -0 "$demo" 2>/dev/null; then
	cat "$out/demo.log" >&2
	echo "run: the demo ended early" >&2
	exit 1
fi
echo
echo "\$ $sonde heap $demo"
"$sonde" heap "$demo"
