# shellcheck shell=bash
# For scripts to source: shows that a long command is alive. On a terminal one line that is written
# over; elsewhere a line every ten seconds, so that a log stays short.

progress_shown=-10

# progress TEXT
progress() {
	if [[ -t 1 ]]; then
		printf '\r\033[K%s' "${1:0:${COLUMNS:-80}}"
	elif ((SECONDS - progress_shown >= 10)); then
		printf '%s\n' "$1"
		progress_shown=$SECONDS
	fi
}

# Before any other output, and at the end.
progress_end() {
	[[ ! -t 1 ]] || printf '\r\033[K'
}

# progress_run TEXT COMMAND [ARGUMENT...]: shows for how long the command has been running. Its output is
# shown only if it fails.
progress_run() {
	local text=$1 begin=$SECONDS log status=0 ticker
	shift
	log=$(mktemp)
	progress "$text"
	# The command stays in the foreground: a Ctrl-C is for it, too.
	(while sleep 1 >/dev/null && kill -0 $$ 2>/dev/null; do progress "$text ($((SECONDS - begin)) s)"; done) &
	ticker=$!
	"$@" >"$log" 2>&1 || status=$?
	kill "$ticker" 2>/dev/null || true
	wait "$ticker" 2>/dev/null || true
	progress_end
	[[ $status -eq 0 ]] || cat "$log" >&2
	rm -f "$log"
	return "$status"
}
