"""Threads that take turns, one that works without the lock of the interpreter, one that waits."""
import hashlib
import os
import threading

DATA = bytes(4 << 20)


def named(function):
    """The kernel knows no names that Python gives before 3.14."""
    has_its_name = threading.Event()

    def run():
        with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as f:
            f.write(function.__name__)
        has_its_name.set()
        function()
    threading.Thread(target=run, daemon=True).start()
    has_its_name.wait()


def shared():
    x = 1
    for i in range(5000):
        x = (x * 3 + i) & 0xFFFF


def go_north():
    x = 1
    for i in range(5000):
        x = (x * 3 + i) & 0xFFFF
    shared()


def go_south():
    x = 1
    for i in range(5000):
        x = (x * 3 + i) & 0xFFFF
    shared()


def go_digest():
    hashlib.sha256(DATA).digest()


def north():
    while True:
        go_north()


def south():
    while True:
        go_south()


def digest():
    while True:
        go_digest()


def waiter():
    threading.Event().wait()


for function in (north, south, digest, waiter):
    named(function)
print("ready", os.getpid(), flush=True)
threading.Event().wait()
