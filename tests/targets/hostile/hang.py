#!/usr/bin/env python3
"""Programs whose memory and names are served by a program that does not answer (FUSE).

    hang.py UID KIND...    as root: starts one program of each KIND as the user UID, and prints
                           "ready PID..."; what they have hung ends with this one, when its input does

Whoever reads what is not answered sleeps in the kernel, and no signal ends that.

    text      computes in code of a file there, whose first page is never answered
    python    runs a function whose name lies there
    tmp       has all of /tmp there, and computes in code that only a perf map could name
    exec      never leaves an exec: what it had asked for before is not answered, and its memory is
              not given back before that. The kernel has all wait who look at such a process.
"""
import ctypes
import mmap
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time

PAGE = 4096
FILE_PAGES = 64
# The page of each file that is answered: one with a loop.
ANSWERED = 1
LOOP = b"\xeb\xfe"  # jmp to itself

CLONE_NEWNS = 0x20000
PR_SET_PDEATHSIG = 1
READY = 99  # a descriptor; closed when a program has begun
IO_SETUP, IO_SUBMIT = (206, 209) if os.uname().machine == "x86_64" else (0, 2)
IOCB_CMD_PREAD = 0
MS_REC, MS_PRIVATE, MS_NOSUID, MS_NODEV, MS_BIND = 0x4000, 1 << 18, 2, 4, 0x1000

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE = 1, 2, 3, 14, 15, 17, 18
# Reads in flight do not hold up who began them, nor a lookup others in its directory.
ASYNC_DIO, PARALLEL_DIROPS = 1 << 15, 1 << 18
FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, INTERRUPT, BATCH_FORGET = 25, 26, 27, 28, 29, 36, 42
ENOSYS = 38
ROOT_NODE = 1

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                      ctypes.c_long]


def check(result, what):
    if result in (-1, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), what)
    return result


def mount(source, target, kind, flags, data=None):
    check(libc.mount(source.encode(), target.encode(), kind.encode(), flags,
                     data.encode() if data else None), f"mount {target}")


# --- the file system ------------------------------------------------------------------------------


def attributes(node):
    folder = node == ROOT_NODE
    mode = 0o40755 if folder else 0o100755
    size = 0 if folder else FILE_PAGES * PAGE
    return struct.pack("<6Q10I", node, size, FILE_PAGES * 8, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0,
                       PAGE, 0)


def answer(opcode, body):
    """Bytes, None where nobody waits for one; Ellipsis: never."""
    if opcode in (FORGET, BATCH_FORGET, INTERRUPT):
        return None
    if opcode == INIT:
        minor = min(struct.unpack_from("<2I", body)[1], 31)
        return struct.pack("<4I2H2I2HI7I", 7, minor, 0, ASYNC_DIO | PARALLEL_DIROPS, 16, 16, PAGE, 1,
                           1, 0, 0, *[0] * 7)
    if opcode in (OPEN, OPENDIR):
        return bytes(16)
    if opcode == READ:
        _, offset, size = struct.unpack_from("<2QI", body)
        if offset // PAGE != ANSWERED:
            return ...
        return LOOP.ljust(size, b"\x90")
    if opcode == STATFS:
        return struct.pack("<5Q10I", 0, 0, 0, 0, 0, PAGE, 255, PAGE, *[0] * 7)
    return b"" if opcode in (FLUSH, RELEASE, RELEASEDIR, READDIR) else ENOSYS


def serve(fd):
    nodes = {}
    while True:
        try:
            request = os.read(fd, 1 << 20)
        except OSError:
            return  # unmounted
        _, opcode, unique, node = struct.unpack_from("<2I2Q", request)
        body = request[40:]
        if opcode == LOOKUP:
            name = body.rstrip(b"\0")
            if name.startswith(b"perf-"):
                continue
            node = nodes.setdefault(name, len(nodes) + 2)
            reply = struct.pack("<4Q2I", node, 0, 3600, 3600, 0, 0) + attributes(node)
        elif opcode == GETATTR:
            reply = struct.pack("<Q2I", 3600, 0, 0) + attributes(node)
        else:
            reply = answer(opcode, body)
        if reply is None or reply is ...:
            continue
        error, reply = (-reply, b"") if isinstance(reply, int) else (0, reply)
        os.write(fd, struct.pack("<IiQ", 16 + len(reply), error, unique) + reply)


