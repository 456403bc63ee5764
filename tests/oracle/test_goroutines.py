"""Goroutines from outside equal the program's own goroutine profile, stack by stack."""
import collections
import json
import os
import re
import subprocess
import tempfile
import time
import unittest

import rig
from pprof import Profile

# name: (build variant, oldest release that has it)
CASES = {
    "plain": ("plain", 17),
    "stripped": ("strip", 17),
    "PIE": ("pie", 17),
    "PIE, stripped": ("pie-strip", 17),
}
# The goroutine that writes the dump is somewhere else when it is read from outside.
OF_THE_DUMP = "main.main"
WAITING = 30  # that the target surely has, with every release
# Makes goroutines wait since up to so many minutes earlier, by their number; and five seconds more,
# so that a minute is not over while they are compared.
BACKDATE = """set language c
set $i = 0
while $i < 'runtime.allgs'.len
  set $g = 'runtime.allgs'.array[$i]
  if $g->waitsince > 0
    set $g->waitsince = $g->waitsince - ($g->goid %% %d * 60000000000 + 5000000000)
  end
  set $i = $i + 1
end
"""


def samples(profile):
    """{(stack, labels): count}, without the goroutine that dumps."""
    found = collections.Counter()
    for s in profile.samples:
        if not any(f.function == OF_THE_DUMP for loc in s.stack for f in loc.frames):
            found[s.stack, tuple(sorted(s.labels))] += s.values[0]
    return found


def text_records(text):
    """debug=1: {(frames, labels): count}."""
    found = collections.Counter()
    for record in text.split("\n\n"):
        lines = record.strip().split("\n")
        if lines and lines[0].startswith("goroutine profile:"):
            lines = lines[1:]
        if not lines or "@" not in lines[0]:
            continue
        labels, frames = (), []
        for line in lines[1:]:
            if line.startswith("# labels: "):
                labels = tuple(sorted(json.loads(line[len("# labels: "):]).items()))
            elif line.startswith("#\t"):
                word = line[2:].split("\t")
                frames.append((word[1].rsplit("+", 1)[0], word[-1]))
        if not any(f[0] == OF_THE_DUMP for f in frames):
            found[tuple(frames), labels] += int(lines[0].split()[0])
    return found


def printed(frame, minor):
    """A function's name as runtime.CallersFrames has it."""
    name = frame["function"]
    return re.sub(r"\[.*\]", "[...]", name) if minor >= 21 else name


def json_records(report, minor, depth):
    """The same from our JSON: leading frames of the runtime are left out, as runtime/pprof does."""
    found = collections.Counter()
    for row in report["rows"]:
        frames = [(printed(f, minor), f"{f['file']}:{f['line']}") for f in row["stack"]][:depth]
        frames = [f for f in frames if f[0] != "runtime.goexit"]
        first = next((i for i, f in enumerate(frames) if not f[0].startswith("runtime.")), 0)
        if any(f[0] == OF_THE_DUMP for f in frames):
            continue
        found[tuple(frames[first:]), tuple(sorted(row.get("labels", {}).items()))] += row["count"]
    return found


def dump_records(text):
    """debug=2: {id: (state, locked, frames, created by)}; arguments of calls are left out."""
    found = {}
    for block in text.strip().split("\n\n"):
        lines = block.split("\n")
        head = re.match(r"goroutine (\d+) (?:gp=\S+ m=.* )?\[([^\]]*)\]", lines[0])
        if not head or int(head.group(1)) == 1:
            continue
        words = head.group(2).split(", ")
        minutes = [w for w in words if w.endswith("minutes")]
        frames, created = [], None
        rest = iter(lines[1:])
        for name in rest:
            if name.startswith("..."):
                frames.append((name, ""))
            elif name.startswith("created by "):
                created = (name, next(rest).strip())
            else:
                frames.append((re.sub(r"\([^()]*\)$", "", name), next(rest).strip()))
        found[int(head.group(1))] = (words[0], "locked to thread" in words, minutes, frames, created)
    return found


