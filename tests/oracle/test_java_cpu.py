"""Java methods in CPU profiles, against what the program counts (tests/targets/java)."""
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest

import rig
import stats
from pprof import Profile
from rig import LIMIT, wait_for
from sampling import Sampling, SamplingCase, count, count_with, cpu_time, names_of, use
from test_agent import Agent
from test_java_attach import DEBIAN, inner_pid, jdks, major_of, ours_in

SOURCE = os.path.join(rig.ROOT, "tests", "targets", "java", "Shares.java")
NOBODY = "65534"
# A /tmp of its own: JVMs of other tests run beside.
ALONE = ("unshare", "--mount", "sh", "-c",
         "mount -t tmpfs -o mode=1777 tmpfs /tmp && exec \"$@\"", "sh")
AS_NOBODY = ("setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups")
NOT_ITSELF = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


class Shares(rig.Target):
    """The program, with what it has spent in its two methods."""

    def __init__(self, home, classes, *options, prefix=(), env=None):
        # What is inlined is not in a perf map.
        super().__init__([os.path.join(home, "bin", "java"), "-Xmx96m", "-XX:-Inline", *options,
                          "-cp", classes, "Shares"], ready=False, prefix=[*ALONE, *prefix], env=env)
        line = self.line(LIMIT)
        assert line == b"ready 0\n", line
        # Below unshare(1), where that has forked.
        children = self.children(self.pid)
        while "java" not in os.readlink(f"/proc/{self.pid}/exe") and children:
            self.pid = children[0]
            children = self.children(self.pid)
        self.inner = inner_pid(self.pid)

    @staticmethod
    def children(pid):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as f:
            return list(map(int, f.read().split()))

    def counters(self):
        """It answers, and has said nothing else, such as a dump of its threads."""
        return tuple(map(int, self.ask("counters").split()))

    def tmp(self, name):
        return f"/proc/{self.pid}/root/tmp/{name}"

    @property
    def map(self):
        return self.tmp(f"perf-{self.inner}.map")

    def listens(self):
        """Whether it was ever asked to take commands."""
        return os.path.exists(self.tmp(f".java_pid{self.inner}"))


class JavaMethodsCase(SamplingCase):
    home = DEBIAN

    @classmethod
    def setUpClass(cls):
        # Not in the /tmp that the programs do not see.
        cls.folder = tempfile.TemporaryDirectory(prefix="sonde-java-cpu-", dir="/var/tmp")
        os.chmod(cls.folder.name, 0o755)
        cls.classes = os.path.join(cls.folder.name, "classes")
        subprocess.run([os.path.join(DEBIAN, "bin", "javac"), "--release", "17", "-d", cls.classes,
                        SOURCE], check=True, timeout=LIMIT)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def setUp(self):
        self.state = tempfile.mkdtemp(dir=self.folder.name)

    def env(self):
        return dict(os.environ, SONDE_DATA_DIR=self.state)

    def shares(self, *options, **kwargs):
        return Shares(self.home, self.classes, *options, **kwargs)

    def profile(self, target, *args, samples=400):
        return self.sample(target.pid, samples, *args, env=self.env())

    def notes(self):
        folder = os.path.join(self.state, "java-perf-maps")
        return os.listdir(folder) if os.path.exists(folder) else []

    def nothing_left(self, target):
        # An agent of other tests records every JVM that it finds, and goes.
        wait_for(lambda: not ours_in(target.pid), lambda: ours_in(target.pid))
        self.assertFalse(os.path.lexists(target.map))
        self.assertEqual(self.notes(), [])

    def check_counted(self, profile, spent):
        """By the program's own clock."""
        self.check_shares(profile.samples, dict(zip(("Shares.heavy", "Shares.light"), spent)), 0.9)


