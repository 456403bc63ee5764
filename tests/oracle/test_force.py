"""--force turns sampling on where the linker turned it off, and leaves no trace, also after a kill -9."""
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


def journal(folder=None):
    """The lines of what is noted as forced."""
    try:
        with open(os.path.join(folder or rig.STATE.name, "forced-rates")) as f:
            return [line.split() for line in f]
    except FileNotFoundError:
        return []


class Force(unittest.TestCase):
    """Filled by load()."""

    def tearDown(self):
        for name in os.listdir(rig.STATE.name):
            os.unlink(os.path.join(rig.STATE.name, name))

    def begin(self, go, program, target, state=None, stderr=subprocess.DEVNULL):
        """A sonde that forces for an hour, once it does."""
        env = dict(os.environ, SONDE_DATA_DIR=state or rig.STATE.name)
        process = subprocess.Popen([rig.SONDE, "heap", str(target.pid), "--force", "--wait", "1h"], env=env,
                                   stdout=subprocess.DEVNULL, stderr=stderr, preexec_fn=heed_interrupts)
        rig.wait_for(lambda: rate_of(go, program, target.pid), "the rate stays 0")
        return process

    def killed_in_the_middle(self, go, program, target, state=None):
        process = self.begin(go, program, target, state)
        process.kill()
        process.wait()
        self.assertEqual(rate_of(go, program, target.pid), 524288)
        self.assertIn(str(target.pid), [words[0] for words in journal(state)])

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


    def killed(self, go):
        """The next command that forces sets back what was left, in whichever program."""
        program = rig.build.build("nopprof", go, "plain")
        with tempfile.TemporaryDirectory() as tmp, target_of(program) as target, target_of(program) as other:
            self.killed_in_the_middle(go, program, target)
            forced(other, os.path.join(tmp, "other"), lambda _: True)
            self.assertEqual((rate_of(go, program, target.pid), rate_of(go, program, other.pid)), (0, 0))
            self.assertEqual(journal(), [])
            # The same program: its old rate is the one that it had before all that.
            self.killed_in_the_middle(go, program, target)
            forced(target, os.path.join(tmp, "same"), has_leak)
            self.assertEqual(rate_of(go, program, target.pid), 0)
            self.assertEqual(journal(), [])

    def killed_then_run(self, go):
        """`sonde run` finds it in its own folder, and in the one that commands use."""
        program = rig.build.build("nopprof", go, "plain")
        for shared in (False, True):
            with tempfile.TemporaryDirectory() as tmp, rig.Target([program]) as target:
                self.killed_in_the_middle(go, program, target, tmp if shared else None)
                run = subprocess.Popen([rig.SONDE, "run", "--listen", "127.0.0.1:0", "--data-dir", tmp, "--cpu-hz",
                                        "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                self.assertIn("ready", run.stdout.readline())
                self.assertEqual(rate_of(go, program, target.pid), 0)
                run.terminate()
                self.assertEqual(run.wait(timeout=rig.LIMIT), 0)
                run.stdout.close()
                self.assertEqual((journal(), journal(tmp)), ([], []))

    def two_of_one_journal(self, go):
        """Who ends well leaves the note of who was killed."""
        program = rig.build.build("nopprof", go, "plain")
        with tempfile.TemporaryDirectory() as tmp, rig.Target([program]) as one, rig.Target([program]) as two, \
                target_of(program) as third:
            first, second = self.begin(go, program, one), self.begin(go, program, two)
            self.assertEqual({words[0] for words in journal()}, {str(one.pid), str(two.pid)})
            first.kill()
            first.wait()
            second.send_signal(signal.SIGINT)
            second.wait(timeout=rig.LIMIT)
            self.assertEqual(rate_of(go, program, two.pid), 0)
            self.assertEqual([words[0] for words in journal()], [str(one.pid)])
            self.assertEqual(rate_of(go, program, one.pid), 524288)
            # What a living sonde holds is not taken from it.
            second = self.begin(go, program, two)
            forced(third, os.path.join(tmp, "out"), lambda _: True)
            self.assertEqual((rate_of(go, program, one.pid), rate_of(go, program, two.pid)), (0, 524288))
            second.send_signal(signal.SIGINT)
            second.wait(timeout=rig.LIMIT)
            self.assertEqual(rate_of(go, program, two.pid), 0)
            self.assertEqual(journal(), [])

    def forged(self, go):
        """A journal that others could have written: nothing is written into a program by it."""
        program = rig.build.build("nopprof", go, "plain")
        path = os.path.join(rig.STATE.name, "forced-rates")
        beside = path + ".theirs"
        with rig.Target([program]) as target, rig.Target([program]) as other:
            self.killed_in_the_middle(go, program, target)

            def link():
                os.rename(path, beside)
                os.symlink(beside, path)

            def unlink():
                os.rename(beside, path)

            for forge, undo in ((lambda: os.chown(path, 65534, 65534), lambda: os.chown(path, 0, 0)),
                                (lambda: os.chmod(path, 0o666), lambda: os.chmod(path, 0o600)),
                                (lambda: os.chmod(rig.STATE.name, 0o777), lambda: os.chmod(rig.STATE.name, 0o700)),
                                (link, unlink)):
                forge()
                done = rig.sonde("heap", other.pid, "--force", "--wait", "100ms", check=rig.FAILED)
                self.assertIn("is writable by others", done.stderr)
                self.assertEqual((rate_of(go, program, target.pid), rate_of(go, program, other.pid)), (524288, 0))
                undo()
            # A note of an earlier process with that pid, or of what it ran before an exec.
            real, = journal()
            for word in (1, 2):
                wrong = list(real)
                wrong[word] = f"{int(real[word], 16) ^ 1:x}" if word == 2 else str(int(real[word]) + 1)
                with open(path, "w") as f:
                    f.write(" ".join(wrong) + "\n")
                rig.sonde("heap", other.pid, "--force", "--wait", "100ms", check=rig.OK)
                self.assertEqual(rate_of(go, program, target.pid), 524288)
                self.assertEqual(journal(), [])
            with open(path, "w") as f:
                f.write(" ".join(real) + "\n")
            rig.sonde("heap", other.pid, "--force", "--wait", "100ms", check=rig.OK)
            self.assertEqual(rate_of(go, program, target.pid), 0)

    def ended(self, go):
        """A program that ends meanwhile needs no rate, and no note."""
        program = rig.build.build("nopprof", go, "plain")
        with rig.Target([program]) as target:
            process = self.begin(go, program, target, stderr=subprocess.PIPE)
            target.process.kill()
            target.process.wait()
            said = process.communicate(timeout=rig.LIMIT)[1].decode()
            self.assertEqual(process.returncode, rig.FAILED)
            self.assertIn("exited", said)
            self.assertNotIn("back", said)
            self.assertEqual(journal(), [])

    def not_noted(self, go):
        """What cannot be noted is not done."""
        program = rig.build.build("nopprof", go, "plain")
        with tempfile.TemporaryDirectory() as tmp, rig.Target([program]) as target:
            state = os.path.join(tmp, "file")
            open(state, "w").close()
            done = rig.sonde("heap", target.pid, "--force", "--wait", "100ms", check=rig.FAILED,
                             env=dict(os.environ, SONDE_DATA_DIR=state))
            self.assertIn("SONDE_DATA_DIR", done.stderr)
            self.assertEqual(rate_of(go, program, target.pid), 0)


    def no_more_than_allocated(self, go):
        """What an earlier sonde has sampled is still in use, but was not allocated since."""
        program = rig.build.build("nopprof", go, "strip")
        with tempfile.TemporaryDirectory() as tmp, target_of(program) as target:
            forced(target, os.path.join(tmp, "first"), has_leak)
            second = os.path.join(tmp, "second")
            rig.sonde("heap", target.pid, "--force", "--wait", "300ms", "-f", "pprof", "-o", second,
                      check=rig.OK)
            for sample in Profile(second).samples:
                self.assertLessEqual(sample.values[2], sample.values[0])
                self.assertLessEqual(sample.values[3], sample.values[1])

    def too_few_collections(self, go):
        program = rig.build.build("metrics", go, "plain")
        for collections, said in ((0, "No garbage collection"),
                                  (1, "Only one garbage collection finished"), (2, "")):
            with rig.Target([program], env={"GOGC": "off"}) as target:
                # Something is published.
                for command in ("grow 3", "gc", "gc"):
                    target.ask(command)
                process = subprocess.Popen(
                    [rig.SONDE, "heap", str(target.pid), "--force", "--rate", "1", "--wait", "4s"],
                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                rig.wait_for(lambda: rate_of(go, program, target.pid), "the rate stays 0")
                # It has read what was there before.
                time.sleep(1)
                target.ask("grow 3")
                for _ in range(collections):
                    target.ask("gc")
                err = process.communicate(timeout=rig.LIMIT)[1]
                self.assertIn(said, err)
                self.assertEqual("garbage collection" in err, collections < 2, err)


def load(every, suite):
    found = rig.versions(every)
    for version, go in found:
        for case in ("force", "force_stripped"):
            name = f"test_{version}_{case}"
            setattr(Force, name, lambda self, g=go, c=case: getattr(self, c)(g))
            suite.addTest(Force(name))
    go = rig.build.mandatory()[1]
    for case in ("keep", "interrupted", "closed_pipe", "twice", "at_the_same_time", "killed",
                 "killed_then_run", "two_of_one_journal", "forged", "ended", "not_noted",
                 "no_more_than_allocated", "too_few_collections"):
        setattr(Force, f"test_{case}", lambda self, c=case: getattr(self, c)(go))
        suite.addTest(Force(f"test_{case}"))
