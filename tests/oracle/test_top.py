"""sonde top: its numbers against sonde heap, and its screen on a terminal of our own."""
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time
import unittest

import rig
import stats
from rig import LIMIT, wait_for
from terminal import Terminal
from test_agent import counts, cumulative, difference, leak

TOP_HZ = 99  # at which it samples


def rest(target):
    while target.ask("pause") != target.ask("pause"):
        pass  # one that comes late to its work ends it first
    target.ask("gc")


def work(target):
    """Until it has leaked and dropped enough for the runtime to have sampled some of it."""
    wait_for(lambda: min(counts(target.ask("counts")).values()) > 8 << 20, "it does not allocate")


class Stream:
    """sonde top for pipes, read until something is there."""

    def __init__(self, *args):
        self.process = subprocess.Popen([rig.SONDE, "top", *map(str, args)],
                                        stdout=subprocess.PIPE, text=True)
        self.deadline = time.monotonic() + LIMIT

    def line(self):
        line = self.process.stdout.readline()
        assert line, f"sonde top ended with {self.process.wait()}"
        assert time.monotonic() < self.deadline, f"after {LIMIT} s: {line}"
        return line

    def frame(self, wanted=lambda frame: True):
        """The next one of --json that is as wanted."""
        while not wanted(frame := json.loads(self.line())):
            pass
        return frame

    def table(self, word):
        """The lines of the next table with this word in it."""
        lines = [self.line()]
        while True:
            line = self.line()
            if line != "\n":
                lines.append(line)
            elif word in "".join(lines):
                return [line.rstrip("\n") for line in lines]
            else:
                lines = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


def rows(text):
    """The names of the table, as they stand in the lines of the screen."""
    return [line.split("%")[-1].split()[0] for line in text.splitlines()
            if re.match(r"[> ] *[0-9.]+[a-zA-Z]* .*%", line)]


