"""Waits in known places: a sleep, and a lock that another thread holds."""
import os
import threading
import time

LOCK = threading.Lock()


def sleeps():
    time.sleep(0.05)


def holds():
    while True:
        with LOCK:
            time.sleep(0.05)


def wants():
    while True:
        with LOCK:
            pass
        time.sleep(0.001)


for function in (holds, wants):
    threading.Thread(target=function, daemon=True).start()
print("ready", os.getpid(), flush=True)
while True:
    sleeps()
