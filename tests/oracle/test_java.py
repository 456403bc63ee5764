"""Profiles of Java programs against what these count themselves (tests/targets/java/Chaos.java)."""
import collections
import contextlib
import os
import re
import signal
import subprocess
import time
import unittest

import rig
from java_rig import (ALONE, DEBIAN, FIRST_COMPILER, Case, Program, descendant, dump,
                      folder_for_tests, inner_pid, jdks, major_of, ours_in, tmp_of, tool)
from pprof import Profile
from test_agent import Agent

Counters = collections.namedtuple(
    "Counters", "time large large_edge young young_edge monitor_count monitor_ns lock_count "
                "lock_ns compute_ns")
# A timer of CPU time that fires each 10 ms is exact; of some samples the JVM has no stack.
CPU_WITHIN = 0.15
# The default collector of JDK 8 hands out memory without telling (JavaHidden), to code that is only
# half compiled; the others always have this one. Buffers for objects are as small as can be, so
# that the recorder looks at each array.
OPTIONS = ("-XX:+UseG1GC", "-XX:TLABSize=2k", "-XX:-ResizeTLAB")


class Chaos(Program):
    """The program, and its counters."""

    def __init__(self, home, env=None, where=(), options=OPTIONS):
        super().__init__(home, "Chaos", *options, "-Xmx192m", env=env, prefix=[*where, *ALONE])
        self.pid = descendant(self.pid)
        self.said = ""

    def counters(self, command="counters"):
        return Counters(*map(int, self.ask(command).split()))

    def work(self, enough, command="hurry"):
        """((from when, to when), what was counted), when that is enough; then it stands still."""
        before = self.counters("pause")
        began = self.counters(command).time

        def counted(counters):
            return Counters(*(b - a for a, b in zip(before, counters)))

        rig.wait_for(lambda: enough(counted(self.counters())),
                     lambda: str(counted(self.counters())))
        after = self.counters("pause")
        return (began, after.time), counted(after)

    def profile(self, kind, folder, enough, command="hurry", more=("--flight-recorder",)):
        """What `sonde java` writes, and what was counted: the recording is of all of it."""
        out = os.path.join(folder, kind + ".pb.gz")
        self.counters("pause")
        process = record(self.pid, kind, "-f", "pprof", "-o", out, "--data-dir",
                         os.path.join(folder, "state"), *more)
        first = recording(process)
        (began, ended), counted = self.work(enough, command)
        process.send_signal(signal.SIGINT)
        self.said = first + process.communicate(timeout=rig.LIMIT)[1]
        assert process.returncode == rig.OK, self.said
        profile = Profile(out)
        assert profile.time_ns <= began and profile.time_ns + profile.duration_ns >= ended, \
            f"{profile.time_ns} and {profile.duration_ns} ns for {began} to {ended}"
        return profile, counted

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            # nsenter(1) stops with what it has started.
            for pid in {self.pid, self.process.pid}:
                os.kill(pid, signal.SIGCONT)
        super().__exit__()


