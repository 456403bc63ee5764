"""Hot loops on lines that are marked, beside lines that never run.

"ready PID LINES": the marked lines of each function, in JSON.
"""
import json
import os
import random
import re


def near(n, first=False):
    x = 1
    if first:
        x = 2  # never
        x = 3  # never
    while n:  # hot near
        x = (x * 3 +  # hot near
             n) & 0xFFFF  # hot near
        if x == -1:  # hot near
            x = 5  # never
            x = 6  # never
        n -= 1  # hot near
    return x


# Its loop is far from its first line, and jumps over many.
FAR = "\n" * 20 + """def far(n):
    x = 1
    while n:  # hot far""" + "\n" * 300 + """
        x = (x * 3 + n) & 0xFFFF  # hot far
        if x < 0:  # hot far
""" + "\n" * 5000 + """
            x = 7
        n -= 1  # hot far
    return x
"""
made = {}
exec(compile(FAR, "far.py", "exec"), made)
far = made["far"]


def marked(text, function):
    return [number for number, line in enumerate(text.splitlines(), 1)
            if re.search(f"# hot {function}$", line)]


def main():
    while True:
        # Of no fixed length: nothing to fall into step with.
        near(int(100000 * (0.5 + random.random())))  # hot main
        far(int(100000 * (0.5 + random.random())))  # hot main


if __name__ == "__main__":
    with open(__file__) as own:
        text = own.read()
    lines = {"near": marked(text, "near"), "far": marked(FAR, "far"), "main": marked(text, "main")}
    print("ready", os.getpid(), json.dumps(lines), flush=True)
    main()
