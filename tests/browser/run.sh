#!/usr/bin/env bash
# Drives the page with Debian's Chromium and prints 'N passed, N failed'. stage.py starts what it talks
# to: a real sonde with programs that leak, and the mock for what no machine here has. BASE_URL names a
# server that runs already; SERVICE, LEAK_FUNCTION, RANGE and DRAG say what is found there (page.ts).
# --bench measures a profile of 200,000 nodes and an overview of 1,000 services instead; --shots DIR takes pictures of
# every screen.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [[ ${1:-} == --bench ]]; then
	export BENCH=1
	shift
elif [[ ${1:-} == --shots ]]; then
	mkdir -p "$2"
	SHOTS=$(realpath "$2")
	export SHOTS
	shift 2
fi
# The tests lie outside ui/, its modules inside.
export NODE_PATH=ui/node_modules
python3 tests/browser/stage.py ui/node_modules/.bin/playwright test -c tests/browser "$@"
