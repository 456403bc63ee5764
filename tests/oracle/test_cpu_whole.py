"""Stacks that are shown as whole are whole: those that are not say so, and nobody else's are taken.

The programs know their own callers; the kernel counts what BPF costs.
"""
import collections
import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import rig
import stats
from rig import LIMIT, SLOW, wait_for
from sampling import Sampling, count, cpu_time, names_of, use
from test_agent import Agent
from test_cpu import SOURCES, Cpu, CpuCase

CUT = "[no unwind information]"
JS = """
function leaf(n) { let x = 0; for (let i = 0; i < n; i++) x = (x * 31 + i) | 0; return x; }
function middle(n) { return leaf(n) + 1; }
function outer(n) { return [n].map((m) => middle(m))[0] + 1; }
console.log('ready ' + process.pid);
setTimeout(() => { for (;;) outer(1e6); }, 0);
"""
# On libuv's threads, where nothing is compiled at run time.
NODE = """
const { scrypt } = require('crypto'), { deflate } = require('zlib');
const text = Buffer.alloc(1 << 20, 'never the same twice? ');
function squeeze() { deflate(text, { level: 9 }, squeeze); }
function hash() { scrypt('word', 'salt', 64, hash); }
squeeze(); hash();
console.log('ready ' + process.pid);
"""
# Painted again for each frame, by C++ alone: no script.
PAGE = """<style>@keyframes k { to { transform: rotate(1turn); filter: blur(9px) } }
div { width: 90px; height: 60px; float: left; animation: k 1s infinite; border: 3px dotted }</style>
""" + "<div>text <svg><circle r='40' stroke-dasharray='3'/></svg></div>" * 60
AS_NOBODY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")


