"""Names, files and lines of Python code, read from outside, equal what Python says of itself.

A program of each version prints the addresses of thousands of its code objects (those of the
standard library, frozen ones among them, and some with names that are hard to show) with their
names and, for instructions all over them, the lines by co_lines() or dis. The same is read from
its memory by python_dump, and the stack of a thread by the layouts that the BPF programs use.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import unittest

import rig
from rig import wait_for

DUMP = os.path.join(os.path.dirname(rig.ELF_DUMP), "python_dump")
TEXT_MAX = 255
KNOWN = range(9, 14)

TARGET = r"""
import argparse, ast, dis, inspect, json, random, sys, threading, traceback, types

def odd_codes():
    long = "\n" * 3 + "def f(x):\n" + "".join(f"    x += {i}\n" * (i % 3 + 1) + "\n" * (i * 7 % 400)
                                             for i in range(600)) + "    return x\n"
    folded = "def g(a):\n    return a(\n        1,\n\n\n        a(2,\n  a(3)),\n        *[\n" \
             "            b for b in\n            a])\n"
    handled = "def h(a):\n    try:\n        with a:\n            pass\n    except E as e:\n" \
              "        a()\n    finally:\n        while a:\n            a -= 1\n"
    sources = [(long, "<string>"), (folded, "na\xefve.py"), (handled, "\u6f22\u5b57/x.py"),
               (folded, "\U0001d518.py"), (handled, "a\nb\x9b\x7f\x1b[1m\udcff"),
               (folded, "\u6f22" * 300), (handled, "x" * 1000), (folded, "")]
    for source, file in sources:
        yield compile(source, file, "exec")
    code = compile("0", "f", "exec")
    for name in ("na\xefve", "\u6f22\u5b57", "\U0001d518" * 100, "\ud800x", "y" * 255, "z" * 256,
                 "\xe9" * 127 + "ab", "\xe9" * 127 + "\xe9"):
        yield code.replace(co_name=name, **({"co_qualname": name} if hasattr(code, "co_qualname")
                                            else {}))
    yield code.replace(co_firstlineno=2000000000)

