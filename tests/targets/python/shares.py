"""Spends about 50, 30 and 20 percent of its time in three functions, and counts it.

"ready PID" when it begins; each line of input is answered with the CPU time of each in nanoseconds.
"""
import os
import random
import select
import sys
import time


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


def work(spent):
    for function, part in ((heavy, 5), (medium, 3), (light, 2)):
        # Of no fixed length: nothing to fall into step with.
        n = part * int(4000 * (0.5 + random.random()))
        begin = time.thread_time_ns()
        function(n)
        spent[function.__name__] += time.thread_time_ns() - begin


def main():
    spent = {"heavy": 0, "medium": 0, "light": 0}
    print("ready", os.getpid(), flush=True)
    while True:
        work(spent)
        if select.select([sys.stdin], [], [], 0)[0]:
            if not sys.stdin.readline():
                return
            print(*spent.values(), flush=True)


main()
