#!/usr/bin/env python3
"""Compares what the elf room reads with what readelf prints, over real files.

    elf_readelf.py ELF_DUMP FILE...

Headers, sections, segments and build ids must be equal; every symbol of .symtab must be found by
its name, and every function by its addresses. Exit 77 without readelf.
"""
import bisect
import random
import re
import shutil
import subprocess
import sys

RANK = {"LOCAL": 1, "WEAK": 2}
FIND_AT_ONCE = 500
FIND_AT_MOST = 3000


def output(argv, stdin=None):
    done = subprocess.run(argv, input=stdin, capture_output=True, text=True, errors="replace")
    return done.stdout


def readelf_sections(path):
    """{index: (addr, offset, size, link, name)}"""
    found = {}
    for line in output(["readelf", "-SW", path]).splitlines():
        m = re.match(r"\s*\[\s*(\d+)\] (.*?)\s+(\S+)\s+([0-9a-f]{16}) ([0-9a-f]{6,}) "
                     r"([0-9a-f]{6,}) [0-9a-f]{2,}\s+[A-Zxop]*\s+(\d+)\s+\d+\s+\d+$", line)
        if m:
            found[int(m[1])] = (int(m[4], 16), int(m[5], 16), int(m[6], 16), int(m[7]), m[2])
    return found


def readelf_segments(path):
    """[(offset, vaddr, filesz, memsz)]"""
    found = []
    for line in output(["readelf", "-lW", path]).splitlines():
        m = re.match(r"\s+(\S+)\s+0x([0-9a-f]{6,}) 0x([0-9a-f]{16}) 0x[0-9a-f]{16} "
                     r"0x([0-9a-f]{6,}) 0x([0-9a-f]{6,}) ", line)
        if m:
            found.append(tuple(int(m[i], 16) for i in (2, 3, 4, 5)))
    return found


def readelf_symbols(path):
    """Tables by name: [(value, size, type, bind, section, name)]"""
    tables, table = {}, None
    for line in output(["readelf", "-sW", path]).splitlines():
        m = re.match(r"Symbol table '(.*)' contains", line)
        if m:
            table = tables.setdefault(m[1], [])
            continue
        m = re.match(r"\s*\d+: ([0-9a-f]{16})\s+(0x[0-9a-f]+|\d+) (\S+)\s+(\S+)\s+\S+\s+"
                     r"(?:\[.*?\]\s+)?(\S+) (.*)$", line)
        if m and table is not None:
            name = m[6]
            if table is tables.get(".dynsym"):
                name = re.sub(r"@@?\S+( \(\d+\))?$", "", name)
            table.append((int(m[1], 16), int(m[2], 0), m[3], m[4], m[5], name))
    return tables


class Failures(list):
    def check(self, what, ours, theirs):
        if ours != theirs:
            self.append(f"{what}: ours {ours!r}, readelf {theirs!r}")


def compare_headers(dump, path, bad):
    lines = output([dump, path]).splitlines()
    sections = {}
    for line in lines:
        if line.startswith("S "):
            _, i, addr, offset, size, link, name = line.split(" ", 6)
            sections[int(i)] = (int(addr, 16), int(offset, 16), int(size, 16), int(link), name)
    segments = [tuple(int(w, 16) for w in line.split()[3:7])
                for line in lines if line.startswith("L ")]
    theirs = readelf_sections(path)
    bad.check("number of sections", len(sections), len(theirs))
    for i in theirs:
        bad.check(f"section {i}", sections.get(i), theirs[i])
    bad.check("segments", segments, readelf_segments(path))
    m = re.search(r"Build ID: ([0-9a-f]+)", output(["readelf", "-nW", path]))
    ours = [line[2:] for line in lines if line.startswith("B ")]
    bad.check("build id", ours[0] if ours else None, m[1] if m else None)
    entry = re.search(r"Entry point address:\s+0x([0-9a-f]+)", output(["readelf", "-hW", path]))
    bad.check("entry", lines[0].split()[3] if lines else None, entry[1])
    return len(theirs) + len(segments)


def compare_find(dump, path, symbols, bad):
    best = {}
    for value, size, kind, bind, section, name in symbols:
        if section == "UND" or value == 0 or kind in ("FILE", "SECTION", "TLS") or not name:
            continue
        rank = RANK.get(bind, 3)
        if name not in best or rank > best[name][0]:
            best[name] = (rank, value, size)
    names = sorted(best)
    if len(names) > FIND_AT_MOST:
        names = random.Random(1).sample(names, FIND_AT_MOST)
    for i in range(0, len(names), FIND_AT_ONCE):
        part = names[i:i + FIND_AT_ONCE]
        asked = part + ["no.such_symbol", "x" + part[0] + "y"]
        found = {}
        for line in output([dump, path, "find"], "\n".join(asked) + "\n").splitlines():
            value, size, name = line.split(" ", 2)
            found[name] = (int(value, 16), int(size))
        for name in part:
            bad.check(f"symbol {name}", found.get(name), best[name][1:])
        bad.check("symbols that are not there", set(found) - set(part), set())
    return len(names)


def compare_lookup(dump, path, symbols, bad):
    """Every sized function must be found at its first and its last byte."""
    functions = [s for s in symbols if s[2] in ("FUNC", "IFUNC") and s[4] != "UND" and s[0]]
    names = {}
    for value, size, _, bind, _, name in functions:
        names.setdefault(value, []).append((-RANK.get(bind, 3), name))
    asked, starts = [], sorted(names)
    for value, size, _, _, _, _ in functions:
        if size == 0:  # marks like runtime.etext cover nothing
            continue
        asked.append((value, value))
        nested = any(value < s < value + size for s in starts_between(starts, value, size))
        if size > 1 and not nested:
            asked.append((value + size - 1, value))
    lines = output([dump, path, "lookup"], "".join(f"{a:x}\n" for a, _ in asked)).splitlines()
    bad.check("number of answers", len(lines), len(asked))
    for (addr, start), line in zip(asked, lines):
        _, ours, name = line.split(" ", 2)
        ranks = sorted(names[start])
        allowed = {n for rank, n in ranks if rank == ranks[0][0]}
        if int(ours, 16) != start or name not in allowed:
            # A NOTYPE symbol of assembly may be the better name of the same address.
            other = {s[5] for s in symbols if s[0] == start and s[2] == "NOTYPE"}
            if int(ours, 16) != start or name not in other:
                bad.append(f"lookup {addr:x}: ours {name} at {ours}, readelf {allowed} at {start:x}")
    return len(asked)


def starts_between(starts, value, size):
    return starts[bisect.bisect_right(starts, value):bisect.bisect_left(starts, value + size)]


def main():
    if not shutil.which("readelf"):
        print("skipped: no readelf on this machine")
        return 77
    dump, failed = sys.argv[1], 0
    for path in sys.argv[2:]:
        bad = Failures()
        headers = compare_headers(dump, path, bad)
        tables = readelf_symbols(path)
        found = compare_find(dump, path, tables[".symtab"], bad) if ".symtab" in tables else 0
        table = tables.get(".symtab", tables.get(".dynsym", []))
        looked = compare_lookup(dump, path, table, bad)
        print(f"{path}: {headers} headers, {found} names, {looked} addresses: "
              f"{len(bad)} differences")
        for line in bad[:5]:
            print("   ", line)
        failed += len(bad)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
