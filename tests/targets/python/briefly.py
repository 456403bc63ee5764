"""briefly.py SECONDS: works so long and ends by itself."""
import os
import sys
import time


def brief():
    x = 1
    for i in range(20000):
        x = (x * 3 + i) & 0xFFFF


print("ready", os.getpid(), flush=True)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    brief()