class Goroutines(unittest.TestCase):
    """Filled by load()."""

    def same(self, ours, own, what):
        if ours != own:
            only_ours, only_own = ours - own, own - ours
            self.fail(f"{what}: {sum(only_ours.values())} only in ours, "
                      f"{sum(only_own.values())} only in the program's own, of "
                      f"{sum(own.values())}\nours: {next(iter(only_ours), None)}\n"
                      f"own: {next(iter(only_own), None)}")

    def compare(self, version, go, variant, depth=None):
        minor = rig.build.version_key(version)[1]
        program = rig.build.build("goroutines", go, variant)
        with tempfile.TemporaryDirectory() as tmp:
            prefix, path = os.path.join(tmp, "own"), os.path.join(tmp, "ours.pb.gz")
            env = {"GODEBUG": f"profstackdepth={depth}"} if depth else {}
            with rig.Target([program, "-o", prefix], env=env) as target:
                self.assertEqual(target.ask("finalize"), "waiting")
                self.assertEqual(target.ask("gc"), "collected")
                report = json.loads(rig.sonde("goroutines", target.pid, "-f", "json",
                                              check=rig.OK).stdout)
                said = rig.sonde("goroutines", target.pid, "-f", "pprof", "-o", path,
                                 check=rig.OK).stderr
                full = rig.sonde("goroutines", target.pid, "-f", "full", check=rig.OK).stdout
                self.assertEqual(target.ask("dump"), "dumped")
            own, ours = Profile(prefix + ".goroutine.pb.gz"), Profile(path)
            text, dump = (open(prefix + f".{n}.txt").read() for n in (1, 2))
        for loss in ("unverified", "incomplete", "bad", "labels_lost"):
            self.assertEqual(report["goroutines"][loss], 0, loss)
        self.assertGreaterEqual(sum(samples(own).values()), WAITING)
        self.assertEqual((ours.types, ours.period_type, ours.period),
                         (own.types, own.period_type, own.period))
        self.same(samples(ours), samples(own), "proto")
        # Equal ones are one sample, as in the program's own.
        self.assertEqual(len(ours.samples), len({(s.stack, tuple(sorted(s.labels)))
                                                 for s in ours.samples}))
        depth = depth or (128 if minor >= 23 else 32)
        self.same(json_records(report, minor, depth), text_records(text), "debug=1")
        cut = [row["count"] for row in report["rows"] if len(row["stack"]) - 1 > depth]
        self.assertEqual(re.findall(r"(\d+) goroutines? ha(?:s|ve) a stack of more than (\d+)", said),
                         [(str(sum(cut)), str(depth))] if cut else [])
        self.compare_dumps(dump_records(full), dump_records(dump), minor)

    def compare_dumps(self, ours, own, minor):
        self.assertEqual(sorted(ours), sorted(own))
        for ident, theirs in own.items():
            mine = ours[ident]
            self.assertEqual(mine[:3], theirs[:3], f"goroutine {ident}")
            self.assertEqual(mine[4], theirs[4], f"goroutine {ident}")
            # Before 1.21 the outer frames of a deep stack are cut off, not the middle.
            n = len(theirs[3]) if minor >= 21 or len(theirs[3]) < 50 else 50
            self.assertEqual(mine[3][:n], theirs[3][:n], f"goroutine {ident}")

    def system(self, go):
        """The runtime's own goroutines have frames, too, though a traceback would hide them."""
        with rig.Target([rig.build.build("goroutines", go, "strip")]) as target:
            full = rig.sonde("goroutines", target.pid, "-f", "full", "--system", check=rig.OK).stdout
        found = dump_records(full)
        names = {frame[0] for _, _, _, frames, _ in found.values() for frame in frames}
        self.assertIn("runtime.gopark", names)
        self.assertEqual([n for n, record in found.items() if not record[3]], [])

    def threads(self, go):
        """A thread of C that calls Go is no goroutine that anybody created."""
        with rig.Target([rig.build.build("heap", go, "cgo-strip")], env={"C_THREAD": "1"}) as target:
            table = rig.sonde("goroutines", target.pid, check=rig.OK).stdout
        self.assertRegex(table, r"chan send .* main\.goWait main\.go:\d+ +\[C thread\]")

    def churn(self, go):
        """Thousands of goroutines come and go: each stack that is shown is possible."""
        program = rig.build.build("goroutines", go, "strip")
        made = lambda: int(target.ask("made").split()[1])
        with rig.Target([program]) as target:
            self.assertEqual(target.ask("churn"), "churning")
            readings = seen = 0
            deadline = time.monotonic() + rig.LIMIT
            while readings < 15 or made() < 4000 or seen < 500:
                self.assertLess(time.monotonic(), deadline, (readings, made(), seen))
                readings += 1
                report = json.loads(rig.sonde("goroutines", target.pid, "-f", "json",
                                              check=rig.OK).stdout)
                self.assertEqual(report["goroutines"]["bad"], 0)
                self.assertEqual(report["goroutines"]["incomplete"], 0)
                for row in report["rows"]:
                    if row["stack"]:
                        seen += row["count"] if self.assert_possible(row) else 0

    def assert_possible(self, row):
        """True of those that come and go."""
        names = [f["function"] for f in row["stack"]]
        self.assertEqual(names[-1], "runtime.goexit", names)
        self.assertNotEqual(row["state"], "running")
        self.assertFalse("main.chainA" in names and "main.chainB" in names, names)
        if "main.move" in names:
            self.assertEqual(names.count("main.move"), 1, names)
        depth = names.count("main.deep")
        if depth and "main.churn.func1" in names:
            # A stack that mixes two goroutines would have a wrong number of frames.
            self.assertEqual(names[names.index("main.deep"):names.index("main.churn.func1")],
                             ["main.deep"] * depth, names)
        return "main.move" in names or "main.churn.func1" in names

    def running(self, go):
        """A running goroutine is counted as running, never shown with an old stack."""
        program = rig.build.build("goroutines", go, "strip")
        with rig.Target([program]) as target:
            self.assertEqual(target.ask("spin"), "spinning")
            for _ in range(5):
                report = json.loads(rig.sonde("goroutines", target.pid, "-f", "json",
                                              check=rig.OK).stdout)
                for row in report["rows"]:
                    # The one that answers us may still be on its way to the next command.
                    if row["state"] == "running" and row["start"]["function"] != "runtime.main":
                        self.assertEqual(row["stack"], [])
                        self.assertEqual(row["start"]["function"], "main.spin")
                        self.assertEqual(row["created_by"]["function"], "main.command")

    def leaks(self, go):
        program = rig.build.build("goroutines", go, "strip")
        with rig.Target([program]) as target:
            # Where it gets no CPU between two readings nothing grows: then it is given more time.
            for seconds in (1, 4, 16, 64):
                growing = self.growing(target, seconds)
                self.assertLessEqual({r["created_by"]["function"] for r in growing}, {"main.leak"})
                if [r["wait_reason"] for r in growing] == ["chan receive"]:
                    return
        self.fail(f"in {seconds} s: {growing}")

    @staticmethod
    def growing(target, seconds):
        with tempfile.TemporaryFile() as out:
            watch = subprocess.Popen([rig.SONDE, "goroutines", str(target.pid), "--diff",
                                      f"{seconds}s", "-f", "json"], stdout=out,
                                     stderr=subprocess.DEVNULL)
            while watch.poll() is None:
                assert target.ask("leak 10") == "leaked"
            out.seek(0)
            return [r for r in json.load(out)["rows"] if r["only_grows"]]

    def waits(self, version, go):
        """How long goroutines wait is what the program prints of them, and what --older goes by.

        Minutes must not end while they are compared: on a slow machine it begins again.
        """
        rig.wait_for(lambda: self.waits_within_a_minute(version, go), "each comparison took 50 s")

    def waits_within_a_minute(self, version, go):
        minutes = max(2, min(6, int(time.monotonic() / 60)))  # no wait began before the machine did
        program = rig.build.build("goroutines", go)
        with tempfile.TemporaryDirectory() as tmp:
            prefix, script = os.path.join(tmp, "own"), os.path.join(tmp, "backdate")
            with open(script, "w") as f:
                f.write(BACKDATE % minutes)
            with rig.Target([program, "-o", prefix]) as target:
                # Since when a goroutine waits is noted by the collector.
                self.assertEqual(target.ask("gc"), "collected")
                begin = time.monotonic()
                subprocess.run(["gdb", "-nx", "-q", "-batch", "-p", str(target.pid), "-x", script],
                               check=True, capture_output=True, timeout=rig.LIMIT)
                full = rig.sonde("goroutines", target.pid, "-f", "full", check=rig.OK).stdout
                live = [self.older(f"{m}m", target.pid) for m in range(1, minutes)]
                self.assertEqual(target.ask("dump"), "dumped")
                if time.monotonic() - begin > 50:
                    return False
                subprocess.run(["gcore", "-o", os.path.join(tmp, "core"), str(target.pid)],
                               check=True, capture_output=True, timeout=rig.LIMIT)
            core = os.path.join(tmp, f"core.{target.pid}")
            # There it is not known when it was written: waits end when the last of them began.
            dead = [self.older(f"{60 * m - 2}s", "--core", core) for m in range(1, minutes)]
            dump = dump_records(open(prefix + ".2.txt").read())
        self.compare_dumps(dump_records(full), dump, rig.build.version_key(version)[1])
        own = [int(words[0].split()[0]) for _, _, words, _, _ in dump.values() if words]
        self.assertEqual(set(own), set(range(1, minutes)))
        wanted = [sum(w >= m for w in own) for m in range(1, minutes)]
        self.assertEqual([count for count, _ in live], wanted)
        self.assertEqual([count for count, _ in dead], wanted)
        self.assertEqual(int(live[0][1] / 60e9), max(own))
        return True

    @staticmethod
    def older(duration, *target):
        """(how many wait at least so long, the longest wait), without the goroutine that dumps."""
        report = json.loads(rig.sonde("goroutines", *target, "--older", duration, "-f", "json",
                                      check=rig.OK).stdout)
        rows = [row for row in report["rows"]
                if not any(f["function"] == OF_THE_DUMP for f in row["stack"])]
        return sum(row["count"] for row in rows), max(row["longest_ns"] for row in rows)

    def core(self, go, variant):
        """A core has the same goroutines, and the stacks of those that ran, too."""
        program = rig.build.build("goroutines", go, variant)
        with tempfile.TemporaryDirectory() as tmp:
            with rig.Target([program]) as target:
                self.assertEqual(target.ask("spin"), "spinning")
                live = json.loads(rig.sonde("goroutines", target.pid, "-f", "json",
                                            check=rig.OK).stdout)
                subprocess.run(["gcore", "-o", os.path.join(tmp, "core"), str(target.pid)],
                               check=True, capture_output=True, timeout=rig.LIMIT)
            core = os.path.join(tmp, f"core.{target.pid}")
            dead = json.loads(rig.sonde("goroutines", "--core", core, "-f", "json",
                                        check=rig.OK).stdout)
        stacks = lambda report: collections.Counter(
            {(row["wait_reason"], tuple(f["function"] for f in row["stack"])): row["count"]
             for row in report["rows"] if row["state"] == "waiting"})
        self.assertEqual(stacks(live), stacks(dead))
        spinning = [row for row in dead["rows"]
                    if any(f["function"] == "main.spin" for f in row["stack"])]
        self.assertEqual(sum(row["count"] for row in spinning), 2)
        for row in spinning:
            self.assertEqual(row["stack"][-1]["function"], "runtime.goexit")


