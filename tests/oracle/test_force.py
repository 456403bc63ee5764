"""--force turns sampling on where the linker turned it off, and leaves no trace."""
import os
import re
import signal
import struct
import subprocess
import tempfile
import unittest

import rig
from pprof import Profile


def rate_of(go, program, pid):
    """runtime.MemProfileRate as the process holds it now; by the symbol table, not by sonde."""
    out = subprocess.run([go, "tool", "nm", program], capture_output=True, text=True, check=True,
                         env=dict(os.environ, GOTOOLCHAIN="local", GOFLAGS="", GOENV="off")).stdout
    addr = int(re.search(r"^\s*([0-9a-f]+) \S runtime\.MemProfileRate$", out, re.M).group(1), 16)
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
        mem.seek(addr)
        return struct.unpack("<q", mem.read(8))[0]


def heed_interrupts():
    """In the background a shell starts programs with SIGINT ignored, and sonde respects that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def target_of(program):
    """Samples are told of by the collector: it runs often."""
    return rig.Target([program], env={"GOGC": "10"})


def forced(target, out, done):
    """A profile with sampling forced on, for as long as done(profile) needs."""
    for seconds in (0.5, 2, 8, 32, 128):
        rig.sonde("heap", target.pid, "--force", "--rate", "65536", "--wait",
                  f"{seconds * 1000:.0f}ms", "-f", "pprof", "-o", out, check=rig.OK)
        profile = Profile(out)
        if done(profile):
            return profile
    raise AssertionError(f"{len(profile.samples)} samples in {seconds} s, with "
                         f"{sorted(profile.functions())}")


def has_leak(profile):
    return "main.leakCache" in profile.functions() and any(s.values[1] > 0
                                                           for s in profile.samples)


class Force(unittest.TestCase):
    """Filled by load()."""

    def force(self, go):
        program = rig.build.build("nopprof", go, "plain")
        with tempfile.TemporaryDirectory() as tmp, target_of(program) as target:
            self.assertEqual(rate_of(go, program, target.pid), 0)
            refused = rig.sonde("heap", target.pid, check=rig.NOT_PROFILEABLE)
            self.assertIn("--force", refused.stderr)
            profile = forced(target, os.path.join(tmp, "forced.pb.gz"), has_leak)
            self.assertEqual(profile.period, 65536)
            self.assertEqual(rate_of(go, program, target.pid), 0)

    def force_stripped(self, go):
        program = rig.build.build("nopprof", go, "strip")
        with tempfile.TemporaryDirectory() as tmp, target_of(program) as target:
            forced(target, os.path.join(tmp, "forced.pb.gz"), has_leak)
            rig.sonde("heap", target.pid, check=rig.NOT_PROFILEABLE)

    def keep(self, go):
        program = rig.build.build("nopprof", go, "plain")
        with target_of(program) as target:
            rig.sonde("heap", target.pid, "--force", "--rate", "65536", "--wait", "100ms", "--keep",
                      check=rig.OK)
            self.assertEqual(rate_of(go, program, target.pid), 65536)
            read = lambda: rig.sonde("heap", target.pid, check=rig.OK).stdout
            rig.wait_for(lambda: "main." in read(), read)

    def interrupted(self, go):
        program = rig.build.build("nopprof", go, "plain")
        with rig.Target([program]) as target:
            process = subprocess.Popen([rig.SONDE, "heap", str(target.pid), "--force", "--wait",
                                        "1h"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, preexec_fn=heed_interrupts)
            rig.wait_for(lambda: rate_of(go, program, target.pid), "the rate stays 0")
            self.assertEqual(rate_of(go, program, target.pid), 524288)
            process.send_signal(signal.SIGINT)
            self.assertNotEqual(process.wait(timeout=rig.LIMIT), 0)
            self.assertEqual(rate_of(go, program, target.pid), 0)

    def closed_pipe(self, go):
        """Whoever read our notes has left: the rate is set back all the same."""
        program = rig.build.build("nopprof", go, "plain")
        with rig.Target([program]) as target:
            read_end, write_end = os.pipe()
            os.close(read_end)
            process = subprocess.Popen([rig.SONDE, "heap", str(target.pid), "--force", "--wait",
                                        "500ms"], stdout=write_end, stderr=write_end)
            os.close(write_end)
            process.wait(timeout=rig.LIMIT)
            self.assertEqual(rate_of(go, program, target.pid), 0)

    def twice(self, go):
        """What the first run sampled and the program freed since is not taken off the second."""
        program = rig.build.build("nopprof", go, "plain")
        with tempfile.TemporaryDirectory() as tmp, target_of(program) as target:
            forced(target, os.path.join(tmp, "first"), has_leak)
            for sample in forced(target, os.path.join(tmp, "second"), has_leak).samples:
                self.assertTrue(all(v >= 0 for v in sample.values), sample)

    def at_the_same_time(self, go):
        program = rig.build.build("nopprof", go, "plain")
        with rig.Target([program]) as target:
            first = subprocess.Popen([rig.SONDE, "heap", str(target.pid), "--force", "--wait",
                                      "1h"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                     preexec_fn=heed_interrupts)
            rig.wait_for(lambda: rate_of(go, program, target.pid), "the rate stays 0")
            second = rig.sonde("heap", target.pid, "--force", "--rate", "4096", "--wait", "1s",
                               check=rig.FAILED)
            self.assertIn("another sonde", second.stderr)
            self.assertEqual(rate_of(go, program, target.pid), 524288)
            first.send_signal(signal.SIGINT)
            first.wait(timeout=rig.LIMIT)
            self.assertEqual(rate_of(go, program, target.pid), 0)


def load(every, suite):
    found = rig.versions(every)
    for version, go in found:
        for case in ("force", "force_stripped"):
            name = f"test_{version}_{case}"
            setattr(Force, name, lambda self, g=go, c=case: getattr(self, c)(g))
            suite.addTest(Force(name))
    go = rig.build.mandatory()[1]
    for case in ("keep", "interrupted", "closed_pipe", "twice", "at_the_same_time"):
        setattr(Force, f"test_{case}", lambda self, c=case: getattr(self, c)(go))
        suite.addTest(Force(f"test_{case}"))
