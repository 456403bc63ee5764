"""CPU profiles against perf, against Go's own, and against programs that count what they do."""
import collections
import contextlib
import json
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
from sampling import Sampling, SamplingCase, count, count_with, cpu_time, names_of, use

SOURCES = os.path.join(rig.ROOT, "tests", "targets", "cpu")
GONE = "before its code"  # was read: what ends so, ended too soon
SQL = ("SELECT 'ready'; WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT "
       "2000000000) SELECT sum(length(replace(hex(x), 'A', 'bc'))) FROM c;")
PYTHON = ("import json\nd = [{str(i): [i, i * 2]} for i in range(2000)]\n"
          "print('ready', flush=True)\nwhile 1: json.loads(json.dumps(d))")


class CpuCase(SamplingCase):
    """What the tests below have in common."""

    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="sonde-cpu-")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    def compile(self, source, *flags, name=None):
        out = os.path.join(self.dir, name or os.path.splitext(source)[0])
        compiler = "g++" if source.endswith(".cc") else "gcc"
        subprocess.run([compiler, "-O2", "-fomit-frame-pointer", *flags, "-o", out,
                        os.path.join(SOURCES, source), "-lpthread", "-ldl"], check=True)
        return out

    def check_roots(self, profile, at_least=0.98, remark=""):
        """That stacks are whole; or that they end in this remark, all of them."""
        remarks = collections.Counter()
        for s in profile.samples:
            last = s.stack[-1].frames[-1].function
            remarks[last if last.startswith("[") and " " in last else ""] += s.values[0]
        stats.check_more(self, remarks[remark], sum(remarks.values()), at_least, msg=remarks)


class Storm:
    """A shell that starts one short process after the other, and says which."""

    def __init__(self):
        self.shell = subprocess.Popen(["/bin/sh", "-c",
                                       "while :; do /bin/true & echo $!; wait; done"],
                                      stdout=subprocess.PIPE, text=True)
        self.pids = {self.shell.pid}
        self.run(1)  # then it has mapped all that it runs
        with open(f"/proc/{self.shell.pid}/maps", encoding="utf-8") as f:
            paths = {line.split()[-1] for line in f if "/" in line} | {"/bin/true"}
        self.files = {(os.stat(path).st_dev, os.stat(path).st_ino) for path in paths}

    def run(self, n):
        for _ in range(n):
            self.pids.add(int(self.shell.stdout.readline()))

    def fds_of(self, pid):
        """What a process has open of theirs, or of its own; others are started meanwhile, too."""
        found = 0
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                link = os.readlink(f"/proc/{pid}/fd/{fd}")
                of = re.match(r"/proc/(\d+)", link)
                stat = os.stat(f"/proc/{pid}/fd/{fd}")
                found += link.startswith("anon_inode") or bool(of and int(of[1]) in self.pids) or (
                    stat.st_dev, stat.st_ino) in self.files
        return found

    def end(self):
        self.shell.kill()
        self.shell.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
        self.shell.stdout.close()