class Numbers(unittest.TestCase):
    def top(self, *args, check=rig.OK):
        return rig.sonde("top", *args, check=check)

    def test_live_heap_equals_that_of_sonde_heap(self):
        with leak("top-live") as target:
            work(target)
            rest(target)
            for kind in ("inuse_space", "inuse_objects"):
                heap = json.loads(rig.sonde("heap", target.pid, "-t", kind, "-f", "json",
                                            check=rig.OK).stdout)
                top = json.loads(self.top(target.pid, "-t", kind, "--once", "--json").stdout)
                self.assertEqual(top["functions"][0]["service"], "top-live")
                self.assertEqual(top["type"], kind)
                self.assertIs(top["complete"], True)
                self.assertEqual(top["total"], heap["total"])
                self.assertEqual(top["totals"][kind], heap["total"])
                self.assertEqual({f["name"]: (f["flat"], f["cum"]) for f in top["functions"]},
                                 {f["name"]: (f["flat"], f["cum"]) for f in heap["functions"]})
            for group, name in (("service", "top-live"), ("process", f"{target.pid} leak")):
                top = json.loads(self.top(target.pid, "-t", "inuse_objects", "--once", "--json",
                                          "-g", group).stdout)
                row, = top[{"service": "services", "process": "processes"}[group]]
                self.assertEqual((row["name"], row["flat"], row["cum"]),
                                 (name, heap["total"], heap["total"]))

    def test_what_it_saw_is_the_difference_of_two_readings(self):
        with leak("top-rates", leak_mb=1) as target:
            rest(target)
            first = cumulative(target.pid)
            with Stream(target.pid, "--json", "-d", "300ms") as top:
                frames = [top.frame()]
                target.ask("go")
                while self.moved(frames) < 6 or not self.rates(frames):
                    frames.append(top.frame())
                rest(target)
                exact = sum(difference(cumulative(target.pid), first).values())
                while self.seen(frames) < exact:
                    frames.append(top.frame())
                # Nothing comes after that.
                frames += [top.frame() for _ in range(3)]
                top.process.send_signal(signal.SIGTERM)
                self.assertEqual(top.process.wait(timeout=LIMIT), 0)
        self.assertEqual(self.seen(frames), exact)

    @staticmethod
    def seen(frames):
        return sum(f["profiled"][0]["alloc_space"] for f in frames)

    @staticmethod
    def moved(frames):
        return sum(f["profiled"][0]["alloc_space"] > 0 for f in frames)

    @staticmethod
    def rates(frames):
        """How often a rate was shown."""
        return sum(f["totals"]["alloc_space"] > 0 for f in frames)

    def test_services_and_processes_can_be_chosen(self):
        with leak("top-one", leak_mb=1) as one, leak("top-two", leak_mb=1) as two:
            rest(one)
            rest(two)
            names = lambda *args: sorted(
                r["name"] for r in json.loads(self.top(
                    "-t", "inuse_space", "-g", "process", "--once", "--json",
                    *args).stdout)["processes"])
            self.assertEqual(names("--service", "top-two"), [f"{two.pid} leak"])
            self.assertEqual(names(one.pid), [f"{one.pid} leak"])
            self.assertEqual(names(two.pid, one.pid, one.pid),
                             sorted([f"{one.pid} leak", f"{two.pid} leak"]))
            self.assertLessEqual({f"{one.pid} leak", f"{two.pid} leak"}, set(names()))

    def test_plain_text_without_a_terminal(self):
        with leak("top-text", leak_mb=1) as target:
            work(target)
            rest(target)
            text = self.top(target.pid, "-t", "inuse_space", "--count", 2, "-d", "200ms",
                            "-n", 1).stdout
            tables = text.split("\n\n")
            self.assertEqual(len(tables), 2)
            for table in tables:
                lines = table.splitlines()
                self.assertRegex(lines[0], r"^sonde top  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
                self.assertIn("1 process in 1 service", lines[1])
                self.assertRegex(lines[2], r"FLAT +FLAT% +CUM +CUM%  FUNCTION \(WHERE\)")
                self.assertRegex(lines[3], r"main\.\w+ \(top-text\)$")
                self.assertRegex(lines[4], r"and \d+ more; use -n \d+ to see all")
            self.assertNotIn("\x1b", text)
            # A rate takes two readings, and nothing is said before.
            target.ask("go")
            self.assertNotIn("second collection", self.top(target.pid, "-d", "500ms", "--once", "-t",
                                                        "alloc_space").stdout)
            with Stream(target.pid, "-b", "-d", "500ms", "-t", "alloc_space") as top:
                self.assertIn("main.churn (top-text)", top.table("main.")[3])

    def test_ends_with_the_processes_it_is_for(self):
        with leak("top-end", leak_mb=1) as target:
            process = subprocess.Popen([rig.SONDE, "top", str(target.pid), "-b", "-d", "200ms",
                                        "-t", "inuse_space"], stdout=subprocess.PIPE, text=True)
            process.stdout.readline()
        process.stdout.read()
        self.assertEqual(process.wait(timeout=LIMIT), 0)
        process.stdout.close()

    def test_what_cannot_be_profiled_is_said(self):
        program = rig.build.build("nopprof", rig.build.mandatory()[1])
        with rig.Target([program]) as target, leak("top-other", leak_mb=1) as other:
            done = self.top(target.pid, "--once", "-t", "alloc_space", check=rig.NOT_PROFILEABLE)
            self.assertIn("memory profiling is off", done.stderr)
            self.assertEqual(done.stdout, "")
            frame = json.loads(self.top(target.pid, other.pid, os.getpid(), "--json", "--once",
                                        "-t", "inuse_space").stdout)
            self.assertEqual(frame["not_go"], 1)
            reason, = frame["not_profiled"]
            self.assertEqual(reason["cause"], "profiling_off")
            self.assertEqual(reason["processes"], 1)
        done = self.top(os.getpid(), "-t", "inuse_space", check=rig.NOT_PROFILEABLE)
        self.assertIn("not a Go program", done.stderr)
        done = self.top(target.pid, "--once", check=rig.FAILED)
        self.assertIn(str(target.pid), done.stderr)

    def test_wrong_command_lines(self):
        for args, word in ((("-t", "alloc_spce"), "did you mean alloc_space?"),
                           (("-d", "1ms"), "100ms"), (("-d", "soon"), "--interval"),
                           (("--once", "--count", "2"), "--count"), (("-n", "0"), "--lines"),
                           (("-g", "color"), "function"), (("-s", "name"), "flat"),
                           (("nobody",), "PID"), (("--count", "-1"), "--count")):
            self.assertIn(word, self.top(*args, check=rig.USAGE).stderr)


class Live(unittest.TestCase):
    def test_a_person_finds_what_leaks(self):
        with leak("top-live", leak_mb=4, churn_mb=1) as target, \
                Terminal(target.pid, "-d", "500ms") as terminal:
            terminal.wait("every 0.5s")
            # Who burns the processors comes first.
            terminal.wait("CPU by function")
            terminal.press("a")
            # What is live is known at once, rates with the second collection.
            terminal.wait("B live, ")
            text = terminal.wait(lambda t: rows(t)[:1] == ["main.leak"])
            self.assertIn("FLAT/s", text)
            self.assertIn("objects/s allocated", text)
            terminal.press("l")
            terminal.wait(lambda t: "Live heap" in t and "main.leak" in rows(t)[:2])
            terminal.press("o")
            terminal.wait("Live objects by function")
            terminal.press("os")
            terminal.wait("cum first")
            # What is typed at once still means one after the other.
            terminal.press("as\r")
            terminal.wait(lambda t: "callers of main.leak" in t and "main.main.func1" in t)
            terminal.press("\x1b")
            terminal.wait("by function, flat first")
            terminal.press("/LEAK")
            terminal.wait("Filter: LEAK_")
            terminal.press("\r")
            terminal.wait(lambda t: rows(t) == ["main.leak"])
            terminal.press("\x1bg")
            terminal.wait(lambda t: "by service" in t and rows(t) == ["top-live"])
            terminal.press("\x1b[B\r")
            terminal.wait(", service top-live")
            terminal.press("p")
            terminal.wait("PAUSED")
            terminal.press("p+")
            terminal.wait("every 1s")
            terminal.press("?")
            terminal.wait("sonde top keys")
            terminal.press("x")
            terminal.wait(lambda t: ", service top-live" in t and "PAUSED" not in t)
            terminal.wait("of a CPU")
            self.assertTrue(terminal.is_taken())
            terminal.press("q")
            self.assertEqual(terminal.ended(), 0)
            self.assertTrue(terminal.is_restored())
            self.assertEqual(terminal.process.stderr.read(), b"")

    def test_the_terminal_is_given_back_after_any_end(self):
        with leak("top-ends", leak_mb=1) as target:
            for end in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, "\x03"):
                with Terminal(target.pid, "-t", "inuse_space") as terminal:
                    terminal.wait("main.")
                    self.assertTrue(terminal.is_taken())
                    if isinstance(end, str):
                        terminal.press(end)
                    else:
                        terminal.process.send_signal(end)
                    self.assertEqual(terminal.ended(), 0)
                    self.assertTrue(terminal.is_restored(), end)
        with leak("top-gone", leak_mb=1) as target, Terminal(target.pid, "-d", "200ms") as terminal:
            terminal.wait("1 process in 1 service")
            target.process.kill()
            self.assertEqual(terminal.ended(), 0)
            self.assertTrue(terminal.is_restored())

    def test_stopped_and_continued(self):
        with leak("top-stop", leak_mb=1) as target, \
                Terminal(target.pid, "-t", "inuse_space") as terminal:
            state = lambda: open(f"/proc/{terminal.process.pid}/stat",
                                 encoding="utf-8").read().rsplit(")", 1)[1].split()[0]
            terminal.wait("main.")
            terminal.press("\x1a")
            terminal.wait_for(lambda: state() == "T")
            terminal.wait_for(terminal.is_restored)
            terminal.screen.clear()
            terminal.process.send_signal(signal.SIGCONT)
            terminal.wait("main.")
            self.assertTrue(terminal.is_taken())
            # By others, who do not tell: the shell has changed the terminal in between.
            terminal.process.send_signal(signal.SIGSTOP)
            terminal.wait_for(lambda: state() == "T")
            termios.tcsetattr(terminal.slave, termios.TCSANOW, terminal.before)
            terminal.process.send_signal(signal.SIGCONT)
            terminal.wait_for(terminal.is_taken)
            terminal.press("q")
            self.assertEqual(terminal.ended(), 0)
            self.assertTrue(terminal.is_restored())

    def test_windows_of_all_sizes(self):
        with leak("top-sizes", leak_mb=1) as target, \
                Terminal(target.pid, "-t", "inuse_space", columns=80, lines=24) as terminal:
            terminal.wait("WHERE")
            for columns, lines in ((120, 40), (45, 15), (40, 10), (30, 6), (20, 3), (10, 2),
                                   (80, 24)):
                terminal.resize(columns, lines)
                terminal.wait(lambda t: "FLAT" in t or "FUNC" in t)
            # All of it: what is on its way is read bit by bit.
            terminal.wait(lambda t: "WHERE" in t and len(t.splitlines()) == 24)
            self.assertIn(b"\x1b[7m", terminal.screen.bytes)
        with leak("top-plain", leak_mb=1) as target, \
                Terminal(target.pid, "-t", "inuse_space", env={"NO_COLOR": "1"}) as terminal:
            terminal.wait("main.")
            terminal.press("q")
            self.assertEqual(terminal.ended(), 0)
            # But for the one at the end that puts everything back.
            self.assertEqual(re.findall(rb"\x1b\[[0-9;]*m", terminal.screen.bytes), [b"\x1b[0m"])