def record(pid, *args):
    """A `sonde java` that goes on until it is interrupted."""
    # In the background of a shell a program begins with this signal ignored.
    return subprocess.Popen(["env", "--default-signal=INT", rig.SONDE, "java", str(pid), *args,
                             "-d", "1h"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def recording(process):
    """What it says until it records."""
    said = ""
    while ", by " not in said:
        line = process.stderr.readline()
        assert line, said
        said += line
    return said


def names_of(sample):
    return [frame.function for location in sample.stack for frame in location.frames]


def sum_of(profile, kind, function=None):
    """Of all samples, or of those that pass through a function."""
    at = [name for name, _ in profile.types].index(kind)
    return sum(s.values[at] for s in profile.samples if not function or function in names_of(s))


def allocated(counters):
    return counters.large + counters.large_edge + counters.young + counters.young_edge


def notes_in(folder):
    return [n for n in os.listdir(folder) if n.startswith("java-recording-")]


class JavaCase(Case):
    home = DEBIAN
    kept = None

    @classmethod
    def tearDownClass(cls):
        if cls.kept:
            cls.kept.__exit__()
            cls.kept = None

    def setUp(self):
        super().setUp()
        folder = folder_for_tests()
        self.addCleanup(folder.cleanup)
        self.data = folder.name
        self.state = os.path.join(self.data, "state")

    def chaos(self, **kwargs):
        return Chaos(self.home, **kwargs)

    @contextlib.contextmanager
    def shared(self):
        """For tests that leave it as it was, at work; after one that failed there is a new one."""
        cls = type(self)
        cls.kept = cls.kept or self.chaos()
        try:
            cls.kept.counters("go")
            yield cls.kept
        except BaseException:
            cls.kept.__exit__()
            cls.kept = None
            raise

    def near(self, ours, counted, within):
        self.assertGreater(counted, 0)
        self.assertLess(abs(ours / counted - 1), within, f"{ours} against {counted:.0f}, "
                        f"{(ours / counted - 1) * 100:+.2f} %")

    def check_bytes(self, alloc, function, counted, edge):
        """What the recorder misses of a thread is at its edges, where it allocates little."""
        ours = sum_of(alloc, "alloc_space", function)
        self.assertGreaterEqual(ours, counted, f"{edge} more at the edges")
        # Before JDK 16 a buffer counts as a whole; what else the thread does takes next to nothing.
        self.assertLessEqual(ours, (counted + edge) * 1.005, f"{edge} of it at the edges")

    def nothing_left(self, target, state):
        self.assertEqual(ours_in(target.pid), [])
        self.assertEqual(notes_in(state), [])


class JavaTruth(JavaCase):
    """One class for each JDK, made by load()."""
    major = 0

    def test_allocations_add_up_and_threads_are_told_apart(self):
        with self.shared() as target:
            alloc, counted = target.profile("alloc", self.data,
                                            lambda c: c.large > 2 << 30 and c.young > 0)
            self.check_bytes(alloc, "Chaos.allocateLarge", counted.large, counted.large_edge)
            self.assertIn("large", {l[1] for s in alloc.samples for l in s.labels})
            # Threads that are younger than the recording are not left out.
            self.check_bytes(alloc, "Chaos.allocateYoung", counted.young, counted.young_edge)
            # There is nobody else who allocates to speak of.
            self.assertLess(sum_of(alloc, "alloc_space"), allocated(counted) * 1.01)
            self.nothing_left(target, self.state)

    def test_both_kinds_of_locks_add_up(self):
        with self.shared() as target:
            def work():
                lock, counted = target.profile(
                    "lock", self.data, lambda c: min(c.monitor_count, c.lock_count) > 100, "go")
                for method, leaf, waits in (
                        ("Chaos.holdMonitor", "java.lang.Object", counted.monitor_count),
                        ("Chaos.holdLock", "java.util.concurrent.locks.ReentrantLock$NonfairSync",
                         counted.lock_count)):
                    leaves = {names_of(s)[0] for s in lock.samples if method in names_of(s)}
                    self.assertEqual(leaves, {leaf})
                    # No wait is lost, but one that the recorder finds to be shorter than 1 ms.
                    self.assertGreaterEqual(sum_of(lock, "contentions", method), waits - 2)
                return ((sum_of(lock, "delay", "Chaos.holdMonitor"), counted.monitor_ns),
                        (sum_of(lock, "delay", "Chaos.holdLock"), counted.lock_ns),
                        (sum_of(lock, "delay"), counted.monitor_ns + counted.lock_ns))

            self.check_delays(work)
            self.nothing_left(target, self.state)

    def test_cpu_time_is_that_of_the_thread(self):
        with self.shared() as target:
            if self.major < 25:
                done = rig.sonde("java", target.pid, "cpu", "-d", "100ms", "--data-dir",
                                 self.state, check=rig.OK, timeout=rig.LIMIT)
                self.assertIn("sampled by sonde", done.stderr)
                return
            cpu, counted = target.profile("cpu", self.data, lambda c: c.compute_ns > 2e9)
            lost = re.search(r"^Lost: (\d+) samples, dropped by the JVM", target.said, re.M)
            ours = sum_of(cpu, "cpu", "Chaos.compute") + int(lost[1] if lost else 0) * 10**7
            self.near(ours, counted.compute_ns, CPU_WITHIN)


def has_recorded(pid):
    """Whether the JVM's recorder was ever in use."""
    names = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/comm",
                                                encoding="utf-8") as f:
            names.append(f.read().strip())
    return "JFR Recorder Th" in names


class JavaGentle(JavaCase):
    """The recorder makes a JVM throw away its compiled code at its first start; for each JDK."""

    def test_by_default_the_recorder_is_not_started_and_all_locks_are_seen(self):
        with self.chaos() as target:
            alloc, counted = target.profile("alloc", self.data, lambda c: c.large > 1 << 30,
                                            more=())
            self.assertIn("sonde's JVMTI library", target.said)
            self.assertFalse(has_recorded(target.pid))
            # The class is the leaf.
            self.assertEqual({names_of(s)[0] for s in alloc.samples
                              if "Chaos.allocateLarge" in names_of(s)}, {"byte[]"})
            self.near(sum_of(alloc, "alloc_space", "Chaos.allocateLarge"), counted.large, 0.3)
            lock, counted = target.profile(
                "lock", self.data, lambda c: min(c.monitor_count, c.lock_count) > 100, "go",
                more=())
            leaves = {names_of(s)[0] for s in lock.samples}
            self.assertLessEqual(
                {"java.lang.Object", "java.util.concurrent.locks.ReentrantLock$NonfairSync"},
                leaves)
            self.near(sum_of(lock, "delay"), counted.monitor_ns + counted.lock_ns, 0.15)
            self.assertFalse(has_recorded(target.pid))
            self.nothing_left(target, self.state)

    def test_who_wants_the_recorder_is_warned_once(self):
        with self.chaos() as target:
            for warned in (True, False):
                process = record(target.pid, "--data-dir", self.state, "--flight-recorder")
                said = recording(process)
                process.send_signal(signal.SIGINT)
                self.assertEqual(process.wait(timeout=rig.LIMIT), rig.OK)
                process.communicate()
                self.assertEqual("Warning: this is the first recording" in said, warned)
                self.assertTrue(has_recorded(target.pid))
            # From now on it is cheap, and the default.
            process = record(target.pid, "--data-dir", self.state)
            self.assertIn("by Flight Recorder\n", recording(process))
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=rig.LIMIT)
            self.nothing_left(target, self.state)

    def test_one_that_loads_nothing_is_recorded_with_a_warning(self):
        options = (*OPTIONS, "-XX:-EnableDynamicAgentLoading")
        with self.chaos(options=options) as target:
            process = record(target.pid, "--data-dir", self.state)
            self.assertIn("by Flight Recorder, whose first start", recording(process))
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=rig.LIMIT)
            self.nothing_left(target, self.state)


