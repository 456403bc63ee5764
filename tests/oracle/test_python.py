"""Python functions in CPU profiles: against what the interpreter itself tells of its stacks, what
programs count that they spend, and py-spy."""
import collections
import glob
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest
import zipfile

import pprof
import rig
from test_agent import Agent
from test_cpu import HZ, SLOW, CpuCase

SCRIPTS = os.path.join(rig.ROOT, "tests", "targets", "python")
DEBIAN = "/usr/bin/python3"
LOOP = "_PyEval_EvalFrameDefault"
NOT_FOUND = "[its Python frames were not found among the first 512 threads]"
PY_SPY = "0.4.3"


class Script(rig.Target):
    """One of tests/targets/python, run by an interpreter."""

    def __init__(self, python, name, *args, env=None, prefix=()):
        super().__init__([python, os.path.join(SCRIPTS, name), *map(str, args)], ready=False,
                         prefix=prefix,
                         env={"PYTHONDONTWRITEBYTECODE": "1", **(env or {})})
        line = self.line().split(maxsplit=2)
        assert line[:1] == [b"ready"], f"{name} did not start: {line}"
        self.pid = int(line[1])
        self.told = json.loads(line[2]) if line[2:] else None


def frames_of(sample):
    """The outermost first."""
    return [f for location in reversed(sample.stack) for f in reversed(location.frames)]


def is_python(frame):
    return frame.file.endswith(".py") or frame.file.startswith("<")


def python_part(sample):
    return tuple(f.function for f in frames_of(sample) if is_python(f))


def count(samples):
    return sum(s.values[0] for s in samples)


def with_python(profile):
    return [s for s in profile.samples if python_part(s)]


def within(share, samples):
    """Four standard errors, and what the program does besides."""
    return 4 * math.sqrt(share * (1 - share) / samples) + 0.01


def has_static_names(python):
    """Whether C functions that are not exported can have names: from the file or its debug file."""
    done = subprocess.run([python, "-c", "print(open('/proc/self/maps').read())"],
                          capture_output=True, text=True, check=True)
    files = set(re.findall(r"r-xp .*?(/\S*python3\S*)$", done.stdout, re.M))
    return any("list_sort" in symbols(f) for path in files for f in (path, debug_file(path)) if f)


def symbols(path):
    return subprocess.run(["readelf", "-sW", path], capture_output=True, text=True).stdout


def debug_file(path):
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True).stdout
    build_id = re.search(r"Build ID: (\w\w)(\w+)", notes)
    debug = build_id and f"/usr/lib/debug/.build-id/{build_id[1]}/{build_id[2]}.debug"
    return debug if debug and os.path.exists(debug) else None


def waits_of(pid):
    """What its first thread ran and waited for a CPU, in nanoseconds, and how often it got one."""
    with open(f"/proc/{pid}/task/{pid}/schedstat", encoding="utf-8") as f:
        return list(map(int, f.read().split()))


def py_spy():
    """Its path, kept among the targets; None where it can neither be found nor fetched."""
    folder = os.path.join(os.path.abspath(rig.build.default_outdir()), "py-spy")
    program = os.path.join(folder, f"py_spy-{PY_SPY}.data", "scripts", "py-spy")
    if not os.path.exists(program):
        done = subprocess.run([DEBIAN, "-m", "pip", "download", "-q", "--no-deps", "--only-binary",
                               ":all:", "--retries", "0", "-d", folder, f"py-spy=={PY_SPY}"],
                              capture_output=True, timeout=300)
        wheels = glob.glob(os.path.join(folder, "*.whl"))
        if done.returncode or not wheels:
            return None
        with zipfile.ZipFile(wheels[0]) as wheel:
            os.chmod(wheel.extract(os.path.relpath(program, folder), folder), 0o755)
    return program


class PythonCase(CpuCase):
    python = DEBIAN
    minor = 11  # set per version

    def script(self, name, *args, **kwargs):
        return Script(self.python, name, *args, **kwargs)

    def name(self, qualified):
        """Before 3.11 a code object does not know where it was defined."""
        return qualified if self.minor >= 11 else qualified.rsplit(".", 1)[-1]


