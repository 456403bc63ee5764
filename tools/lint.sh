#!/usr/bin/env bash
# Format, static analysis, and syntax of the scripts. Argument: a build folder with
# compile_commands.json.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
failed=0

step() {
	echo "lint: $1"
}

mapfile -t c_files < <(git ls-files -co --exclude-standard '*.c' '*.h')
# BPF programs are compiled for another machine, which clang-tidy is not told.
mapfile -t sources < <(git ls-files -co --exclude-standard 'src/*.c' ':!src/*.bpf.c')
mapfile -t python_files < <(git ls-files -co --exclude-standard '*.py')
mapfile -t shell_files < <(git ls-files -co --exclude-standard '*.sh' .ci/run completions/sonde.bash)

step "clang-format (${#c_files[@]} files)"
clang-format --dry-run -Werror "${c_files[@]}" || failed=1

step "clang-tidy (${#sources[@]} files)"
printf '%s\0' "${sources[@]}" |
	xargs -0 -n 4 -P "$(nproc)" clang-tidy -p "$build" --quiet 2>/dev/null || failed=1

step "python (${#python_files[@]} files)"
for file in "${python_files[@]}"; do
	python3 - "$file" <<'PY' || failed=1
import ast, sys
try:
    ast.parse(open(sys.argv[1], encoding="utf-8").read(), sys.argv[1])
except SyntaxError as e:
    sys.exit(f"{e.filename}:{e.lineno}: {e.msg}")
PY
done

if command -v shellcheck >/dev/null; then
	step "shellcheck (${#shell_files[@]} files)"
	shellcheck -S warning "${shell_files[@]}" || failed=1
else
	for file in "${shell_files[@]}"; do
		bash -n "$file" || failed=1
	done
fi

[[ $failed -eq 0 ]] && echo "lint: clean"
exit $failed