class Cpu(CpuCase):
    def shares_of(self, program, names=("half", "third", "fifth")):
        with rig.Target([program]) as target:
            profile, spent = self.measured(target, 2500)
        self.check_shares(profile.samples, dict(zip(names, spent)))
        stats.check_more(self, count_with(profile.samples, "main"), count(profile.samples), 0.98)
        self.check_roots(profile)

    def test_shares_of_a_C_program(self):
        self.shares_of(self.compile("shares.c"))

    def test_shares_of_a_C_plus_plus_program(self):
        self.shares_of(self.compile("shares.cc", name="sharescc"),
                       ("work::half<unsigned long>", "work::Derived::third", "work::fifth"))

    def test_shares_with_static_linking(self):
        self.shares_of(self.compile("shares.c", "-static", name="static"))

    def test_shares_of_a_stripped_C_program_without_symbols(self):
        with rig.Target([self.compile("shares.c", "-s", name="stripped")]) as target:
            profile, spent = self.measured(target, 2500)
        below = collections.Counter()
        for s in profile.samples:
            if len(s.stack) > 1:
                below[s.stack[1].frames[0].function] += s.values[0]
        three = [name for name, _ in below.most_common(3)]
        for name in three:
            self.assertRegex(name, r"^\[stripped\+0x[0-9a-f]+\]$", below)
        self.check_shares(profile.samples, dict(zip(three, spent)))
        self.check_roots(profile)

    def test_inlined_calls_and_lines_come_from_DWARF(self):
        with rig.Target([self.compile("shares.c", "-g", name="debug")]) as target:
            profile = self.sample(target.pid, 500)
        lines = {(f.function, os.path.basename(f.file)) for s in profile.samples
                 for loc in s.stack for f in loc.frames if f.line > 0}
        self.assertIn(("step", "shares.c"), lines)
        self.assertIn(("spin", "shares.c"), lines)
        self.assertIn(("main", "shares.c"), lines)

    def test_the_tree_and_the_table_name_the_functions(self):
        with rig.Target([self.compile("shares.c")]) as target:
            top, tree, data = (self.text(target.pid, 300, "-f", form)
                               for form in ("top", "tree", "json"))
        self.assertRegex(top, r"spin\n")
        self.assertRegex(tree, r"half")
        self.assertEqual(json.loads(data)["source"]["pid"], target.pid)

    # Against perf.

    @staticmethod
    @contextlib.contextmanager
    def perf_at_work(path, pid, unwind="dwarf,32768"):
        """perf samples the process meanwhile."""
        perf = subprocess.Popen(["perf", "record", "-q", "-e", "cpu-clock:u", "--call-graph",
                                 unwind, "-F", "997", "-p", str(pid), "-o", path],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(lambda: os.path.exists(path) and os.path.getsize(path) or perf.poll(),
                       "perf does not begin")
            yield
            perf.send_signal(signal.SIGINT)
            code = perf.wait(LIMIT)
            if code not in (0, -signal.SIGINT):
                raise AssertionError(f"perf record: exit code {code}")
        finally:
            perf.kill()
            perf.wait()

    @staticmethod
    def perf_stacks(path):
        """[[(file, offset in it)], the leaf first] that perf has recorded."""
        text = subprocess.run(["perf", "script", "-i", path, "--no-inline", "-F", "ip,sym,dso"],
                              check=True, capture_output=True, text=True).stdout
        os.unlink(path)
        stacks, current = [], []
        for line in text.splitlines() + [""]:
            m = re.match(r"\s+([0-9a-f]+) .*\((.*)\)$", line)
            if m:
                current.append((os.path.basename(m[2]), int(m[1], 16)))
            elif current:
                stacks.append(current)
                current = []
        return stacks

    @staticmethod
    def to_offset(cache, path, vaddr):
        """Where in the file a link-time address lies: what perf prints."""
        if path not in cache:
            text = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True).stdout
            cache[path] = [tuple(int(x, 16) for x in m) for m in re.findall(
                r"LOAD\s+0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)", text)]
        for offset, start, size in cache[path]:
            if start <= vaddr < start + size:
                return vaddr - start + offset
        return vaddr

    def compare_with_perf(self, argv, env=None):
        """argv prints something when it is at work."""
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL, env=dict(os.environ, **(env or {})))
        try:
            self.assertTrue(process.stdout.read(1))
            theirs, path = [], os.path.join(self.dir, "perf.data")
            while len(theirs) < 1000:
                with self.perf_at_work(path, process.pid):
                    use(process.pid, 1500 / 997)
                theirs += self.perf_stacks(path)
            profile = self.sample(process.pid, 1500, "--no-kernel", "--no-lines")
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
        self.check_roots(profile)
        cache, strange, known = {}, collections.Counter(), set()
        for stack in theirs:
            known.update(zip(stack[1:], stack[2:]))
        for s in profile.samples:
            stack = [(os.path.basename(l.file), self.to_offset(cache, l.file, l.address))
                     for l in s.stack if l.file]
            new = next((edge for edge in zip(stack[1:], stack[2:]) if edge not in known), None)
            strange[new] += s.values[0]
        unknown, total = strange.total() - strange.pop(None, 0), count(profile.samples)
        stats.check_less(self, unknown, total, 0.02, msg=f"callers {strange.most_common(5)}")
        ours, perf = (self.mean(depths) for depths in (
            [len(s.stack) for s in profile.samples for _ in range(s.values[0])],
            [len(stack) for stack in theirs]))
        # Theirs are samples outside of the kernel, ours are all.
        self.assertAlmostEqual(ours[0], perf[0], delta=0.1 * perf[0] + 5 * math.hypot(
            ours[1], perf[1]))

    @staticmethod
    def mean(values):
        """The mean, and its standard error."""
        mean = sum(values) / len(values)
        return mean, math.sqrt(sum((v - mean) ** 2 for v in values)) / len(values)

    def test_python_has_the_callers_that_perf_finds(self):
        """Under another name: perf knows nothing of Python's own frames (see test_python.py)."""
        program = os.path.join(self.dir, "interpreter")
        shutil.copy(os.path.realpath("/usr/bin/python3"), program)
        self.compare_with_perf([program, "-c", PYTHON], env={"PYTHONHOME": "/usr"})

    def test_sqlite_has_the_callers_that_perf_finds(self):
        self.compare_with_perf(["stdbuf", "-oL", "sqlite3", ":memory:", SQL])

    def test_openssl_has_the_callers_that_perf_finds(self):
        self.compare_with_perf(["openssl", "speed", "-seconds", "600", "rsa2048"])

    def test_C_plus_plus_has_the_callers_that_perf_finds(self):
        self.compare_with_perf([self.compile("shares.cc", name="sharescc"), "36000"])

    # Short lives, new code, exec.

    def of_process(self, profile, name):
        """{pid: samples} of the processes of that name."""
        found = collections.defaultdict(list)
        for s in profile.samples:
            if ("process", name, 0) in s.labels:
                found[next(v for k, _, v in s.labels if k == "pid")].append(s)
        return found

    def test_a_process_of_a_tenth_of_a_second_is_seen(self):
        program = self.compile("shares.c", name="briefly")
        with Sampling("--all", "--no-lines", hz=199) as sampling:
            # The longer ours has to wait for a CPU, the more of them are over before it looks; an
            # emulated one takes longer to look as well.
            pids, begin = [], time.monotonic()
            while len(pids) < 5 or time.monotonic() < begin + 1:
                brief = subprocess.Popen([program, "1" if SLOW else "0.1"],
                                         stdout=subprocess.DEVNULL)
                self.assertEqual(brief.wait(LIMIT), 0)
                pids.append(brief.pid)
            profile = sampling.end()
        ours = self.of_process(profile, "briefly")
        # Each one has 20 samples, or fewer where the machine itself was not run for a while.
        self.assertLessEqual(set(ours), set(pids))
        self.assertGreaterEqual(len(ours), len(pids) - 1)
        whole = {pid: count_with(samples, "main") / count(samples)
                 for pid, samples in ours.items()}
        self.assertGreaterEqual(max(whole.values()), 0.5, whole)
        # What is not whole says that it was over, or is the kernel's and the dynamic linker's.
        profile.samples = [s for samples in ours.values() for s in samples
                           if GONE not in s.stack[-1].frames[-1].function]
        self.check_roots(profile)

    def test_stacks_through_a_library_that_is_loaded_midway(self):
        library = self.compile("part.c", "-shared", "-fPIC", name="libpart.so")
        with rig.Target([self.compile("opens.c", name="opens"), library]) as target, \
                Sampling(target.pid, hz=499) as sampling:
            use(target.pid, 0.2)
            self.assertEqual(target.ask("go"), "loaded")
            use(target.pid, 2)
            profile = sampling.end()
        inside = [s for s in profile.samples if any("part_work" in n or "libpart" in n
                                                    for n in names_of(s))]
        self.assertGreater(count(inside), 100)
        whole = [s for s in inside if {"main", "caller"} <= set(names_of(s))]
        # The first ones may come before its new mapping is read.
        self.check_more(whole, inside, 0.95)

    def test_a_program_that_executes_another_becomes_the_other(self):
        program, go = self.compile("shares.c", name="after-exec"), os.path.join(self.dir, "go")
        shell = subprocess.Popen(["/bin/sh", "-c", f"while ! [ -e {go} ]; do :; done; "
                                  f"exec {program} 36000"], stdout=subprocess.DEVNULL)
        try:
            with Sampling(shell.pid) as sampling:
                use(shell.pid, 0.3)
                with open(go, "w", encoding="utf-8"):
                    pass
                wait_for(lambda: os.readlink(f"/proc/{shell.pid}/exe") == program,
                           "the shell does not become the other")
                use(shell.pid, 0.5)
                profile = sampling.end()
        finally:
            shell.kill()
            shell.wait()
        half = [s for s in profile.samples if "half" in names_of(s)]
        self.check_more(half, profile.samples, 0.1)
        for s in half:
            self.assertNotIn("dash", {os.path.basename(loc.file) for loc in s.stack})

    def test_many_short_processes_leave_nothing_behind(self):
        with Sampling("--all", "--no-lines", hz=199) as sampling, Storm() as storm:
            storm.run(500)
            early = storm.fds_of(sampling.pid)
            storm.run(1000)
            self.wait_for_no_growth(sampling.pid, storm)
            storm.end()
            # It may have fallen behind, but catches up.
            wait_for(lambda: storm.fds_of(sampling.pid) < early + 20,
                       lambda: f"{early} files, then {storm.fds_of(sampling.pid)}")
            profile = sampling.end()
        # Few live long enough for a second sample, and some not even until their mappings are read.
        ours = [s for samples in self.of_process(profile, "true").values() for s in samples]
        cut = [s for s in ours if GONE in s.stack[-1].frames[-1].function]
        self.assertGreater(count(ours), count(cut))

    def wait_for_no_growth(self, pid, storm):
        """Until 300 more take less than 2 MB: what others start may take memory, too."""
        deadline, grown = time.monotonic() + LIMIT, []
        while not grown or grown[-1] > 2 << 20:
            self.assertLess(time.monotonic(), deadline, f"it grows and grows: {grown}")
            before = self.rss(pid)
            storm.run(300)
            grown.append(self.rss(pid) - before)

    @staticmethod
    def rss(pid):
        with open(f"/proc/{pid}/statm", encoding="utf-8") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def test_two_at_a_time_do_not_disturb_each_other(self):
        with rig.Target([self.compile("shares.c")]) as target, Sampling(target.pid) as one, \
                Sampling(target.pid) as two:
            before = [int(n) for n in target.ask("counters").split()]
            use(target.pid, 1.2)
            spent = [int(n) - m for n, m in zip(target.ask("counters").split(), before)]
            profiles = [one.end(), two.end()]
        for profile in profiles:
            self.assertGreater(count(profile.samples), 500)
            self.check_shares(profile.samples, dict(zip(("half", "third", "fifth"), spent)))

    # Off the CPU.

    def test_waits_are_shown_where_they_happen(self):
        names = ("sleeps", "holds", "wants")
        with rig.Target([self.compile("waits.c")]) as target:
            profile, least, most = self.waits(target, 100)
        self.assertEqual(profile.types, [("waits", "count"), ("time", "nanoseconds")])
        # The first ones may come before its code is known.
        early = [s for s in profile.samples if names_of(s)[-1].startswith("[sampled before")]
        for i, name in enumerate(names):
            ours = [s for s in profile.samples if name in names_of(s)]
            # Who wants a lock may have it after a moment, too.
            self.check_waits(name, ours, early, least[2 * i:2 * i + 2], most[2 * i:2 * i + 2],
                             sampled=name != "sleeps")
        slept = count_with(profile.samples, "sleeps")
        self.assertLessEqual(slept, most[0] + 1)
        # Where the CPU stands still meanwhile, it is time to go on before it has begun to wait.
        self.assertGreaterEqual(slept + count(early), 0.9 * least[0] - 1)

    # Bad input.

    def test_wrong_commands_are_explained(self):
        for args, words in (((2147483646,), "no such process"), (("1", "--all"), "not both"),
                            (("--hz", "0"), "hz"), (("--hz", "1000000"), "hz"),
                            (("--min-wait", "1ms"), "--offcpu"), (("-d", "x"), "duration")):
            done = rig.sonde("cpu", *args)
            self.assertNotEqual(done.returncode, 0, args)
            self.assertIn(words, done.stderr.lower(), args)

    def test_without_rights_it_says_what_would_help(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)  # where the binary lies may be closed to others
            done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                                   "--inh-caps=-all", "--bounding-set=-all",
                                   shutil.copy(rig.SONDE, folder), "cpu", "-d", "1s"],
                                  capture_output=True, text=True, timeout=LIMIT)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"root|CAP_")


