"""The runtime's figures from outside equal ReadMemStats and runtime/metrics of the program."""
import functools
import json
import os
import shutil
import subprocess
import tempfile
import unittest

import rig

# name: (build variant, environment, commands before the comparison, oldest release that has it)
CASES = {
    "just started": ("plain", {}, [], 17),
    "plain": ("plain", {}, ["grow 20", "gc", "gc", "go 50", "end 20"], 17),
    "stripped": ("strip", {}, ["grow 20", "gc", "gc", "go 50", "end 20"], 17),
    "PIE": ("pie", {}, ["grow 20", "gc", "go 5"], 17),
    "PIE, stripped": ("pie-strip", {}, ["grow 20", "gc", "go 5"], 17),
    "PGO, stripped": ("pgo-strip", {}, ["grow 20", "gc", "go 5"], 21),
    "many collections, stripped": ("strip", {}, ["grow 3"] + ["gc"] * 300, 17),
    "other processors, stripped": ("strip", {"GOMAXPROCS": "3"}, ["go 30", "end 30", "gc"], 17),
    "processors changed, stripped": ("strip", {}, ["procs 7", "go 40", "procs 2", "end 10"], 17),
    "small heap, stripped": ("smallheap-strip", {}, ["gc", "grow 3", "gc"], 17),
    "small heap, no collector, stripped": ("smallheap-strip", {"GOGC": "off"}, ["grow 3"], 17),
    "no percentage, stripped": ("strip", {"GOGC": "0"}, ["grow 3"], 19),
    "no collector, stripped": ("strip", {"GOGC": "off"}, ["grow 30"], 17),
    "eager collector, stripped": ("strip", {"GOGC": "20"}, ["grow 30", "gc"], 17),
    "memory limit, stripped": ("strip", {"GOMEMLIMIT": "64MiB"}, ["grow 30", "gc"], 19),
    "memory limit only, stripped": ("strip", {"GOMEMLIMIT": "64MiB", "GOGC": "off"},
                                    ["grow 30", "gc"], 19),
}
# ours, ReadMemStats
ALWAYS = {"gc_count": "NumGC", "gc_forced_count": "NumForcedGC",
          "gc_pause_total_ns": "PauseTotalNs", "heap_goal_bytes": "NextGC",
          "goroutines": "NumGoroutine", "gomaxprocs": "GOMAXPROCS"}
SINCE_19 = {"total_alloc_bytes": "TotalAlloc", "heap_inuse_bytes": "HeapInuse"}
# ours, runtime/metrics, which older releases lack in part
MODERN = {"heap_goal_bytes": "/gc/heap/goal:bytes", "gc_count": "/gc/cycles/total:gc-cycles",
          "gc_forced_count": "/gc/cycles/forced:gc-cycles",
          "goroutines": "/sched/goroutines:goroutines", "gomaxprocs": "/sched/gomaxprocs:threads",
          "memory_limit_bytes": "/gc/gomemlimit:bytes", "heap_marked_bytes": "/gc/heap/live:bytes"}


def stats_of(target):
    line = target.ask("stats").split(" ")
    assert line[0] == "stats", line
    stats = dict(word.split("=") for word in line[1:])
    pauses = [int(n) for n in stats.pop("PauseNs").split(",")[:-1]]
    fraction = float(stats.pop("GCCPUFraction"))
    return {k: int(v) for k, v in stats.items()}, pauses, fraction


def metrics_of(*args):
    entries = json.loads(rig.sonde("ps", "--json", *args, check=rig.OK).stdout)
    assert len(entries) == 1, entries
    return entries[0]["metrics"]


