"""The other ways into a JVM, our own library and async-profiler, against what the program counts."""
import contextlib
import math
import os
import re
import subprocess
import sys
import tempfile
import unittest

import java_rig
import rig
import build
import stats
from java_rig import (ALONE, DEBIAN, DUMP, Case, folder_for_tests, jdks, major_of,
                      ours_in)

sys.path.insert(0, os.path.join(rig.ROOT, "tests", "targets", "java_collected"))
import async_profiler  # noqa: E402

COLLECTORS = os.path.join(os.path.dirname(rig.ELF_DUMP), "java_collectors")
# The JVM draws its samples some 1 to 2 % too seldom.
BIAS = 0.025


def sampled_within(n, checks):
    """The relative error of a total of n samples that are drawn at random, by Bernstein's bound."""
    alarm = math.log(2 * checks / stats.FALSE_ALARM)
    return (alarm / 3 + math.sqrt(alarm * alarm / 9 + 2 * alarm * n)) / n


class Program(java_rig.Program):
    def __init__(self, home, *options, prefix=()):
        super().__init__(home, "Collected", "-Xmx128m", *options, first="ready",
                         prefix=[*ALONE, *prefix])

    def counters(self, command):
        """(bytes of this command, nanoseconds waited so far)"""
        words = self.ask(command).split()
        assert words[0] == command.split()[0], words
        return int(words[1]), int(words[2])

    def mapped(self):
        """Files of ours that it has mapped, by name."""
        with open(f"/proc/{self.pid}/maps", encoding="utf-8") as f:
            return {m.group(1) for m in re.finditer(r"/(libsonde-[^/\s]+|ring)(?: |$)", f.read(),
                                                    re.M)}


