"""--force turns sampling on where the linker turned it off, and leaves no trace."""
import os
import re
import signal
import struct
import subprocess
import tempfile
import time
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


class Force(unittest.TestCase):
    """Filled by load()."""

    def force(self, go):
        program = rig.build.build("nopprof", go, "plain")
        with tempfile.TemporaryDirectory() as tmp, rig.Target([program]) as target:
            self.assertEqual(rate_of(go, program, target.pid), 0)
            refused = rig.sonde("heap", target.pid, check=rig.NOT_PROFILEABLE)
            self.assertIn("--force", refused.stderr)
            out = os.path.join(tmp, "forced.pb.gz")
            rig.sonde("heap", target.pid, "--force", "--rate", "65536", "--wait", "3s", "-f",
                      "pprof", "-o", out, check=rig.OK)
            profile = Profile(out)
            self.assertEqual(profile.period, 65536)
            self.assertIn("main.leakCache", profile.functions())
            self.assertTrue(any(s.values[1] > 0 for s in profile.samples))
            self.assertEqual(rate_of(go, program, target.pid), 0)

    def force_stripped(self, go):
        program = rig.build.build("nopprof", go, "strip")
        with tempfile.TemporaryDirectory() as tmp, rig.Target([program]) as target:
            out = os.path.join(tmp, "forced.pb.gz")
            rig.sonde("heap", target.pid, "--force", "--rate", "65536", "--wait", "3s", "-f",
                      "pprof", "-o", out, check=rig.OK)
            self.assertIn("main.leakCache", Profile(out).functions())
            rig.sonde("heap", target.pid, check=rig.NOT_PROFILEABLE)

    def keep(self, go):
        program = rig.build.build("nopprof", go, "plain")
        with rig.Target([program]) as target:
            rig.sonde("heap", target.pid, "--force", "--rate", "65536", "--wait", "1s", "--keep",
                      check=rig.OK)
            self.assertEqual(rate_of(go, program, target.pid), 65536)
            done = rig.sonde("heap", target.pid, check=rig.OK)
            self.assertIn("main.", done.stdout)

    def interrupted(self, go):
        program = rig.build.build("nopprof", go, "plain")
        with rig.Target([program]) as target:
            process = subprocess.Popen([rig.SONDE, "heap", str(target.pid), "--force", "--wait",
                                        "60s"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, preexec_fn=heed_interrupts)
            deadline = time.monotonic() + 30
            while rate_of(go, program, target.pid) == 0 and time.monotonic() < deadline:
                time.sleep(0.05)
            self.assertEqual(rate_of(go, program, target.pid), 524288)
            process.send_signal(signal.SIGINT)
            self.assertNotEqual(process.wait(timeout=30), 0)
            self.assertEqual(rate_of(go, program, target.pid), 0)


    def closed_pipe(self, go):
        """Whoever read our notes has left: the rate is set back all the same."""
        program = rig.build.build("nopprof", go, "plain")
        with rig.Target([program]) as target:
            read_end, write_end = os.pipe()
            os.close(read_end)
            process = subprocess.Popen([rig.SONDE, "heap", str(target.pid), "--force", "--wait",
                                        "2s"], stdout=write_end, stderr=write_end)
            os.close(write_end)
            process.wait(timeout=30)
            self.assertEqual(rate_of(go, program, target.pid), 0)

    def twice(self, go):
        """What the first run sampled and the program freed since is not taken off the second."""
        program = rig.build.build("nopprof", go, "plain")
        with tempfile.TemporaryDirectory() as tmp, rig.Target([program]) as target:
            for run in ("first", "second"):
                out = os.path.join(tmp, run)
                rig.sonde("heap", target.pid, "--force", "--rate", "65536", "--wait", "3s", "-f",
                          "pprof", "-o", out, check=rig.OK)
            for sample in Profile(out).samples:
                self.assertTrue(all(v >= 0 for v in sample.values), sample)

    def at_the_same_time(self, go):
        program = rig.build.build("nopprof", go, "plain")
        with rig.Target([program]) as target:
            first = subprocess.Popen([rig.SONDE, "heap", str(target.pid), "--force", "--wait",
                                      "3s"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            deadline = time.monotonic() + 30
            while rate_of(go, program, target.pid) == 0 and time.monotonic() < deadline:
                time.sleep(0.05)
            second = rig.sonde("heap", target.pid, "--force", "--rate", "4096", "--wait", "5s",
                               check=rig.FAILED)
            self.assertIn("another sonde", second.stderr)
            self.assertEqual(first.wait(timeout=30), 0)
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
