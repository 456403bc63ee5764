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
