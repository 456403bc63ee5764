#!/usr/bin/env bash
# Cross-compiles the whole tree for arm64 and starts the result under qemu. The libraries for arm64 are
# taken from Debian's archive into the build folder; the machine's own package database stays untouched.
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
lib=$root/usr/lib/aarch64-linux-gnu
# What we link with, and what the arm64 loader wants of those.
packages=(zlib1g zlib1g-dev libzstd1 libzstd-dev libsqlite3-0 libsqlite3-dev libmicrohttpd12
	libmicrohttpd-dev libgnutls28-dev libgnutls30 libp11-kit-dev libp11-kit0 libidn2-dev libidn2-0
	libunistring2 libtasn1-6-dev libtasn1-6 nettle-dev libnettle8 libhogweed6 libgmp10 libffi8)
fetch_libraries() {
	local apt=$root/apt
	local options=(-o APT::Architecture=arm64 -o APT::Architectures=arm64
		-o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache"
		-o Dir::State::status=/dev/null -o APT::Sandbox::User=root)
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$root/debs"
	apt-get "${options[@]}" -q update
	(cd "$root/debs" && apt-get "${options[@]}" -q download "${packages[@]}")
	for deb in "$root"/debs/*.deb; do
		dpkg-deb -x "$deb" "$root"
	done
	# One folder for the loader, wherever a package puts its library.
	cp -an "$root/lib/aarch64-linux-gnu/." "$lib/" 2>/dev/null || true
}
[[ -e $lib/libmicrohttpd.so && -e $lib/libgnutls.so.30 ]] || fetch_libraries

if [[ ! -e $build/build.ninja ]]; then
	cat >"$root/libraries.ini" <<INI
[binaries]
pkgconfig = 'pkg-config'
[properties]
sys_root = '$root'
pkg_config_libdir = '$lib/pkgconfig'
[built-in options]
c_args = ['-I$root/usr/include', '-I$root/usr/include/aarch64-linux-gnu']
c_link_args = ['-L$lib', '-Wl,--allow-shlib-undefined']
INI
	meson setup "$build" -Dtests=false --cross-file tools/arm64.ini \
		--cross-file "$root/libraries.ini"
fi
ninja -C "$build"
echo "PASS the tree compiles for arm64"
qemu-aarch64 -L /usr/aarch64-linux-gnu -E "LD_LIBRARY_PATH=$lib" "$build/sonde" version
echo "PASS the arm64 binary starts"
echo "2 passed, 0 failed"
