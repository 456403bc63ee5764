"""Compares sonde's unwind rows with readelf --debug-dump=frames-interp, address by address.

    unwind_readelf.py DUMP [--go] FILE...

With --go, rows of Go's tables against the .debug_frame that Go's linker wrote. Functions in which
sonde knows more than DWARF says (switches of stacks, ends, signal frames) are printed as
"special NAME", for the caller to judge; anything else that differs is an error.
"""
import bisect
import re
import subprocess
import sys

PLT = re.compile(r"DW_OP_breg7 \(rsp\): 8; DW_OP_breg16 \(rip\): 0; DW_OP_lit15; DW_OP_and; "
                 r"DW_OP_lit(\d+); DW_OP_ge; DW_OP_lit3; DW_OP_shl; DW_OP_plus")
BREG = re.compile(r"DW_OP_breg(\d+) \((\w+)\): (-?\d+)(; DW_OP_deref)?"
                  r"(?:; DW_OP_plus_uconst: (\d+))?")
ENTRY = re.compile(r"^([0-9a-f]{8,}) [0-9a-f]+ [0-9a-f]+ (CIE|FDE)(.*)$")
REGS = ("rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12",
        "r13", "r14", "r15")


def cfa_of_expression(text):
    """The expression as unwind_dump prints what it makes of it."""
    m = PLT.fullmatch(text)
    if m:
        return "plt" + m[1]
    m = BREG.fullmatch(text)
    if not m:
        return "unsupported"
    reg, off, deref, plus = m[2], int(m[3]), m[4], int(m[5] or 0)
    if not deref:
        return cfa_of_register(reg, off) if not plus else "unsupported"
    if reg not in ("rsp", "rbp") or not -32768 <= off < 32768 or plus > 32767:
        return "unsupported"
    return f"*{reg}{off:+d}{plus:+d}"


def cfa_of_register(reg, off):
    if reg in ("rsp", "rbp"):
        return f"{reg}{off:+d}"
    return f"reg{REGS.index(reg)}{off:+d}" if reg in REGS else "unsupported"


def fp_of_expression(text):
    m = BREG.fullmatch(text)
    return f"rbp{int(m[3]):+d}" if m and m[2] == "rbp" and not m[4] and not m[5] else "lost"


def readelf(path, what, section):
    """The lines about one section: a file may have .eh_frame and .debug_frame."""
    wanted = False
    for line in readelf_lines(path, what):
        m = re.match(r"Contents of the (\S+) section", line)
        if m:
            wanted = m[1] in (section, section.replace(".", ".z", 1))
        elif wanted:
            yield line


def readelf_lines(path, what):
    done = subprocess.Popen(["readelf", "--debug-dump=" + what, path], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True, errors="replace")
    with done.stdout:
        yield from done.stdout
    done.wait()


def expressions(path, section):
    """Of each FDE (by its offset, its CIE's included): what its expressions come to."""
    cfas, fps, cie, key = {}, {}, {}, None
    for line in readelf(path, "frames", section):
        m = ENTRY.match(line)
        if m:
            key = (m[2], int(m[1], 16))
            if m[2] == "FDE":
                cie[key] = ("CIE", int(re.search(r"cie=([0-9a-f]+)", m[3])[1], 16))
        elif "DW_CFA_def_cfa_expression" in line:
            text = line.strip()[len("DW_CFA_def_cfa_expression ("):-1]
            cfas.setdefault(key, set()).add(cfa_of_expression(text))
        elif "DW_CFA_expression: r6 (rbp)" in line:
            text = line.strip()[len("DW_CFA_expression: r6 (rbp) ("):-1]
            fps.setdefault(key, set()).add(fp_of_expression(text))
    return cfas, fps, cie


class Expected:
    """The rows of one file as readelf interprets them."""

    def __init__(self, path, section):
        self.path = path
        self.section = section
        self.functions = []  # (start, end, [(loc, cfas, fps)])
        self.cfas, self.fps, self.cie = expressions(path, section)
        self.signal = set()
        self.load()

    def load(self):
        rows = columns = key = None
        start = end = 0
        initial = {}
        for line in readelf(self.path, "frames-interp", self.section):
            if not line.strip():
                continue
            m = ENTRY.match(line)
            if m:
                key = (m[2], int(m[1], 16))
                rows = None
                if m[2] == "CIE":
                    if re.match(r' "[^"]*S', m[3]):
                        self.signal.add(key)
                    start, end, rows = 0, 1, initial.setdefault(key, [])
                    continue
                start, end = (int(x, 16) for x in
                              re.search(r"pc=([0-9a-f]+)\.\.([0-9a-f]+)", m[3]).groups())
                rows = []
                self.functions.append((start, end, rows, self.cie[key]))
            elif "LOC" in line and "CFA" in line:
                columns = line.split()
            elif rows is not None and re.match(r"^[0-9a-f]{16} ", line):
                words = re.sub(r" \(\w+\)", "", line).split()  # "r10 (r10)"
                loc = int(words[0], 16)
                if loc < end:
                    while rows and rows[-1][0] >= loc:
                        rows.pop()
                    rows.append((loc, *self.rule(key, dict(zip(columns, words)))))
        # Nothing is printed for a function that changes nothing.
        self.functions = [(start, end, rows or [(start, *x[1:]) for x in initial[cie]])
                          for start, end, rows, cie in self.functions]

    def among(self, found, key):
        return found.get(key, set()) | found.get(self.cie.get(key), set())

    def rule(self, key, row):
        """The CFA and the frame pointer: sets of what is right, None for anything."""
        ra = row.get("ra", "u")
        if self.cie.get(key, key) in self.signal:
            return {"signal"}, None
        if ra == "u":
            return {"end"}, None
        if ra != "c-8":
            return {"unsupported"}, None
        if row["CFA"] == "exp":
            cfa = self.among(self.cfas, key)
        else:
            m = re.fullmatch(r"(\w+)([-+]\d+)", row["CFA"])
            cfa = {cfa_of_register(m[1], int(m[2]))}
        return cfa, self.fp(key, row.get("rbp", "u"))

    def fp(self, key, text):
        if text == "u":  # not mentioned, or undefined
            return {"same", "lost"}
        if text == "s":
            return {"same"}
        if text == "exp":
            return self.among(self.fps, key)
        return {text} if re.fullmatch(r"c[-+]\d+", text) else {"lost"}


