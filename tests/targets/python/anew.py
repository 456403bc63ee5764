"""Functions that live for a second each, the next one where the last one was in memory."""
import gc
import itertools
import os
import time

SOURCE = """
def made_{}():
    x = 1
    for i in range(20000):
        x = (x * 3 + i) & 0xFFFF
"""


def work(number, end):
    made = {}
    exec(compile(SOURCE.format(number), "<made>", "exec"), made)
    function = made[f"made_{number}"]
    while time.monotonic() < end:
        function()
    made.clear()
    return id(function.__code__)


places = set()
print("ready", os.getpid(), flush=True)
for number in itertools.count():
    places.add(work(number, time.monotonic() + 1))
    gc.collect()
    assert len(places) < 4, "they are not in the place of others"
