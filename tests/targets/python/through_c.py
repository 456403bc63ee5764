"""Python that calls C that calls Python: what sorts, reduces and replaces, by functions of ours."""
import functools
import os
import random
import re

NUMBERS = list(range(3000))
TEXT = "a1" * 2000


def key_of(x):
    for _ in range(10):
        x = -x
    return x


def by_sort():
    return sorted(NUMBERS, key=key_of)


def step(a, b):
    for _ in range(10):
        a = a ^ b
    return a


def by_reduce():
    return functools.reduce(step, NUMBERS)


def replaced(match):
    for _ in range(10):
        x = -1
    return "b"


def by_sub():
    return re.sub("a", replaced, TEXT)


print("ready", os.getpid(), flush=True)
# In no fixed order: nothing to fall into step with.
while True:
    (by_sort, by_reduce, by_sub)[int(random.random() * 3)]()
