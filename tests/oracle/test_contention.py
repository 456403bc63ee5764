"""Block and mutex profiles from outside equal those that the program writes of itself."""
import collections
import functools
import os
import re
import signal
import struct
import subprocess
import tempfile
import unittest

import rig
from pprof import Profile

# name: (build variant, arguments, environment, oldest release that has it)
CASES = {
    "plain": ("plain", ["-block", "1", "-mutex", "1"], {}, 17),
    "stripped": ("strip", ["-block", "1", "-mutex", "1"], {}, 17),
    "PIE": ("pie", ["-block", "1", "-mutex", "1"], {}, 17),
    "PIE, stripped": ("pie-strip", ["-block", "1", "-mutex", "1"], {}, 17),
    "PGO, stripped": ("pgo-strip", ["-block", "1", "-mutex", "1"], {}, 21),
    "sampled, stripped": ("strip", ["-block", "100000", "-mutex", "2"], {}, 17),
    "deep stacks, stripped": ("strip", ["-block", "1", "-mutex", "1"],
                              {"GODEBUG": "profstackdepth=1000"}, 23),
    "shallow stacks": ("plain", ["-block", "1", "-mutex", "1"],
                       {"GODEBUG": "profstackdepth=9"}, 23),
}
KINDS = ("block", "mutex")
RATES = {"block": "runtime.blockprofilerate", "mutex": "runtime.mutexprofilerate"}


def is_runtime_lock(sample):
    """Locks of the runtime itself are contended at any time, also by the dump (1.22+)."""
    frames = [f for location in sample.stack for f in location.frames]
    return not frames or frames[0].function.startswith(("runtime.unlock", "runtime._Lost"))


def samples_of(path):
    return collections.Counter(s for s in Profile(path).samples if not is_runtime_lock(s))


def variable_of(go, program, pid, name):
    """An 8-byte variable as the process holds it now; by the symbol table, not by sonde."""
    out = subprocess.run([go, "tool", "nm", program], capture_output=True, text=True, check=True,
                         env=dict(os.environ, GOTOOLCHAIN="local", GOFLAGS="", GOENV="off")).stdout
    addr = int(re.search(rf"^\s*([0-9a-f]+) \S {re.escape(name)}$", out, re.M).group(1), 16)
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
        mem.seek(addr)
        return struct.unpack("<q", mem.read(8))[0]


