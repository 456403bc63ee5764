#!/usr/bin/env bash
# Installs the Debian packages that are missing for the named groups: build ui run test browser bench
# lint kernels fresh arm64.
# Says nothing and needs no network when nothing is missing.
set -euo pipefail
# shellcheck source=tools/progress.sh
source "$(dirname "$0")/progress.sh"

declare -A groups=(
	[build]="build-essential meson ninja-build pkg-config zlib1g-dev libsqlite3-dev libzstd-dev
		libmicrohttpd-dev liblzma-dev libiberty-dev python3 clang bpftool libbpf-dev libelf-dev"
	[ui]="nodejs npm ca-certificates"
	[run]="golang-go python3"
	[test]="clang libclang-rt-14-dev libcmocka-dev golang-go gdb binutils python3 strace
		prometheus prometheus-node-exporter linux-perf llvm-14 libc6-dbg sqlite3 openssl
		musl-tools openjdk-17-jdk-headless python3-pip python3-dbg ca-certificates"
	[browser]="nodejs npm chromium fonts-dejavu-core"
	[bench]="curl strace"
	[lint]="clang-format clang-tidy python3 shellcheck"
	[kernels]="qemu-system-x86 busybox-static cpio"
	[fresh]="debootstrap debian-archive-keyring curl git util-linux"
	[arm64]="qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
)

wanted=()
for group in "${@:-build}"; do
	if [[ -z ${groups[$group]:-} ]]; then
		echo "setup: unknown group '$group'; use one of: ${!groups[*]}" >&2
		exit 2
	fi
	read -ra names -d '' <<<"${groups[$group]}" || true
	wanted+=("${names[@]}")
done

missing=()
mapfile -t wanted < <(printf '%s\n' "${wanted[@]}" | sort -u)
for package in "${wanted[@]}"; do
	# Node's own packages bring npm along, and refuse Debian's.
	[[ $package == npm ]] && command -v npm >/dev/null && continue
	status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
	[[ $status == installed ]] || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

if [[ $(id -u) -ne 0 ]]; then
	echo "setup: missing packages; run:" >&2
	echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}" >&2
	exit 1
fi

# The packages of Prometheus come with services; we want the programs only.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
	trap 'rm -f "$policy"' EXIT
fi

echo "setup: installing ${#missing[@]} packages and their dependencies: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)

# Follows apt's own account of its progress: 'kind:which:percent:what it does'.
show() {
	local kind percent what line
	while IFS=: read -r kind _ percent what; do
		[[ $kind == dlstatus || $kind == pmstatus ]] || continue
		printf -v line 'setup: [%3d%%] %s' "${percent%.*}" "$what"
		progress "$line"
	done
	progress_end
}

install() {
	apt-get update -o APT::Status-Fd=3 &&
		apt-get install -y --no-install-recommends -o APT::Status-Fd=3 "${missing[@]}"
}

begin=$SECONDS
if ! install 3>&1 >"$log" 2>&1 | show; then
	tail -n 20 "$log" >&2
	echo "setup: could not install ${missing[*]} (log: $log)" >&2
	exit 1
fi
rm -f "$log"
echo "setup: installed after $((SECONDS - begin)) s"