class JavaCommand(JavaCase):
    def test_one_that_its_user_records_is_refused_as_such(self):
        with self.chaos() as target:
            dump("jcmd", target.pid, "JFR.start name=mine settings=default")
            done = rig.sonde("java", target.pid, "--data-dir", self.state,
                             check=rig.NOT_PROFILEABLE, timeout=rig.LIMIT)
            self.assertIn("its user is already recording, and another recording would interfere; "
                          "wait until that ends\n", done.stderr)
            dump("jcmd", target.pid, "JFR.stop name=mine")

    def test_an_interrupt_does_not_wait_for_a_JVM_that_hangs(self):
        for more in ((), ("--flight-recorder",)):
            with self.subTest(more=more), self.chaos() as target:
                process = record(target.pid, "--data-dir", self.state, *more)
                recording(process)
                os.kill(target.pid, signal.SIGSTOP)
                process.send_signal(signal.SIGINT)
                begin = time.monotonic()
                err = process.communicate(timeout=rig.LIMIT)[1]
                # It used to wait two minutes for each command.
                self.assertLess(time.monotonic() - begin, 60, err)
                self.assertEqual(process.returncode, rig.OK, err)
                os.kill(target.pid, signal.SIGCONT)
                dump("restore", self.state)
                self.nothing_left(target, self.state)

    def test_an_interrupt_shows_what_there_is_and_leaves_nothing(self):
        with self.shared() as target:
            process = record(target.pid, "--data-dir", self.state)
            # It says whom it records when it does.
            self.assertIn("OpenJDK", recording(process))
            target.work(lambda c: c.large > 256 << 20)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=rig.LIMIT)
            self.assertEqual(process.returncode, rig.OK, err)
            self.assertIn("Interrupted after", err)
            self.assertIn("Chaos.allocateLarge", out)
            self.nothing_left(target, self.state)

    def test_it_ends_by_itself_and_says_of_when_the_profile_is(self):
        out = os.path.join(self.data, "alloc.pb.gz")
        with self.shared() as target:
            before = time.time_ns()
            rig.sonde("java", target.pid, "-d", "1s", "-f", "pprof", "-o", out, "--data-dir",
                      self.state, check=rig.OK, timeout=rig.LIMIT)
            after = time.time_ns()
            profile = Profile(out)
            self.assertGreater(sum_of(profile, "alloc_space", "Chaos.allocateLarge"), 0)
            self.assertGreaterEqual(profile.duration_ns, 10**9)
            self.assertGreaterEqual(profile.time_ns, before)
            self.assertLessEqual(profile.time_ns + profile.duration_ns, after)
            self.nothing_left(target, self.state)

    def test_what_cannot_be_profiled_is_refused_untouched(self):
        done = rig.sonde("java", os.getpid(), "--data-dir", self.state, check=rig.NOT_PROFILEABLE)
        self.assertIn("not a Java process", done.stderr)
        rig.sonde("java", os.getpid(), "heap", check=rig.USAGE)
        rig.sonde("java", os.getpid(), "-d", "never", check=rig.USAGE)
        rig.sonde("java", 0x7ffffff0, "--data-dir", self.state, check=rig.FAILED)
        for variable in ("SONDE_JAVA=off", "SONDE_PROFILING=disabled"):
            key, value = variable.split("=")
            with self.chaos(env={key: value}) as target:
                done = rig.sonde("java", target.pid, "--data-dir", self.state,
                                 check=rig.NOT_PROFILEABLE)
                self.assertIn(variable, done.stderr)
        self.assertFalse(os.path.exists(self.state))


