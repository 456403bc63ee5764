"""Waits in known places: a sleep, and a lock that another thread holds; each for a millisecond or
longer.

Each line of input is answered with how often and how long, in nanoseconds by its own clock, each of
sleeps, holds and wants was at it.
"""
import os
import sys
import threading
import time

LOCK = threading.Lock()


def sleeps():
    time.sleep(0.02)


def holds():
    with LOCK:
        time.sleep(0.02)
    time.sleep(0.002)


def wants():
    time.sleep(0.002)
    with LOCK:
        pass


def repeat(function):
    waited = WAITED[function]
    while True:
        start = time.monotonic_ns()
        function()
        waited[1] += time.monotonic_ns() - start
        waited[0] += 1


WAITED = {function: [0, 0] for function in (sleeps, holds, wants)}
for function in WAITED:
    threading.Thread(target=repeat, args=(function,), daemon=True).start()
print("ready", os.getpid(), flush=True)
while sys.stdin.readline():
    print(*(n for waited in WAITED.values() for n in waited), flush=True)
