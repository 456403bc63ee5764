"""briefly.py SECONDS: works for so much CPU time and ends by itself.

Its last line says what it used until it began, and until its end, in nanoseconds.
"""
import os
import sys
import time


def brief():
    x = 1
    for i in range(20000):
        x = (x * 3 + i) & 0xFFFF


print("ready", os.getpid(), flush=True)
begin = time.process_time_ns()
while time.process_time_ns() - begin < 1e9 * float(sys.argv[1]):
    brief()
print(begin, time.process_time_ns(), flush=True)
