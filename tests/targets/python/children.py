"""children.py METHOD SECONDS: a process made by multiprocessing works so long; its parent waits.

"ready PID" with that of the child.
"""
import multiprocessing
import os
import sys
import time


def in_child():
    x = 1
    for i in range(20000):
        x = (x * 3 + i) & 0xFFFF


def run(seconds):
    print("ready", os.getpid(), flush=True)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        in_child()


if __name__ == "__main__":
    child = multiprocessing.get_context(sys.argv[1]).Process(target=run,
                                                             args=(float(sys.argv[2]),))
    child.start()
    child.join()