class Whole(CpuCase):
    def build(self, name, *argv):
        out = os.path.join(self.dir, name)
        subprocess.run([*argv, "-o", out], check=True, timeout=LIMIT)
        return out

    # Where stacks end.

    def test_musl_programs_end_where_they_begin(self):
        program = self.build("musl", "musl-gcc", "-static", "-O2", "-fomit-frame-pointer",
                             os.path.join(SOURCES, "shares.c"))
        with rig.Target([program]) as target:
            profile, spent = self.measured(target, 1500)
        self.check_shares(profile.samples, dict(zip(("half", "third", "fifth"), spent)))
        self.check_roots(profile)

    def test_threads_of_musl_programs_end_where_they_begin(self):
        program = self.build("musldeep", "musl-gcc", "-static", "-O2", "-fomit-frame-pointer",
                             os.path.join(SOURCES, "deep.c"))
        with rig.Target([program, "3"]) as target:
            profile = self.sample(target.pid, 1500, "--no-kernel")
        self.check_roots(profile)
        thread = [s for s in profile.samples if "in_a_thread" in names_of(s)
                  and "main" not in names_of(s)]
        self.check_more(thread, profile.samples, 0.2)

    def test_code_without_unwind_information_hides_its_callers_and_that_is_said(self):
        """The caller of such a function is skipped where it has a frame pointer of its own."""
        source = os.path.join(self.dir, "bare.c")
        with open(source, "w", encoding="utf-8") as f:
            f.write("""
                #include <stdio.h>
                #include <unistd.h>
                void bare(void);
                __asm__(".text\\nbare: mov $1000000, %ecx\\n1: dec %ecx\\njnz 1b\\nret\\n"
                        ".size bare, . - bare\\n.type bare, @function\\n");
                volatile int sink;
                __attribute__((noinline)) void caller(void) { bare(); sink++; }
                int main(void) {
                    printf("ready %d\\n", (int)getpid());
                    fflush(stdout);
                    for (;;) caller();
                }""")
        program = self.build("bare", "gcc", "-O2", "-fno-omit-frame-pointer", source)
        with rig.Target([program]) as target:
            profile = self.sample(target.pid, 500, "--no-kernel")
        bare = [s for s in profile.samples if names_of(s)[0] == "bare"]
        self.check_more(bare, profile.samples, 0.9)
        self.assertEqual({names_of(s)[-1] for s in bare}, {CUT})

    @unittest.skipUnless(shutil.which("node"), "Node.js is not there")
    def test_code_of_V8_has_frame_pointers(self):
        with rig.Target([shutil.which("node"), "--perf-basic-prof", "-e", JS],
                        prefix=("env", "-C", self.dir)) as target:  # where it logs
            use(target.pid, 1)
            profile = self.sample(target.pid, 1000, "--no-kernel")
            os.unlink(f"/tmp/perf-{target.pid}.map")
        leaf = [s for s in profile.samples if "leaf" in names_of(s)[0]]
        self.check_more(leaf, profile.samples, 0.8)
        # Callers that are not compiled are V8's own code, in the program's file.
        self.check_more([s for s in leaf if "Builtins_ArrayMap" in names_of(s)], leaf, 0.95)
        profile.samples = leaf
        # But for the few in the first instructions of a function, before it has one.
        self.check_roots(profile, 0.95)

    # Deep stacks, large files.

    def depths(self, n):
        with rig.Target([self.compile("deep.c"), str(n)]) as target:
            profile = self.sample(target.pid, 500, "--no-kernel", "--no-lines")
        # Of the first ones no more than the top was copied.
        spinning = [s for s in profile.samples if names_of(s)[0] == "spin"
                    and names_of(s)[-1] != "[sampled before its code was known]"]
        self.check_more(spinning, profile.samples, 0.9)
        return collections.Counter((names_of(s).count("descend"), names_of(s)[-1])
                                   for s in spinning)

    def test_stacks_of_some_hundred_frames_are_whole(self):
        found = self.depths(400)
        self.assertEqual({n for n, _ in found}, {400}, found)
        self.assertFalse([end for _, end in found if end.startswith("[")], found)

    def test_deeper_ones_say_that_they_are_cut(self):
        found = self.depths(2000)
        self.assertEqual({end for _, end in found}, {"[stack is deeper than 512 frames]"})
        self.assertEqual({n for n, _ in found}, {511})

    def giant(self, fillers, size):
        source = os.path.join(SOURCES, "giant")
        return self.build("giant", "gcc", "-O2", "-fomit-frame-pointer", f"-DFILLERS={fillers}",
                          f"-DFILLER_BYTES={size}", source + ".c", source + ".S")

    def check_giant(self, program, text_mb):
        sizes = subprocess.run(["size", program], check=True, capture_output=True, text=True)
        self.assertGreater(int(sizes.stdout.splitlines()[1].split()[0]), text_mb << 20)
        with rig.Target([program]) as target, Sampling(target.pid, hz=499) as sampling:
            use(target.pid, 2)
            memory = self.rss(sampling.pid)
            profile = sampling.end()
        os.unlink(program)
        near = [s for s in profile.samples if "near" in names_of(s)]
        self.check_more(near, profile.samples, 0.95)
        for s in near:
            names = names_of(s)
            at = names.index("near")
            self.assertEqual(names[at:at + 4], ["near", "middle", "far", "main"])
        self.check_roots(profile)
        self.assertLess(memory, 96 << 20)

    @staticmethod
    def rss(pid):
        with open(f"/proc/{pid}/statm", encoding="utf-8") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def test_a_program_with_more_than_256_MB_of_text(self):
        self.check_giant(self.giant(170000, 800), 256)

    # Programs that are not what they seem.

    def test_a_32_bit_program_is_named_and_said_to_be_unsupported(self):
        program = os.path.join(self.dir, "go386")
        go = rig.versions(False)[-1][1]
        env = dict(rig.build.go_environment(False), GOARCH="386", CGO_ENABLED="0")
        rig.build.run([go, "build", "-o", program, "./cpugo"], env=env,
                      cwd=os.path.join(rig.ROOT, "tests", "targets"))
        with rig.Target([program]) as target:
            profile = self.sample(target.pid, 500)
            with Sampling("--all", "--no-lines", hz=199) as sampling:
                use(target.pid, 1)
                both = sampling.end()
        ends = collections.Counter()
        for s in profile.samples:
            ends[names_of(s)[-1]] += s.values[0]
        stats.check_more(self, ends["[unsupported: 32-bit]"], ends.total(), 0.95, msg=ends)
        self.assertEqual(ends["[kernel]"], 0)
        named = [s for s in both.samples if ("process", "go386", 0) in s.labels]
        self.assertGreater(count(named), 50)

    def test_time_belongs_to_the_program_that_ran(self):
        """One burns and becomes another, which burns less and stays, all within an interval."""
        source = os.path.join(self.dir, "becomes.c")
        with open(source, "w", encoding="utf-8") as f:
            f.write("""
                #include <stdlib.h>
                #include <time.h>
                #include <unistd.h>
                static double spent(void) {
                    struct timespec t;
                    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
                    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
                }
                volatile unsigned long sink;
                int main(int argc, char **argv) {
                    double end = spent() + atof(argv[1]);
                    while (spent() < end) sink++;
                    if (argc > 2) execv(argv[2], argv + 2);
                    for (;;) pause();
                }""")
        first, second = (self.build(name, "gcc", "-O2", source)
                         for name in ("burns-first", "burns-second"))
        with tempfile.TemporaryDirectory() as folder, \
                Agent(folder, "--cpu-hz", "199", interval=10) as agent:
            # Long enough for the agent to look at it in between, and not.
            for seconds in ("3", "0.3"):
                process = subprocess.Popen([first, seconds, second, "1"])
                self.addCleanup(process.wait)
                self.addCleanup(process.kill)
            spent = lambda service: self.cpu_seconds(agent, service)
            wait_for(lambda: spent("burns-first") + spent("burns-second") > 5,
                     lambda: (spent("burns-first"), spent("burns-second")))
            self.assertAlmostEqual(spent("burns-first"), 3.3, delta=0.4)
            self.assertAlmostEqual(spent("burns-second"), 2, delta=0.4)

    @staticmethod
    def cpu_seconds(agent, service):
        time.sleep(0.5)
        if service not in {s["service"] for s in agent.api("services")["services"]}:
            return 0
        return sum(agent.stored(service, "cpu:cpu:nanoseconds").values()) / 1e9

    def test_waits_begin_in_the_scheduler(self):
        """Where others trace the scheduler as well, the kernel calls us in another way."""
        with rig.Target([self.compile("waits.c")]) as target, \
                Sampling(target.pid, "--offcpu", hz=None):
            profile, *_ = self.waits(target, 30)
        leaves = collections.Counter()
        for s in profile.samples:
            leaves[names_of(s)[0]] += s.values[0]
        self.assertFalse([name for name in leaves if "trace" in name or "bpf" in name], leaves)
        self.assertTrue([name for name in leaves if "sched" in name], leaves)

    # What others notice of it.

    def test_files_of_an_ended_program_are_closed(self):
        """Else nobody could unmount their file system."""
        program = self.compile("shares.c", name="ends-soon")
        library = self.compile("part.c", "-shared", "-fPIC", name="libends.so")
        with Sampling("--all", hz=199) as sampling:
            with rig.Target([program]) as one, \
                    rig.Target([self.compile("opens.c", name="opens"), library]) as two:
                self.assertEqual(two.ask("go"), "loaded")
                use(one.pid, 1)
                wait_for(lambda: self.has_open(sampling.pid, program), "it is not sampled")
                wait_for(lambda: self.has_open(sampling.pid, library), "its library is not")
            begin = time.monotonic()
            wait_for(lambda: not self.has_open(sampling.pid, program, library),
                     "a file of an ended program is open", limit=60)
            took = time.monotonic() - begin
            profile = sampling.end()
        self.assertLess(took, 15)
        # It was sampled, and is named although it is gone.
        half = [s for s in profile.samples if ("process", "ends-soon", 0) in s.labels
                and "half" in names_of(s)]
        self.assertGreater(count(half), 10)

    @staticmethod
    def has_open(pid, *paths):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                if os.readlink(f"/proc/{pid}/fd/{fd}") in paths:
                    return True
        return False

    @staticmethod
    @contextlib.contextmanager
    def bpf_accounts():
        """The kernel counts what BPF programs cost, as long as this is open."""
        attribute = ctypes.create_string_buffer(128)  # BPF_STATS_RUN_TIME is 0
        libc = ctypes.CDLL(None, use_errno=True)
        fd = libc.syscall(321, 32, attribute, len(attribute))  # bpf(BPF_ENABLE_STATS)
        if fd < 0:
            raise unittest.SkipTest(os.strerror(ctypes.get_errno()))
        try:
            yield
        finally:
            os.close(fd)

    @staticmethod
    def bpf_cost(pid, kind):
        """(runs, nanoseconds) of the BPF programs of a type."""
        runs = spent = 0
        for fd in os.listdir(f"/proc/{pid}/fdinfo"):
            with contextlib.suppress(OSError), \
                    open(f"/proc/{pid}/fdinfo/{fd}", encoding="utf-8") as f:
                text = f.read()
                if re.search(rf"^prog_type:\s*{kind}$", text, re.M):
                    runs += int(re.search(r"^run_cnt:\s*(\d+)", text, re.M)[1])
                    spent += int(re.search(r"^run_time_ns:\s*(\d+)", text, re.M)[1])
        return runs, spent

    def process_cost(self, agent, n):
        """What BPF does for each of n processes that come and go, in nanoseconds."""
        before = self.bpf_cost(agent.process.pid, 26)
        subprocess.run(["/bin/sh", "-c", f"i=0; while [ $i -lt {n} ]; do /bin/true; "
                        "i=$((i + 1)); done"], check=True, timeout=LIMIT)
        after = self.bpf_cost(agent.process.pid, 26)
        # Others may do so, too.
        self.assertGreaterEqual(after[0] - before[0], 2 * n)
        return 2 * (after[1] - before[1]) / (after[0] - before[0])

    @unittest.skipIf(SLOW, "an emulated machine takes longer for everything")
    def test_processes_that_come_and_go_cost_microseconds(self):
        with tempfile.TemporaryDirectory() as folder, self.bpf_accounts(), \
                Agent(folder, "--cpu-hz", "99") as agent:
            self.assertLess(self.process_cost(agent, 1000), 5000)

    @unittest.skipIf(SLOW, "an emulated machine takes longer for everything")
    def test_a_storm_of_processes_costs_no_more_if_nobody_reads_of_it(self):
        with tempfile.TemporaryDirectory() as folder, self.bpf_accounts(), \
                Agent(folder, "--cpu-hz", "99") as agent:
            os.kill(agent.process.pid, signal.SIGSTOP)
            try:
                # As many as there is room for.
                self.assertLess(self.process_cost(agent, 2000), 5000)
            finally:
                os.kill(agent.process.pid, signal.SIGCONT)

    # What others could do with it.

    def test_made_up_stacks_become_other(self):
        program = shutil.copy(self.compile("forge.c"), "/tmp/sonde-test-forge")
        try:
            with tempfile.TemporaryDirectory() as folder, \
                    Agent(folder, "--cpu-hz", "999") as agent, \
                    rig.Target([program], prefix=AS_NOBODY) as target:
                self.addCleanup(os.unlink, f"/tmp/perf-{target.pid}.map")
                wait_for(lambda: "(other)" in self.trouble(agent), lambda: self.trouble(agent))
                self.assertIn("sonde-test-forge", self.trouble(agent))
                wait_for(lambda: self.other(agent) > 0.1,
                         lambda: f"{self.other(agent)} is (other)")
        finally:
            os.unlink(program)

    @staticmethod
    def trouble(agent):
        time.sleep(0.5)
        return json.dumps(agent.api("health"))

    @staticmethod
    def other(agent):
        """The share of the time that is shown as such."""
        time.sleep(0.5)
        found = agent.stored("sonde-test-forge", "cpu:cpu:nanoseconds")
        return found.get("(other)", 0) / max(sum(found.values()), 1)


