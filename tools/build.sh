#!/usr/bin/env bash
# Runs ninja in a build folder: silent when nothing is to be done, otherwise with the count of steps.
# Warnings and errors of the compiler are shown as they come.
#
#   tools/build.sh FOLDER
set -euo pipefail
# shellcheck source=tools/progress.sh
source "$(dirname "$0")/progress.sh"
folder=$1

# Where even the plan fails, the real run says why.
plan=$(ninja -C "$folder" -n) || plan="[?] "
steps=$(grep -c '^\[' <<<"$plan" || true)
[[ $steps -gt 0 ]] || exit 0
echo "build: $folder, $steps steps"
begin=$SECONDS

show() {
	local line
	while IFS= read -r line; do
		case $line in
		"ninja: Entering directory"* | "ninja: no work to do."*) ;;
		"["*/*"] "*) progress "build: $line" ;;
		*)
			progress_end
			printf '%s\n' "$line"
			;;
		esac
	done
	progress_end
}

status=0
ninja -C "$folder" 2>&1 | show || status=$?
[[ $status -ne 0 ]] || echo "build: $folder is up to date after $((SECONDS - begin)) s"
exit "$status"