class JavaWithoutRecorder(JavaCase):
    """A runtime image without the recorder; making one takes a while."""

    def test_it_is_profiled_by_our_library(self):
        image = os.path.join(self.data, "image")
        subprocess.run([tool(self.home, "jlink"), "--add-modules",
                        "java.base,java.management", "--output", image], check=True, timeout=300)
        with Chaos(image) as target:
            process = record(target.pid, "--data-dir", self.state)
            said = process.stderr.readline()
            target.work(lambda c: c.large > 1 << 30)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=rig.LIMIT)
            self.assertEqual(process.returncode, rig.OK, err)
            self.assertIn("sonde's JVMTI library", said)
            self.assertIn("Chaos.allocateLarge", out)
            self.nothing_left(target, self.state)


def answers_of(agent, pid):
    target = agent.target(pid)
    return {r["reader"]: r for r in target["readers"]} if target else {}


def reader_of(agent, pid, reader):
    """{} before it is there."""
    return answers_of(agent, pid).get(reader, {})


def metrics_of(agent, pid):
    """{series without the labels of the process: value}"""
    found = {}
    for line in agent.get("metrics").decode().splitlines():
        match = re.fullmatch(r'(\w+)\{.*pid="(\d+)",comm="[^"]*",?(.*)\} (\S+)', line)
        if match and int(match.group(2)) == int(inner_pid(pid)):
            found[f"{match.group(1)}{{{match.group(3)}}}"] = float(match.group(4))
    return found


def through(agent, service, kind):
    """{function: value} of all stacks that it is in."""
    rows = agent.api("top", service=service, type=kind, limit=1000,
                     to=int(time.time() * 1000) + 60000)["rows"]
    return {row["name"]: row["total"] for row in rows}


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
        self.process.wait(timeout=rig.LIMIT)
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
        code = self.process.wait(timeout=rig.LIMIT)
        self.process.stdout.close()
        self.process.stderr.close()
        return code