class Contention(unittest.TestCase):
    """Filled by load()."""

    def compare(self, go, case):
        variant, args, env, _ = CASES[case]
        program = rig.build.build("contention", go, variant)
        with tempfile.TemporaryDirectory() as tmp:
            own, ours = os.path.join(tmp, "own"), os.path.join(tmp, "ours")
            with rig.Target([program, "-o", own, *args], env=env) as target:
                # The dump comes first: it makes the program measure its clock.
                self.assertEqual(target.ask("dump"), "dumped")
                for kind in KINDS:
                    rig.sonde(kind, target.pid, "-f", "pprof", "-o", ours + kind, check=rig.OK)
                    self.compare_profiles(go, ours + kind, f"{own}.{kind}.pb.gz")

    def compare_profiles(self, go, ours_path, own_path):
        ours, own = Profile(ours_path), Profile(own_path)
        self.assertEqual(ours.types, own.types)
        self.assertEqual(ours.period_type, own.period_type)
        self.assertEqual(ours.period, own.period)
        mine, theirs = samples_of(ours_path), samples_of(own_path)
        if mine != theirs:
            self.fail(f"{sum((mine - theirs).values())} samples only in ours, "
                      f"{sum((theirs - mine).values())} only in the program's own, of "
                      f"{sum(theirs.values())}\nours: {next(iter(mine - theirs), None)}"
                      f"\nown: {next(iter(theirs - mine), None)}")
        self.assertGreater(len(mine), 2)
        # Where the runtime's own locks did not move either, pprof prints the same table.
        if sorted(ours.samples) == sorted(own.samples):
            self.assertEqual(rig.pprof_top(go, ours_path), rig.pprof_top(go, own_path))

    def clock(self, go, variant):
        """A program that never needed its clock's rate: ours is the one that it finds later.

        It may lose the CPU between two looks at its clocks, and be wrong: then it tries again.
        """
        errors = []

        def right():
            errors.append(self.clock_error(go, variant))
            return errors[-1] < 1e-3

        rig.wait_for(right, lambda: f"the clock is off by {min(errors):.2g} or more", pause=0)

    def clock_error(self, go, variant):
        program = rig.build.build("contention", go, variant)
        total = lambda p: sum(s.values[1] for s in samples_of(p).elements())
        with tempfile.TemporaryDirectory() as tmp:
            own, ours = os.path.join(tmp, "own"), os.path.join(tmp, "ours")
            with rig.Target([program, "-o", own, "-mutex", "1"]) as target:
                done = rig.sonde("mutex", target.pid, "-f", "pprof", "-o", ours, check=rig.OK)
                self.assertIn("GHz (measured", done.stderr)
                self.assertEqual(target.ask("dump"), "dumped")
            self.assertGreater(total(ours), 0)
            return abs(total(ours) / total(own + ".mutex.pb.gz") - 1)

    def off(self, go, variant):
        program = rig.build.build("contention", go, variant)
        with rig.Target([program]) as target:
            for kind in KINDS:
                done = rig.sonde(kind, target.pid, check=rig.NOT_PROFILEABLE)
                self.assertIn(f"{kind} profiling is off", done.stderr)
                self.assertIn(f"--force-{kind}", done.stderr)

    def turned_off(self, go):
        """What was recorded before stays to be seen."""
        program = rig.build.build("contention", go, "strip")
        with rig.Target([program, "-block", "1", "-mutex", "1"]) as target:
            self.assertEqual(target.ask("off"), "off")
            done = rig.sonde("block", target.pid, check=rig.OK)
            self.assertIn("off now", done.stderr)
            self.assertIn("main.ping", done.stdout)

    def diff(self, go):
        program = rig.build.build("contention", go, "strip")
        with tempfile.TemporaryDirectory() as tmp:
            with rig.Target([program, "-block", "1", "-mutex", "1", "-load"]) as target:
                out = os.path.join(tmp, "diff")
                for seconds in (1, 8, 64):
                    rig.sonde("block", target.pid, "--diff", f"{seconds}s", "-f", "pprof", "-o",
                              out, check=rig.OK)
                    functions = Profile(out).functions()
                    # These waited only before the first reading.
                    self.assertNotIn("main.conditions", functions)
                    if "main.ping" in functions:
                        return
            self.fail(f"no main.ping in {seconds} s: {functions}")

    def force(self, go, kind, variant):
        program = rig.build.build("metrics", go, variant)
        expected = {"block": "main.waitForTurn", "mutex": "main.holdLock"}[kind]
        with tempfile.TemporaryDirectory() as tmp, rig.Target([program, "-load"]) as target:
            out = os.path.join(tmp, "forced")
            rig.sonde(kind, target.pid, check=rig.NOT_PROFILEABLE)
            for seconds in (0.3, 2, 8, 64):
                done = rig.sonde(kind, target.pid, f"--force-{kind}", "1", "--wait",
                                 f"{seconds * 1000:.0f}ms", "-f", "pprof", "-o", out, check=rig.OK)
                self.assertIn("Restored the rate to 0", done.stderr)
                if expected in Profile(out).functions():
                    break
            self.assertIn(expected, Profile(out).functions(), f"in {seconds} s")
            self.assertTrue(all(v >= 0 for s in Profile(out).samples for v in s.values))
            if variant == "plain":
                self.assertEqual(variable_of(go, program, target.pid, RATES[kind]), 0)

    def interrupted(self, go, kind):
        program = rig.build.build("metrics", go, "plain")
        read = lambda: variable_of(go, program, target.pid, RATES[kind])
        with rig.Target([program, "-load"]) as target:
            process = subprocess.Popen(
                [rig.SONDE, kind, str(target.pid), f"--force-{kind}", "5", "--wait", "1h"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
            rig.wait_for(lambda: read() > 0, "the rate stays 0")
            process.send_signal(signal.SIGINT)
            self.assertNotEqual(process.wait(timeout=rig.LIMIT), 0)
            self.assertEqual(read(), 0)

    def killed(self, go, kind):
        """The next command that forces, be it another profile, sets back what was left."""
        program = rig.build.build("metrics", go, "plain")
        read = lambda kind: variable_of(go, program, target.pid, RATES[kind])
        other, = set(RATES) - {kind}
        with rig.Target([program, "-load"]) as target:
            process = subprocess.Popen(
                [rig.SONDE, kind, str(target.pid), f"--force-{kind}", "5", "--wait", "1h"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            rig.wait_for(lambda: read(kind) > 0, "the rate stays 0")
            process.kill()
            process.wait()
            self.assertGreater(read(kind), 0)
            rig.sonde(other, target.pid, f"--force-{other}", "5", "--wait", "100ms", check=rig.OK)
            self.assertEqual((read(kind), read(other)), (0, 0))

    def core(self, go, variant):
        program = rig.build.build("contention", go, variant)
        with tempfile.TemporaryDirectory() as tmp:
            own = os.path.join(tmp, "own")
            with rig.Target([program, "-o", own, "-block", "1", "-mutex", "1"]) as target:
                self.assertEqual(target.ask("dump"), "dumped")
                subprocess.run(["gcore", "-o", os.path.join(tmp, "core"), str(target.pid)],
                               check=True, capture_output=True, timeout=rig.LIMIT)
            for kind in KINDS:
                dead = os.path.join(tmp, kind)
                rig.sonde(kind, "--core", os.path.join(tmp, f"core.{target.pid}"), "-f", "pprof",
                          "-o", dead, check=rig.OK)
                self.compare_profiles(go, dead, f"{own}.{kind}.pb.gz")

    def test_formats(self):
        go = rig.build.mandatory()[1]
        program = rig.build.build("contention", go, "plain")
        with rig.Target([program, "-block", "1"]) as target:
            for name in ("top", "tree", "collapsed", "json"):
                done = rig.sonde("block", target.pid, "-f", name, check=rig.OK)
                self.assertIn("main.ping", done.stdout)
            done = rig.sonde("block", target.pid, "-t", "contentions", check=rig.OK)
            self.assertIn("contentions", done.stdout)
            for wrong in (["-t", "inuse_space"], ["--wait", "1s"], ["--force-block", "0"],
                          ["--core", "x"]):
                rig.sonde("block", target.pid, *wrong, check=rig.USAGE)


def load(every, suite):
    add = functools.partial(rig.add_test, suite, Contention)
    suite.addTest(Contention("test_formats"))
    for version, go in rig.versions(every):
        minor = rig.build.version_key(version)[1]
        for case, (_, _, _, oldest) in CASES.items():
            if minor >= oldest:
                add(f"{version} {case}", lambda self, g=go, c=case: self.compare(g, c))
        for variant in ("plain", "strip"):
            add(f"{version} off {variant}", lambda self, g=go, v=variant: self.off(g, v))
            add(f"{version} clock {variant}", lambda self, g=go, v=variant: self.clock(g, v))
            for kind in KINDS:
                add(f"{version} force {kind} {variant}",
                    lambda self, g=go, k=kind, v=variant: self.force(g, k, v))
        add(f"{version} core", lambda self, g=go: self.core(g, "strip"))
        add(f"{version} turned off", lambda self, g=go: self.turned_off(g))
    go = rig.build.mandatory()[1]
    newest = rig.build.newest()[1]
    for kind in KINDS:
        add(f"interrupted {kind}", lambda self, k=kind: self.interrupted(newest, k))
        add(f"killed {kind}", lambda self, k=kind: self.killed(newest, k))
    add("diff", lambda self: self.diff(go))
    add("core of a PIE", lambda self: self.core(newest, "pie-strip"))