class Ours:
    def __init__(self, dump, path, *how):
        done = subprocess.run([dump, path, *how], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{path}: {done.stderr}")
        lines = done.stdout.splitlines()
        self.summary = lines[0]
        self.starts = [int(x[2:], 16) for x in lines if x.startswith("S ")]
        rows = [x.split() for x in lines[1:] if not x.startswith("S ")]
        self.locs = [int(x[0], 16) for x in rows]
        self.rules = [(x[1], x[2]) for x in rows]

    def within(self, start, end):
        """Addresses in [start, end) where a rule begins."""
        lo = bisect.bisect_left(self.locs, start)
        return self.locs[lo:bisect.bisect_left(self.locs, end)]

    def at(self, addr):
        i = bisect.bisect_right(self.locs, addr)
        return self.rules[i - 1] if i else ("none", "same")


def differences(expected, ours, start, end, rows):
    """Both sides may change at addresses of their own: compared is at all of them."""
    locs = [x[0] for x in rows]
    for addr in sorted(set(locs) | set(ours.within(start, end))):
        cfas, fps = rows[bisect.bisect_right(locs, addr) - 1][1:]
        cfa, fp = ours.at(addr)
        if cfa not in cfas or (cfa not in ("unsupported", "end", "signal", "plt") and
                               fps is not None and fp not in fps):
            yield f"{addr:x}: {cfa} {fp}, readelf: {cfas} {fps}"


def gaps(ours, functions):
    """What lies between functions has no rule."""
    for (_, end, _), (start, _, _) in zip(functions, functions[1:]):
        if end < start and ours.at(end)[0] != "none":
            yield f"{end:x}: {ours.at(end)[0]} in a gap"


def compare(dump, path):
    section = ".eh_frame" if any(readelf(path, "frames", ".eh_frame")) else ".debug_frame"
    expected, ours = Expected(path, section), Ours(dump, path)
    functions = sorted(f for f in expected.functions if f[0] < f[1] and f[2])
    wrong = []
    for (start, end, rows), following in zip(functions, functions[1:] + [None]):
        if following and following[0] == start:
            continue
        end = min(end, following[0]) if following else end
        wrong += differences(expected, ours, start, end, rows)
    wrong += gaps(ours, functions)
    if set(ours.starts) != {f[0] for f in functions}:
        wrong.append("the functions are not the same")
    n = sum(len(f[2]) for f in functions)
    return [f"{path}: {len(functions)} functions, {n} rows; {ours.summary}"], wrong


def symbols(path):
    out = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    return {int(x.split()[0], 16): x.split()[2] for x in out.splitlines() if len(x.split()) == 3}


def compare_go(dump, path):
    expected, names = Expected(path, ".debug_frame"), symbols(path)
    ours = Ours(dump, path, "go")
    wrong, special, n = [], set(), 0
    starts = set(ours.starts)
    for start, end, rows in expected.functions:
        name = names.get(start, hex(start))
        n += len(rows)
        if start not in starts:
            wrong.append(f"{name} is missing")
            continue
        for addr in sorted({x[0] for x in rows} | set(ours.within(start, end))):
            theirs = rows[bisect.bisect_right([x[0] for x in rows], addr) - 1][1]
            cfa, fp = ours.at(addr)
            if cfa in theirs and fp == ("same" if cfa == "rsp+8" else "c-16"):
                continue
            if cfa.startswith("rsp") and cfa not in theirs:
                wrong.append(f"{addr:x} {name}: {cfa} {fp}, readelf: {theirs}")
            else:
                special.add((name, "fp-same" if cfa in theirs else cfa))
    said = [f"{path}: {len(expected.functions)} functions, {n} rows; {ours.summary}"]
    return said + [f"special {name} {cfa}" for name, cfa in sorted(special)], wrong


def main():
    args = sys.argv[1:]
    go = "--go" in args
    dump, *paths = [x for x in args if x != "--go"]
    bad = 0
    for path in paths:
        said, wrong = (compare_go if go else compare)(dump, path)
        bad += len(wrong)
        print("\n".join(said + [f"{len(wrong)} differ"] + ["  " + x for x in wrong[:20]]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