class CpuOfGo(CpuCase):
    go = None  # set per version

    @staticmethod
    def leave_out_the_runtime(profile):
        """The scheduler's own stacks: waking threads takes what the machine makes of it."""
        def is_schedulers(sample):
            root = sample.stack[-1].frames[-1].function
            return root.startswith("runtime.") and root != "runtime.main"

        profile.samples = [s for s in profile.samples if not is_schedulers(s)]
        # An emulated machine makes a lot of it.
        if SLOW:
            profile.samples = [s for s in profile.samples if "main.main" in names_of(s)]

    def shares_of(self, variant):
        with rig.Target([rig.build.build("cpugo", self.go, variant)]) as target:
            profile, spent = self.measured(target, 2500)
        self.leave_out_the_runtime(profile)
        self.check_shares(profile.samples, dict(zip(("main.half", "main.third", "main.fifth"),
                                                    spent)))
        stats.check_more(self, count_with(profile.samples, "main.main"), count(profile.samples),
                         0.98)
        self.check_roots(profile)
        self.assertGreater(count_with(profile.samples, "main.step"), 0, "no inlined call")

    def test_shares(self):
        self.shares_of("plain")

    def test_shares_of_a_stripped_program(self):
        self.shares_of("strip")

    def test_shares_of_a_stripped_PIE(self):
        self.shares_of("pie-strip")

    def test_the_same_functions_and_lines_as_its_own_profile(self):
        own = os.path.join(self.dir, "own.pb.gz")
        with rig.Target([rig.build.build("cpugo", self.go, "plain")]) as target:
            self.assertEqual(target.ask(f"profile {own}"), "profiling")
            begin = cpu_time(target.pid)
            ours = self.sample(target.pid, 1500, "--no-kernel")
            # At 200 a second; the kernel's clock may tick more seldom.
            use(target.pid, 2 - (cpu_time(target.pid) - begin))
            self.assertEqual(target.ask("stop"), "profiled")
        theirs = pprof.Profile(own)
        # Its own signal handler, which asks for preemption now and then, it cannot see at work: the
        # signal is blocked there. Ours disturbs nothing.
        handler = ("runtime.sigtramp", "runtime.sigreturn", "runtime.asyncPreempt")
        for profile in (ours, theirs):
            profile.samples = [s for s in profile.samples if not any(
                f.function.startswith(handler) for loc in s.stack for f in loc.frames)]
            self.leave_out_the_runtime(profile)
        a, b = self.flat(ours), self.flat(theirs)
        self.assertGreater(b.total(), 100, "the program's own profile has too few samples")
        for name in set(a) | set(b):
            stats.check_same(self, (a[name], a.total()), (b[name], b.total()), 0.01,
                             len(set(a) | set(b)), name)
        names = self.named(ours)
        common = {address: frames for address, frames in self.named(theirs).items()
                  if address in names}
        # Which instructions of a loop are hit is chance, the more so where an emulator interrupts
        # at the ends of its blocks only; who calls it, and from which three lines, is not.
        self.assertGreater(len(common), 3)
        for address, frames in common.items():
            self.assertEqual(names[address], frames)
        paths = {tuple(f.function for loc in s.stack for f in loc.frames) for s in theirs.samples
                 if s.values[0] > 5}
        self.assertTrue(paths)
        self.assertLessEqual(paths, {tuple(f.function for loc in s.stack for f in loc.frames)
                                     for s in ours.samples})

    @staticmethod
    def named(profile):
        return {loc.address: loc.frames for s in profile.samples for loc in s.stack}

    @staticmethod
    def flat(profile):
        """By the function that holds the code: inlined ones are single instructions here."""
        flat = collections.Counter()
        for s in profile.samples:
            flat[s.stack[0].frames[-1].function] += s.values[0]
        return flat

    def test_the_compiler_takes_it_for_profile_guided_optimisation(self):
        path = os.path.join(self.dir, "cpu.pb.gz")
        with rig.Target([rig.build.build("cpugo", self.go, "plain")]) as target, \
                Sampling(target.pid) as sampling:
            use(target.pid, 0.5)
            self.assertGreater(count(sampling.end().samples), 100)
            shutil.copy(sampling.path, path)
        done = subprocess.run([self.go, "build", f"-pgo={path}", "-o", os.devnull, "./cpugo"],
                              cwd=os.path.join(rig.ROOT, "tests", "targets"), capture_output=True,
                              text=True, env=dict(os.environ, GOTOOLCHAIN="local", GOFLAGS="",
                                                  GOENV="off"), timeout=900)
        self.assertEqual(done.returncode, 0, done.stderr)


def load(every, suite):
    loader = unittest.defaultTestLoader
    suite.addTests(loader.loadTestsFromTestCase(Cpu))
    for version, go in rig.versions(every):
        case = type(f"CpuOfGo_{version}", (CpuOfGo,), {"go": go})
        # -pgo came with 1.21: older releases have nothing to accept. The kernel has no part in it,
        # and an emulated machine compiles for minutes.
        pgo = rig.build.version_key(version) >= (1, 21) and not SLOW
        suite.addTests(test for test in loader.loadTestsFromTestCase(case)
                       if pgo or "compiler" not in str(test))
