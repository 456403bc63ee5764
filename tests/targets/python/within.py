"""within.py run | idle: an interpreter within the interpreter, which works or only is there."""
import os
import sys

try:
    import _interpreters
except ImportError:
    import _xxsubinterpreters as _interpreters

SOURCE = """
def inside():
    while True:
        for i in range(10000):
            x = i * 3
inside()
"""


def spin():
    while True:
        for i in range(10000):
            x = i * 3


def outside(other, how):
    if how == "run":
        _interpreters.run_string(other, SOURCE)
    spin()


print("ready", os.getpid(), flush=True)
outside(_interpreters.create(), sys.argv[1])
