"""sonde run beside programs that fill their memory until the kernel kills them."""
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import unittest

import rig
from test_agent import QUICK, Agent, now_ms

LIMIT_MB = 96
LEAK = "main.appendToCache"
INUSE = "go_oom:inuse_space:bytes"


def group_root():
    """(folder, file with the limit) where groups with a limit of memory can be made, or None."""
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        for line in f:
            left, right = line.split(" - ")
            folder, kind, options = left.split()[4], right.split()[0], right.split()[-1]
            if kind == "cgroup" and "memory" in options.split(","):
                return folder, "memory.limit_in_bytes"
            if kind == "cgroup2" and has_memory(folder):
                return folder, "memory.max"
    return None


def has_memory(folder):
    """Whether groups in a folder of version 2 can have limits; systemd lets them, other inits wait."""
    words = lambda name: open(os.path.join(folder, name), encoding="utf-8").read().split()
    if "memory" not in words("cgroup.controllers"):
        return False
    if "memory" not in words("cgroup.subtree_control"):
        try:
            with open(os.path.join(folder, "cgroup.subtree_control"), "w", encoding="utf-8") as f:
                f.write("+memory")
        except OSError:
            return False
    return True


@contextlib.contextmanager
def limited(mb):
    """A control group that may use so much memory; yields the words that start a program in it."""
    folder, limit = group_root()
    path = os.path.join(folder, f"sonde-test-{os.getpid()}")
    os.mkdir(path)
    try:
        with open(os.path.join(path, limit), "w", encoding="utf-8") as f:
            f.write(str(mb << 20))
        yield ("sh", "-c", f"echo $$ > {path}/cgroup.procs && exec \"$@\"", "sh")
    finally:
        # Those that were killed may take a moment to leave it.
        rig.wait_for(lambda: removed(path), f"somebody is in {path}")


def removed(path):
    try:
        os.rmdir(path)
        return True
    except OSError:
        return False


@contextlib.contextmanager
def busy(n):
    """So many programs that only take CPU."""
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def target(go, variant, service, prefix, *args):
    program = rig.build.build("oom", go, variant)
    return rig.Target([program, *args], env={"OTEL_SERVICE_NAME": service}, prefix=prefix)


def start(process):
    process.process.stdin.write(b"go\n")
    process.process.stdin.flush()


def events(agent, **params):
    return agent.api("events", to=now_ms() + 60000, **params)["events"]


def wait_event(agent, kind, service):
    return rig.wait_for(
        lambda: next((e for e in events(agent, service=service) if e["kind"] == kind), None),
        lambda: f"no {kind} of {service}: {events(agent)}")


@unittest.skipUnless(os.geteuid() == 0 and group_root(),
                     "needs root, and control groups that limit memory")