class JavaMethods(JavaMethodsCase):
    """One class for each JDK, made by load()."""

    def test_methods_have_their_names_and_shares(self):
        with self.shares() as target:
            profile, spent = self.measured(target, 1500, "--java", env=self.env())
            self.check_counted(profile, spent)
            self.assertRegex(profile.said, r"from a perf map: \d{3,} functions, written \d+ times")
            self.nothing_left(target)

    def test_stacks_without_frame_pointers_say_that_they_are_cut(self):
        with self.shares() as target:
            profile = self.profile(target, "--java")
        ends = {names_of(s)[-1] for s in profile.samples if "Shares.heavy" in names_of(s)
                or "Shares.light" in names_of(s)}
        self.assertIn("[no unwind information]", ends)
        # Also where the frame pointer of a frame far below led to the start of the thread.
        self.assertEqual({e for e in ends if not e.startswith("[")}, set())

    def test_callers_reach_the_start_of_the_thread_with_frame_pointers(self):
        with self.shares("-XX:+PreserveFramePointer") as target:
            profile, spent = self.measured(target, 1500, "--java", env=self.env())
            self.check_counted(profile, spent)
            self.nothing_left(target)
        heavy = [s for s in profile.samples if "Shares.heavy" in names_of(s)]
        # But for the few in the first instructions of a function, before it has one.
        self.check_more([s for s in heavy if {"Shares.round", "Interpreter"} <= set(names_of(s)) and
                         "start_thread" in names_of(s)[-2:] and
                         not names_of(s)[-1].startswith("[")], heavy, 0.95)

    def test_code_that_is_compiled_meanwhile_gets_its_name(self):
        with self.shares() as target, Sampling(target.pid, "--java", hz=499,
                                               env=self.env()) as sampling:
            began = cpu_time(target.pid)
            wait_for(lambda: os.path.exists(target.map), "there is no map")
            target.ask("more")
            wait_for(lambda: self.is_named(target, "Shares.later"), "it is not written again")
            # What it has used without a name is a small part in the end.
            use(target.pid, max(2, 4 * (cpu_time(target.pid) - began)))
            profile, said = sampling.end(), sampling.said()
            self.nothing_left(target)
        self.assertGreater(int(re.search(r"written (\d+) times", said).group(1)), 1)
        later, jit = (count_with(profile.samples, name) for name in ("Shares.later", "[jit]"))
        stats.check_more(self, later, count(profile.samples), 0.1, 2)
        stats.check_less(self, jit, count(profile.samples), 0.1, 2)

    @staticmethod
    def is_named(target, name):
        """Whether its map has it; the map is not there while it is written anew."""
        try:
            with open(target.map, encoding="utf-8", errors="replace") as f:
                return name in f.read()
        except FileNotFoundError:
            return False

    def test_a_link_in_the_place_of_the_map_is_refused(self):
        precious = os.path.join(self.state, "precious")
        with open(precious, "w", encoding="utf-8") as f:
            f.write("as it was")
        with self.shares() as target:
            os.symlink(precious, target.map)
            profile = self.profile(target, "--java")
            self.assertIn("No Java names", profile.said)
            self.assertIn("is not its perf map", profile.said)
            self.assertEqual(os.readlink(target.map), precious)
            self.assertFalse(target.listens())
            self.assertEqual(count_with(profile.samples, "Shares.heavy"), 0)
            target.counters()
            os.unlink(target.map)
            self.nothing_left(target)
        with open(precious, encoding="utf-8") as f:
            self.assertEqual(f.read(), "as it was")

    def test_a_map_of_the_users_is_used_and_left_alone(self):
        with self.shares() as target:
            with open(f"/proc/{target.pid}/maps", encoding="utf-8") as maps:
                code = re.findall(r"^(\w+)-(\w+) rwxp \S+ \S+ 0 *$", maps.read(), re.M)
            with open(target.map, "w", encoding="utf-8") as f:
                for start, end in code:
                    f.write(f"{start} {int(end, 16) - int(start, 16):x} of my own\n")
            stat = os.stat(target.map)
            profile = self.profile(target, "--java")
            self.assertIn("an existing perf map", profile.said)
            self.assertGreater(count_with(profile.samples, "of my own"), 0)
            self.assertFalse(target.listens())
            now = os.stat(target.map)
            self.assertEqual((now.st_ino, now.st_mtime_ns), (stat.st_ino, stat.st_mtime_ns))
            os.unlink(target.map)
            self.nothing_left(target)

    def test_another_user_in_namespaces_of_its_own(self):
        with self.shares(prefix=[*NOT_ITSELF, *AS_NOBODY]) as target:
            self.assertNotEqual(target.inner, str(target.pid))
            profile = self.profile(target, "--java")
            stats.check_more(self, count_with(profile.samples, "Shares.heavy"),
                             count(profile.samples), 0.4)
            self.nothing_left(target)

    def test_the_agent_names_them_and_leaves_nothing(self):
        with self.shares(env={"OTEL_SERVICE_NAME": "shares"}) as target:
            agent = Agent(self.state, "--cpu-hz", "199", "--java")
            self.addCleanup(lambda: agent.process.returncode is None and agent.stop())
            wait_for(lambda: self.is_stored(agent, "shares", "Shares.heavy"),
                       lambda: sorted(agent.stored("shares", "cpu:cpu:nanoseconds")))
            self.assertEqual(agent.stop(), 0)
            self.nothing_left(target)
            target.counters()

    @staticmethod
    def is_stored(agent, service, name):
        time.sleep(1)
        services = {s["service"] for s in agent.api("services")["services"]}
        return service in services and agent.stored(service, "cpu:cpu:nanoseconds").get(name)


