"""What users without rights may try: neither do they learn what they may not, nor delay others."""
import contextlib
import json
import os
import signal
import sys
import tempfile
import unittest

import rig
import sampling
from test_agent import QUICK, Agent, leak
from test_rights import burner

HANG = os.path.join(rig.ROOT, "tests", "targets", "hostile", "hang.py")
PEEK = os.path.join(os.path.dirname(HANG), "peek.py")
NOBODY = 65534
CPU = "cpu:cpu:nanoseconds"
KINDS = ("text", "python", "tmp")
# No user has more readers that hang, but for those that were at it already.
HUNG, AT_IT = 4, 8


class Hanging:
    """Programs of each kind, several times, of one user."""

    def __init__(self, uid, *kinds):
        self.target = rig.Target([sys.executable, HANG, str(uid), *kinds], ready=False)
        try:
            words = self.target.line().split()
            assert words[:1] == [b"ready"], f"hang.py did not start: {words}"
            self.pids = [int(word) for word in words[1:]]
        except BaseException:
            self.target.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.target.__exit__()


@contextlib.contextmanager
def data_dir():
    with tempfile.TemporaryDirectory(prefix="sonde-hang-data-") as folder:
        yield folder


class Hostile(sampling.SamplingCase):
    def check_sampled(self):
        """The whole machine, on which something runs, can be sampled."""
        with burner("hostile-busy"):
            table = lambda: rig.sonde("cpu", "-d", "1s", check=rig.OK).stdout
            rig.wait_for(lambda: "samples" in table(), "no samples of a busy machine")

    def check_goes_on(self, agent, other):
        """CPU and heaps of others are sampled and read as ever, and of those that come now."""
        cpu = lambda: sum(agent.stored("hostile-other", CPU).values())
        for _ in range(3):
            before = cpu()
            agent.wait_collections(other.pid, 2)
            rig.wait_for(lambda: cpu() > before, lambda: agent.api("health"))
        with leak("hostile-late") as late:
            agent.wait_collections(late.pid, 2)
            rig.wait_for(lambda: agent.stored("hostile-late", CPU), lambda: agent.api("health"))


class Hang(Hostile):
    """Programs whose memory and names hang whoever reads them."""

    def test_many_delay_nobody_and_leave_nothing_behind(self):
        with data_dir() as data, leak("hostile-other") as other, \
                Hanging(NOBODY, *KINDS * 4) as hanging:
            for _ in range(2):
                with Agent(data, interval=QUICK) as agent:
                    health = lambda: agent.api("health")
                    rig.wait_for(lambda: health()["hung_reads"] >= HUNG and
                                 health()["unanswered_reads"], health)
                    self.check_goes_on(agent, other)
                    self.assertLess(health()["hung_reads"], HUNG + AT_IT)
                    # They are profiled as far as they can be: their CPU time is.
                    shown = {t["pid"] for t in agent.api("targets")["targets"]}
                    self.assertLessEqual(set(hanging.pids), shown)
                    # It ends, and the next one begins with the same store.
                    self.assertEqual(agent.stop(signal.SIGTERM), rig.OK)

    def test_each_kind_alone_is_found_out(self):
        with data_dir() as data, leak("hostile-other") as other:
            for kind in KINDS:
                with self.subTest(kind=kind), Hanging(NOBODY, kind), \
                        Agent(os.path.join(data, kind), interval=QUICK) as agent:
                    health = lambda: agent.api("health")
                    rig.wait_for(lambda: health()["unanswered_reads"],
                                 lambda: (kind, health()))
                    agent.wait_collections(other.pid, 2)
                    self.assertEqual(agent.stop(signal.SIGTERM), rig.OK)

    def test_users_are_told_apart(self):
        with data_dir() as data, Hanging(NOBODY, *["text"] * 6), \
                Hanging(1234, *["text"] * 6), Agent(data, interval=QUICK) as agent:
            health = lambda: agent.api("health")
            rig.wait_for(lambda: health()["hung_reads"] >= 2 * HUNG, health)
            self.assertEqual(agent.stop(signal.SIGTERM), rig.OK)

    def test_commands_for_all_processes_end(self):
        with Hanging(NOBODY, *KINDS) as hanging:
            rows = rig.sonde("ps", "--json", check=rig.OK).stdout
            for pid in hanging.pids:
                self.assertIn(f'"pid":{pid},', rows.replace(" ", ""))
            self.check_sampled()
            for pid in hanging.pids:
                self.sample(pid, 20)


class Exec(Hostile):
    """Processes that never leave an exec: the kernel has wait whoever looks at them."""
    MANY = 10

    def test_many_delay_nobody_and_leave_nothing_behind(self):
        with data_dir() as data, leak("hostile-other") as other, \
                Hanging(NOBODY, *["exec"] * self.MANY):
            for _ in range(2):
                with Agent(data, interval=QUICK) as agent:
                    self.check_goes_on(agent, other)
                    self.assertGreater(agent.api("health")["unanswered_reads"], 0)
                    self.assertEqual(agent.stop(signal.SIGTERM), rig.OK)

    def test_one_that_comes_later_delays_nobody(self):
        with data_dir() as data, leak("hostile-other") as other, \
                Agent(data, interval=QUICK) as agent:
            agent.wait_collections(other.pid, 2)
            with Hanging(0, "exec"):
                self.check_goes_on(agent, other)
            # It has ended by now, and others are found as ever.
            self.check_goes_on(agent, other)
            self.assertEqual(agent.stop(signal.SIGTERM), rig.OK)

    def test_commands_for_all_processes_end(self):
        with Hanging(NOBODY, *["exec"] * self.MANY) as hanging:
            rows = json.loads(rig.sonde("ps", "--all", "--json", check=rig.OK).stdout)
            of = {row["pid"]: row for row in rows}
            for pid in hanging.pids:
                self.assertIn("not responding", json.dumps(of[pid]))
            self.check_sampled()
            self.assertTrue(rig.sonde("top", "--once", check=rig.OK).stdout)


class Peek(sampling.SamplingCase):
    """Files that only root may read do not come out as names of code."""
    ADDRESS = 0x5e0000000000
    SECRET = "correct-horse-battery-staple"

    def names(self, secret, *text):
        """Of the functions in which the program was sampled."""
        with rig.Target([sys.executable, PEEK, str(NOBODY), secret, f"{self.ADDRESS:x}",
                         *text]) as target:
            self.addCleanup(os.unlink, f"/tmp/perf-{target.pid}.map")
            profile = self.sample(target.pid, 100)
        return {name for s in profile.samples for name in sampling.names_of(s)}

    def test_mounted_over_a_perf_map(self):
        line = f"{self.ADDRESS:x} 1000 {self.SECRET}\n"
        with data_dir() as folder:
            os.chmod(folder, 0o755)
            path = os.path.join(folder, "secret")
            for mode in (0o600, 0o644):
                with open(path, "w", encoding="utf-8") as f:
                    f.write(line)
                os.chmod(path, mode)
                self.assertNotIn(self.SECRET, self.names(path))
        # What it says of itself is shown.
        self.assertIn(self.SECRET, self.names("-", line))


def load(every, suite):
    del every
    for case in (Hang, Exec, Peek):
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
