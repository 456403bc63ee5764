"""Spends about 50, 30 and 20 percent of its time in three functions, and counts what each does.

"ready PID" when it begins; each line of input is answered with the units of work of each.
"""
import os
import random
import select
import sys


def heavy(n):
    x = 1
    for i in range(n):
        x = (x * 3 + i) & 0xFFFF
    return x


def medium(n):
    x = 1
    for i in range(n):
        x = (x * 3 + i) & 0xFFFF
    return x


def light(n):
    x = 1
    for i in range(n):
        x = (x * 3 + i) & 0xFFFF
    return x


def work(done):
    for function, part in ((heavy, 5), (medium, 3), (light, 2)):
        # Of no fixed length: nothing to fall into step with.
        n = part * int(4000 * (0.5 + random.random()))
        function(n)
        done[function.__name__] += n


def main():
    done = {"heavy": 0, "medium": 0, "light": 0}
    print("ready", os.getpid(), flush=True)
    while True:
        work(done)
        if select.select([sys.stdin], [], [], 0)[0]:
            if not sys.stdin.readline():
                return
            print(*done.values(), flush=True)


main()
