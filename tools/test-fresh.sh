#!/usr/bin/env bash
# Runs `make run` and `make test` as a newcomer would: in a fresh, minimal Debian 12 with git and make,
# so that a package or a mount that merely happens to be here is noticed.
#
#   tools/test-fresh.sh [STEP...]    run: `make run` until its page answers; test: `make test`;
#                                    shell: a shell in the root that FRESH_KEEP left
#                                    (default: run test)
#
#   FRESH_DIR=DIR       for the root (about 6 GB), the cached base and the logs (default: build-fresh)
#   FRESH_TEST=COMMAND  what the step test runs in the clone (default: make test)
#   FRESH_KEEP=1        keep the root afterwards
#
# The root has a mount namespace of its own, with its own /proc, /sys, /dev and /run; no tracefs, debugfs
# or bpffs. It shares the machine's process ids, which CPU profiles need, its network and its cgroups.
# The base is made once and kept for a month; the root is unpacked anew each time. What runs in it at
# the end is killed by pid, and its mounts go with the namespace.
set -euo pipefail
# shellcheck source=tools/progress.sh
source "$(dirname "$0")/progress.sh"

suite=bookworm
packages=git,make

# --- in the namespace ---------------------------------------------------------------------------

# Makes the folder $1 the root of this mount namespace, and holds it until the input ends.
hold() {
	local root=$1 repository=$2 name
	# pivot_root wants a mount point, and `unshare --mount` in the tests does, too.
	mount --bind "$root" "$root"
	cd "$root"
	mount -t proc -o nosuid,nodev,noexec proc proc
	mount -t sysfs -o nosuid,nodev,noexec sysfs sys
	[[ ! -d /sys/fs/cgroup ]] || mount --rbind /sys/fs/cgroup sys/fs/cgroup
	# Not devtmpfs: that is the host's, and what is made there stays.
	mount -t tmpfs -o nosuid,mode=755 tmpfs dev
	for name in null:3 zero:5 full:7 random:8 urandom:9; do
		mknod -m 666 "dev/${name%:*}" c 1 "${name#*:}"
	done
	mknod -m 666 dev/tty c 5 0
	ln -s pts/ptmx dev/ptmx
	ln -s /proc/self/fd dev/fd
	ln -s fd/0 dev/stdin
	ln -s fd/1 dev/stdout
	ln -s fd/2 dev/stderr
	mkdir dev/pts dev/shm
	mount -t devpts -o newinstance,gid=5,mode=620,ptmxmode=666 devpts dev/pts
	mount -t tmpfs -o nosuid,nodev,mode=1777 tmpfs dev/shm
	mount -t tmpfs -o nosuid,nodev,mode=755 tmpfs run
	mkdir -m 1777 run/lock
	mount --bind -o ro "$repository" mnt
	pivot_root . .
	umount -l .
	echo ready
	exec cat
}

if [[ ${1:-} == hold ]]; then
	hold "$2" "$3"
fi

# --- outside of it ------------------------------------------------------------------------------