class Oom(unittest.TestCase):
    every = False

    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory()
        self.addCleanup(self.tmp.cleanup)

    def agent(self, *args):
        return Agent(os.path.join(self.tmp.name, "data"), "--cpu-hz", "0", *args, interval=QUICK)

    def kill(self, agent, go, variant, service, *args):
        """Lets a program run into its limit; what is known of it afterwards."""
        with limited(LIMIT_MB) as prefix, target(go, variant, service, prefix, *args) as process:
            agent.wait_collections(process.pid, more=1)
            before = now_ms()
            start(process)
            self.assertEqual(process.process.wait(timeout=rig.LIMIT), -signal.SIGKILL)
            event = wait_event(agent, "oom_kill", service)
            self.assertEqual(event["pid"], process.pid)
            self.assertGreaterEqual(event["time"], before)
            self.assertLessEqual(event["time"], now_ms())
            return event

    def go_round(self, agent):
        """What is to be told by now is told."""
        intervals = lambda: agent.api("health")["intervals"]
        first = intervals()
        rig.wait_for(lambda: intervals() >= first + 5, "the agent stands still")

    def check(self, event):
        self.assertIn(event["picture"], ("kill", "earlier"))
        self.assertIsNotNone(event["top"], event)
        self.assertEqual(event["top"]["name"], LEAK, event)
        self.assertGreater(event["top"]["share"], 0.5, event)
        # The kernel's own figure at that moment.
        self.assertGreater(event["rss_bytes"], (LIMIT_MB << 20) / 2, event)
        self.assertLess(event["rss_bytes"], (LIMIT_MB << 20) * 2, event)
        # What sampling found is about what the kernel saw; the last second is in it.
        self.assertGreater(event["inuse_bytes"], (LIMIT_MB << 20) / 2, event)

    def test_each_kill_leaves_a_picture_that_names_what_leaks(self):
        """Two seconds from start to kill: the limit is seen to come near, and the kill is heard."""
        versions = rig.versions(self.every)
        n = 20 if self.every else 5
        fresh = 0
        with self.agent() as agent, busy(2 * os.cpu_count()):
            for i in range(n):
                _, go = versions[i % len(versions)]
                event = self.kill(agent, go, "strip" if i % 2 else "plain", f"leaky-{i}",
                                  "-mb-per-s", str(LIMIT_MB // 2))
                self.check(event)
                fresh += event["picture"] == "kill"
            near = sum(e["kind"] == "oom_near" and e["service"].startswith("leaky-")
                       for e in events(agent))
            # And as a flame graph of that moment.
            flame = agent.api("flame", service=event["service"], type=INUSE,
                              label=f"process.pid={event['pid']}", to=event["time"] + 1,
                              **{"from": event["time"]})
            self.assertIn(LEAK, flame["names"])
            self.assertAlmostEqual(flame["total"], event["inuse_bytes"])
        print(f"        {near} of {n} had a picture before the kill, {fresh} one of the kill itself")

    def test_kills_of_programs_that_fill_their_memory_at_once_are_told(self):
        """A tenth of a second: there is the race at the kill only, and lost ones are said to be.

        Who wins it is the scheduler's choice; some are won.
        """
        _, go = rig.build.mandatory()
        n = fresh = 0
        with self.agent() as agent, busy(2 * os.cpu_count()):
            while n < (20 if self.every else 5) or (not fresh and n < 100):
                event = self.kill(agent, go, "plain", f"burst-{n}")
                self.assertIn(event["picture"], ("kill", "earlier"))
                if event["picture"] == "kill":
                    self.check(event)
                    fresh += 1
                n += 1
        print(f"        {fresh} of {n} pictures were taken at the kill")
        self.assertGreater(fresh, 0, f"of {n}")

    def test_a_picture_is_taken_when_the_limit_is_near_and_a_plain_kill_is_none_by_oom(self):
        _, go = rig.build.mandatory()
        with self.agent("--oom-watch", "70") as agent, limited(LIMIT_MB) as prefix:
            leaked = str(LIMIT_MB * 85 // 100)
            with target(go, "plain", "near", prefix, "-max-mb", leaked) as process:
                agent.wait_collections(process.pid, more=1)
                self.assertEqual(events(agent, service="near"), [])
                start(process)
                event = wait_event(agent, "oom_near", "near")
                self.assertEqual(event["top"]["name"], LEAK)
                self.assertEqual(event["pid"], process.pid)
                self.assertIsNone(event["rss_bytes"])
            self.go_round(agent)
            self.assertEqual([e["kind"] for e in events(agent, service="near")], ["oom_near"])
            services = agent.api("services", to=now_ms() + 60000)["services"]
            self.assertEqual([s["processes"] for s in services if s["service"] == "near"], [1])

    def test_victims_that_are_not_go_programs_leave_nothing(self):
        _, go = rig.build.mandatory()
        with self.agent() as agent:
            with limited(LIMIT_MB) as prefix:
                eat = "b = []\nwhile True: b.append(bytearray(1 << 20))"
                victims = [subprocess.Popen([*prefix, sys.executable, "-c", eat]) for _ in range(3)]
                for victim in victims:
                    self.assertEqual(victim.wait(rig.LIMIT), -signal.SIGKILL)
            event = self.kill(agent, go, "plain", "after", "-mb-per-s", str(LIMIT_MB // 2))
            self.check(event)
            self.assertEqual([e["kind"] for e in events(agent, service="after")
                              if e["kind"] != "oom_near"], ["oom_kill"])
            self.assertFalse({e["pid"] for e in events(agent)} & {v.pid for v in victims})

    def test_oom_watch_0_turns_it_off(self):
        _, go = rig.build.mandatory()
        with self.agent("--oom-watch", "0") as agent, limited(LIMIT_MB) as prefix:
            with target(go, "plain", "off", prefix) as process:
                agent.wait_collections(process.pid, more=1)
                start(process)
                process.process.wait(timeout=rig.LIMIT)
            self.go_round(agent)
            self.assertEqual(events(agent, service="off"), [])


def load(every, suite):
    Oom.every = every
    suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(Oom))
