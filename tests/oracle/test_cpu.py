"""CPU profiles against perf, against Go's own, and against programs that spend known shares."""
import collections
import contextlib
import json
import math
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
import unittest

import pprof
import rig

SOURCES = os.path.join(rig.ROOT, "tests", "targets", "cpu")
HZ = 499
# An emulated machine: programs take many times longer, and Go's runtime takes a share of its own.
SLOW = "SONDE_TEST_SLOW" in os.environ
SQL = ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 2000000000) "
       "SELECT sum(length(replace(hex(x), 'A', 'bc'))) FROM c;")
PYTHON = "import json\nd = [{str(i): [i, i * 2]} for i in range(2000)]\nwhile 1: json.loads(json.dumps(d))"


class CpuCase(unittest.TestCase):
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

    def profile(self, pid, *args, seconds=4, hz=HZ):
        path = os.path.join(self.dir, "cpu.pb.gz")
        done = rig.sonde("cpu", pid, "-d", f"{seconds}s", "--hz", hz, "-f", "pprof", "-o", path,
                         *args, check=rig.OK)
        return pprof.Profile(path, files=True), done

    def cumulative(self, profile, name):
        """The share of samples with the function in their stack, and the error of that share."""
        total = sum(s.values[0] for s in profile.samples)
        hits = sum(s.values[0] for s in profile.samples
                   if any(f.function == name for loc in s.stack for f in loc.frames))
        self.assertGreater(total, 200, "too few samples to say anything")
        return hits / total, math.sqrt(0.25 / total)

    def check_shares(self, profile, shares):
        for name, wanted in shares.items():
            share, error = self.cumulative(profile, name)
            # Four standard errors, and what the loop around takes itself.
            self.assertAlmostEqual(share, wanted, delta=4 * error + 0.01, msg=name)

    def check_roots(self, profile, at_least=0.98, remark=""):
        """That stacks are whole; or that they end in this remark, all of them."""
        remarks = collections.Counter()
        for s in profile.samples:
            last = s.stack[-1].frames[-1].function
            remarks[last if last.startswith("[") and " " in last else ""] += s.values[0]
        total = sum(remarks.values())
        self.assertGreaterEqual(remarks[remark] / total, at_least, remarks)