cd "$(dirname "$0")/.."
dir=${FRESH_DIR:-build-fresh}
mkdir -p "$dir"
dir=$(realpath "$dir")
root=$dir/root
logs=$dir/logs
base=$dir/base-$suite.tar
steps=("$@")
[[ $# -gt 0 ]] || steps=(run test)
holder=
failed=

say() {
	printf 'fresh: [%3d:%02d] %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$1"
}

fail() {
	say "$1" >&2
	exit 1
}

# The processes in the root, whoever started them, and in whatever namespace they are by now.
inhabitants() {
	local process
	for process in /proc/[0-9]*; do
		if [[ $process/root -ef $root && ${process#/proc/} != "$holder" ]]; then
			echo "${process#/proc/}"
		fi
	done
}

end_inhabitants() {
	local signal pid
	for signal in TERM KILL; do
		for _ in {1..20}; do
			[[ -n $(inhabitants) ]] || return 0
			for pid in $(inhabitants); do
				kill -s "$signal" "$pid" 2>/dev/null || true
			done
			sleep 0.25
		done
	done
}

remove_root() {
	[[ -e $root ]] || return 0
	# Nothing of ours is mounted here; what is mounted anyway must not be emptied.
	if grep -qF " $root" /proc/self/mountinfo; then
		fail "something is mounted below $root; unmount it first"
	fi
	rm -rf --one-file-system "$root"
}

clean_up() {
	local status=$?
	trap - EXIT
	trap '' INT TERM
	end_inhabitants
	if [[ -n $holder ]]; then
		kill "$holder" 2>/dev/null || true
		wait "$holder" 2>/dev/null || true
	fi
	if [[ -n ${FRESH_KEEP:-} ]]; then
		say "kept $root; enter it with 'tools/test-fresh.sh shell'"
	else
		say "removing the root; the logs are in $logs"
		remove_root
	fi
	exit "$status"
}

# Debian's mirrors as this machine has them: lines of 'URI suite'.
mirrors() {
	local found
	# shellcheck disable=SC2016  # apt's variables
	found=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' \
		'Created-By: Packages' 2>/dev/null |
		awk -v s="$suite" '$3 == "main" && ($2 == s || $2 == s "-updates" ||
			$2 == s "-security") { print $1, $2 }' | sort -u) || true
	if ! grep -q " $suite\$" <<<"$found"; then
		found="http://deb.debian.org/debian $suite
http://deb.debian.org/debian $suite-updates
http://deb.debian.org/debian-security $suite-security"
	fi
	echo "$found"
}

show_lines() {
	local line
	while IFS= read -r line; do
		progress "fresh: ${line#I: }"
	done
	progress_end
}

make_base() {
	local mirror include=$packages proxy=
	if [[ -n $(find "$base" -mtime -30 2>/dev/null) ]]; then
		say "using the base of $(date -r "$base" +%F) ($base)"
		return
	fi
	mirror=$(mirrors | awk -v s="$suite" '$2 == s { print $1; exit }')
	[[ $mirror != https:* ]] || include+=,ca-certificates
	# debootstrap asks wget, which does not know of apt's proxy.
	eval "$(apt-config shell proxy Acquire::http::Proxy)"
	[[ -z $proxy ]] || export http_proxy=${http_proxy:-$proxy}
	say "making the base: Debian $suite with $include (debootstrap, some minutes)"
	remove_root
	# It mounts, too.
	unshare --mount --propagation private debootstrap --variant=minbase --include="$include" \
		"$suite" "$root" "$mirror" 2>&1 | tee "$logs/debootstrap.log" | show_lines ||
		fail "debootstrap failed: $(tail -n 1 "$logs/debootstrap.log") ($logs/debootstrap.log)"
	rm -f "$root"/var/cache/apt/archives/*.deb
	tar -C "$root" --numeric-owner --one-file-system -cf "$base.new" .
	mv "$base.new" "$base"
}

# How this machine reaches mirrors and registries, and nothing else of its settings.
copy_network() {
	local file
	mirrors | sed 's/^/deb /; s/$/ main/' >"$root/etc/apt/sources.list"
	apt-config dump Acquire | grep -E '^Acquire::(https?::|ftp::|Check-|Retries|ForceIPv)' \
		>"$root/etc/apt/apt.conf.d/90network" || true
	cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
	# ca-certificates takes them up when it is installed.
	if compgen -G '/usr/local/share/ca-certificates/*.crt' >/dev/null; then
		mkdir -p "$root/usr/local/share/ca-certificates"
		cp -L /usr/local/share/ca-certificates/*.crt "$root/usr/local/share/ca-certificates/"
		[[ ! -e $root/usr/sbin/update-ca-certificates ]] ||
			chroot "$root" update-ca-certificates >/dev/null 2>&1
	fi
	for file in /etc/npmrc /usr/etc/npmrc ~/.npmrc; do
		[[ ! -e $file ]] || grep -E '^(@[^:]+:)?(registry|(https-)?proxy|noproxy)\b' "$file" \
			>>"$root/root/.npmrc" || true
	done
	if [[ -e ~/.config/go/env ]]; then
		mkdir -p "$root/root/.config/go"
		grep -E '^GO(PROXY|NOPROXY|SUMDB|NOSUMDB|PRIVATE|INSECURE)=' ~/.config/go/env \
			>"$root/root/.config/go/env" || true
	fi
	for file in /etc/pip.conf ~/.config/pip/pip.conf; do
		[[ ! -e $file ]] || cp -L "$file" "$root/etc/pip.conf"
	done
}

# What a login has, and the way to the network.
environment() {
	echo "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	echo "HOME=/root"
	echo "USER=root"
	echo "LOGNAME=root"
	echo "SHELL=/bin/bash"
	echo "TERM=${TERM:-dumb}"
	env | grep -iE '^(https?|ftp|all|no)_proxy=|^npm_config_(registry|(https_)?proxy|noproxy)=' || true
	env | grep -E '^GO(PROXY|NOPROXY|SUMDB|NOSUMDB|PRIVATE|INSECURE)=' || true
	env | grep -E '^PIP_(INDEX_URL|EXTRA_INDEX_URL|TRUSTED_HOST|PROXY)=' || true
}

# Replaces the (sub)shell that calls it; a session of its own, as a terminal would give it.
inside() {
	local names
	mapfile -t names < <(environment)
	exec "${session[@]}" env -i --default-signal=INT "${names[@]}" \
		nsenter --mount="/proc/$holder/ns/mnt" "$@" 9>&-
}
session=(setsid)

# Runs a command in the root: to the end, shown and logged. Status: that of the command.
inside_logged() {
	local log=$1 status=0
	shift
	(inside "$@") > >(tee "$log") 2>&1 &
	wait $! || status=$?
	return "$status"
}

enter_root() {
	local line='' common from
	common=$(git rev-parse --path-format=absolute --git-common-dir)
	coproc HOLDER { exec unshare --mount --propagation private tools/test-fresh.sh hold "$root" "$common"; }
	holder=$!
	from=${HOLDER[0]:-}
	# Its input is closed when we end, however that comes, and then it ends as well.
	[[ -z $from ]] || read -r -u "$from" line || true
	[[ $line == ready ]] || fail "cannot mount the root: this takes CAP_SYS_ADMIN"
}

clone() {
	local commit
	commit=$(git rev-parse HEAD)
	[[ -z $(git status --porcelain) ]] ||
		say "note: what is not committed is not in the clone"
	say "cloning $(git log -1 --format='%h (%s)')"
	# The owner of the repository may be another than root.
	# shellcheck disable=SC2016  # expanded in the root
	inside_logged "$logs/clone.log" bash -c '
		git config --file /tmp/gitconfig safe.directory "*"
		export GIT_CONFIG_GLOBAL=/tmp/gitconfig
		git clone --quiet --no-checkout file:///mnt /root/sonde &&
			cd /root/sonde && git fetch --quiet origin "$1" &&
			git -c advice.detachedHead=false checkout --quiet "$1" &&
			umount /mnt' - "$commit" ||
		fail "cannot clone this repository (git status here, and $logs/clone.log)"
}

# fetch URL FILE
fetch() {
	curl --silent --show-error --fail --noproxy '*' --max-time 20 --output "$2" "$1"
}

# The page, the state of the agent, and CPU profiles of some service.
page_answers() {
	fetch "$1/" "$logs/page.html" && grep -qi '<html' "$logs/page.html" &&
		fetch "$1/api/health" "$logs/health.json" &&
		fetch "$1/api/services" "$logs/services.json" &&
		grep -q '"cpu:cpu:nanoseconds"' "$logs/services.json"
} 2>>"$logs/page.log"

step_run() {
	local log=$logs/run.log pid url='' begin=$SECONDS left
	say "make run ($log)"
	# On any port: the usual one may be in use on the host.
	(inside bash -c 'cd /root/sonde && SONDE_LISTEN=127.0.0.1:0 exec make run') > >(tee "$log") 2>&1 &
	pid=$!
	until [[ -n $url ]] && page_answers "$url"; do
		kill -0 "$pid" 2>/dev/null || fail "make run ended before its page answered ($log)"
		[[ $((SECONDS - begin)) -lt ${FRESH_RUN_SECONDS:-3600} ]] ||
			fail "make run: no page after $((SECONDS - begin)) s ($log)"
		sleep 1
		url=$(grep -oE -m1 'http://127\.0\.0\.1:[0-9]+' "$log" || true)
	done
	say "make run: $url answers after $((SECONDS - begin)) s, and lists services"
	# What Ctrl-C does.
	kill -INT -- "-$pid"
	for _ in {1..120}; do
		left=$(inhabitants)
		[[ -n $left ]] || break
		sleep 0.25
	done
	wait "$pid" || true
	[[ -z $left ]] || fail "make run: still running after Ctrl-C: $(ps_of "$left")"
	say "make run: ended by Ctrl-C, nothing left behind"
}

ps_of() {
	local pid
	for pid in $1; do
		printf '%s (%s) ' "$pid" "$(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null || true)"
	done
}

step_test() {
	local command=${FRESH_TEST:-make test} status=0 begin=$SECONDS left
	say "$command ($logs/test.log)"
	inside_logged "$logs/test.log" bash -c "cd /root/sonde && $command" || status=$?
	cp -r "$root/root/sonde/build/test-logs" "$logs/" 2>/dev/null || true
	say "$command: exit status $status after $((SECONDS - begin)) s"
	left=$(inhabitants)
	if [[ -n $left ]]; then
		say "left behind: $(ps_of "$left")"
		[[ $status -ne 0 ]] || status=1
	fi
	failed=$status
}

main() {
	local step
	for step in "${steps[@]}"; do
		[[ $step =~ ^(run|test|shell)$ ]] ||
			{ echo "test-fresh: unknown step '$step'; use run, test or shell" >&2; exit 2; }
	done
	[[ $(id -u) -eq 0 ]] || fail "needs root"
	exec 9>"$dir/lock"
	flock -n 9 || fail "another run uses $dir; give another one with FRESH_DIR="
	mkdir -p "$logs"
	trap clean_up EXIT
	trap 'exit 130' INT TERM

	if [[ ${steps[0]} == shell ]]; then
		[[ -d $root ]] || fail "there is no root in $dir; leave one with FRESH_KEEP=1"
		FRESH_KEEP=1
		enter_root
		# This one has the terminal, and Ctrl-C is its own.
		session=()
		trap '' INT
		(inside bash -l) || true
		return
	fi
	rm -rf "${logs:?}"/*
	make_base
	say "unpacking the root into $root"
	remove_root
	mkdir "$root"
	tar -C "$root" --numeric-owner -xpf "$base"
	copy_network
	# It is thrown away: dpkg need not wait for the disk.
	echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe-io"
	enter_root
	clone
	for step in "${steps[@]}"; do
		"step_$step"
	done
	exit "${failed:-0}"
}

main
