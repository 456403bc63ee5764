#!/usr/bin/env bash
# Drives the page with Debian's Chromium and prints 'N passed, N failed'.
# BASE_URL names the server (otherwise the mock is started); SERVICE, LEAK_FUNCTION, RANGE and DRAG
# say what is found there (page.ts). --bench measures a profile of 200,000 nodes instead.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [[ ${1:-} == --bench ]]; then
	export BENCH=1
	shift
fi
if [[ -z ${BASE_URL:-} ]]; then
	port=${MOCK_PORT:-7793}
	node ui/mock/server.mjs --port "$port" >/dev/null &
	mock=$!
	trap 'kill "$mock" 2>/dev/null || true' EXIT
	export BASE_URL=http://127.0.0.1:$port
	for _ in $(seq 50); do
		(: >"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
		sleep 0.1
	done
fi
# The tests lie outside ui/, its modules inside.
NODE_PATH=ui/node_modules ui/node_modules/.bin/playwright test -c tests/browser "$@"
