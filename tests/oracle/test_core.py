"""A core file gives the same profile as the live process that it was made of."""
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import unittest

import rig
from pprof import Profile


def unlimited_core():
    resource.setrlimit(resource.RLIMIT_CORE, (-1, -1))


class Core(unittest.TestCase):
    def live_and_gcore(self, variant, move_exe=False):
        go = rig.build.mandatory()[1]
        program = rig.build.build("heap", go, variant)
        with tempfile.TemporaryDirectory() as tmp:
            if move_exe:
                program = shutil.copy(program, os.path.join(tmp, "before"))
            with rig.Target([program, "-rate", "1", "-o", os.path.join(tmp, "own")]) as target:
                live = os.path.join(tmp, "live.pb.gz")
                rig.sonde("heap", target.pid, "-f", "pprof", "-o", live, check=rig.OK)
                subprocess.run(["gcore", "-o", os.path.join(tmp, "core"), str(target.pid)],
                               check=True, capture_output=True, timeout=rig.LIMIT)
            core = os.path.join(tmp, f"core.{target.pid}")
            extra = []
            if move_exe:
                moved = shutil.move(program, os.path.join(tmp, "after"))
                refused = rig.sonde("heap", "--core", core)
                self.assertIn("--exe", refused.stderr)
                extra = ["--exe", moved]
            dead = os.path.join(tmp, "dead.pb.gz")
            os.utime(core, (1_500_000_000, 1_500_000_000))
            rig.sonde("heap", "--core", core, *extra, "-f", "pprof", "-o", dead, check=rig.OK)
            self.assertEqual(Profile(dead).time_ns, 1_500_000_000 * 10 ** 9)
            self.assertEqual(Profile(live).nonzero(), Profile(dead).nonzero())
            self.assertGreater(len(Profile(live).nonzero()), 100)

    def test_gcore_equals_live(self):
        self.live_and_gcore("plain")

    def test_gcore_of_a_stripped_PIE_equals_live(self):
        self.live_and_gcore("pie-strip")

    def test_gcore_of_a_c_host_with_a_Go_library_equals_live(self):
        self.live_and_gcore("cshared")

    def test_gcore_of_a_packed_program_equals_live(self):
        self.live_and_gcore("packed")

    def test_executable_that_moved_is_named_with_exe(self):
        self.live_and_gcore("strip", move_exe=True)

    def test_another_executable_is_refused(self):
        go = rig.build.mandatory()[1]
        program = rig.build.build("heap", go, "plain")
        other = rig.build.build("nopprof", go, "plain")
        with tempfile.TemporaryDirectory() as tmp:
            with rig.Target([program, "-rate", "1"]) as target:
                subprocess.run(["gcore", "-o", os.path.join(tmp, "core"), str(target.pid)],
                               check=True, capture_output=True, timeout=rig.LIMIT)
            done = rig.sonde("heap", "--core", os.path.join(tmp, f"core.{target.pid}"),
                             "--exe", other)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("not the file the process runs", done.stderr)

    def core_written_by_the_kernel_equals_live(self):
        program = rig.build.build("heap", rig.build.mandatory()[1], "strip")
        with tempfile.TemporaryDirectory() as tmp:
            live, dead = os.path.join(tmp, "live.pb.gz"), os.path.join(tmp, "dead.pb.gz")
            core = self.crash_after_reading(program, tmp, live)
            rig.sonde("heap", "--core", core, "-f", "pprof", "-o", dead, check=rig.OK)
            self.assertEqual(Profile(live).nonzero(), Profile(dead).nonzero())

    def crash_after_reading(self, program, tmp, live):
        """The core's path. A crashing Go program may end by another thread before it is dumped."""
        for _ in range(50):
            process = subprocess.Popen([program, "-rate", "1"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=tmp,
                                       preexec_fn=unlimited_core,
                                       env=dict(os.environ, GOTRACEBACK="crash"))
            process.stdout.readline()
            rig.sonde("heap", process.pid, "-f", "pprof", "-o", live, check=rig.OK)
            process.send_signal(signal.SIGABRT)
            process.communicate()
            cores = [n for n in os.listdir(tmp) if n.startswith("core")]
            if cores:
                return os.path.join(tmp, cores[0])
        self.fail("the kernel wrote no core in fifty tries")


class Arm64(unittest.TestCase):
    """Cores of arm64 programs that ran under qemu-user; filled by load()."""

    def make_core(self, program, args, tmp):
        """Lets the program dump its own profile and then crash. qemu does not always write a core:
        it may lose the race between the crash of one thread and the end of the others."""
        for _ in range(10):
            process = subprocess.Popen(
                ["qemu-aarch64", program, "-o", os.path.join(tmp, "own"), *args],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                cwd=tmp, preexec_fn=unlimited_core, env=dict(os.environ, GOTRACEBACK="crash"))
            process.stdout.readline()
            process.stdin.write(b"dump\n")
            process.stdin.flush()
            self.assertEqual(process.stdout.readline(), b"dumped\n")
            process.send_signal(signal.SIGABRT)
            process.communicate(timeout=rig.LIMIT)
            cores = [n for n in os.listdir(tmp) if n.endswith(".core")]
            if cores:
                return os.path.join(tmp, cores[0])
        self.fail("qemu-aarch64 wrote no core in ten tries")

    def compare(self, go, variant, args):
        if not shutil.which("qemu-aarch64"):
            self.skipTest("qemu-aarch64 is not installed (Debian's qemu-user)")
        program = rig.build.build("heap", go, variant)
        with tempfile.TemporaryDirectory() as tmp:
            core = self.make_core(program, args, tmp)
            ours = os.path.join(tmp, "ours.pb.gz")
            rig.sonde("heap", "--core", core, "--exe", program, "-f", "pprof", "-o", ours,
                      check=rig.OK)
            a = Profile(ours).nonzero(("runtime/pprof.",))
            b = Profile(os.path.join(tmp, "own.heap.pb.gz")).nonzero(("runtime/pprof.",))
            self.assertGreater(len(b), 100)
            self.assertEqual(sum((a - b).values()), 0, next(iter(a - b), None))
            self.assertEqual(sum((b - a).values()), 0, next(iter(b - a), None))


def load(every, suite):
    suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(Core))
    with open("/proc/sys/kernel/core_pattern") as f:
        pattern = f.read().strip()
    # Elsewhere the kernel hands cores to a program, and there is none to read.
    if not pattern.startswith("|") and "/" not in pattern:
        rig.add_test(suite, Core, "core written by the kernel equals live",
                     Core.core_written_by_the_kernel_equals_live)
    if not every:
        return
    for version, go in rig.versions(every):
        for variant in ("arm64", "arm64-strip"):
            name = f"test_{version}_{variant}"
            setattr(Arm64, name, lambda self, g=go, v=variant: self.compare(g, v, ["-rate", "1"]))
            suite.addTest(Arm64(name))
