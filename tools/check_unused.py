#!/usr/bin/env python3
"""Checks that the program needs what the headers under src/ offer.

A function, variable or macro of a header must be used somewhere under src/: what only tests, fuzzers
and benchmarks call belongs to tests/. A function that only its own .c calls is static there, unless a
test or a fuzzer feeds it as well: then it is a seam that the program itself goes through."""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NOISE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
WORD = re.compile(r"[A-Za-z_]\w*")
MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.M)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
FUNCTION = re.compile(r"(\w+)\s*\((?!\s*\*)")
INVOKED = re.compile(r"^(?:[A-Z][A-Z_]+\([^()]*\)\s*)+")  # as DEFINE_CLEANUP(type, name)


def sources(folder):
    """{path: text without comments and strings}, of all C files below a folder."""
    texts = {}
    for where, _, names in os.walk(os.path.join(ROOT, folder)):
        for name in names:
            if name.endswith((".c", ".h")):
                path = os.path.join(where, name)
                with open(path, encoding="utf-8") as f:
                    texts[os.path.relpath(path, ROOT)] = NOISE.sub('""', f.read())
    return texts


def statements(text):
    """What stands outside of all braces, one by one; bodies are left out."""
    depth, piece = 0, ""
    for c in DIRECTIVE.sub("", text):
        if c == "{":
            depth += 1
        elif c == "}":
            depth -= 1
            piece += " {} " if depth == 0 else ""
        elif depth == 0:
            piece += c
        if depth == 0 and (c == ";" or piece.endswith("{} ") and "(" in piece):
            yield piece.strip()
            piece = ""


def offered(text):
    """The functions and variables that a header declares, and its macros."""
    names = set(MACRO.findall(text))
    for s in statements(text):
        s = INVOKED.sub("", s)
        if not s or s.startswith("typedef"):
            continue
        function = FUNCTION.search(re.sub(r"__attribute__\s*\(\(.*?\)\)", "", s))
        if function:
            names.add(function.group(1))
        elif s.startswith("extern"):
            names.add(WORD.findall(s.split("[")[0])[-1])
    return names


def count(texts):
    """{word: {path: how often}}."""
    found = {}
    for path, text in texts.items():
        for word in WORD.findall(text):
            by_path = found.setdefault(word, {})
            by_path[path] = by_path.get(path, 0) + 1
    return found


def defines(text, name):
    """Whether a .c file has the body of the function, or the value of the variable."""
    return re.search(r"^\w[^\n;{}()]*\b%s\s*(\([^;{}]*\)\s*\{|(\[[^]]*\])*\s*=)" % name, text,
                     re.M) is not None


def judge(name, header, src, uses, tested):
    """What is wrong with a name that a header offers; None when nothing is."""
    home = [p for p in uses if p.endswith(".c") and defines(src[p], name)]
    if set(uses) - {header, *home}:
        return None
    # Once is where it is declared or defined.
    if uses[header] > 1:
        return None
    if not any(uses[p] > 1 for p in home):
        return "is used by nobody" + (" but tests: move it to tests/" if tested else ": remove it")
    return None if tested else f"is used by {home[0]} only: make it static"


def main():
    src = sources("src")
    uses = count(src)
    tested = count(sources("tests")).keys() | count(sources("bench")).keys()
    passed, problems = 0, []
    for header in sorted(p for p in src if p.endswith(".h")):
        for name in sorted(offered(src[header])):
            problem = judge(name, header, src, uses[name], name in tested)
            if problem:
                problems.append(f"{header}: {name} {problem}")
            else:
                passed += 1
    for problem in problems:
        print("FAIL", problem)
    print(f"{passed} passed, {len(problems)} failed")
    return 1 if problems or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