class Cpu(CpuCase):
    def test_shares_of_a_C_program(self):
        with rig.Target([self.compile("shares.c"), "60"]) as target:
            profile, _ = self.profile(target.pid)
        self.check_shares(profile, {"half": .5, "third": .3, "fifth": .2, "main": 1})
        self.check_roots(profile)

    def test_shares_of_a_stripped_C_program_without_symbols(self):
        with rig.Target([self.compile("shares.c", "-s", name="stripped"), "60"]) as target:
            profile, _ = self.profile(target.pid)
        below = collections.Counter()
        for s in profile.samples:
            if len(s.stack) > 1:
                below[s.stack[1].frames[0].function] += s.values[0]
        total = sum(below.values())
        three = [n / total for _, n in below.most_common(3)]
        for share, wanted in zip(three, (.5, .3, .2)):
            self.assertAlmostEqual(share, wanted, delta=4 * math.sqrt(.25 / total) + .01, msg=below)
        self.assertTrue(all(re.match(r"\[stripped\+0x[0-9a-f]+\]", name)
                            for name, _ in below.most_common(3)), below)
        self.check_roots(profile)

    def test_shares_of_a_C_plus_plus_program(self):
        with rig.Target([self.compile("shares.cc", name="sharescc"), "60"]) as target:
            profile, _ = self.profile(target.pid)
        self.check_shares(profile, {"work::half<unsigned long>": .5, "work::Derived::third": .3,
                                    "work::fifth": .2, "main": 1})
        self.check_roots(profile)

    def test_shares_with_static_linking(self):
        with rig.Target([self.compile("shares.c", "-static", name="static"), "60"]) as target:
            profile, _ = self.profile(target.pid)
        self.check_shares(profile, {"half": .5, "third": .3, "fifth": .2, "main": 1})
        self.check_roots(profile)

    def test_inlined_calls_and_lines_come_from_DWARF(self):
        with rig.Target([self.compile("shares.c", "-g", name="debug"), "60"]) as target:
            profile, _ = self.profile(target.pid, seconds=2)
        lines = {(f.function, os.path.basename(f.file)) for s in profile.samples
                 for loc in s.stack for f in loc.frames if f.line > 0}
        self.assertIn(("step", "shares.c"), lines)
        self.assertIn(("spin", "shares.c"), lines)
        self.assertIn(("main", "shares.c"), lines)

    def test_the_tree_and_the_table_name_the_functions(self):
        with rig.Target([self.compile("shares.c"), "60"]) as target:
            top = rig.sonde("cpu", target.pid, "-d", "1s", "--hz", HZ, check=rig.OK).stdout
            tree = rig.sonde("cpu", target.pid, "-d", "1s", "--hz", HZ, "-f", "tree",
                             check=rig.OK).stdout
            data = json.loads(rig.sonde("cpu", target.pid, "-d", "1s", "-f", "json",
                                        check=rig.OK).stdout)
        self.assertRegex(top, r"spin\n")
        self.assertRegex(tree, r"half")
        self.assertEqual(data["source"]["pid"], target.pid)

    # Against perf.

    def perf_stacks(self, pid, seconds, hz=HZ):
        """[(sym, [file offsets, leaf first])] as perf unwinds them by DWARF."""
        path = os.path.join(self.dir, "perf.data")
        subprocess.run(["perf", "record", "-q", "-e", "cpu-clock:u", "--call-graph", "dwarf,32768",
                        "-F", str(hz), "-p", str(pid), "-o", path, "--", "sleep", str(seconds)],
                       check=True, stderr=subprocess.DEVNULL)
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

    def compare_with_perf(self, argv, env=None, seconds=4):
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   stdin=subprocess.DEVNULL, env=dict(os.environ, **(env or {})))
        try:
            time.sleep(1)
            theirs = self.perf_stacks(process.pid, seconds)
            profile, _ = self.profile(process.pid, "--no-kernel", "--no-lines", seconds=seconds)
        finally:
            process.kill()
            process.wait()
        self.check_roots(profile)
        cache, edges, known = {}, collections.Counter(), set()
        for stack in theirs:
            known.update(zip(stack[1:], stack[2:]))
        for s in profile.samples:
            stack = [(os.path.basename(l.file), self.to_offset(cache, l.file, l.address))
                     for l in s.stack if l.file]
            for edge in zip(stack[1:], stack[2:]):
                edges[edge] += s.values[0]
        total = sum(edges.values())
        self.assertGreater(total, 1000)
        strange = {e: n for e, n in edges.items() if e not in known}
        self.assertLessEqual(sum(strange.values()) / total, 0.02,
                             sorted(strange.items(), key=lambda x: -x[1])[:5])
        depth = sum(len(s.stack) * s.values[0] for s in profile.samples) / \
            sum(s.values[0] for s in profile.samples)
        perf_depth = sum(map(len, theirs)) / len(theirs)
        self.assertAlmostEqual(depth, perf_depth, delta=0.15 * perf_depth)

    def test_python_has_the_callers_that_perf_finds(self):
        """Under another name: perf knows nothing of Python's own frames (see test_python.py)."""
        program = os.path.join(self.dir, "interpreter")
        shutil.copy(os.path.realpath("/usr/bin/python3"), program)
        self.compare_with_perf([program, "-c", PYTHON], env={"PYTHONHOME": "/usr"})

    def test_sqlite_has_the_callers_that_perf_finds(self):
        self.compare_with_perf(["sqlite3", ":memory:", SQL])

    def test_openssl_has_the_callers_that_perf_finds(self):
        self.compare_with_perf(["openssl", "speed", "-seconds", "600", "rsa2048"])

    def test_C_plus_plus_has_the_callers_that_perf_finds(self):
        self.compare_with_perf([self.compile("shares.cc", name="sharescc"), "600"])

    # Short lives, new code, exec.

    def wait_until_it_samples(self, pid):
        for _ in range(600):
            for fd in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(FileNotFoundError):
                    if "perf_event" in os.readlink(f"/proc/{pid}/fd/{fd}"):
                        return
            time.sleep(0.1)
        self.fail("it does not begin to sample")

    def test_a_process_of_300_ms_is_seen(self):
        out = os.path.join(self.dir, "all.pb.gz")
        program = self.compile("shares.c", name="briefly")
        # Where all is slower by a factor, 300 ms are not even enough to load libc.
        life, seconds = (3, 30) if SLOW else (0.3, 5)
        watch = subprocess.Popen([rig.SONDE, "cpu", "-d", f"{seconds}s", "--hz", str(HZ), "-f",
                                  "pprof", "-o", out], stderr=subprocess.PIPE)
        self.wait_until_it_samples(watch.pid)
        time.sleep(1.5)  # for the tables of what runs anyway
        for _ in range(5):
            brief = subprocess.Popen([program, "60"], stdout=subprocess.DEVNULL)
            time.sleep(life)
            brief.kill()
            brief.wait()
        watch.communicate(timeout=60)
        self.assertEqual(watch.returncode, 0)
        profile = pprof.Profile(out)
        ours = [s for s in profile.samples if ("process", "briefly", 0) in s.labels]
        pids = {v for s in ours for k, _, v in s.labels if k == "pid"}
        self.assertEqual(len(pids), 5)
        named = sum(s.values[0] for s in ours
                    if any(f.function == "main" for loc in s.stack for f in loc.frames))
        self.assertGreater(named, 0)
        # Where CPUs are short most of it may be exec and the dynamic linker, but that is whole too.
        profile.samples = ours
        self.check_roots(profile, 0.5 if SLOW else 0.7)

    def test_stacks_through_a_library_that_is_loaded_midway(self):
        library = self.compile("part.c", "-shared", "-fPIC", name="libpart.so")
        with rig.Target([self.compile("opens.c", name="opens"), library]) as target:
            out = os.path.join(self.dir, "opens.pb.gz")
            watch = subprocess.Popen([rig.SONDE, "cpu", str(target.pid), "-d", "4s", "--hz",
                                      str(HZ), "-f", "pprof", "-o", out])
            time.sleep(1.5)
            self.assertEqual(target.ask("go"), "loaded")
            watch.wait(60)
        profile = pprof.Profile(out)
        paths = collections.Counter()
        for s in profile.samples:
            names = [f.function for loc in s.stack for f in loc.frames]
            if "part_work" in names or any("libpart" in n for n in names):
                paths["main" in names and "caller" in names] += s.values[0]
        self.assertGreater(paths[True], 100)
        self.assertGreaterEqual(paths[True] / sum(paths.values()), 0.98, paths)

    def test_a_program_that_executes_another_becomes_the_other(self):
        program, go = self.compile("shares.c", name="after-exec"), os.path.join(self.dir, "go")
        shell = subprocess.Popen(["/bin/sh", "-c", f"while ! [ -e {go} ]; do :; done; "
                                  f"exec {program} 60"], stdout=subprocess.DEVNULL)
        later = threading.Timer(2, lambda: open(go, "w").close())
        later.start()
        try:
            profile, _ = self.profile(shell.pid, seconds=5)
        finally:
            later.join()
            shell.kill()
            shell.wait()
        self.assertGreater(self.cumulative(profile, "half")[0], 0.1)
        for s in profile.samples:
            names = {f.function for loc in s.stack for f in loc.frames}
            files = {os.path.basename(loc.file) for loc in s.stack}
            if "half" in names:
                self.assertNotIn("dash", files)

    def test_many_short_processes_leave_nothing_behind(self):
        out = os.path.join(self.dir, "many.pb.gz")
        watch = subprocess.Popen([rig.SONDE, "cpu", "-d", "12s", "-f", "pprof",
                                  "-o", out], stderr=subprocess.PIPE, text=True)
        time.sleep(2)
        storm = subprocess.Popen(["/bin/sh", "-c", "while :; do /bin/true; done"])
        try:
            time.sleep(4)
            early = self.resources(watch.pid)
            time.sleep(4)
            late = self.resources(watch.pid)
        finally:
            storm.kill()
            storm.wait()
        _, errors = watch.communicate(timeout=120)
        self.assertEqual(watch.returncode, 0, errors)
        self.assertLess(late["fds"], early["fds"] + 20)
        self.assertLess(late["rss"], early["rss"] + (16 << 20))
        # Few live long enough for a second sample, and some not even until their mappings are read.
        ours = [s for s in pprof.Profile(out).samples if ("process", "true", 0) in s.labels]
        cut = [s for s in ours if "before its code" in s.stack[-1].frames[-1].function]
        self.assertTrue(ours)
        if not SLOW:
            self.assertLess(sum(s.values[0] for s in cut), 0.6 * sum(s.values[0] for s in ours))

    @staticmethod
    def resources(pid):
        with open(f"/proc/{pid}/statm") as f:
            rss = int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")
        # What others on the machine start meanwhile is not counted.
        ours = re.compile(r"/(true|dash|libc[.-][^/]*|ld-[^/]*)$|^anon_inode|^/proc/")
        links = []
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                links.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
        return {"fds": sum(bool(ours.search(link)) for link in links), "rss": rss}

    def test_two_at_a_time_do_not_disturb_each_other(self):
        with rig.Target([self.compile("shares.c"), "60"]) as target:
            outs = [os.path.join(self.dir, f"two{i}.pb.gz") for i in range(2)]
            both = [subprocess.Popen([rig.SONDE, "cpu", str(target.pid), "-d", "4s", "--hz",
                                      str(HZ), "-f", "pprof", "-o", out]) for out in outs]
            for one in both:
                self.assertEqual(one.wait(60), 0)
        for out in outs:
            self.check_shares(pprof.Profile(out), {"half": .5, "third": .3, "fifth": .2})

    # Off the CPU.

    def test_waits_are_shown_where_they_happen(self):
        path = os.path.join(self.dir, "waits.pb.gz")
        with rig.Target([self.compile("waits.c")]) as target:
            rig.sonde("cpu", target.pid, "--offcpu", "-d", "4s", "-f", "pprof", "-o", path,
                      check=rig.OK)
        profile = pprof.Profile(path)
        self.assertEqual(profile.types, [("waits", "count"), ("time", "nanoseconds")])
        time_of = collections.Counter()
        for s in profile.samples:
            for name in {f.function for loc in s.stack for f in loc.frames}:
                time_of[name] += s.values[1] / 1e9
        # Each of the three threads waits nearly all of the time.
        self.assertGreater(time_of["sleeps"], 2 if SLOW else 3)
        self.assertGreater(time_of["holds"], 2 if SLOW else 3)
        self.assertGreater(time_of["wants"], 1 if SLOW else 2)
        for name in ("sleeps", "holds", "wants"):
            self.assertLess(time_of[name], 4.5)

    # Bad input.

    def test_wrong_commands_are_explained(self):
        for args, words in (((2147483646,), "no process"), (("1", "--all"), "not both"),
                            (("--hz", "0"), "hz"), (("--hz", "1000000"), "hz"),
                            (("--min-wait", "1ms"), "--offcpu"), (("-d", "x"), "duration")):
            done = rig.sonde("cpu", *args)
            self.assertNotEqual(done.returncode, 0, args)
            self.assertIn(words, done.stderr.lower(), args)

    def test_without_rights_it_says_what_would_help(self):
        sonde = shutil.copy(rig.SONDE, "/tmp/sonde-unprivileged")
        try:
            done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                                   "--inh-caps=-all", "--bounding-set=-all", sonde, "cpu", "-d",
                                   "1s"], capture_output=True, text=True, timeout=60)
        finally:
            os.unlink(sonde)
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
        if SLOW:
            profile.samples = [s for s in profile.samples if any(
                f.function == "main.main" for loc in s.stack for f in loc.frames)]

    def shares_of(self, variant):
        with rig.Target([rig.build.build("cpugo", self.go, variant)]) as target:
            profile, _ = self.profile(target.pid, seconds=12 if SLOW else 3)
        self.leave_out_the_runtime(profile)
        self.check_shares(profile, {"main.half": .5, "main.third": .3, "main.fifth": .2,
                                    "main.main": 1})
        self.check_roots(profile)
        self.assertGreater(self.cumulative(profile, "main.step")[0], 0, "no inlined call")

    def test_shares(self):
        self.shares_of("plain")

    def test_shares_of_a_stripped_program(self):
        self.shares_of("strip")

    def test_shares_of_a_stripped_PIE(self):
        self.shares_of("pie-strip")

    def test_the_same_functions_and_lines_as_its_own_profile(self):
        own = os.path.join(self.dir, "own.pb.gz")
        with rig.Target([rig.build.build("cpugo", self.go, "plain")]) as target:
            seconds = 16 if SLOW else 4
            target.process.stdin.write(f"profile {own} {seconds + 1}\n".encode())
            target.process.stdin.flush()
            ours, _ = self.profile(target.pid, "--no-kernel", seconds=seconds)
            self.assertEqual(target.line().strip(), b"profiled")
        theirs = pprof.Profile(own)
        # Its own signal handler, which asks for preemption now and then, it cannot see at work: the
        # signal is blocked there. Ours disturbs nothing.
        handler = ("runtime.sigtramp", "runtime.sigreturn", "runtime.asyncPreempt")
        for profile in (ours, theirs):
            profile.samples = [s for s in profile.samples if not any(
                f.function.startswith(handler) for loc in s.stack for f in loc.frames)]
            self.leave_out_the_runtime(profile)
        a, b = self.flat(ours), self.flat(theirs)
        samples = min(sum(s.values[0] for s in p.samples) for p in (ours, theirs))
        for name in set(a) | set(b):
            self.assertAlmostEqual(a[name], b[name], delta=4 * math.sqrt(.5 / samples), msg=name)
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
        total, shares = sum(s.values[0] for s in profile.samples), collections.Counter()
        for s in profile.samples:
            shares[s.stack[0].frames[-1].function] += s.values[0] / total
        return shares

    def test_the_compiler_takes_it_for_profile_guided_optimisation(self):
        path = os.path.join(self.dir, "cpu.pb.gz")
        with rig.Target([rig.build.build("cpugo", self.go, "plain")]) as target:
            self.profile(target.pid, seconds=2)
        done = subprocess.run([self.go, "build", f"-pgo={path}", "-o", os.devnull, "./cpugo"],
                              cwd=os.path.join(rig.ROOT, "tests", "targets"), capture_output=True,
                              text=True, env=dict(os.environ, GOTOOLCHAIN="local", GOFLAGS="",
                                                  GOENV="off"), timeout=300)
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