def load(every, suite):
    def add(name, run):
        setattr(Goroutines, name, run)
        suite.addTest(Goroutines(name))

    for version, go in rig.versions(every):
        for case, (variant, _) in CASES.items():
            add(f"test_{version}_{case}",
                lambda self, v=version, g=go, b=variant: self.compare(v, g, b))
        if rig.build.version_key(version)[1] >= 23:
            for depth in (200, 1024):
                add(f"test_{version}_depth_{depth}",
                    lambda self, v=version, g=go, d=depth: self.compare(v, g, "strip", d))
        add(f"test_{version}_system", lambda self, g=go: self.system(g))
        add(f"test_{version}_churn", lambda self, g=go: self.churn(g))
        add(f"test_{version}_waits", lambda self, v=version, g=go: self.waits(v, g))
        add(f"test_{version}_running", lambda self, g=go: self.running(g))
        add(f"test_{version}_core", lambda self, g=go: self.core(g, "plain"))
        add(f"test_{version}_core_of_a_stripped_PIE", lambda self, g=go: self.core(g, "pie-strip"))
    add("test_threads_of_C", lambda self, g=rig.build.mandatory()[1]: self.threads(g))
    newest = rig.build.newest()
    add("test_not_optimized", lambda self: self.compare(*newest, "noopt-strip"))
    add("test_leaks", lambda self, g=rig.build.newest()[1]: self.leaks(g))