class AgentCase(JavaCase):
    """One room for all tests of a class, each with an agent of its own."""
    room = None

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        if cls.room:
            cls.room.close()
            cls.room = None

    def setUp(self):
        super().setUp()
        type(self).room = self.room or Room()

    def agent(self, *args):
        agent = AgentInside(self.room, self.data, "--cpu-hz", "0", *args)
        self.addCleanup(lambda: agent.process.returncode is None and agent.stop(signal.SIGKILL))
        return agent

    def chaos(self, options=(*OPTIONS, FIRST_COMPILER), **kwargs):
        return Chaos(kwargs.pop("home", self.home), where=self.room.where, options=options,
                     **kwargs)

    def nothing_left(self, target, state):
        super().nothing_left(target, state)
        self.assertEqual([n for n in tmp_of(target.pid) if n.startswith(".sonde-")], [])

    @staticmethod
    def wait_collected(agent, target, times=1):
        """Until both profiles were stored so often."""
        rig.wait_for(lambda: min(reader_of(agent, target.pid, r).get("collections", 0)
                                 for r in ("java-alloc", "java-lock")) >= times,
                     lambda: answers_of(agent, target.pid))


class JavaAgent(AgentCase):
    def test_it_is_off_unless_asked_for_and_says_so(self):
        agent = self.agent()
        with self.shared() as target:
            rig.wait_for(lambda: reader_of(agent, target.pid, "java-runtime").get("available"),
                         lambda: answers_of(agent, target.pid))
            answer = answers_of(agent, target.pid)["java-alloc"]
            self.assertFalse(answer["available"])
            self.assertEqual(answer["cause"], "disabled")
            self.assertIn("--java", answer["remedy"])
            self.assertTrue(agent.target(target.pid)["runtime"].startswith("java 17."))
            rig.wait_for(lambda: "container_jvm_threads{}" in metrics_of(agent, target.pid),
                         lambda: metrics_of(agent, target.pid))
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
                    self.chaos(home=home, env={"OTEL_SERVICE_NAME": name}))
            off = stack.enter_context(self.chaos(env={"SONDE_JAVA": "off"}))
            stopped = stack.enter_context(self.shared())
            os.kill(stopped.pid, signal.SIGSTOP)
            stack.callback(os.kill, stopped.pid, signal.SIGCONT)
            agent = self.agent("--java")
            for name, target in on.items():
                self.wait_collected(agent, target, 3)
                self.check_stored(agent, name, target)
            self.assertEqual(answers_of(agent, off.pid)["java-alloc"]["cause"], "opted_out")
            self.assertFalse(answers_of(agent, stopped.pid)["java-alloc"]["available"])
            self.assertEqual(agent.stop(), 0)
            for target in (*on.values(), off):
                self.nothing_left(target, self.data)

    def check_stored(self, agent, name, target):
        types = {t["type"] for s in agent.api("services")["services"] if s["service"] == name
                 for t in s["types"]}
        self.assertLessEqual({"java_alloc:alloc_space:bytes", "java_lock:delay:nanoseconds",
                              "java_lock:contentions:count"}, types)
        alloc = through(agent, name, "java_alloc:alloc_space:bytes")
        delay = agent.stored(name, "java_lock:delay:nanoseconds")
        metrics = metrics_of(agent, target.pid)
        counted = target.counters()
        # Our library draws its samples at random.
        self.assertLessEqual(alloc["Chaos.allocateLarge"],
                             (counted.large + counted.large_edge) * 1.3)
        self.assertGreater(alloc["Chaos.allocateLarge"], alloc["Chaos.allocateYoung"])
        self.assertGreater(agent.stored(name, "java_alloc:alloc_space:bytes")["byte[]"], 0)
        for leaf, waited in (("java.lang.Object", counted.monitor_ns),
                             ("java.util.concurrent.locks.ReentrantLock$NonfairSync",
                              counted.lock_ns)):
            self.assertGreater(delay[leaf], 0)
            # What is too short for an event of its own is booked on the next one.
            self.assertLessEqual(delay[leaf], waited * 1.5)
        for kind in ("monitor", "park"):
            key = f'container_jvm_lock_time_seconds_total{{kind="{kind}"}}'
            self.assertGreater(metrics[key], 0)
        self.assertGreater(metrics["container_jvm_alloc_bytes_total{}"], 0)
        self.assertEqual(metrics['container_jvm_profiling_status{mode="jvmti",reason=""}'], 1)
        self.assertEqual(metrics["container_jvm_lost_samples_total{}"], 0)

    def test_it_waits_while_the_user_records_and_says_so(self):
        with self.chaos() as target:
            dump("jcmd", target.pid, "JFR.start name=mine settings=default")
            agent = self.agent("--java")
            rig.wait_for(lambda: "its user is already recording" in
                         reader_of(agent, target.pid, "java-alloc").get("reason", ""),
                         lambda: answers_of(agent, target.pid))
            status = [m for m, v in metrics_of(agent, target.pid).items()
                      if "profiling_status" in m and v == 0]
            self.assertEqual(len(status), 1)
            self.assertIn("its user is already recording", status[0])
            self.assertIn("name=mine", dump("jcmd", target.pid, "JFR.check"))
            self.assertEqual([n for n in ours_in(target.pid) if " tmpfs sonde " in n], [])
            dump("jcmd", target.pid, "JFR.stop name=mine")
            self.wait_collected(agent, target)
            self.assertEqual(agent.stop(), 0)
            # The folder of the user's recording stays until the JVM ends.
            self.assertEqual([n for n in ours_in(target.pid) if ".sonde-" in n], [])
            self.assertEqual(notes_in(self.data), [])

    def test_what_a_killed_agent_left_is_taken_out_by_the_next(self):
        with self.shared() as target:
            agent = self.agent("--java")
            self.wait_collected(agent, target)
            agent.stop(signal.SIGKILL)
            self.assertNotEqual(ours_in(target.pid), [])
            self.agent()
            rig.wait_for(lambda: not ours_in(target.pid) and not notes_in(self.data),
                         lambda: (ours_in(target.pid), notes_in(self.data)))