# --- the programs ---------------------------------------------------------------------------------


def ready():
    """All that hangs is in place."""
    os.close(READY)


def spin(address):
    ready()
    ctypes.CFUNCTYPE(None)(address)()


def map_file(path, page, n_pages, protection):
    fd = os.open(path, os.O_RDONLY)
    return check(libc.mmap(None, n_pages * PAGE, protection, mmap.MAP_PRIVATE, fd, page * PAGE),
                 "mmap")


def text(path):
    spin(map_file(path, ANSWERED, 1, mmap.PROT_READ | mmap.PROT_EXEC))


def python(path):
    def function():
        while True:
            pass

    code = function.__code__
    name = map_file(path, 2, 4, mmap.PROT_READ)
    words = (ctypes.c_uint64 * (sys.getsizeof(code) // 8)).from_address(id(code))
    names = [id(getattr(code, key)) for key in ("co_name", "co_qualname") if hasattr(code, key)]
    found = [i for i, word in enumerate(words) if word in names]
    assert found, "no name"
    for i in found:
        words[i] = name + 64
    ready()
    function()


def tmp(_):
    page = mmap.mmap(-1, PAGE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(LOOP)
    spin(ctypes.addressof(ctypes.c_char.from_buffer(page)))


def exec_(path):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    context = ctypes.c_ulong()
    check(libc.syscall(IO_SETUP, 1, ctypes.byref(context)), "io_setup")
    page = mmap.mmap(-1, PAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    block = struct.pack("<QIIHhIQQqQII", 0, 0, 0, IOCB_CMD_PREAD, 0, fd, address, PAGE, 2 * PAGE,
                        0, 0, 0)
    block = ctypes.create_string_buffer(block, len(block))
    blocks = (ctypes.c_void_p * 1)(ctypes.addressof(block))
    check(libc.syscall(IO_SUBMIT, context, 1, blocks), "io_submit")
    ready()
    os.execv("/bin/true", ["true"])


KINDS = {"text": text, "python": python, "tmp": tmp, "exec": exec_}


def become(uid):
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def end_with_parent():
    check(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL), "prctl")


def wait_stuck(pid):
    """Until it sleeps, and no longer runs in between. This file of it never makes us wait."""
    before = None
    while True:
        with open(f"/proc/{pid}/status", encoding="utf-8") as f:
            lines = dict(line.split(":", 1) for line in f)
        now = lines["voluntary_ctxt_switches"]
        if "D" in lines["State"] and now == before:
            return
        before = now
        time.sleep(0.1)


def start(kind, uid, path):
    done, told = os.pipe()
    os.dup2(told, READY)
    os.close(told)
    program = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--as", str(uid), kind,
                                path], stdin=subprocess.DEVNULL, pass_fds=[READY])
    os.close(READY)
    os.read(done, 1)  # its end
    os.close(done)
    if kind == "exec":
        wait_stuck(program.pid)
    assert program.poll() is None, f"{kind} has ended"
    return program


def run(uid, kind, path):
    if kind == "tmp":
        check(libc.unshare(CLONE_NEWNS), "unshare")
        mount(os.path.dirname(path), "/tmp", "", MS_BIND)
    become(uid)
    end_with_parent()
    KINDS[kind](path)


def main():
    if sys.argv[1] == "--as":
        run(int(sys.argv[2]), sys.argv[3], sys.argv[4])
    check(libc.unshare(CLONE_NEWNS), "unshare")
    mount("none", "/", "none", MS_REC | MS_PRIVATE)
    folder = tempfile.mkdtemp(prefix="sonde-hang-")
    fd = os.open("/dev/fuse", os.O_RDWR)
    mount("hang", folder, "fuse", MS_NOSUID | MS_NODEV,
          f"fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other")
    server = os.fork()
    if server == 0:
        end_with_parent()
        serve(fd)
        os._exit(0)
    os.close(fd)
    programs = [start(kind, int(sys.argv[1]), os.path.join(folder, f"{kind}{i}"))
                for i, kind in enumerate(sys.argv[2:])]
    print("ready", *(p.pid for p in programs), flush=True)
    sys.stdin.read()


main()
