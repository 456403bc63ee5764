"""What a sample costs at least: BPF programs that do next to nothing, on the sampler's events.

The kernel's own walks are what a profiler without unwind tables takes. They follow frame pointers,
so most user stacks are a frame or two.
"""
import contextlib
import ctypes
import fcntl
import os
import struct
import time

import rig

SYS_BPF, SYS_PERF_EVENT_OPEN = 321, 298
BPF_PROG_LOAD, BPF_ENABLE_STATS = 5, 32
PROG_TYPE_PERF_EVENT = 7
PERF_TYPE_SOFTWARE, PERF_FREQ, PERF_CLOEXEC = 1, 1 << 10, 8
PERF_IOC_SET_BPF = 0x40042408
ATTRIBUTE_BYTES = 128
STACK_BYTES = 504  # what fits on the stack of a BPF program
USER_STACK = 256

LIBC = ctypes.CDLL(None, use_errno=True)


def call(what, *arguments):
    result = LIBC.syscall(*arguments)
    if result < 0:
        raise rig.BenchError(f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


@contextlib.contextmanager
def accounts():
    """The kernel counts what BPF programs cost, as long as this is open."""
    attribute = bytes(ATTRIBUTE_BYTES)  # BPF_STATS_RUN_TIME is 0
    fd = call("bpf statistics", SYS_BPF, BPF_ENABLE_STATS, attribute, len(attribute))
    try:
        yield
    finally:
        os.close(fd)


def instruction(code, dst=0, src=0, value=0):
    return struct.pack("<BBhi", code, src << 4 | dst, 0, value)


RETURN_0 = instruction(0xb7) + instruction(0x95)


def get_stack(flags):
    """bpf_get_stack(ctx, stack of the program, STACK_BYTES, flags)"""
    return (instruction(0xbf, 2, 10) + instruction(0x07, 2, value=-STACK_BYTES) +
            instruction(0xb7, 3, value=STACK_BYTES) + instruction(0xb7, 4, value=flags) +
            instruction(0x85, value=67) + RETURN_0)


PROGRAMS = {"empty": RETURN_0, "kernel": get_stack(0), "user": get_stack(USER_STACK)}


def load(code):
    text = ctypes.create_string_buffer(code, len(code))
    licence = ctypes.create_string_buffer(b"GPL")
    attribute = struct.pack("<IIQQ", PROG_TYPE_PERF_EVENT, len(code) // 8,
                            ctypes.addressof(text), ctypes.addressof(licence))
    attribute = attribute.ljust(ATTRIBUTE_BYTES, b"\0")
    return call("BPF program", SYS_BPF, BPF_PROG_LOAD, attribute, len(attribute))


def attach(program, cpu, hz):
    """As the sampler does: cpu-clock, that many a second."""
    attribute = struct.pack("<IIQQQQQ", PERF_TYPE_SOFTWARE, ATTRIBUTE_BYTES, 0, hz, 0, 0, PERF_FREQ)
    attribute = attribute.ljust(ATTRIBUTE_BYTES, b"\0")
    fd = call("perf event", SYS_PERF_EVENT_OPEN, attribute, -1, cpu, -1, PERF_CLOEXEC)
    fcntl.ioctl(fd, PERF_IOC_SET_BPF, program)
    return fd


def measure(cost, hz, seconds):
    """Nanoseconds per sample by program, all at the same time; cost(pid, fd): (runs, ns)."""
    programs = {name: load(code) for name, code in PROGRAMS.items()}
    events = [attach(fd, cpu, hz) for fd in programs.values() for cpu in range(os.cpu_count())]
    try:
        time.sleep(seconds)
        costs = {name: cost(os.getpid(), fd) for name, fd in programs.items()}
    finally:
        for fd in [*events, *programs.values()]:
            os.close(fd)
    return {name: spent / max(runs, 1) for name, (runs, spent) in costs.items()}
