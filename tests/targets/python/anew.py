"""Functions that live for half a second of CPU time each, the next one where the last one was in
memory.

Each line of input is answered with the CPU time of those that are over, in nanoseconds.
"""
import gc
import itertools
import os
import select
import sys
import time

SOURCE = """
def made_{}():
    x = 1
    for i in range(20000):
        x = (x * 3 + i) & 0xFFFF
"""
LIFE_NS = 500_000_000


def answer(spent):
    if select.select([sys.stdin], [], [], 0)[0]:
        if not sys.stdin.readline():
            sys.exit()
        print(*spent, flush=True)


def work(number, spent):
    made = {}
    exec(compile(SOURCE.format(number), "<made>", "exec"), made)
    function = made[f"made_{number}"]
    start = time.thread_time_ns()
    while time.thread_time_ns() - start < LIFE_NS:
        function()
        answer(spent)
    spent.append(time.thread_time_ns() - start)
    made.clear()
    return id(function.__code__)


places, spent = set(), []
print("ready", os.getpid(), flush=True)
for number in itertools.count():
    places.add(work(number, spent))
    gc.collect()
    assert len(places) < 4, "they are not in the place of others"