class WholeGiants(Whole):
    """What takes minutes, or a program that others have built."""

    def test_a_program_with_almost_2_GB_of_text(self):
        self.check_giant(self.giant(900000, 1000), 1700)

    def test_LLVM_has_the_callers_that_perf_finds(self):
        source = os.path.join(self.dir, "stress.ll")
        tools = "/usr/lib/llvm-14/bin"
        with open(source, "w", encoding="utf-8") as f:
            subprocess.run([f"{tools}/llvm-stress", "-size", "60000", "-seed", "1"], check=True,
                           stdout=f, timeout=LIMIT)
        process = subprocess.Popen([f"{tools}/llc", "-O2", source, "-o", os.devnull])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.check_against_perf(process.pid)

    def test_clang_has_the_callers_that_perf_finds(self):
        source = os.path.join(self.dir, "many.cc")
        with open(source, "w", encoding="utf-8") as f:
            f.write("#include <map>\n#include <regex>\n#include <string>\n")
            for i in range(400):
                f.write(f"struct s{i} {{ int x; }};\nint f{i}(std::map<std::string, s{i}> &m) "
                        f'{{ std::regex r("{i}+"); return std::regex_match("a", r) '
                        f'? m["a"].x : m["b"].x; }}\n')
        process = subprocess.Popen(["/usr/lib/llvm-14/bin/clang", "-cc1", "-triple",
                                    "x86_64-pc-linux-gnu", "-emit-obj", "-O2", "-x", "c++",
                                    *self.includes(), "-fcxx-exceptions", "-fexceptions", source,
                                    "-o", os.devnull])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.check_against_perf(process.pid)

    @staticmethod
    def includes():
        """Where clang looks for headers."""
        said = subprocess.run(["/usr/lib/llvm-14/bin/clang", "-E", "-v", "-x", "c++", os.devnull],
                              check=True, capture_output=True, text=True, timeout=LIMIT).stderr
        listed = said.split("search starts here:\n")[-1].split("End of search")[0]
        return [word for path in listed.split() for word in ("-internal-isystem", path)]

    @unittest.skipUnless(shutil.which("node"), "Node.js is not there")
    def test_node_has_the_callers_that_perf_finds(self):
        with rig.Target([shutil.which("node"), "-e", NODE]) as target:
            self.check_against_perf(target.pid)

    @unittest.skipUnless(shutil.which("chromium"), "Chromium is not there")
    def test_Chromium_has_the_callers_that_perf_finds(self):
        page = os.path.join(self.dir, "page.html")
        with open(page, "w", encoding="utf-8") as f:
            f.write(PAGE)
        browser = subprocess.Popen(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
             f"--user-data-dir={self.dir}/profile", page],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(browser.wait)
        self.addCleanup(os.killpg, browser.pid, signal.SIGKILL)
        renderer = wait_for(lambda: self.renderer(browser.pid), "no page is drawn")
        self.check_against_perf(renderer, self.has_tables(f"/proc/{renderer}/exe"))

    @staticmethod
    def has_tables(path):
        """Some builds of Chromium have them for a few functions only, and frame pointers."""
        text = subprocess.run(["readelf", "-SW", path], check=True, capture_output=True,
                              text=True, timeout=LIMIT).stdout
        index, code = (int(re.search(rf" \.{name} +\w+ +\w+ \w+ (\w+)", text)[1], 16)
                       for name in ("eh_frame_hdr", "text"))
        return index > code / 500  # 8 bytes for each function

    @staticmethod
    def renderer(session):
        """The process that has used most of the CPU, once it has used enough."""
        best = (1, None)
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if os.getsid(int(pid)) != session:
                    continue
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    if b"--type=renderer" in f.read():
                        best = max(best, (cpu_time(int(pid)), int(pid)))
        return best[1]

    @staticmethod
    def calls(stack, file):
        """Pairs of places, but for the innermost, where hardly two are the same. file: only its."""
        return [pair for pair in zip(stack[1:], stack[2:])
                if not file or {name for name, _ in pair} == {os.path.basename(file)}]

    def check_against_perf(self, pid, tables=True):
        """perf as long as we do, and longer: most programs do something else every second.

        Without tables both follow frame pointers; perf gets no further than the program's own file.
        """
        path = os.path.join(self.dir, "perf.data")
        file = None if tables else os.readlink(f"/proc/{pid}/exe")
        with Cpu.perf_at_work(path, pid, "dwarf,32768" if tables else "fp"), \
                Sampling(pid, "--no-kernel", "--no-lines", hz=997) as sampling:
            use(pid, 1500 / 997)
            profile = sampling.end()
        # By frame pointer it shows where a function returns to, and not its call.
        theirs = [self.calls([(name, at if tables else at - 1) for name, at in stack], file)
                  for stack in Cpu.perf_stacks(path)]
        self.assertGreater(min(len(theirs), count(profile.samples)), 1000)
        self.check_roots(profile, remark="" if tables else CUT)
        cache, familiar = {}, collections.Counter()
        known = set().union(*theirs)
        for s in profile.samples:
            pairs = self.calls([(os.path.basename(l.file), Cpu.to_offset(cache, l.file, l.address))
                                for l in s.stack if l.file], file)
            familiar[self.are_known(pairs, known)] += s.values[0]
        # Each has samples that the other has not, but hardly in the middle of a stack; or no more
        # often, about, than perf has them in one half of its own and not in the other.
        half = set().union(*theirs[::2])
        own = sum(self.are_known(pairs, half) for pairs in theirs[1::2]) / len(theirs[1::2])
        stats.check_more(self, familiar[True], familiar.total(), min(0.9, own - 0.1),
                         msg=f"{familiar}, among perf's own {own:.4f}")

    @staticmethod
    def are_known(pairs, known):
        return sum(pair not in known for pair in pairs) <= len(pairs) // 10


def load(every, suite):
    loader = unittest.defaultTestLoader
    suite.addTests(loader.loadTestsFromTestCase(Whole))
    if every:
        suite.addTests(WholeGiants(name) for name in vars(WholeGiants) if name.startswith("test_"))
