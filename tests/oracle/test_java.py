"""Profiles of Java programs against what these count themselves (tests/targets/java/Chaos.java)."""
import contextlib
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest

import rig
from pprof import Profile
from test_agent import Agent
from test_java_attach import (ALONE, DEBIAN, compile_java, descendant, folder_for_tests, inner_pid,
                              jdks, major_of, ours_in, tmp_of, tool)

SOURCE = os.path.join(rig.ROOT, "tests", "targets", "java", "Chaos.java")
FIELDS = ("time", "bytes", "monitor_count", "monitor_ns", "lock_count", "lock_ns", "compute_ns")
DURATION = "5s"
BYTES_WITHIN, DELAY_WITHIN, CPU_WITHIN = 0.02, 0.05, 0.15


class Chaos(rig.Target):
    """The program, and its counters over time."""

    def __init__(self, home, classes, env=None, where=(), options=("-XX:+UseG1GC",)):
        # The default collector of JDK 8 hands out memory without telling (JavaHidden), to code that
        # is only half compiled; the others always have this one.
        super().__init__([os.path.join(home, "bin", "java"), *options, "-Xmx192m", "-cp",
                          classes, "Chaos"], ready=False, env=env, prefix=[*where, *ALONE])
        line = self.line()
        assert line == b"ready 0\n", line
        self.pid = descendant(self.pid)
        self.series = []
        self.said = ""

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
        _, self.said = process.communicate(timeout=60)
        assert process.returncode == rig.OK, self.said
        return Profile(out)

    def __exit__(self, *_):
        """At the end of its input it ends by itself, and clears away what is its own."""
        try:
            # nsenter(1) stops with what it has started.
            for pid in {self.pid, self.process.pid}:
                os.kill(pid, signal.SIGCONT)
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
        cls.folder = folder_for_tests()
        cls.classes = os.path.join(cls.folder.name, "classes")
        compile_java(SOURCE, cls.classes)

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
                done = rig.sonde("java", target.pid, "cpu", "-d", "1s", "--data-dir",
                                 self.folder.name, check=rig.OK)
                self.assertIn("sampled from outside", done.stderr)
                return
            cpu = target.profile("cpu", self.folder.name)
            self.near(sum_of(cpu, "cpu", "Chaos.compute"), target.counted(cpu, "compute_ns"),
                      CPU_WITHIN)