SPIN = """
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long sink;
static __attribute__((noinline)) void spin_long(unsigned long n)
{
	for (unsigned long i = 0; i < 3 * n; i++)
		sink += i;
}
static __attribute__((noinline)) void spin_short(unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		sink += i;
}
static unsigned long long cpu_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}
/* Writes the CPU time of both into a file as it goes: what a loop costs is the CPU's affair. */
int main(int argc, char **argv)
{
	int fd = open(argv[1], O_RDWR);
	volatile unsigned long long *spent = mmap(NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (argc < 2 || spent == MAP_FAILED)
		return 1;
	/* Of no fixed length: nothing to fall into step with. */
	for (;;) {
		unsigned long n = 100000 + rand() % 200000;
		unsigned long long begin = cpu_ns(), middle;

		spin_long(n);
		middle = cpu_ns();
		spin_short(n);
		spent[0] += middle - begin;
		spent[1] += cpu_ns() - middle;
	}
}
"""


class Cpu(unittest.TestCase):
    """A native program that does nothing but burn, most of it in one function."""

    @classmethod
    def setUpClass(cls):
        cls.tmp = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.tmp.cleanup)
        cls.program = os.path.join(cls.tmp.name, "top-spin")
        source = cls.program + ".c"
        with open(source, "w", encoding="utf-8") as f:
            f.write(SPIN)
        subprocess.run(["cc", "-O1", "-o", cls.program, source], check=True)

    def setUp(self):
        self.counts = os.path.join(self.tmp.name, "counts")
        with open(self.counts, "wb") as f:
            f.write(bytes(16))
        self.process = subprocess.Popen([self.program, self.counts])
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)

    def top(self, *args):
        return rig.sonde("top", *args, check=rig.OK)

    def spent(self):
        """Nanoseconds of CPU time in spin_long and in spin_short."""
        with open(self.counts, "rb") as f:
            return struct.unpack("QQ", f.read())

    def test_it_is_what_comes_first_and_in_cores(self):
        both, frames = {"spin_long", "spin_short"}, []
        names = lambda frame: {f["name"]: f for f in frame["functions"]}
        with Stream("--json", "-d", "1s") as top:
            while len(frames) < 3 or frames[-1][2] - frames[0][2] < 400 / TOP_HZ:
                # Not the one of before, where nothing has come since.
                frame = top.frame(lambda f: both & names(f).keys() and (
                    not frames or f["functions"] != frames[-1][0]["functions"]))
                frames.append((frame, time.monotonic(), sum(self.spent()) / 1e9))
            spent = self.spent()
        frame = max((f for f, _, _ in frames), key=lambda f: both <= names(f).keys())
        self.assertEqual(frame["type"], "cpu")
        self.assertTrue(frame["per_second"])
        self.assertTrue(frame["cpu"]["available"])
        self.assertEqual(names(frame)["spin_long"]["service"], "top-spin")
        self.assertEqual(names(frame)["spin_long"]["processes"], 1)
        # In cores: by what the program used from the first of them to the last.
        (_, begin, before), (_, end, after) = frames[0], frames[-1]
        flat = {name: sum(names(f).get(name, {"flat": 0})["flat"] for f, _, _ in frames) for name in both}
        # Rates are no counts: one of a short interval weighs as much as one of a long one.
        samples = round((after - before) * TOP_HZ / 2)
        stats.check_share(self, round(samples * flat["spin_long"] / sum(flat.values())), samples,
                          spent[0] / sum(spent), 0.02)
        rates = [sum(names(f).get(name, {"cum": 0})["cum"] for name in both) / 1e9
                 for f, _, _ in frames]
        mean, used = sum(rates) / len(rates), (after - before) / (end - begin)
        figures = f"{rates}, by its own clock {used:.3f}"
        self.assertLess(mean, 1.2, figures)
        self.assertGreater(mean, 0.3 * used, figures)
        totals = [f["total"] for f, _, _ in frames]
        self.assertLess(sum(totals) / len(totals), 1.2e9 * frame["cpu"]["cpus"], totals)

    def test_one_process_is_all_there_is(self):
        with Stream(self.process.pid, "--json", "-d", "500ms", "-g", "process") as top:
            frame = top.frame(lambda f: f["processes"])
        row, = frame["processes"]
        self.assertEqual(row["name"], f"{self.process.pid} top-spin")
        self.assertEqual(row["flat"], frame["total"])
        self.assertEqual(frame["cpu"]["processes"], 1)
        with Stream("--service", "top-spin", "-b", "-d", "1s", "-n", 1) as top:
            text = top.table("  spin_long")
        self.assertRegex(text[1], r"^\d\.\d\d of \d+ cores \| no Go heaps$")
        self.assertRegex(text[2], r"CORES +FLAT% +CUM CORES +CUM%  FUNCTION \(WHERE\)")
        self.assertRegex(text[3], r"^ +[01]\.\d{3} .*  spin_long \(top-spin\)$")

    def test_who_rests_is_not_there(self):
        with subprocess.Popen(["sleep", "36000"]) as sleeper:
            try:
                wait_for(lambda: self.is_asleep(sleeper.pid, "sleep"), "it does not sleep")
                frame = json.loads(self.top(sleeper.pid, "--json", "--once", "-d", "500ms").stdout)
                self.assertEqual((frame["functions"], frame["total"]), ([], 0))
            finally:
                sleeper.kill()

    @staticmethod
    def is_asleep(pid, name):
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f"({name}) S " in f.read()

    def test_its_callers_on_the_screen(self):
        with Terminal(self.process.pid, "-d", "500ms") as terminal:
            terminal.wait(lambda t: rows(t)[:1] == ["spin_long"])
            terminal.press("\r")
            terminal.wait(lambda t: "CPU by callers of spin_long" in t and rows(t) == ["main"])
            terminal.press("\x1bl")
            terminal.wait("Live heap by function")
            terminal.press("c")
            terminal.wait(lambda t: rows(t)[:1] == ["spin_long"])
            terminal.press("q")
            self.assertEqual(terminal.ended(), 0)

    def test_without_rights_heaps_come_first_and_it_says_why(self):
        nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        # Where the binary lies may be closed to others.
        shared = os.path.join(self.tmp.name, "sonde")
        shutil.copy(rig.SONDE, shared)
        os.chmod(self.tmp.name, 0o755)
        done = subprocess.run([*nobody, shared, "top", "--once", "-d", "200ms"],
                              capture_output=True, text=True, check=True)
        self.assertIn("FLAT/s", done.stdout)
        why = r"no CPU samples: .*CAP_BPF.*; run as root"
        self.assertRegex(done.stdout, f"(?m)^# {why}")
        done = subprocess.run([*nobody, shared, "top", "--once", "-t", "cpu"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, rig.NOT_PROFILEABLE)
        self.assertRegex(done.stderr, why)


def load(every, suite):
    del every
    for case in (Numbers, Live, Cpu):
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
