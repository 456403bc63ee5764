#!/usr/bin/env bash
# Runs ninja in a build folder, and shows its steps once they take longer than a moment. Warnings and
# errors of the compiler are shown as they come.
#
#   tools/build.sh FOLDER
set -euo pipefail
# shellcheck source=tools/progress.sh
source "$(dirname "$0")/progress.sh"
folder=$1
begin=$SECONDS

show() {
	local line
	while IFS= read -r line; do
		case $line in
		"ninja: Entering directory"* | "ninja: no work to do."*) ;;
		"["*/*"] "*) ((SECONDS == begin)) || progress "build: $folder $line" ;;
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
if [[ $status -eq 0 ]] && ((SECONDS - begin > 1)); then
	echo "build: $folder is up to date after $((SECONDS - begin)) s"
fi
exit "$status"