class JavaCommand(JavaCase):
    def test_an_interrupt_shows_what_there_is_and_leaves_nothing(self):
        state = os.path.join(self.folder.name, "state")
        with Chaos(self.home, self.classes) as target:
            # In the background of a shell a program begins with this signal ignored.
            process = subprocess.Popen(["env", "--default-signal=INT", rig.SONDE, "java",
                                        str(target.pid), "-d", "60s", "--data-dir", state],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
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
        subprocess.run([tool(self.home, "jlink"), "--add-modules",
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
        if match and int(match.group(2)) == int(inner_pid(pid)):
            found[f"{match.group(1)}{{{match.group(3)}}}"] = float(match.group(4))
    return found


class Room:
    """A pid namespace: an agent in it leaves the JVMs of this machine's users alone."""

    def __init__(self):
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c",
             "echo here && exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"here\n"
        self.where = ("nsenter", "-t", str(child_of(self.process.pid)), "--pid", "--mount")

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()


def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as f:
        return int(f.read().split()[0])


class AgentInside(Agent):
    """By the numbers of processes that there are outside."""

    def __init__(self, room, directory, *args):
        # pylint: disable=super-init-not-called
        self.process = subprocess.Popen(
            [*room.where, rig.SONDE, "run", "--listen", "127.0.0.1:0", "--data-dir", directory,
             "--interval", "1s", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert "http://" in line, line + self.process.stderr.read()
        self.url = line.split()[-1]
        self.pid = child_of(self.process.pid)

    def target(self, pid):
        return super().target(int(inner_pid(pid)))

    def stop(self, how=signal.SIGTERM):
        os.kill(self.pid, how)
        code = self.process.wait(timeout=30)
        self.process.stdout.close()
        self.process.stderr.close()
        return code


class AgentCase(JavaCase):
    def agent(self, *args):
        agent = AgentInside(self.room, self.data, "--cpu-hz", "0", *args)
        self.addCleanup(lambda: agent.process.returncode is None and agent.stop(signal.SIGKILL))
        return agent

    def nothing_left(self, target, state):
        super().nothing_left(target, state)
        self.assertEqual([n for n in tmp_of(target.pid) if n.startswith(".sonde-")], [])

    def chaos(self, *args, **kwargs):
        return Chaos(*args, **kwargs, where=self.room.where)

    def setUp(self):
        tmp = folder_for_tests()
        self.addCleanup(tmp.cleanup)
        self.data = tmp.name
        self.room = Room()
        self.addCleanup(self.room.close)


class JavaAgent(AgentCase):
    def test_it_is_off_unless_asked_for_and_says_so(self):
        agent = self.agent()
        with self.chaos(self.home, self.classes) as target:
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
                name = f"chaos-{major_of(version)}"
                on[name] = stack.enter_context(
                    self.chaos(home, self.classes, {"OTEL_SERVICE_NAME": name}))
            off = stack.enter_context(self.chaos(self.home, self.classes, {"SONDE_JAVA": "off"}))
            stopped = stack.enter_context(self.chaos(self.home, self.classes))
            os.kill(stopped.pid, signal.SIGSTOP)
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

    def test_it_waits_while_the_user_records_and_says_so(self):
        with self.chaos(self.home, self.classes) as target:
            self.jcmd(target, "JFR.start", "name=mine", "settings=default")
            agent = self.agent("--java")
            wait_for(lambda: "its user is recording" in
                     answers_of(agent, target.pid).get("java-alloc", {}).get("reason", ""))
            status = [m for m, v in metrics_of(agent, target.pid).items()
                      if "profiling_status" in m and v == 0]
            self.assertEqual(len(status), 1)
            self.assertIn("its user is recording", status[0])
            self.assertIn("name=mine", self.jcmd(target, "JFR.check"))
            self.assertEqual([n for n in ours_in(target.pid) if " tmpfs sonde " in n], [])
            self.jcmd(target, "JFR.stop", "name=mine")
            wait_for(lambda: answers_of(agent, target.pid)["java-alloc"].get("collections", 0))
            self.assertEqual(agent.stop(), 0)
            # The folder of the user's recording stays until the JVM ends.
            self.assertEqual([n for n in ours_in(target.pid) if ".sonde-" in n], [])
            self.assertEqual(notes_in(self.data), [])

    def jcmd(self, target, *args):
        done = subprocess.run(["nsenter", "-t", str(target.pid), "--pid", "--mount",
                               tool(self.home, "jcmd"), inner_pid(target.pid), *args],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_what_a_killed_agent_left_is_taken_out_by_the_next(self):
        with self.chaos(self.home, self.classes) as target:
            agent = self.agent("--java")
            wait_for(lambda: answers_of(agent, target.pid).get("java-alloc", {}).get("collections"))
            agent.stop(signal.SIGKILL)
            self.assertNotEqual(ours_in(target.pid), [])
            self.agent()
            wait_for(lambda: not ours_in(target.pid) and not notes_in(self.data), 15)


class JavaHidden(AgentCase):
    """JDK 8, whose recorder does not see what code of its first compiler allocates."""
    only_first = ("-XX:+UseParallelGC", "-XX:TieredStopAtLevel=1")

    def test_the_command_says_how_much_is_missing(self):
        with Chaos(self.home, self.classes, options=self.only_first) as target:
            alloc = target.profile("alloc", self.data)
            missing = 1 - sum_of(alloc, "alloc_space") / target.counted(alloc, "bytes")
            told = re.search(r"^Missing: at least (\d+) % .*-XX:\+UseG1GC", target.said, re.M)
            self.assertTrue(told, target.said)
            self.assertGreater(missing, 0.5)
            # Threads that come and go are not counted.
            self.assertLess(int(told[1]) / 100, missing + BYTES_WITHIN)
            self.assertGreater(int(told[1]) / 100, missing - 0.1)
            target.profile("lock", self.data)
            self.assertNotIn("issing", target.said)

    def test_what_helps_helps_and_nothing_is_said(self):
        for options in (("-XX:+UseG1GC",), (*self.only_first, "-XX:-FastTLABRefill")):
            with self.subTest(options=options), \
                    Chaos(self.home, self.classes, options=options) as target:
                alloc = target.profile("alloc", self.data)
                self.near(sum_of(alloc, "alloc_space"), target.counted(alloc, "bytes"),
                          BYTES_WITHIN)
                self.assertNotIn("issing", target.said)

    def test_the_agent_says_it_of_this_JVM_only(self):
        agent = self.agent("--java")
        with self.chaos(self.home, self.classes, options=self.only_first) as target, \
                self.chaos(self.home, self.classes) as other:
            wait_for(lambda: "are missing, at least" in
                     (answers_of(agent, target.pid).get("java-alloc", {}).get("trouble") or ""))
            wait_for(lambda: answers_of(agent, other.pid).get("java-alloc", {}).get("collections"))
            self.assertIn("-XX:-FastTLABRefill",
                          answers_of(agent, target.pid)["java-alloc"]["trouble"])
            self.assertNotIn("issing", answers_of(agent, target.pid)["java-lock"]["trouble"] or "")
            self.assertNotIn("issing", answers_of(agent, other.pid)["java-alloc"]["trouble"] or "")
            self.assertEqual(agent.stop(), 0)


def load(every, suite):
    for version, home in jdks(every):
        major = major_of(version)
        case = type(f"JavaTruth{major}", (JavaTruth,), {"home": home, "major": major})
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
        if major == 8:
            case = type("JavaHidden8", (JavaHidden,), {"home": home})
            suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
    for case in (JavaCommand, JavaAgent, *([JavaWithoutRecorder] if every else [])):
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
