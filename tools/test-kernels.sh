#!/usr/bin/env bash
# Runs the tests of CPU profiles and of OOM kills on Debian's own kernel, in a virtual machine without KVM: for
# correctness, not for speed. The machine sees this one's files through 9p and writes to memory.
#
#   tools/test-kernels.sh [WORD]    only tests whose name contains WORD
set -euo pipefail

cd "$(dirname "$0")/.."
root=$PWD
word=${1:-}
dir=$root/build-kernels
mkdir -p "$dir"

package=$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image/ { print $2; exit }')
if ! compgen -G "$dir/${package}_*.deb" >/dev/null; then
	echo "test-kernels: fetching $package"
	(cd "$dir" && apt-get download "$package" >/dev/null 2>&1) || {
		echo "test-kernels: cannot fetch $package: is Debian's mirror reachable?" >&2
		exit 1
	}
fi
rm -rf "$dir/kernel" "$dir/initrd"
dpkg -x "$dir/${package}"_*.deb "$dir/kernel"

# What it takes to mount a folder of ours; in this order.
modules=(virtio virtio_ring virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci
	netfs fscache 9pnet 9pnet_virtio 9p overlay)
mkdir -p "$dir/initrd"/{bin,modules,host,over,root,proc}
cp /bin/busybox "$dir/initrd/bin/busybox"
for module in "${modules[@]}"; do
	find "$dir/kernel" -name "$module.ko" -exec cp {} "$dir/initrd/modules/" \;
done

cat >"$dir/initrd/init" <<END
#!/bin/busybox sh
/bin/busybox --install -s /bin
for module in ${modules[*]}; do
	[ -e /modules/\$module.ko ] && insmod /modules/\$module.ko
done
mount -t proc proc /proc
mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,cache=loose,ro host /host
mount -t tmpfs tmpfs /over
mkdir /over/up /over/work
mount -t overlay -o lowerdir=/host,upperdir=/over/up,workdir=/over/work overlay /root
mount -t proc proc /root/proc
mount -t sysfs sysfs /root/sys
mount -t cgroup2 cgroup2 /root/sys/fs/cgroup
echo +memory >/root/sys/fs/cgroup/cgroup.subtree_control
mount -t devtmpfs dev /root/dev
mkdir -p /root/dev/pts /root/dev/shm
mount -t devpts devpts /root/dev/pts
mount -t tmpfs tmpfs /root/dev/shm
mount -t tmpfs tmpfs /root/run
ip link set lo up
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
export SONDE_TEST_SLOW=1
chroot /root /bin/bash -c 'set -o pipefail; cd "$root" && uname -r &&
	python3 tests/oracle/run.py --quick --module cpu,python,oom -k "$word" 2>&1 | cat'
echo "exit code \$?"
poweroff -f
END
chmod +x "$dir/initrd/init"
(cd "$dir/initrd" && find . | cpio -o -H newc --quiet | gzip -1) >"$dir/initrd.gz"

# The machine would take minutes for each of Go's programs.
PYTHONPATH=tests/oracle/lib python3 - <<'END'
import rig

for _, go in rig.versions(False):
    for variant in ("plain", "strip", "pie-strip"):
        rig.build.build("cpugo", go, variant)
    for variant in ("plain", "strip"):
        rig.build.build("oom", go, variant)
END

echo "test-kernels: $package; this takes a few minutes"
timeout "${KERNEL_TEST_SECONDS:-3000}" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 \
	-m 3G -nographic -no-reboot -kernel "$dir"/kernel/boot/vmlinuz-* -initrd "$dir/initrd.gz" \
	-append "console=ttyS0 quiet panic=-1 nokaslr" \
	-virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap \
	</dev/null | stdbuf -oL tr -d '\r' | tee "$dir/console.log"
grep -q '^exit code 0$' "$dir/console.log"