def padded(go, tmp, words, pads, ldflags=()):
    """The target with so many more variables of 8 and of 16 bytes: they move those that are larger."""
    here = os.path.join(tmp, f"{words}-{pads}-{len(ldflags)}")
    for name in ("metrics", "rig"):
        shutil.copytree(os.path.join(rig.build.HERE, name), os.path.join(here, name))
    shutil.copy(os.path.join(rig.build.HERE, "go.mod"), here)
    with open(os.path.join(here, "metrics", "pads.go"), "w") as f:
        f.write("package main\n\nvar used int\n")
        f.writelines(f"var word{i} [8]byte\n" for i in range(words))
        f.writelines(f"var pad{i} [16]byte\n" for i in range(pads))
        f.write("\nfunc init() {\n\tfor i := 0; i < used; i++ {\n")
        f.writelines(f"\t\tword{i}[i%8]++\n" for i in range(words))
        f.writelines(f"\t\tpad{i}[i%16]++\n" for i in range(pads))
        f.write("\t}\n}\n")
    program = os.path.join(here, "program")
    rig.build.run([go, "build", "-o", program, *ldflags, "./metrics"], cwd=here,
                  env=rig.build.go_environment(False))
    return program


def addresses(go, program, *names):
    text = subprocess.run([go, "tool", "nm", program], capture_output=True, text=True, check=True,
                          env=dict(os.environ, GOTOOLCHAIN="local", GOFLAGS="")).stdout
    found = {line.split()[2]: int(line.split()[0], 16) for line in text.splitlines()
             if len(line.split()) == 3}
    return [found[f"runtime.{name}"] for name in names]