class Python(PythonCase):
    """One class for each interpreter, made by load()."""

    def test_shares_are_those_that_the_program_counts(self):
        with self.script("shares.py") as target:
            before = list(map(int, target.ask("counters").split()))
            profile, _ = self.profile(target.pid, seconds=3)
            after = list(map(int, target.ask("counters").split()))
        spent = dict(zip(("heavy", "medium", "light"), (b - a for a, b in zip(before, after))))
        hits = {name: count(s for s in profile.samples if name in python_part(s)) for name in spent}
        total = sum(hits.values())
        self.assertGreater(total, 200, "too few samples to say anything")
        self.assertGreater(total, 0.95 * count(profile.samples))
        for name in spent:
            wanted = spent[name] / sum(spent.values())
            self.assertAlmostEqual(hits[name] / total, wanted, msg=name,
                                   delta=within(wanted, total))
        # What the loop of the interpreter does itself is theirs.
        flat = collections.Counter()
        for s in profile.samples:
            flat[frames_of(s)[-1].function] += s.values[0]
        self.assertGreater(flat["heavy"], flat["light"])
        self.assertLess(flat[LOOP], 0.02 * total)
        if self.minor >= 11:
            self.check_nothing_between(profile, ["<module>", "main", "work", "heavy"])

    def check_nothing_between(self, profile, path):
        """From 3.11 on, Python calls Python without any C."""
        for s in profile.samples:
            names = [f.function for f in frames_of(s)]
            if path[-1] in names:
                self.assertEqual(names[names.index(path[0]):names.index(path[-1]) + 1], path)

    def test_the_table_the_tree_and_the_lines_of_text_have_the_names(self):
        with self.script("shares.py") as target:
            texts = {form: rig.sonde("cpu", target.pid, "-d", "1s", "--hz", HZ, "-f", form,
                                     check=rig.OK).stdout
                     for form in ("top", "tree", "collapsed", "json")}
        for form, text in texts.items():
            for name in ("heavy", "medium", "light", "work"):
                self.assertIn(name, text, form)
        self.assertRegex(texts["collapsed"], r"(?m);<module>;.*\bmain;.*\bwork;.*\bheavy\b")
        json.loads(texts["json"])

    # Whole stacks.

    def check_paths(self, profile, paths):
        """Every stack is one that the program can have, and nearly all of them reach its start."""
        possible = {path[:n] for path in paths for n in range(1, len(path) + 1)}
        parts = {path[i:n] for path in paths for n in range(1, len(path) + 1) for i in range(n)}
        ours = with_python(profile)
        self.assertGreater(count(ours), 0.98 * count(profile.samples))
        cut = collections.Counter()
        for s in ours:
            part = python_part(s)
            self.assertIn(part, parts, [f.function for f in frames_of(s)])
            if part not in possible:
                cut[part] += s.values[0]
        self.assertLessEqual(sum(cut.values()), 0.02 * count(ours), cut)
        return ours

    def test_stacks_are_those_that_the_interpreter_tells(self):
        with self.script("stacks.py") as target:
            paths = set(map(tuple, target.told))
            profile, _ = self.profile(target.pid, seconds=5)
        ours = self.check_paths(profile, paths)
        seen = collections.Counter()
        for s in ours:
            seen[python_part(s)] += s.values[0]
        self.assertGreater(len(paths), 15)
        for path in paths:
            self.assertGreater(seen[path], 0, path)
        deep = next(p for p in paths if p[-1] == "bottom")
        self.assertEqual(deep.count("down"), 30)
        # What is left of the loop is its first and last instructions: there it runs nothing yet.
        left = count(s for s in ours if LOOP in (f.function for f in frames_of(s)))
        self.assertLess(left, 0.02 * count(ours))

    def test_native_code_is_between_the_frames_that_it_lies_between(self):
        with self.script("through_c.py") as target:
            profile, _ = self.profile(target.pid, seconds=3)
        named = has_static_names(self.python)
        for caller, native, callee in (("by_sort", "list_sort", "key_of"),
                                       ("by_reduce", "functools_reduce", "step"),
                                       ("by_sub", "pattern_subx", "replaced")):
            ours = [s for s in with_python(profile) if callee in python_part(s)]
            self.assertGreater(count(ours), 50, callee)
            for s in ours:
                frames = frames_of(s)
                names = [f.function for f in frames]
                part = [n for n in python_part(s) if n != "sub"]  # of the module re
                self.assertEqual(part, ["<module>", caller, callee], names)
                inner = names.index(callee)
                outer = max(i for i in range(inner) if is_python(frames[i]))
                between = names[outer + 1:inner]
                self.assertGreater(len(between), 0, names)
                self.assertNotIn(LOOP, between, names)
                if named:
                    self.assertTrue(any(native in n for n in between), names)
                    self.assertFalse(any(native in n for n in names[:outer] + names[inner:]), names)

    def test_a_stack_that_is_cut_says_so(self):
        with self.script("deep.py", 500) as target:
            profile, _ = self.profile(target.pid, seconds=1)
        ours = [s for s in with_python(profile) if "key_of" in python_part(s)]
        self.assertGreater(count(ours), 0.9 * count(profile.samples))
        for s in ours:
            part, names = python_part(s), [f.function for f in frames_of(s)]
            self.assertGreater(part.count("down"), 30)
            self.assertEqual(part[-3:], ("down", "bottom", "key_of"))
            if part[0] != "<module>" or part.count("down") < 500:
                self.assertTrue(any(n.startswith("[") for n in names[:names.index("down")]), names)

    def test_a_deep_stack_has_native_code_where_it_lies(self):
        """Whether or not its outer part can be had."""
        for depth in (80, 500):
            with self.subTest(depth), self.script("deep.py", depth) as target:
                profile, _ = self.profile(target.pid, "--no-kernel", seconds=1)
                for s in with_python(profile):
                    frames = frames_of(s)
                    names = [f.function for f in frames]
                    if "key_of" in names and "bottom" in names:
                        between = frames[names.index("bottom") + 1:names.index("key_of")]
                        self.assertGreater(len(between), 0, names)
                        self.assertFalse(any(map(is_python, between)), names)
                        self.assertNotIn(LOOP, names[names.index("bottom"):], names)

    def test_a_thread_among_many_is_found_or_said_not_to_be(self):
        for threads, name in ((400, "work"), (1500, NOT_FOUND)):
            with self.subTest(threads), self.script("crowd.py", threads) as target:
                profile, _ = self.profile(target.pid, "--no-kernel", seconds=1)
                named = [s for s in profile.samples if name in {f.function for f in frames_of(s)}]
                self.assertGreater(count(named), 0.9 * count(profile.samples))

    def test_an_interpreter_within_another_is_where_it_runs(self):
        with self.script("within.py", "run") as target:
            profile, _ = self.profile(target.pid, seconds=1)
        whole = 0
        for s in profile.samples:
            part, names = python_part(s), [f.function for f in frames_of(s)]
            if "inside" in part:
                self.assertGreater(names.index("inside"), names.index("PyRun_StringFlags"), names)
            if "outside" in part:
                self.assertLess(names.index("outside"), names.index("PyRun_StringFlags"), names)
            if part == ("<module>", "outside", "<module>", "inside"):
                whole += s.values[0]
        self.assertGreater(whole, 50)
        self.assertGreater(whole, 0.9 * count(profile.samples))

    def test_an_interpreter_that_only_is_there_takes_no_names_away(self):
        with self.script("within.py", "idle") as target:
            profile, _ = self.profile(target.pid, seconds=1)
        path = ("<module>", "outside", "spin")
        self.assertGreater(count(profile.samples), 50)
        self.assertGreater(count(s for s in profile.samples if python_part(s) == path),
                           0.95 * count(profile.samples))

    def test_a_program_that_has_Python_as_a_library(self):
        library, home = subprocess.run(
            [self.python, "-c", "import sys, sysconfig as s; print(s.get_config_var('LIBDIR') + '/'"
             " + (s.get_config_var('MULTIARCH') or '')); print(sys.base_prefix)"],
            capture_output=True, text=True, check=True).stdout.split()
        found = [path for folder in (library, os.path.dirname(library)) for path in
                 glob.glob(os.path.join(folder, f"libpython3.{self.minor}.so.1.0"))]
        if not found:
            self.skipTest("this interpreter has no library")
        program = os.path.join(self.dir, "embeds")
        subprocess.run(["gcc", "-O2", "-o", program, os.path.join(SCRIPTS, "embeds.c"), "-ldl"],
                       check=True)
        with Script(found[0], "shares.py", prefix=[program], env={"PYTHONHOME": home}) as target:
            profile, _ = self.profile(target.pid, seconds=1)
        named = count(s for s in profile.samples
                      if python_part(s)[:3] == ("<module>", "main", "work"))
        self.assertGreater(named, 50)
        self.assertGreater(named, 0.9 * count(profile.samples))

    # Threads.

    def test_threads_have_their_own_functions(self):
        with self.script("threads.py") as target:
            profile, _ = self.profile(target.pid, "--threads", seconds=3)
        names = {"north": ("north", "go_north", "shared"), "south": ("south", "go_south", "shared"),
                 "digest": ("digest", "go_digest")}
        starts = ("Thread._bootstrap", "Thread._bootstrap_inner", "Thread.run",
                  "named.<locals>.run")
        starts = tuple(map(self.name, starts))
        found = collections.Counter()
        for s in with_python(profile):
            thread = next(text for key, text, _ in s.labels if key == "thread")
            self.assertIn(thread, names, python_part(s))
            part = python_part(s)
            self.assertEqual(part[:4], starts[:len(part)])
            self.assertEqual(part[4:], names[thread][:len(part) - 4])
            found[thread] += s.values[0]
        total = count(profile.samples)
        self.assertGreater(sum(found.values()), 0.98 * total)
        for thread in names:
            self.assertGreater(found[thread], 0.1 * total, found)

    # Lines.

    def test_lines_are_those_that_run(self):
        with self.script("lines.py") as target:
            hot = target.told
            profile, _ = self.profile(target.pid, seconds=3)
        with open(os.path.join(SCRIPTS, "lines.py"), encoding="utf-8") as f:
            text = f.read().splitlines()
        never = {i for i, line in enumerate(text, 1) if line.endswith("# never")}
        lines, files = collections.defaultdict(collections.Counter), collections.defaultdict(set)
        for s in with_python(profile):
            for f in frames_of(s):
                if f.function in hot and is_python(f):
                    lines[f.function][f.line] += s.values[0]
                    files[f.function].add((f.file, f.start_line))
        for function, wanted in hot.items():
            seen = lines[function]
            # Each loop begins and ends now and then.
            cold = {line: n for line, n in seen.items() if line not in wanted}
            self.assertLess(sum(cold.values()), 0.005 * sum(seen.values()), (function, seen))
            self.assertEqual({line for line in wanted if not seen[line]}, set(), (function, seen))
            self.assertFalse(never & set(cold) if function == "near" else set())
        own = os.path.join(SCRIPTS, "lines.py")
        first = {name: 1 + next(i for i, line in enumerate(text) if line.startswith(f"def {name}("))
                 for name in ("near", "main")}
        self.assertEqual({file for file, _ in files["near"] | files["main"]}, {own})
        self.assertEqual({file for file, _ in files["far"]}, {"far.py"})
        for name in first:
            self.assertEqual({start for _, start in files[name]}, {first[name]})
        self.assertEqual({start for _, start in files["far"]}, {21})

    # Against py-spy.

    @staticmethod
    def py_spy_stacks(path):
        """{(function, ...): samples}, the outermost first."""
        # With 3.13 it shows a frame of the interpreter's own, too, which Python programs never see.
        shim = "__init__ (__init__)"
        stacks = collections.Counter()
        with open(path, encoding="utf-8") as f:
            for line in f:
                stack, _, samples = line.rpartition(" ")
                stacks[tuple(re.sub(r" \([^()]*\)$", "", frame)
                             for frame in stack.split(";") if frame != shim)] += int(samples)
        return stacks

    def test_stacks_are_those_that_py_spy_finds(self):
        program = py_spy()
        if not program:
            print("py-spy is not on this machine and cannot be fetched: left out", file=sys.stderr)
            self.skipTest("py-spy cannot be had")
        raw = os.path.join(self.dir, "raw")
        with self.script("stacks.py") as target:
            before = waits_of(target.pid)
            # Not stopped for each sample: that would be seen in ours.
            other = subprocess.Popen([program, "record", "--nonblocking", "-p", str(target.pid),
                                      "-f", "raw", "-F", "-r", "200", "-d", "6", "-o", raw],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            profile, _ = self.profile(target.pid, seconds=6)
            self.assertEqual(other.wait(60), 0)
            ran, waited, turns = (b - a for a, b in zip(before, waits_of(target.pid)))
        theirs, ours = self.py_spy_stacks(raw), collections.Counter()
        for s in with_python(profile):
            ours[python_part(s)] += s.values[0]
        us, them = sum(ours.values()), sum(theirs.values())
        self.assertGreater(min(us, them), 500)
        # It samples time without a CPU, too: again and again what the program was at.
        waits = waited / (ran + waited)
        apart = them * (1 - waits) + min(them * waits, turns)
        compared = 0
        for stack in set(ours) | set(theirs):
            a, b = ours[stack] / us, theirs[stack] / them
            if max(a, b) > 0.02:
                compared += 1
                mean = (ours[stack] + theirs[stack]) / (us + them)
                self.assertAlmostEqual(a, b, msg=stack, delta=0.01 + 4 * math.sqrt(
                    mean * (1 - mean) * (1 / us + 1 / apart)))
        self.assertGreater(compared, 10)

    # Code that comes and goes.

    def test_a_function_in_the_place_of_another_has_its_own_name(self):
        with self.script("anew.py") as target:
            profile, _ = self.profile(target.pid, seconds=5)
        shares = collections.Counter()
        for s in with_python(profile):
            shares[python_part(s)[-1]] += s.values[0] / count(profile.samples)
        # Three at least live all of their second meanwhile.
        seconds = sorted((5 * n for name, n in shares.items() if name.startswith("made_")),
                         reverse=True)
        self.assertGreater(min(seconds[:3]), 0.3 if SLOW else 0.6, shares)
        self.assertLess(max(seconds), 1.4, shares)

    # Off the CPU.

    def test_waits_are_shown_in_the_function_that_waits(self):
        path = os.path.join(self.dir, "waits.pb.gz")
        with self.script("waits.py") as target:
            rig.sonde("cpu", target.pid, "--offcpu", "-d", "3s", "-f", "pprof", "-o", path,
                      check=rig.OK)
        seconds = collections.Counter()
        for s in pprof.Profile(path).samples:
            part = python_part(s)
            if frames_of(s)[0].function.startswith("[sampled before"):
                continue  # the first ones, which are not in the sums below
            self.assertTrue(part, [f.function for f in frames_of(s)])
            self.assertIn(part[-1], ("sleeps", "holds", "wants"))
            self.assertEqual(part[0], "<module>" if part[-1] == "sleeps"
                             else self.name("Thread._bootstrap"))
            seconds[part[-1]] += s.values[1] / 1e9
        self.assertGreater(seconds["sleeps"], 2)
        self.assertGreater(seconds["holds"], 2)
        self.assertGreater(seconds["wants"], 1)
        for name, value in seconds.items():
            self.assertLess(value, 3.5, name)

    # Processes that come and go.

    def test_processes_that_begin_and_end_meanwhile_have_names(self):
        path = os.path.join(self.dir, "all.pb.gz")
        watch = subprocess.Popen([rig.SONDE, "cpu", "--all", "-d", "8s", "--hz", "199", "-f",
                                  "pprof", "-o", path], stderr=subprocess.DEVNULL)
        try:
            time.sleep(1)
            with self.script("briefly.py", 4) as brief:
                pids = {brief.pid: "brief"}
                for method in ("fork", "spawn"):
                    child = self.script("children.py", method, 4)
                    self.addCleanup(child.__exit__)
                    pids[child.pid] = "in_child"
                self.assertEqual(brief.process.wait(60), 0)
        finally:
            self.assertEqual(watch.wait(60), 0)
        of = {pid: [] for pid in pids}
        for s in pprof.Profile(path).samples:
            pid = next((n for key, _, n in s.labels if key == "pid"), None)
            if pid in of:
                of[pid].append(s)
        for pid, function in pids.items():
            total = count(of[pid])
            self.assertGreater(total, 50)
            named = [s for s in of[pid] if function in python_part(s)]
            # Before and after it, there is the interpreter's own start.
            self.assertGreater(count(named), (0.4 if SLOW else 0.8) * total, (function, pid))
            for s in named:
                self.assertEqual(python_part(s)[0], "<module>", [f.function for f in frames_of(s)])
                self.assertEqual(python_part(s)[-1], function)

    def test_a_child_of_multiprocessing_has_names(self):
        for method in ("fork", "spawn"):
            with self.subTest(method), self.script("children.py", method, 30) as child:
                profile, _ = self.profile(child.pid, seconds=1)
                os.kill(child.pid, signal.SIGKILL)
                named = count(s for s in profile.samples if python_part(s)[-1:] == ("in_child",)
                              and python_part(s)[0] == "<module>")
                self.assertGreater(count(profile.samples), 50)
                self.assertGreater(named, 0.98 * count(profile.samples))

    # Bad input.

    def test_names_are_safe_to_show(self):
        texts = {}
        with self.script("names.py") as target:
            for form in ("collapsed", "top", "json"):
                texts[form] = rig.sonde("cpu", target.pid, "-d", "1s", "--hz", HZ, "-n", "1000",
                                        "-f", form, check=rig.OK).stdout
            profile, _ = self.profile(target.pid, seconds=1)
        for form, text in texts.items():
            self.assertNotRegex(text, "[\x00-\x08\x0b-\x1f\x7f-\x9f]", form)
            for name in ("größe", "函数", "\U00020000", "semi"):
                self.assertIn(name, text, form)
        for line in texts["collapsed"].splitlines():
            self.assertRegex(line, r"^\S.* \d+$")
            self.assertNotIn("colon", line.rpartition(" ")[0].split(";"), line)
        names = {f.function for s in profile.samples for f in frames_of(s) if is_python(f)}
        self.assertLessEqual({"größe", "函数", "\U00020000"}, names)
        longest = max(names, key=len)
        self.assertTrue(longest.startswith("x" * 100) and len(longest) <= 1000, longest)
        # Whatever they are called, all are there: each is a function of its own below the module.
        self.assertGreaterEqual(len({python_part(s) for s in with_python(profile)
                                     if len(python_part(s)) == 2}), 11)


class PythonOnce(PythonCase):
    """What no version is needed for."""

    def pretender(self, source, name, *args):
        """A C program that is called like an interpreter."""
        program = os.path.join(self.dir, name)
        subprocess.run(["gcc", "-O2", "-rdynamic", "-o", program, source], check=True)
        return rig.Target([program, *args])

    def check_untouched(self, profile, remark=""):
        self.assertGreater(count(profile.samples), 50)
        self.assertEqual(with_python(profile), [])
        self.check_roots(profile, remark=remark)

    def test_a_program_that_is_only_called_python_is_profiled_as_ever(self):
        source = os.path.join(rig.ROOT, "tests", "targets", "cpu", "shares.c")
        with self.pretender(source, "python3.11", "60") as target:
            profile, _ = self.profile(target.pid, seconds=2)
        self.check_shares(profile, {"half": .5, "third": .3, "fifth": .2, "main": 1})
        self.check_untouched(profile)

    def test_a_shell_that_is_called_python_is_profiled_as_ever(self):
        shell = shutil.copy("/bin/sh", os.path.join(self.dir, "python3.12"))
        process = subprocess.Popen([shell, "-c", "while :; do :; done"])
        try:
            profile, _ = self.profile(process.pid, seconds=2)
        finally:
            process.kill()
            process.wait()
        self.check_untouched(profile)

    def test_symbols_with_nothing_behind_them_make_nothing_up(self):
        for how in ("zeros", "itself", "nowhere"):
            with self.subTest(how), self.pretender(os.path.join(SCRIPTS, "pretends.c"),
                                                   "python3.11", how) as target:
                profile, _ = self.profile(target.pid, seconds=1)
                # A list without an end is not followed to it.
                self.check_untouched(profile, NOT_FOUND if how == "itself" else "")
                for s in profile.samples:
                    names = [f.function for f in frames_of(s)]
                    self.assertIn(names.count(LOOP), range(0, 7) if "main" in names else [0])
                deep = count(s for s in profile.samples
                             if [f.function for f in frames_of(s)].count(LOOP) == 6)
                self.assertGreater(deep, 0.9 * count(profile.samples))

    def test_a_version_that_is_not_known_keeps_its_native_frames(self):
        python = next((p for _, p in pyenv((8,))), None)
        if not python:
            self.skipTest("no interpreter of Python 3.8 is on this machine")
        with Script(python, "shares.py") as target:
            profile, _ = self.profile(target.pid, seconds=2)
        self.check_untouched(profile)
        self.assertGreater(self.cumulative(profile, LOOP)[0], 0.95)

    def test_a_build_for_debugging_is_named_or_left_as_it_is(self):
        python = shutil.which("python3d", path="/usr/bin")
        if not python:
            self.skipTest("python3-dbg is not installed")
        with Script(python, "stacks.py") as target:
            paths = set(map(tuple, target.told))
            profile, _ = self.profile(target.pid, seconds=1)
        parts = {path[i:n] for path in paths for n in range(1, len(path) + 1) for i in range(n)}
        for s in profile.samples:
            self.assertIn(python_part(s), parts | {()})
            if not python_part(s):
                self.assertTrue({LOOP, "Py_BytesMain"} & {f.function for f in frames_of(s)} or
                                len(s.stack) < 3)

    def test_the_agent_stores_them(self):
        with self.script("shares.py", env={"OTEL_SERVICE_NAME": "snakes"}), \
                Agent(os.path.join(self.dir, "data"), "--cpu-hz", "199") as agent:
            deadline, found = time.monotonic() + 90, {}
            while time.monotonic() < deadline and not found.get("light"):
                time.sleep(1)
                if "snakes" in {s["service"] for s in agent.api("services")["services"]}:
                    found = agent.stored("snakes", "cpu:cpu:nanoseconds")
            self.assertGreater(found.get("heavy", 0), found.get("light", 0), sorted(found))
            self.assertGreater(found["light"], 0)
            self.assertLess(found.get(LOOP, 0), 0.05 * sum(found.values()))
            self.assertIn(b"\nsonde_cpu_samples_lost_total 0\n", agent.get("metrics"))
            self.assertEqual(agent.stop(), 0)


def pyenv(minors):
    """[(minor, path)] of the interpreters of the versions 3.minor that pyenv has here."""
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    found = []
    for minor in minors:
        paths = glob.glob(os.path.join(root, "versions", f"3.{minor}.*", "bin", f"python3.{minor}"))
        if paths:
            found.append((minor, max(paths)))
    return found


def interpreters(every):
    """[(name, minor, path)]: Debian's, and all that can be had; what cannot is named on stderr."""
    minor = int(subprocess.run([DEBIAN, "-c", "import sys; print(sys.version_info[1])"], text=True,
                               capture_output=True, check=True).stdout)
    found = [("Debian", minor, DEBIAN)]
    if every:
        wanted = range(9, 14)
        others = dict(pyenv(wanted))
        for n in wanted:
            if n in others:
                found.append((f"3_{n}", n, others[n]))
            else:
                print(f"Python 3.{n} is not among the versions of pyenv: left out", file=sys.stderr)
    return found


def load(every, suite):
    loader = unittest.defaultTestLoader
    for name, minor, path in interpreters(every):
        case = type(f"Python_{name}", (Python,), {"python": path, "minor": minor})
        suite.addTests(loader.loadTestsFromTestCase(case))
    suite.addTests(loader.loadTestsFromTestCase(PythonOnce))
