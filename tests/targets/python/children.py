"""children.py METHOD SECONDS: a process made by multiprocessing works for so much CPU time; its
parent waits.

"ready PID" with that of the child; its last line says what it used until it began, and until its
end, in nanoseconds.
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
    begin = time.process_time_ns()
    while time.process_time_ns() - begin < 1e9 * seconds:
        in_child()
    print(begin, time.process_time_ns(), flush=True)


if __name__ == "__main__":
    child = multiprocessing.get_context(sys.argv[1]).Process(target=run,
                                                             args=(float(sys.argv[2]),))
    child.start()
    child.join()
