#!/usr/bin/env bash
# Cross-compiles the whole tree for arm64 and starts the result under qemu. zlib for arm64 is taken
# from Debian's archive into the build folder; the machine's own package database stays untouched.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build-arm64}

for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
	if ! command -v "$tool" >/dev/null; then
		echo "arm64: $tool is missing (tools/setup.sh arm64 installs it)"
		echo "0 passed, 0 failed, 2 skipped"
		exit 0
	fi
done

root=$(realpath -m "$build").root
fetch_zlib() {
	local apt=$root/apt
	local options=(-o APT::Architecture=arm64 -o APT::Architectures=arm64
		-o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache"
		-o Dir::State::status=/dev/null -o APT::Sandbox::User=root)
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$root/debs"
	apt-get "${options[@]}" -q update
	(cd "$root/debs" && apt-get "${options[@]}" -q download zlib1g zlib1g-dev)
	for deb in "$root"/debs/*.deb; do
		dpkg-deb -x "$deb" "$root"
	done
}
[[ -e $root/usr/lib/aarch64-linux-gnu/libz.a ]] || fetch_zlib

if [[ ! -e $build/build.ninja ]]; then
	cat >"$root/zlib.ini" <<INI
[built-in options]
c_args = ['-I$root/usr/include', '-I$root/usr/include/aarch64-linux-gnu']
c_link_args = ['-L$root/usr/lib/aarch64-linux-gnu', '-static']
INI
	meson setup "$build" -Dtests=false --cross-file tools/arm64.ini --cross-file "$root/zlib.ini"
fi
ninja -C "$build"
echo "PASS the tree compiles for arm64"
qemu-aarch64 "$build/sonde" version
echo "PASS the arm64 binary starts"
echo "2 passed, 0 failed"
