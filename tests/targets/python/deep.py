"""deep.py N: works below a recursion of that depth, which C began, and below C once more."""
import os
import sys


def key_of(x):
    for i in range(10000):
        x = i * 3
    return x


def bottom(n):
    while True:
        sorted(range(n), key=key_of)


def down(n):
    return down(n - 1) if n > 1 else bottom(100)


sys.setrecursionlimit(10000)
print("ready", os.getpid(), flush=True)
list(map(down, [int(sys.argv[1])]))