class JavaHidden(AgentCase):
    """JDK 8, whose recorder does not see what code of its first compiler allocates."""
    only_first = ("-XX:+UseParallelGC", "-XX:TieredStopAtLevel=1")
    enough = staticmethod(lambda c: c.large > 2 << 30)

    def test_the_command_says_how_much_is_missing(self):
        with Chaos(self.home, options=self.only_first) as target:
            alloc, counted = target.profile("alloc", self.data, self.enough)
            missing = 1 - sum_of(alloc, "alloc_space") / allocated(counted)
            told = re.search(r"^Missing: at least (\d+)% .*-XX:\+UseG1GC", target.said, re.M)
            self.assertTrue(told, target.said)
            self.assertGreater(missing, 0.5)
            # Threads that come and go are not counted.
            self.assertLess(int(told[1]) / 100, missing + 0.02)
            self.assertGreater(int(told[1]) / 100, missing - 0.1)
            target.profile("lock", self.data, lambda c: c.lock_count > 10, "go")
            self.assertNotIn("issing", target.said)

    def test_what_helps_helps_and_nothing_is_said(self):
        for options in (("-XX:+UseG1GC",), (*self.only_first, "-XX:-FastTLABRefill")):
            with self.subTest(options=options), Chaos(self.home, options=options) as target:
                alloc, counted = target.profile("alloc", self.data, self.enough)
                self.near(sum_of(alloc, "alloc_space"), allocated(counted), 0.02)
                self.assertNotIn("issing", target.said)

    def test_the_agent_says_it_of_this_JVM_only(self):
        agent = self.agent("--java")
        with self.chaos(options=self.only_first) as target, self.chaos() as other:
            rig.wait_for(lambda: "are missing, at least" in
                         (reader_of(agent, target.pid, "java-alloc").get("trouble") or ""),
                         lambda: answers_of(agent, target.pid))
            self.wait_collected(agent, other)
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
        if major >= 11:
            case = type(f"JavaGentle{major}", (JavaGentle,), {"home": home})
            suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
        if major == 8:
            case = type("JavaHidden8", (JavaHidden,), {"home": home})
            suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
    for case in (JavaCommand, JavaAgent, *([JavaWithoutRecorder] if every else [])):
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