class Metrics(unittest.TestCase):
    """Filled by load()."""

    def compare(self, ours, stats, minor, limited=False):
        own, pauses, fraction = stats
        names = dict(ALWAYS, **(SINCE_19 if minor >= 19 else {}))
        self.assertEqual({k: ours[k] for k in names}, {k: own[v] for k, v in names.items()})
        modern = {k: v for k, v in MODERN.items() if v in own}
        # Before the first collection the two disagree about what lives; and where the memory limit
        # rules, the goal moves with each allocation, also between one look and the other.
        # Since 1.26 runtime/metrics counts the runtime's own goroutines as well.
        for name in (["heap_marked_bytes"] if own["NumGC"] == 0 else []) + (
                ["heap_goal_bytes", "gc_count"] if limited else []) + (
                ["goroutines"] if minor >= 26 else []):
            modern.pop(name, None)
        self.assertEqual({k: ours[k] for k in modern}, {k: own[v] for k, v in modern.items()})
        self.assertEqual(ours["gc_pauses_ns"], pauses)
        self.assertEqual(ours["gc_cpu_fraction"], fraction)
        self.assertEqual(ours["gc_last_pause_ns"], pauses[-1] if pauses else None)
        self.assertEqual(ours["gc_last_end_unix_ns"], own["LastGC"] if pauses else None)
        if minor < 19:
            self.assertIsNone(ours["memory_limit_bytes"])

    def quiet(self, target, read, minor, limited=False):
        """The runtime itself may allocate at any time: one moment of many must be quiet."""
        for left in reversed(range(20)):
            stats, ours = stats_of(target), read()
            try:
                self.compare(ours, stats, minor, limited)
                return ours
            except AssertionError:
                if not left:
                    raise

    def equal(self, go, minor, case):
        variant, env, commands, _ = CASES[case]
        program = rig.build.build("metrics", go, variant)
        with rig.Target([program], env=env) as target:
            for command in commands:
                self.assertEqual(target.ask(command), "done")
            ours = self.quiet(target, lambda: metrics_of(target.pid), minor,
                              "GOMEMLIMIT" in env or "GOGC" in env)
            if "GOMEMLIMIT" in env:
                limit = int(env["GOMEMLIMIT"].replace("MiB", "")) << 20
                self.assertEqual(ours["memory_limit_bytes"], limit)
            self.assertEqual(ours["gc_percent"],
                             {"off": -1, "20": 20, "0": 0}.get(env.get("GOGC"), 100))

    def core(self, go, minor, variant):
        program = rig.build.build("metrics", go, variant)

        def dead():
            subprocess.run(["gcore", "-o", os.path.join(tmp, "core"), str(target.pid)],
                           check=True, capture_output=True, timeout=rig.LIMIT)
            return metrics_of("--core", core)

        with tempfile.TemporaryDirectory() as tmp, rig.Target([program]) as target:
            core = os.path.join(tmp, f"core.{target.pid}")
            for command in ("grow 10", "gc", "go 20", "end 5"):
                self.assertEqual(target.ask(command), "done")
            self.quiet(target, dead, minor)
            self.assertIn("GOROUTINES", rig.sonde("ps", "-l", "--core", core, check=rig.OK).stdout)

    def under_load(self, go):
        """While it runs the figures only grow, and never make no sense."""
        program = rig.build.build("nopprof", go, "strip")
        with rig.Target([program]) as target:
            before = metrics_of(target.pid)
            # It never asks for its statistics: the linker has dropped what only they need.
            self.assertEqual(before["goroutines"], int(target.ask("goroutines").split()[1]))
            for _ in range(30):
                now = metrics_of(target.pid)
                for name in ("gc_count", "gc_pause_total_ns", "total_alloc_bytes"):
                    self.assertGreaterEqual(now[name], before[name])
                self.assertEqual(now["goroutines"], before["goroutines"])
                before = now

    def moved(self, go, minor):
        """Other variables of a program move those of the runtime. Where one lies so that a lock
        looks like a part of memstats, it is not taken for it."""
        with tempfile.TemporaryDirectory() as tmp:
            words, pads = self.coincidence(go, tmp)
            strip = ["-ldflags", "-s -w"]
            programs = [padded(go, tmp, words, n, strip) for n in (pads - 1, pads, pads + 1)]
            for program in programs * 3:
                with rig.Target([program]) as target:
                    for command in ("burst 64", "gc", "grow 5", "gc"):
                        self.assertEqual(target.ask(command), "done")
                    self.quiet(target, lambda: metrics_of(target.pid), minor)

    def coincidence(self, go, tmp):
        """How many variables it takes for heapInUse of the controller to lie where numgc would, if
        the lock were a part of memstats."""
        wanted = 3592 - 3568 + 4112 - 248

        def distance(words, pads):
            lock, controller = addresses(go, padded(go, tmp, words, pads), "profInsertLock",
                                         "gcController")
            return controller - lock

        for words in range(4):
            pads = (wanted - distance(words, 0)) // 16
            for n in (pads, pads - 1, pads + 1):
                if n > 0 and distance(words, n) == wanted:
                    return words, n
        self.fail("no such program")

    def test_table(self):
        program = rig.build.build("metrics", rig.build.mandatory()[1], "strip")
        with rig.Target([program], env={"GOMAXPROCS": "3", "GOMEMLIMIT": "64MiB"}) as target:
            self.assertEqual(target.ask("gc"), "done")
            head, row = rig.sonde("ps", "-l", target.pid, check=rig.OK).stdout.splitlines()
            cells = dict(zip(head.split(), row.split()))
            self.assertEqual((cells["LIMIT"], cells["GCS"], cells["PROCS"], cells["GOROUTINES"]),
                             ("64MB", "1", "3", "1"))
            self.assertNotIn("GOROUTINES", rig.sonde("ps", target.pid, check=rig.OK).stdout)
        rig.sonde("ps", "0", check=rig.USAGE)
        rig.sonde("ps", target.pid, "--core", "x", check=rig.USAGE)


def load(every, suite):
    add = functools.partial(rig.add_test, suite, Metrics)
    suite.addTest(Metrics("test_table"))
    for version, go in rig.versions(every):
        minor = rig.build.version_key(version)[1]
        for case, (_, _, _, oldest) in CASES.items():
            if minor >= oldest:
                add(f"{version} {case}", lambda self, g=go, m=minor, c=case: self.equal(g, m, c))
        for variant in ("plain", "pie-strip"):
            add(f"{version} core {variant}",
                lambda self, g=go, m=minor, v=variant: self.core(g, m, v))
    go = rig.build.fetch("1.20.14")
    if go:
        add("1.20.14 moved", lambda self: self.moved(go, 20))
    newest = rig.build.newest()[1]
    add("under load", lambda self: self.under_load(newest))
