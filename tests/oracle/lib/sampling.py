"""Samples with `sonde cpu` until there is enough to judge, however long that takes.

On a busy machine a target may get a hundredth of a CPU, and a second may bring no sample at all. So
nothing here waits for time: it waits until a process has used so much CPU time, or until something
is there, and gives up with figures after LIMIT seconds.
"""
import contextlib
import math
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import pprof
import rig
import stats
from rig import LIMIT, SLOW, wait_for

# An emulated machine takes longer for the work of each sample as well.
HZ = 499 if SLOW else 1999


def cpu_time(pid):
    """Seconds of CPU time that all threads of a process have used; None when it has ended."""
    try:
        return time.clock_gettime(~pid << 3 | 2)  # as clock_getcpuclockid() makes it
    except OSError:
        return None


def use(pid, seconds):
    """Waits until a process has used so much CPU time from now on, or has ended."""
    start = cpu_time(pid) or 0

    def used():
        now = cpu_time(pid)
        return now is None or now - start >= seconds

    wait_for(used, lambda: f"process {pid} used {(cpu_time(pid) or start) - start:.3f} s of CPU "
                             f"time, {seconds:.3f} wanted")


def count(samples):
    return sum(s.values[0] for s in samples)


def names_of(sample):
    """The innermost first."""
    return [f.function for location in sample.stack for f in location.frames]


def count_with(samples, *names):
    """Those that pass through one of these functions."""
    return count(s for s in samples if not set(names).isdisjoint(names_of(s)))


class Sampling:
    """`sonde cpu` at work, until it is told to end."""

    def __init__(self, *args, hz=HZ, env=None, command="cpu"):
        self.folder = tempfile.mkdtemp(prefix="sonde-sampling-")
        self.path = os.path.join(self.folder, "profile")
        rate = ("--hz", hz) if hz else ()
        form = () if "-f" in args else ("-f", "pprof", "-o", self.path)
        self.errors = open(self.path + ".errors", "w+", encoding="utf-8")
        self.output = open(self.path + ".output", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [rig.SONDE, *map(str, (command, *args, "-d", "3600s", *rate, *form))],
            stdout=self.output, stderr=self.errors, env=env)
        self.pid = self.process.pid

    def said(self):
        return self.text(self.errors)

    @staticmethod
    def text(file):
        file.seek(0)
        return file.read()

    def has_begun(self):
        """It would take the signal that ends it, and has what it samples with."""
        if self.process.poll() is not None:
            raise AssertionError(f"sonde cpu ended with {self.process.returncode}: {self.said()}")
        with open(f"/proc/{self.pid}/status", encoding="utf-8") as f:
            caught = int(re.search(r"^SigCgt:\s*(\w+)", f.read(), re.M)[1], 16)
        return caught >> signal.SIGINT - 1 & 1 and self.has_open("perf_event", "bpf_link")

    def has_open(self, *words):
        for fd in os.listdir(f"/proc/{self.pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                link = os.readlink(f"/proc/{self.pid}/fd/{fd}")
                if any(word in link for word in words):
                    return True
        return False

    def __enter__(self):
        try:
            wait_for(self.has_begun, "sonde does not begin to sample")
        except BaseException:
            self.__exit__()
            raise
        return self

    def end(self):
        """Ends it; returns the profile, or the text where one of another form was asked for."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        code = self.process.wait(LIMIT)
        if code != rig.OK:
            raise AssertionError(f"sonde cpu: exit code {code}\n{self.said()}")
        if os.path.exists(self.path):
            return pprof.Profile(self.path, files=True)
        return self.text(self.output)

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.errors.close()
        self.output.close()
        shutil.rmtree(self.folder)


class SamplingCase(unittest.TestCase):
    """What tests of CPU profiles have in common."""

    def sample(self, pid, samples, *args, until=None, hz=HZ, env=None):
        """The profile of a process, with so many samples or more; until(profile): and enough.

        Where one round brings too few, as where a virtual machine was not run for a while, the
        next one is added.
        """
        whole, said, begin = None, "", time.monotonic()
        while not whole or count(whole.samples) < samples or (until and not until(whole)):
            have = count(whole.samples) if whole else 0
            if time.monotonic() - begin > LIMIT:
                self.fail(f"after {LIMIT} s: {have} samples, {samples} wanted"
                          f"{', and not all is seen' if until else ''}\n{said}")
            with Sampling(pid, *args, hz=hz, env=env) as sampling:
                use(pid, 1.05 * max(samples - have, samples / 4) / hz)
                profile = sampling.end()
                said = sampling.said()
            if whole:
                whole.samples += profile.samples
            whole = whole or profile
        whole.said = said
        return whole

    def text(self, pid, samples, *args):
        """What sonde prints of about so many samples."""
        with Sampling(pid, *args) as sampling:
            use(pid, 1.2 * samples / HZ)
            return sampling.end()

    def measured(self, target, samples, *args, **kwargs):
        """A profile, and what the target's own counters say of the same time."""
        ask = lambda: [int(word) for word in target.ask("counters").split()]
        before = ask()
        profile = self.sample(target.pid, samples, *args, **kwargs)
        return profile, [b - a for a, b in zip(before, ask())]

    def check_shares(self, samples, spent, at_least=0.97):
        """Shares below the functions are those that {function: work} tells; little is elsewhere."""
        hits = {name: count_with(samples, name) for name in spent}
        total, checks = sum(hits.values()), len(spent) + 1
        self.assertGreater(total, 0, "no samples")
        for name, work in spent.items():
            # Slack for what surrounds the work: the same for each, however little it does.
            stats.check_share(self, hits[name], total, work / sum(spent.values()), slack=0.01,
                              checks=checks, msg=name)
        stats.check_more(self, total, count(samples), at_least, checks, f"in any of {list(hits)}")

    def check_more(self, samples, among, share, msg="", checks=1):
        stats.check_more(self, count(samples), count(among), share, checks, msg)

    def check_less(self, samples, among, share, msg="", checks=1):
        stats.check_less(self, count(samples), count(among), share, checks, msg)

    def waits(self, target, rounds):
        """Waits of a target that counts its own: [times, nanoseconds, ...], as it answers.

        Returns the profile, what it counted between two moments of it, and between one before and
        one after: what is shown lies between the two. rounds: of the first of those that count.
        """
        ask = lambda: [int(word) for word in target.ask("counters").split()]
        before = ask()
        with Sampling(target.pid, "--offcpu", hz=None) as sampling:
            first = ask()
            wait_for(lambda: ask()[0] >= first[0] + rounds,
                       lambda: f"{first}, then {ask()}")
            last = ask()
            profile = sampling.end()
        after = ask()
        return (profile, [b - a for a, b in zip(first, last)],
                [b - a for a, b in zip(before, after)])

    def check_waits(self, name, ours, early, least, most, sampled=False):
        """least, most: [times, nanoseconds] that the target counts within, and around.

        early: what may be its, too. sampled: other waits of the thread are short, so that of its
        long ones a half is looked at, and counts twice.
        """
        shown, mean = sum(s.values[1] for s in ours), most[1] / max(most[0], 1)
        unknown = sum(s.values[1] for s in early)
        # Each has one under way at the beginning and at the end.
        slack = 2 * mean + (5 * math.sqrt(most[0]) * mean if sampled else 0)
        figures = f"{name}: {shown} shown, {unknown} unknown, {least} to {most} counted"
        self.assertLess(shown, most[1] + slack, figures)
        # It takes a moment to begin a wait, and to go on after it.
        self.assertGreater(shown + unknown, 0.9 * least[1] - slack, figures)
