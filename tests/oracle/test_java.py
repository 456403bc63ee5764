"""Profiles of Java programs against what these count themselves (tests/targets/java/Chaos.java)."""
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import rig
from pprof import Profile
from test_agent import Agent
from test_java_attach import DEBIAN, jdks, ours_in

SOURCE = os.path.join(rig.ROOT, "tests", "targets", "java", "Chaos.java")
FIELDS = ("time", "bytes", "monitor_count", "monitor_ns", "lock_count", "lock_ns", "compute_ns")
DURATION = "5s"
BYTES_WITHIN, DELAY_WITHIN, CPU_WITHIN = 0.02, 0.05, 0.15


class Chaos(rig.Target):
    """The program, and its counters over time."""

    def __init__(self, home, classes, env=None):
        super().__init__([os.path.join(home, "bin", "java"), "-Xmx192m", "-cp", classes, "Chaos"],
                         ready=False, env=env)
        line = self.line()
        assert line == b"ready 0\n", line
        self.series = []

    def watch(self, process):
        """Until the process ends."""
        while process.poll() is None:
            self.series.append(tuple(map(int, self.ask("counters").split())))
            time.sleep(0.02)
        self.series.append(tuple(map(int, self.ask("counters").split())))

    def at(self, time_ns, field):
        at = FIELDS.index(field)
        for a, b in zip(self.series, self.series[1:]):
            if a[0] <= time_ns <= b[0]:
                return a[at] + (b[at] - a[at]) * (time_ns - a[0]) / (b[0] - a[0])
        raise AssertionError("the profile is of another time")

    def counted(self, profile, field):
        """How much was added in the time that the profile is of."""
        begin = profile.time_ns
        return self.at(begin + profile.duration_ns, field) - self.at(begin, field)

    def profile(self, kind, folder, *options):
        """What `sonde java` writes, while the program's counters are watched."""
        out = os.path.join(folder, kind + ".pb.gz")
        self.series = []
        process = subprocess.Popen(
            [rig.SONDE, "java", str(self.pid), kind, "-d", DURATION, "-f", "pprof", "-o", out,
             "--data-dir", os.path.join(folder, "state"), *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.watch(process)
        _, err = process.communicate(timeout=60)
        assert process.returncode == rig.OK, err
        return Profile(out)

    def __exit__(self, *_):
        """At the end of its input it ends by itself, and clears away what is its own."""
        try:
            self.process.send_signal(signal.SIGCONT)
            self.process.stdin.close()
            self.process.wait(timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            pass
        super().__exit__()


def names_of(sample):
    return [frame.function for location in sample.stack for frame in location.frames]


def sum_of(profile, kind, function=None):
    """Of all samples, or of those that pass through a function."""
    at = [name for name, _ in profile.types].index(kind)
    return sum(s.values[at] for s in profile.samples if not function or function in names_of(s))


def notes_in(folder):
    return [n for n in os.listdir(folder) if n.startswith("java-recording-")]


class JavaCase(unittest.TestCase):
    home = DEBIAN

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="sonde-java-")
        cls.classes = os.path.join(cls.folder.name, "classes")
        subprocess.run([os.path.join(cls.home, "bin", "javac"), "-d", cls.classes, SOURCE],
                       check=True, timeout=300)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def near(self, ours, counted, within):
        self.assertGreater(counted, 0)
        self.assertLess(abs(ours / counted - 1), within, f"{ours} against {counted:.0f}, "
                        f"{(ours / counted - 1) * 100:+.2f} %")

    def nothing_left(self, target, state):
        self.assertEqual(ours_in(target.pid), [])
        self.assertEqual(notes_in(state), [])


class JavaTruth(JavaCase):
    """One class for each JDK, made by load()."""
    major = 0

    def test_the_chaos_pair_is_told_apart_and_adds_up(self):
        folder = self.folder.name
        with Chaos(self.home, self.classes) as target:
            alloc = target.profile("alloc", folder)
            self.near(sum_of(alloc, "alloc_space"), target.counted(alloc, "bytes"), BYTES_WITHIN)
            large = sum_of(alloc, "alloc_space", "Chaos.allocateLarge")
            self.assertGreater(large, 0.9 * sum_of(alloc, "alloc_space"))
            self.assertIn("large", {l[1] for s in alloc.samples for l in s.labels})
            # Threads that are younger than the recording are not left out.
            brief = {n for s in alloc.samples for n in names_of(s) if "allocateBriefly" in n}
            self.assertTrue(brief, "nothing of the threads that come and go")

            lock = target.profile("lock", folder)
            for method, field, leaf in (
                    ("Chaos.holdMonitor", "monitor_ns", "java.lang.Object"),
                    ("Chaos.holdLock", "lock_ns",
                     "java.util.concurrent.locks.ReentrantLock$NonfairSync")):
                self.near(sum_of(lock, "delay", method), target.counted(lock, field), DELAY_WITHIN)
                leaves = {names_of(s)[0] for s in lock.samples if method in names_of(s)}
                self.assertEqual(leaves, {leaf})
            counted = target.counted(lock, "monitor_ns") + target.counted(lock, "lock_ns")
            self.near(sum_of(lock, "delay"), counted, DELAY_WITHIN)
            self.nothing_left(target, os.path.join(folder, "state"))

    def test_cpu_time_is_that_of_the_thread(self):
        with Chaos(self.home, self.classes) as target:
            if self.major < 25:
                done = rig.sonde("java", target.pid, "cpu", "--data-dir", self.folder.name,
                                 check=rig.NOT_PROFILEABLE)
                self.assertIn("sonde cpu", done.stderr)
                return
            cpu = target.profile("cpu", self.folder.name)
            self.near(sum_of(cpu, "cpu", "Chaos.compute"), target.counted(cpu, "compute_ns"),
                      CPU_WITHIN)


class JavaCommand(JavaCase):
    def test_an_interrupt_shows_what_there_is_and_leaves_nothing(self):
        state = os.path.join(self.folder.name, "state")
        with Chaos(self.home, self.classes) as target:
            process = subprocess.Popen([rig.SONDE, "java", str(target.pid), "-d", "60s",
                                        "--data-dir", state], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
            # It says whom it records when it does.
            self.assertIn("OpenJDK", process.stderr.readline())
            time.sleep(2)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, rig.OK, err)
            self.assertIn("Ended after", err)
            self.assertIn("Chaos.allocateLarge", out)
            self.nothing_left(target, state)

    def test_what_cannot_be_profiled_is_refused_untouched(self):
        state = os.path.join(self.folder.name, "none")
        done = rig.sonde("java", os.getpid(), "--data-dir", state, check=rig.NOT_PROFILEABLE)
        self.assertIn("runs no Java", done.stderr)
        rig.sonde("java", os.getpid(), "heap", check=rig.USAGE)
        rig.sonde("java", os.getpid(), "-d", "never", check=rig.USAGE)
        rig.sonde("java", 0x7ffffff0, "--data-dir", state, check=rig.FAILED)
        for variable in ("SONDE_JAVA=off", "SONDE_PROFILING=disabled"):
            key, value = variable.split("=")
            with Chaos(self.home, self.classes, env={key: value}) as target:
                done = rig.sonde("java", target.pid, "--data-dir", state,
                                 check=rig.NOT_PROFILEABLE)
                self.assertIn(variable, done.stderr)
        self.assertFalse(os.path.exists(state))


class JavaWithoutRecorder(JavaCase):
    """A runtime image without the recorder; making one takes a while."""

    def test_it_is_profiled_by_our_library(self):
        image, state = (os.path.join(self.folder.name, n) for n in ("image", "state"))
        subprocess.run([os.path.join(self.home, "bin", "jlink"), "--add-modules",
                        "java.base,java.management", "--output", image], check=True, timeout=300)
        with Chaos(image, self.classes) as target:
            done = rig.sonde("java", target.pid, "-d", "2s", "--data-dir", state, check=rig.OK)
            self.assertIn("a library of ours", done.stderr)
            self.assertIn("Chaos.allocateLarge", done.stdout)
            self.nothing_left(target, state)


def answers_of(agent, pid):
    target = agent.target(pid)
    return {r["reader"]: r for r in target["readers"]} if target else {}


def wait_for(what, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if what():
            return
        time.sleep(0.1)
    raise AssertionError("it does not come")


def metrics_of(agent, pid):
    """{series without the labels of the process: value}"""
    found = {}
    for line in agent.get("metrics").decode().splitlines():
        match = re.fullmatch(r'(\w+)\{.*pid="(\d+)",comm="[^"]*",?(.*)\} (\S+)', line)
        if match and int(match.group(2)) == pid:
            found[f"{match.group(1)}{{{match.group(3)}}}"] = float(match.group(4))
    return found


class JavaAgent(JavaCase):
    """Where a test fails, the agent ends in order: JVMs of other tests share this /tmp."""

    def agent(self, *args):
        agent = Agent(self.data, "--cpu-hz", "0", *args)
        self.addCleanup(lambda: agent.process.returncode is None and agent.stop())
        return agent

    def setUp(self):
        tmp = tempfile.TemporaryDirectory(prefix="sonde-java-")
        self.addCleanup(tmp.cleanup)
        self.data = tmp.name

    def test_it_is_off_unless_asked_for_and_says_so(self):
        agent = self.agent()
        with Chaos(self.home, self.classes) as target:
            wait_for(lambda: answers_of(agent, target.pid).get("java-runtime", {}).get("available"))
            answer = answers_of(agent, target.pid)["java-alloc"]
            self.assertFalse(answer["available"])
            self.assertIn("off by default", answer["reason"])
            self.assertIn("--java", answer["remedy"])
            self.assertTrue(agent.target(target.pid)["runtime"].startswith("java 17."))
            wait_for(lambda: "container_jvm_threads{}" in metrics_of(agent, target.pid))
            metrics = metrics_of(agent, target.pid)
            self.assertGreater(metrics["container_jvm_threads{}"], 8)
            self.assertTrue(any(m.startswith("container_jvm_heap_used_bytes{generation=")
                                for m in metrics))
            status = [v for m, v in metrics.items() if "profiling_status" in m]
            self.assertEqual(status, [0])
            self.assertNotIn("container_jvm_alloc_bytes_total{}", metrics)
            self.assertEqual(agent.stop(), 0)
            self.nothing_left(target, self.data)

    def test_all_jvms_are_profiled_beside_one_that_hangs_and_one_that_refuses(self):
        on = {}
        with contextlib.ExitStack() as stack:
            for version, home in jdks():
                name = f"chaos-{version.split('.')[0]}"
                on[name] = stack.enter_context(
                    Chaos(home, self.classes, {"OTEL_SERVICE_NAME": name}))
            off = stack.enter_context(Chaos(self.home, self.classes, {"SONDE_JAVA": "off"}))
            stopped = stack.enter_context(Chaos(self.home, self.classes))
            stopped.process.send_signal(signal.SIGSTOP)
            agent = self.agent("--java")
            self.watch_until_collected(agent, on)
            self.assertIn("SONDE_JAVA=off", answers_of(agent, off.pid)["java-alloc"]["reason"])
            self.assertFalse(answers_of(agent, stopped.pid)["java-alloc"]["available"])
            for name, target in on.items():
                self.check_stored(agent, name, target)
            self.assertEqual(agent.stop(), 0)
            self.nothing_left(off, self.data)

    @staticmethod
    def watch_until_collected(agent, targets):
        for target in targets.values():
            wait_for(lambda t=target: min(answers_of(agent, t.pid).get(r, {}).get("collections", 0)
                                          for r in ("java-alloc", "java-lock")) >= 3)

    def check_stored(self, agent, name, target):
        types = {t["type"] for s in agent.api("services")["services"] if s["service"] == name
                 for t in s["types"]}
        self.assertLessEqual({"java_alloc:alloc_space:bytes", "java_lock:delay:nanoseconds",
                              "java_lock:contentions:count"}, types)
        alloc = agent.stored(name, "java_alloc:alloc_space:bytes")
        self.assertGreater(alloc["Chaos.allocateLarge"], sum(alloc.values()) / 2)
        delay = agent.stored(name, "java_lock:delay:nanoseconds")
        self.assertIn("java.util.concurrent.locks.ReentrantLock$NonfairSync", delay)
        metrics = metrics_of(agent, target.pid)
        for kind in ("monitor", "park"):
            key = f'container_jvm_lock_time_seconds_total{{kind="{kind}"}}'
            self.assertGreater(metrics[key], 0)
        self.assertGreater(metrics["container_jvm_alloc_bytes_total{}"], 0)
        self.assertEqual(metrics['container_jvm_profiling_status{mode="jfr",reason=""}'], 1)
        self.assertEqual(metrics["container_jvm_lost_samples_total{}"], 0)

    def test_what_a_killed_agent_left_is_taken_out_by_the_next(self):
        with Chaos(self.home, self.classes) as target:
            agent = self.agent("--java")
            wait_for(lambda: answers_of(agent, target.pid).get("java-alloc", {}).get("collections"))
            agent.stop(signal.SIGKILL)
            self.assertNotEqual(ours_in(target.pid), [])
            self.agent()
            wait_for(lambda: not ours_in(target.pid) and not notes_in(self.data), 15)


def load(every, suite):
    found = jdks()
    if not found or found[0][1] != DEBIAN:
        print("Debian's openjdk-17-jdk-headless is missing: its tests fail", file=sys.stderr)
        found.insert(0, ("17.0", DEBIAN))
    for version, home in found:
        major = int(version.split(".")[0])
        case = type(f"JavaTruth{major}", (JavaTruth,), {"home": home, "major": major})
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
    for case in (JavaCommand, JavaAgent, *([JavaWithoutRecorder] if every else [])):
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
