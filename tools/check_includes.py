#!/usr/bin/env python3
"""Checks every #include under src/ against the table "who may include whom" in
docs/ARCHITECTURE.md, that a .c file includes its own header first, and that nobody but an
interpreter itself (src/cpu/interp/NAME) includes its headers."""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.M)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def table():
    """{room: the rooms it may use}, from rows `| room | holds | may use |` below the heading."""
    text = read("docs/ARCHITECTURE.md")
    section = text.split("## Rooms", 1)[1].split("\n## ", 1)[0]
    rooms = {}
    for line in section.splitlines():
        cells = [c.strip().strip("`") for c in line.strip().strip("|").split("|")]
        if not line.startswith("|") or len(cells) != 3 or cells[0] in ("room", "---"):
            continue
        rooms[cells[0]] = set(cells[2].split()) | {cells[0]}
    for room, uses in rooms.items():
        if "everything" in uses:
            rooms[room] = set(rooms)
        rooms[room] -= {"libc"}
    return rooms


def check(path, room, rooms):
    problems = []
    includes = INCLUDE.findall(read(path))
    for kind, name in includes:
        if kind == "<":
            continue
        other = name.split("/")[0]
        if "/" not in name or not os.path.exists(os.path.join(ROOT, "src", name)):
            problems.append(f"{path}: \"{name}\" is not a path below src/")
        elif other not in rooms[room]:
            problems.append(f"{path}: {room} may not include {other} ({name})")
        folder = re.match(r"cpu/interp/\w+/", name)
        if folder and not path.startswith("src/" + folder[0]):
            problems.append(f"{path}: {name} is for src/{folder[0]} only")
    own = path.removeprefix("src/")[:-2] + ".h"
    if path.endswith(".c") and os.path.exists(os.path.join(ROOT, "src", own)):
        if not includes or includes[0][1] != own:
            problems.append(f"{path}: its own header {own} must come first")
    return problems


def main():
    rooms = table()
    problems, files = [], 0
    for folder, _, names in sorted(os.walk(os.path.join(ROOT, "src"))):
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), ROOT)
            if not name.endswith((".c", ".h")):
                continue
            room = path.split(os.sep)[1]
            files += 1
            if room not in rooms:
                problems.append(f"{path}: the room {room} is not in docs/ARCHITECTURE.md")
            else:
                problems += check(path, room, rooms)
    for problem in problems:
        print("FAIL", problem)
    bad = len({p.split(":")[0] for p in problems})
    print(f"{files - bad} passed, {bad} failed")
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main())