class Collector:
    """A java_collectors at work."""

    def __init__(self, collector, pid, state, *more):
        self.process = subprocess.Popen([COLLECTORS, collector, str(pid), state, *more],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.samples, self.stats = [], {}
        if self.process.stdout.readline() != "on\n":
            raise AssertionError(self.process.communicate(timeout=rig.LIMIT)[1])

    def keep(self):
        self.process.stdin.write("keep\n")
        self.process.stdin.flush()

    def stop(self):
        out, err = self.process.communicate(timeout=300)
        assert self.process.returncode == 0 and out.endswith("off\n"), out[-500:] + err
        for line in out.splitlines():
            if line.startswith("stats "):
                self.stats = {k: int(v) for k, v in (w.split("=") for w in line.split()[1:])}
            elif "\t" in line:
                kind, first, second, labels, stack = line.split("\t")
                frames = [f.rsplit(":", 1)[0] for f in stack.split(";") if f]
                self.samples.append((kind, int(first), int(second), labels, frames))

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def sum(self, kind, *frames, at=2, label=""):
        """Of samples whose stacks begin with these frames."""
        return sum(s[at] for s in self.samples
                   if s[0] == kind and s[4][:len(frames)] == list(frames) and label in s[3])


class CollectorCase(Case):
    home = DEBIAN
    kept = None

    @classmethod
    def setUpClass(cls):
        cls.folder = folder_for_tests()

    @classmethod
    def tearDownClass(cls):
        if cls.kept:
            cls.kept.__exit__()
            cls.kept = None
        cls.folder.cleanup()

    def setUp(self):
        super().setUp()
        self.state = tempfile.mkdtemp(dir=self.folder.name)

    @contextlib.contextmanager
    def shared(self):
        """For tests that leave it as it was; after one that failed there is a new one."""
        cls = type(self)
        cls.kept = cls.kept or Program(self.home)
        try:
            yield cls.kept
        except BaseException:
            cls.kept.__exit__()
            cls.kept = None
            raise

    def near(self, ours, counted, within):
        self.assertGreater(counted, 0)
        self.assertLess(abs(ours / counted - 1), within,
                        f"{ours} against {counted}, {(ours / counted - 1) * 100:+.2f} %, "
                        f"within {within * 100:.1f} % wanted")

    def nothing_left(self, program):
        """But the code, which a JVM never unloads."""
        self.assertEqual(ours_in(program.pid), [])
        self.assertEqual(os.listdir(self.state), [])
        self.assertNotIn("ring", program.mapped())
        self.assertLessEqual(len(program.mapped()), 1)

    def work(self, program, collector):
        """(bytes allocated, nanoseconds waited) by the program's own count."""
        waited = program.counters("nothing")[1]
        total = 0
        for _ in range(8):
            total += program.counters("alloc 1000000000")[0]
            collector.keep()
        waited = program.counters("lock 60")[1] - waited
        collector.stop()
        return total, waited


class JavaLibrary(unittest.TestCase):
    def test_the_library_asks_for_nothing_that_not_every_libc_has(self):
        path = os.path.join(os.path.dirname(os.path.dirname(rig.ELF_DUMP)), "src", "java", "agent_lib",
                            "libsonde-jvmti.so")
        needs = subprocess.run(["readelf", "-dW", "--version-info", path], capture_output=True,
                               text=True, check=True).stdout
        self.assertEqual(re.findall(r"\(NEEDED\).*", needs), [])
        self.assertNotIn("GLIBC_", needs)
        symbols = subprocess.run(["readelf", "-W", "--dyn-syms", path], capture_output=True,
                                 text=True, check=True).stdout
        self.assertLessEqual(
            set(re.findall(r" UND (\w+)", symbols)),
            {"clock_gettime", "close", "lseek", "memcpy", "memset", "mmap", "munmap", "open",
             "strcmp", "strlen", "strncmp"})


class Jvmti(CollectorCase):
    """One class for each JDK, made by load()."""

    def judge(self, program, collector):
        """Checks what was allocated; returns how long threads waited, as recorded and as counted."""
        counted, waited = self.work(program, collector)
        self.assertEqual(collector.stats["dropped"], 0)
        # Samples differ in weight: what counts is how many of the usual weight there would be.
        n = sum(s[2] for s in collector.samples if s[0] == "alloc")
        n = min(n / max(collector.stats["interval"], 1), collector.stats["allocs"])
        # 100,016 bytes in one object, 32 bytes in a thousand; and two rounds of these checks.
        share = 100016 / 132016
        within = BIAS + sampled_within(n, 6)
        self.near(collector.sum("alloc", label="thread=main"), counted, within)
        # What was allocated is the leaf.
        arrays = collector.sum("alloc", "byte[]", "Collected.allocateArrays", "Collected.allocate",
                               "Collected.main")
        small = collector.sum("alloc", "long[]", "Collected.allocateSmall", "Collected.allocate",
                              "Collected.main")
        self.near(arrays + small, counted, within)
        self.near(arrays, counted * share, BIAS + sampled_within(n * share, 6))
        return collector.sum("lock", "Collected$Monitor", "Collected.hold"), waited

    def test_totals_are_what_the_program_counts_twice_over(self):
        with self.shared() as program:
            def work():
                delay = self.judge(program, Collector("jvmti", program.pid, self.state))
                self.nothing_left(program)
                return [delay]

            for _ in range(2):
                self.check_delays(work)
            # The second start has found the library of the first.
            with open(f"/proc/{program.pid}/maps", encoding="utf-8") as f:
                code = [line for line in f if "libsonde-jvmti" in line and " r-xp " in line]
            self.assertEqual(len(code), 1)
            program.counters("alloc 1000")

    def test_waits_for_locks_of_java_util_concurrent_add_up(self):
        lock = "java.util.concurrent.locks.ReentrantLock$NonfairSync"
        with self.shared() as program:
            def work():
                collector = Collector("jvmti", program.pid, self.state)
                waited = program.counters("nothing")[1]
                # An idle thread parks all the time, waiting for work.
                waited = program.counters("park 60")[1] - waited
                collector.stop()
                self.assertEqual({s[4][0] for s in collector.samples if s[0] == "lock"}
                                 - {lock, "[no stack]"}, set())
                self.nothing_left(program)
                return [(collector.sum("lock"), waited)]

            self.check_delays(work)
            # Its standard output is what we read: the JVM has warned of nothing.
            program.counters("alloc 1000")

    def test_no_code_can_be_run_from_where_it_was_loaded(self):
        with self.shared() as program:
            collector = Collector("jvmti", program.pid, self.state)
            with open(f"/proc/{program.pid}/mountinfo", encoding="utf-8") as f:
                options = [line.split()[5].split(",") for line in f if ".sonde-" in line]
            self.assertEqual(len(options), 1)
            self.assertLessEqual({"noexec", "nosuid", "nodev"}, set(options[0]))
            program.counters("alloc 1000000000")
            collector.stop()
            self.assertGreater(collector.sum("alloc"), 0)
            self.nothing_left(program)

    def test_it_ends_by_itself_when_sonde_was_killed(self):
        with self.shared() as program:
            collector = Collector("jvmti", program.pid, self.state, "500")
            # It looks at the clock when something happens: nothing does yet.
            self.assertIn("ring", program.mapped())
            collector.kill()
            rig.wait_for(lambda: program.counters("alloc 1000000000") and
                         "ring" not in program.mapped(), program.mapped)
            # What is left of files goes with the next start, which works like the first.
            collector = Collector("jvmti", program.pid, self.state)
            program.counters("alloc 1000000000")
            collector.stop()
            self.assertGreater(collector.sum("alloc"), 0)
            self.nothing_left(program)

    def test_a_session_of_a_killed_sonde_gives_way_to_the_next(self):
        with self.shared() as program:
            collector = Collector("jvmti", program.pid, self.state)
            program.counters("alloc 1000000000")
            collector.kill()
            self.assertIn("ring", program.mapped())
            collector = Collector("jvmti", program.pid, self.state)
            program.counters("alloc 1000000000")
            collector.stop()
            self.assertGreater(collector.sum("alloc"), 0)
            self.nothing_left(program)

    def test_what_a_killed_sonde_left_is_restored(self):
        with self.shared() as program:
            collector = Collector("jvmti", program.pid, self.state)
            collector.kill()
            self.assertEqual(len(ours_in(program.pid)), 2)
            done = subprocess.run([DUMP, "restore", self.state], capture_output=True, text=True,
                                  timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(ours_in(program.pid), [])
            self.assertEqual(os.listdir(self.state), [])
            program.counters("alloc 1000000000")

    def test_two_at_a_time_are_one_too_many(self):
        with self.shared() as program:
            collector = Collector("jvmti", program.pid, self.state)
            with self.assertRaisesRegex(AssertionError, "EBUSY: another sonde"):
                Collector("jvmti", program.pid, self.state)
            program.counters("alloc 1000000000")
            collector.stop()
            self.assertGreater(collector.sum("alloc"), 0)
            self.nothing_left(program)

    def test_a_jvm_that_loads_nothing_is_left_alone(self):
        with Program(self.home, "-XX:-EnableDynamicAgentLoading") as program:
            with self.assertRaisesRegex(AssertionError, "ENOTSUP: .*cannot load a library"):
                Collector("jvmti", program.pid, self.state)
            self.nothing_left(program)
            program.counters("alloc 1000")

    def test_a_jvm_of_another_user(self):
        prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        with Program(self.home, prefix=prefix) as program:
            collector = Collector("jvmti", program.pid, self.state)
            program.counters("alloc 1000000000")
            collector.stop()
            self.assertGreater(collector.sum("alloc", "byte[]", "Collected.allocateArrays"), 0)
            self.nothing_left(program)


class Async(CollectorCase):
    """async-profiler, where its library can be had."""
    major, library = 0, None

    def test_totals_are_what_the_program_counts_twice_over(self):
        with Program(self.home) as program:
            if self.major < 11:
                with self.assertRaisesRegex(AssertionError, "ENOTSUP: .*need debug symbols"):
                    Collector("async", program.pid, self.state, self.library)
                self.nothing_left(program)
                return

            def work():
                collector = Collector("async", program.pid, self.state, self.library)
                counted, waited = self.work(program, collector)
                # One sample each 2 MB, in two rounds.
                within = BIAS + sampled_within(counted / (2 << 20), 2)
                self.near(collector.sum("alloc", label="thread=main"), counted, within)
                self.assertGreater(collector.sum("cpu"), 0)
                self.nothing_left(program)
                return [(collector.sum("lock", "Collected$Monitor", "Collected.hold"), waited)]

            for _ in range(2):
                self.check_delays(work)
            program.counters("alloc 1000")

    def test_one_of_the_users_own_is_left_alone(self):
        copy = os.path.join(self.folder.name, "libasyncProfiler.so")
        with open(self.library, "rb") as f, open(copy, "wb") as out:
            out.write(f.read())
        with Program(self.home, f"-agentpath:{copy}="
                     "start,event=itimer,loglevel=none,file=/tmp/own.jfr") as program:
            with self.assertRaisesRegex(AssertionError, "EBUSY: .*its own async-profiler"):
                Collector("async", program.pid, self.state, self.library)
            self.assertEqual(ours_in(program.pid), [])
            program.counters("alloc 1000")

    def test_cpu_time_beside_one_of_the_users_own_is_sampled_by_us(self):
        copy = os.path.join(self.folder.name, "libasyncProfiler.so")
        with open(self.library, "rb") as f, open(copy, "wb") as out:
            out.write(f.read())
        with Program(self.home, f"-agentpath:{copy}="
                     "start,event=itimer,loglevel=none,file=/tmp/own.jfr") as program:
            done = rig.sonde("java", program.pid, "cpu", "-d", "300ms", "--data-dir", self.state,
                             check=rig.OK, timeout=rig.LIMIT)
            self.assertIn("sampled by sonde", done.stderr)
            self.assertEqual("another profiler" in done.stderr, self.major >= 25)
            # The recorder would have said in its output that somebody else has the signal.
            program.counters("alloc 1000")

    def test_a_library_that_is_none_is_refused(self):
        with Program(self.home) as program:
            with self.assertRaisesRegex(AssertionError, "ENOTSUP: .*cannot load a library"):
                Collector("async", program.pid, self.state, __file__)
            self.nothing_left(program)
            program.counters("alloc 1000")


class Recorder(CollectorCase):
    """The JVM's own recorder, of JDK 16 and later."""

    def test_a_quiet_thread_reads_what_it_has_allocated(self):
        with Program(self.home) as program:
            program.counters("alloc 300000000")
            for size in (400000, 3000000):
                collector = Collector("recorder", program.pid, self.state)
                counted = program.counters(f"alloc {size}")[0]
                collector.stop()
                ours = collector.sum("alloc", at=1, label="thread=main")
                # Between the counts of the recorder the thread has read our command, too.
                self.assertGreaterEqual(ours, counted)
                self.assertLessEqual(ours, counted * 1.02 + (64 << 10))
                self.nothing_left(program)


    def test_idle_threads_that_park_all_the_time_are_left_out_in_the_end(self):
        with Program(self.home) as program:
            for kill in (False, True):
                collector = Collector("recorder", program.pid, self.state)
                program.counters("poll 32")
                rig.wait_for(lambda: collector.keep() or "-calm" in
                             java_rig.dump("jcmd", program.pid, "JFR.check"),
                             lambda: java_rig.dump("jcmd", program.pid, "JFR.check"))
                self.assertEqual(java_rig.dump("jcmd", program.pid, "JFR.check").count("sonde-"), 1)
                program.counters("park 10")
                if kill:
                    collector.kill()
                    self.assertEqual(java_rig.dump("restore", self.state), "1\n")
                else:
                    collector.stop()
                    # What was recorded before is not lost, nor are waits that are long enough.
                    self.assertGreater(collector.sum("lock"), 0)
                self.assertNotIn("sonde-", java_rig.dump("jcmd", program.pid, "JFR.check"))
                self.nothing_left(program)


def async_library():
    """What cannot be had is named on stderr: a test of it is not passed silently."""
    found = async_profiler.library(
        os.path.join(os.path.abspath(build.default_outdir()), "async-profiler"))
    if not found:
        print("async-profiler is not on this machine and cannot be fetched: left out",
              file=sys.stderr)
    return found


def load(every, suite):
    """Our library needs JDK 11; JDKs other than Debian's take their time."""
    suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(JavaLibrary))
    library = async_library()
    for version, home in jdks(every)[:None if every else 1]:
        major = major_of(version)
        for base in (Jvmti if major >= 11 else None, Async if library else None,
                     Recorder if major >= 16 else None):
            if base:
                case = type(f"Java{base.__name__}{major}", (base,),
                            {"home": home, "major": major, "library": library})
                suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