class JavaMethodsSampled(JavaMethodsCase):
    """Debian's, whose recorder tells no CPU time."""

    def test_java_cpu_says_that_it_samples_and_has_the_names(self):
        with self.shares() as target, Sampling(target.pid, "cpu", "--data-dir", self.state, hz=None,
                                               command="java") as sampling:
            before = target.counters()
            use(target.pid, 4)
            spent = [b - a for a, b in zip(before, target.counters())]
            profile, said = sampling.end(), sampling.said()
            self.assertGreater(count(profile.samples), 100)
            self.check_counted(profile, spent)
            self.assertIn("sampled by sonde", said)
            self.assertIn("from a perf map", said)
            self.nothing_left(target)


class JavaMethodsRecorded(JavaMethodsCase):
    """Where the recorder tells CPU time, too; for each such JDK."""

    def test_the_recorder_has_the_same_names(self):
        path = os.path.join(self.state, "java.pb.gz")
        wanted, names = {"Shares.heavy", "Shares.light", "Shares.round"}, set()
        deadline = time.monotonic() + LIMIT
        with self.shares() as target:
            while not wanted <= names:
                self.assertLess(time.monotonic(), deadline, names)
                done = rig.sonde("java", target.pid, "cpu", "-d", "3s", "-f", "pprof", "-o", path,
                                 "--data-dir", self.state, "--flight-recorder", check=rig.OK)
                self.assertIn("by Flight Recorder", done.stderr)
                names |= {n for s in Profile(path).samples for n in names_of(s)}
                os.unlink(path)


class JavaMethodsUntouched(JavaMethodsCase):
    """What is not asked for, or cannot be had, leaves a JVM as it was."""

    def check_untouched(self, target, said, *words):
        for word in ("No Java names", *words):
            self.assertIn(word, said)
        self.assertFalse(target.listens())
        target.counters()
        self.nothing_left(target)

    def test_without_the_option_nothing_is_asked(self):
        with self.shares() as target:
            profile = self.profile(target)
            self.check_untouched(target, profile.said, "--java")
            self.assertGreater(count_with(profile.samples, "[anonymous]"), 0)

    def test_a_program_that_opts_out_is_left_alone(self):
        for key, value in (("SONDE_JAVA", "off"), ("SONDE_PROFILING", "disabled")):
            with self.subTest(key), self.shares(env={key: value}) as target:
                said = self.profile(target, "--java", samples=50).said
                self.check_untouched(target, said, f"{key}={value}")

    def test_a_JVM_that_takes_no_commands_gets_no_signal(self):
        with self.shares("-XX:+DisableAttachMechanism") as target:
            said = self.profile(target, "--java", samples=50).said
            self.check_untouched(target, said, "-XX:+DisableAttachMechanism")

    def test_a_process_without_a_JVM_is_profiled_as_ever(self):
        done = rig.sonde("cpu", os.getpid(), "-d", "1s", "--java", check=rig.OK, env=self.env())
        self.assertIn("not a Java process", done.stderr)

    def test_what_a_killed_one_left_is_taken_out_by_the_next(self):
        with self.shares() as target:
            process = subprocess.Popen([rig.SONDE, "cpu", str(target.pid), "--java", "-d", "60s"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       env=self.env())
            wait_for(lambda: os.path.exists(target.map) or process.poll(), "there is no map")
            process.send_signal(signal.SIGKILL)
            process.wait(timeout=LIMIT)
            self.assertTrue(os.path.exists(target.map))
            self.assertNotEqual(self.notes(), [])
            rig.sonde("cpu", os.getpid(), "-d", "1s", "--java", check=rig.OK, env=self.env())
            self.nothing_left(target)


def load(every, suite):
    for version, home in jdks(every):
        major = major_of(version)
        for case, first in ((JavaMethods, 17), (JavaMethodsRecorded, 25)):
            if major >= first:
                case = type(f"{case.__name__}{major}", (case,), {"home": home})
                suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
    for case in (JavaMethodsSampled, JavaMethodsUntouched):
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