def all_codes(roots):
    seen, todo = {}, list(roots)
    while todo:
        code = todo.pop()
        if id(code) not in seen:
            seen[id(code)] = code
            todo += [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return list(seen.values())

def library_codes():
    for module in list(sys.modules.values()):
        for thing in list(vars(module).values()):
            members = list(vars(thing).values()) if isinstance(thing, type) else [thing]
            for member in members:
                member = getattr(member, "__func__", member)
                if isinstance(member, types.FunctionType):
                    yield member.__code__

def lines_of(code):
    n = len(code.co_code) // 2
    lines = [None] * n
    if hasattr(code, "co_lines"):
        for start, end, line in code.co_lines():
            lines[start // 2:end // 2] = [line] * (end // 2 - start // 2)
        return lines
    starts = dict(dis.findlinestarts(code))
    line = code.co_firstlineno
    for i in range(n):
        lines[i] = line = starts.get(2 * i, line)
    return lines

def describe(code, rng):
    lines = lines_of(code)
    chosen = range(len(lines)) if len(lines) < 40 else sorted(rng.sample(range(len(lines)), 40))
    return {"at": id(code), "name": getattr(code, "co_qualname", code.co_name),
            "file": code.co_filename, "first": code.co_firstlineno,
            "lines": {i: lines[i] for i in chosen}}

class Stop:
    def reached(self, x):
        # One line, so that it is the same while it waits.
        answer({"thread": threading.get_ident(), "stack": stack()}), sys.stdin.readline()
        return x

def stack():
    return [(f.f_lineno, getattr(f.f_code, "co_qualname", f.f_code.co_name))
            for f, _ in traceback.walk_stack(sys._getframe(1))]

def answer(value):
    sys.stdin.readline()
    print(json.dumps(value), flush=True)

def called_by_c(x):
    return Stop().reached(x)

def outer():
    return sorted(
        [1],
        key=called_by_c)

def started():
    outer()

rng = random.Random(1)
kept = all_codes([*odd_codes(), *library_codes()])
answer([describe(code, rng) for code in kept])
threading.Thread(target=started).start()
"""


def pythons(every):
    """[(minor, path)]: Debian's alone, or all that are found."""
    found = {}
    paths = [shutil.which("python3", path="/usr/bin:/bin")]
    if every:
        pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
        paths += [shutil.which(f"python3.{minor}") for minor in KNOWN]
        paths += sorted(glob.glob(os.path.join(pyenv, "versions", "*", "bin", "python3")))
    for path in paths:
        real = os.path.realpath(path) if path else ""
        match = re.fullmatch(r"python3\.(\d+)", os.path.basename(real))
        if match and is_elf(real):
            found[real] = int(match.group(1))
    return sorted((minor, path) for path, minor in found.items())


def is_elf(path):
    """What pyenv puts into PATH is a script."""
    with open(path, "rb") as f:
        return f.read(4) == b"\x7fELF"


def shown(text):
    """As a terminal may see it, no longer than there is room for; controls of C1 have two bytes."""
    text = re.sub("[\x80-\x9f]", "??", re.sub("[\0-\x1f\x7f\ud800-\udfff]", "?", text))
    return text.encode()[:TEXT_MAX].decode(errors="ignore")


def dump(*args, questions=""):
    done = subprocess.run([DUMP, *map(str, args)], input=questions, capture_output=True, text=True,
                          timeout=300)
    if done.returncode:
        raise AssertionError(done.stderr)
    return done.stdout.split("\n")[:-1]


class PythonLayout(unittest.TestCase):
    path = None
    minor = 0

    def setUp(self):
        self.target = rig.Target([self.path, "-I", "-c", TARGET], ready=False)
        self.addCleanup(self.target.__exit__)
        self.codes = json.loads(self.target.ask("codes"))

    def test_names_files_and_lines_of_code(self):
        asked = [(code, int(i), line) for code in self.codes for i, line in code["lines"].items()]
        self.assertGreater(len(asked), 10000)
        answers = dump(self.target.pid, questions="".join(f"{code['at']:x} {i}\n"
                                                          for code, i, _ in asked))
        self.assertEqual(answers[0], f"3.{self.minor}")
        self.assertEqual(len(answers), len(asked) + 1)
        for (code, i, line), answer in zip(asked, answers[1:]):
            first = code["first"]
            expected = [str(first), str(first if line is None else line),
                        shown(code["name"]), shown(code["file"])]
            self.assertEqual(answer.split("\t"), expected, f"{code['name']!r} at {i}")

    def test_what_is_no_code_is_refused(self):
        at = self.codes[0]["at"]
        addresses = [0, 1, at - 8, at + 8, at + 16, 0x1000, 2 ** 63, 2 ** 64 - 1]
        answers = dump(self.target.pid, questions="".join(f"{a:x} 0\n" for a in addresses))
        self.assertEqual(answers[1:], ["-"] * len(addresses))

    def stacks(self):
        """{thread: [(whether C called it, line, name), ...]}"""
        threads, frames = {}, []
        for line in dump(self.target.pid, "threads")[1:]:
            if line.startswith("thread "):
                frames = threads.setdefault(int(line.split()[1]), [])
            else:
                frames.append(line.split("\t"))
        return threads

    def test_the_stack_of_a_thread(self):
        expected = json.loads(self.target.ask("stack"))
        stacks = lambda: self.stacks().get(expected["thread"], [])
        told = lambda stack: [[int(line), name] for _, line, name in stack]
        # It has answered, and may not have come to its wait yet.
        wait_for(lambda: told(stacks()) == expected["stack"],
                   lambda: f"{told(stacks())}, not {expected['stack']}")
        stack = stacks()
        self.assertEqual(len(self.stacks()), 2)
        called = [name for entry, _, name in stack if entry == "1"]
        if self.minor <= 10:
            self.assertEqual(len(called), len(stack))
        else:
            # C calls the function of sorted() and that of the new thread.
            self.assertIn("called_by_c", called)
            self.assertNotIn("Stop.reached", called)
            self.assertNotIn("outer", called)
            self.assertEqual(stack[-1][0], "1")


class PythonUnknown(unittest.TestCase):
    path = None

    def test_is_refused(self):
        with rig.Target([self.path, "-c", "print('ready', __import__('os').getpid(), flush=True);"
                         "input()"]) as target:
            with self.assertRaisesRegex(AssertionError, "no Python"):
                dump(target.pid)


def load(every, suite):
    for minor, path in pythons(every):
        base = PythonLayout if minor in KNOWN else PythonUnknown
        case = type(f"{base.__name__}3_{minor}", (base,), {"path": path, "minor": minor})
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
