"""Python functions in CPU profiles: against what the interpreter itself tells of its stacks, what
programs count that they do, and py-spy."""
import collections
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

import rig
import stats
from python_rig import (DEBIAN, LOOP, NOT_FOUND, SCRIPTS, Script, frames_of, has_static_names,
                        interpreters, is_python, py_spy, pyenv, python_part, threads_of,
                        with_python)
from rig import LIMIT, wait_for
from sampling import Sampling, count, count_with, use
from test_agent import Agent
from test_cpu import CpuCase


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
            profile, spent = self.measured(target, 3000)
        self.check_shares(profile.samples, dict(zip(("heavy", "medium", "light"), spent)), 0.95)
        # What the loop of the interpreter does itself is theirs.
        flat = collections.Counter()
        for s in profile.samples:
            flat[frames_of(s)[-1].function] += s.values[0]
        self.assertGreater(flat["heavy"], flat["light"])
        stats.check_less(self, flat[LOOP], flat.total(), 0.02, msg=LOOP)
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
            texts = {form: self.text(target.pid, 300, "-f", form)
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
        self.check_more(ours, profile.samples, 0.98, checks=2)
        cut = [s for s in ours if python_part(s) not in possible]
        for s in ours:
            self.assertIn(python_part(s), parts, [f.function for f in frames_of(s)])
        self.check_less(cut, ours, 0.02, set(map(python_part, cut)), checks=2)
        return ours

    def test_stacks_are_those_that_the_interpreter_tells(self):
        with self.script("stacks.py") as target:
            paths = set(map(tuple, target.told))
            profile, spent = self.measured(target, 4000)
            theirs = self.py_spy_stacks(target.pid)
        ours = self.check_paths(profile, paths)
        seen = collections.Counter()
        for s in ours:
            seen[python_part(s)] += s.values[0]
        self.assertGreater(len(paths), 15)
        for path in paths:
            self.assertGreater(seen[path], 0, path)
        deep = next(p for p in paths if p[-1] == "bottom")
        self.assertEqual(deep.count("down"), 30)
        self.check_ways(ours, list(dict.fromkeys(path[2] for path in target.told)), spent)
        # What is left of the loop is its first and last instructions: there it runs nothing yet.
        stats.check_less(self, count_with(ours, LOOP), count(ours), 0.02, msg=LOOP)
        self.check_py_spy(theirs, paths, seen)

    def check_py_spy(self, theirs, paths, seen):
        """For the shape alone: it samples time without a CPU, too, and stops the program."""
        total, known = theirs.total(), {path[:n] for path in paths for n in range(len(path) + 1)}
        if not total:
            return
        self.assertGreater(len(paths & set(theirs)), 10)
        for path, n in theirs.items():
            if stats.at_least(n, total, 0.01) < stats.FALSE_ALARM:
                self.assertIn(path, known, f"py-spy has it {n} times in {total}")
                self.assertGreater(seen[path], 0, f"py-spy has it {n} times in {total}: {path}")

    def check_ways(self, ours, ways, spent):
        """By the CPU time that the program counts for each of its ways."""
        hits = collections.Counter()
        for s in ours:
            if len(python_part(s)) > 2:
                hits[python_part(s)[2]] += s.values[0]
        self.assertEqual(set(hits), set(ways))
        for way, ns in zip(ways, spent):
            stats.check_share(self, hits[way], hits.total(), ns / sum(spent), 0.01, len(ways), way)

    def py_spy_stacks(self, pid):
        """{(function, ...): samples}, the outermost first; empty where py-spy cannot be had."""
        stacks, program = collections.Counter(), py_spy()
        if not program:
            print("py-spy is not on this machine and cannot be fetched: left out", file=sys.stderr)
            return stacks
        raw = os.path.join(self.dir, "raw")
        while stacks.total() < 300:
            done = subprocess.run([program, "record", "-p", str(pid), "-f", "raw", "-F", "-r",
                                   "300", "-d", "2", "-o", raw], capture_output=True, text=True,
                                  timeout=LIMIT)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(raw, encoding="utf-8") as f:
                for line in f:
                    stack, _, samples = line.rpartition(" ")
                    # With 3.13 it shows a frame of the interpreter's own, too.
                    stacks[tuple(re.sub(r" \([^()]*\)$", "", frame) for frame in stack.split(";")
                                 if frame != "__init__ (__init__)")] += int(samples)
        return stacks

    def test_native_code_is_between_the_frames_that_it_lies_between(self):
        with self.script("through_c.py") as target:
            profile = self.sample(target.pid, 1000)
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
            profile = self.sample(target.pid, 400)
        ours = [s for s in with_python(profile) if "key_of" in python_part(s)]
        self.check_more(ours, profile.samples, 0.9)
        for s in ours:
            part, names = python_part(s), [f.function for f in frames_of(s)]
            self.assertGreater(part.count("down"), 30)
            self.assertEqual(part[-3:], ("down", "bottom", "key_of"))
            if part[0] != "<module>" or part.count("down") < 500:
                self.assertTrue(any(n.startswith("[") for n in names[:names.index("down")]), names)

    def test_a_stack_that_lacks_python_frames_is_not_complete(self):
        """Its native frames may all be there."""
        with self.script("deep.py", 2000) as target, \
                Sampling(target.pid, "--no-kernel", "-f", "json") as sampling:
            use(target.pid, 2)
            ends = json.loads(sampling.end())["sampling"]["stacks"]
        self.assertGreater(sum(ends.values()), 100)
        # But for the first ones, until its interpreter is known.
        stats.check_more(self, ends["too_deep"], sum(ends.values()), 0.85, msg=ends)

    def test_a_deep_stack_has_native_code_where_it_lies(self):
        """Whether or not its outer part can be had."""
        for depth in (80, 500):
            with self.subTest(depth), self.script("deep.py", depth) as target:
                profile = self.sample(target.pid, 400, "--no-kernel")
                self.assertGreater(count_with(profile.samples, "key_of"), 0)
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
                profile = self.sample(target.pid, 400, "--no-kernel")
                stats.check_more(self, count_with(profile.samples, name), count(profile.samples),
                                 0.9, 2)

    def test_an_interpreter_within_another_is_where_it_runs(self):
        with self.script("within.py", "run") as target:
            profile = self.sample(target.pid, 400)
        whole = 0
        for s in profile.samples:
            part, names = python_part(s), [f.function for f in frames_of(s)]
            if "inside" in part:
                self.assertGreater(names.index("inside"), names.index("PyRun_StringFlags"), names)
            if "outside" in part:
                self.assertLess(names.index("outside"), names.index("PyRun_StringFlags"), names)
            if part == ("<module>", "outside", "<module>", "inside"):
                whole += s.values[0]
        stats.check_more(self, whole, count(profile.samples), 0.9)

    def test_an_interpreter_that_only_is_there_takes_no_names_away(self):
        with self.script("within.py", "idle") as target:
            profile = self.sample(target.pid, 400)
        path = ("<module>", "outside", "spin")
        self.check_more([s for s in profile.samples if python_part(s) == path], profile.samples,
                        0.95)

    def test_a_program_that_has_Python_as_a_library(self):
        library, home = subprocess.run(
            [self.python, "-c", "import sys, sysconfig as s; print(s.get_config_var('LIBDIR') + '/'"
             " + (s.get_config_var('MULTIARCH') or '')); print(sys.base_prefix)"],
            capture_output=True, text=True, check=True).stdout.split()
        found = [path for folder in (library, os.path.dirname(library)) for path in
                 glob.glob(os.path.join(folder, f"libpython3.{self.minor}.so.1.0"))]
        self.assertTrue(found, f"no libpython3.{self.minor}: run tools/setup.sh test")
        program = os.path.join(self.dir, "embeds")
        subprocess.run(["gcc", "-O2", "-o", program, os.path.join(SCRIPTS, "embeds.c"), "-ldl"],
                       check=True)
        with Script(found[0], "shares.py", prefix=[program], env={"PYTHONHOME": home}) as target:
            profile = self.sample(target.pid, 400)
        self.check_more([s for s in profile.samples
                         if python_part(s)[:3] == ("<module>", "main", "work")],
                        profile.samples, 0.9)

    # Threads.

    def test_threads_have_their_own_functions(self):
        with self.script("threads.py") as target:
            before = threads_of(target.pid)
            profile = self.sample(target.pid, 3000, "--threads")
            after = threads_of(target.pid)
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
        stats.check_more(self, found.total(), count(profile.samples), 0.98)
        spent = {thread: after[thread] - before[thread] for thread in names}
        for thread, ns in spent.items():
            # What turns they take is the scheduler's, and not the same all the time.
            stats.check_share(self, found[thread], found.total(), ns / sum(spent.values()), 0.1,
                              len(names) + 1, thread)

    # Lines.

    def test_lines_are_those_that_run(self):
        with self.script("lines.py") as target:
            hot = target.told
            profile = self.sample(target.pid, 3000)
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
            stats.check_less(self, sum(cold.values()), seen.total(), 0.005, len(hot),
                             (function, seen))
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

    # Code that comes and goes.

    def test_a_function_in_the_place_of_another_has_its_own_name(self):
        with self.script("anew.py") as target, Sampling(target.pid, hz=499) as sampling:
            over = lambda: [int(ns) for ns in target.ask("counters").split()]
            first = len(over()) + 1
            wait_for(lambda: len(over()) >= first + 4, lambda: f"{first} are over, then {over()}")
            spent = over()
            profile = sampling.end()
        # Those that began and ended meanwhile.
        whole = {f"made_{number}": spent[number] for number in range(first, len(spent))}
        ours = [s for s in profile.samples if python_part(s)[-1:] and python_part(s)[-1] in whole]
        self.check_shares(ours, whole)
        made = [s for s in profile.samples if any(n.startswith("made_") for n in python_part(s))]
        self.check_more(made, profile.samples, 0.95)

    # Off the CPU.

    def test_waits_are_shown_in_the_function_that_waits(self):
        names = ("sleeps", "holds", "wants")
        with self.script("waits.py") as target:
            profile, least, most = self.waits(target, 100)
        ours, early = {name: [] for name in names}, []
        for s in profile.samples:
            part = python_part(s)
            if frames_of(s)[0].function.startswith("[sampled before"):
                early.append(s)
                continue
            self.assertTrue(part, [f.function for f in frames_of(s)])
            if part == ("<module>",):
                continue  # where it waits for questions
            self.assertEqual((part[0], part[-2]), (self.name("Thread._bootstrap"), "repeat"))
            self.assertIn(part[-1], names)
            ours[part[-1]].append(s)
        # They wait for the interpreter's lock, too, if only for a moment.
        for i, name in enumerate(names):
            self.check_waits(name, ours[name], early, least[2 * i:2 * i + 2],
                             most[2 * i:2 * i + 2], sampled=True)

    # Processes that come and go.

    def test_processes_that_begin_and_end_meanwhile_have_names(self):
        of, functions = {}, {}
        with Sampling("--all", "--no-lines", hz=199) as sampling:
            for name, *args in (("briefly.py",), ("children.py", "fork"), ("children.py", "spawn")):
                with self.script(name, *args, 0.5) as brief:
                    functions[brief.pid] = "in_child" if args else "brief"
                    of[brief.pid] = [int(ns) for ns in brief.line(LIMIT).split()]
                    self.assertEqual(brief.process.wait(LIMIT), 0)
            samples = sampling.end().samples
        for pid, function in functions.items():
            ours = [s for s in samples if ("pid", "", pid) in s.labels]
            named = [s for s in ours if function in python_part(s)]
            # Before and after it, there is the interpreter's own start and end.
            begin, end = of[pid]
            self.check_more(named, ours, 0.9 * (end - begin) / end, (function, pid), len(of))
            self.assertGreater(count(named), 50)
            for s in named:
                self.assertEqual(python_part(s)[0], "<module>", [f.function for f in frames_of(s)])
                self.assertEqual(python_part(s)[-1], function)

    def test_a_child_of_multiprocessing_has_names(self):
        for method in ("fork", "spawn"):
            with self.subTest(method), self.script("children.py", method, 36000) as child:
                profile = self.sample(child.pid, 800)
                os.kill(child.pid, signal.SIGKILL)
                # But for the first ones, until its interpreter is known.
                self.check_more([s for s in profile.samples if python_part(s)[-1:] == ("in_child",)
                                 and python_part(s)[0] == "<module>"], profile.samples, 0.93)

    # Bad input.

    def test_names_are_safe_to_show(self):
        texts = {}
        with self.script("names.py") as target:
            for form in ("collapsed", "top", "json"):
                texts[form] = self.text(target.pid, 500, "-n", "1000", "-f", form)
            profile = self.sample(target.pid, 1000)
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
        self.assertEqual(with_python(profile), [])
        self.check_roots(profile, remark=remark)

    def test_a_program_that_is_only_called_python_is_profiled_as_ever(self):
        source = os.path.join(rig.ROOT, "tests", "targets", "cpu", "shares.c")
        with self.pretender(source, "python3.11") as target:
            profile, spent = self.measured(target, 1500)
        self.check_shares(profile.samples, dict(zip(("half", "third", "fifth"), spent)))
        self.check_untouched(profile)

    def test_a_shell_that_is_called_python_is_profiled_as_ever(self):
        shell = shutil.copy("/bin/sh", os.path.join(self.dir, "python3.12"))
        process = subprocess.Popen([shell, "-c", "while :; do :; done"])
        try:
            profile = self.sample(process.pid, 400)
        finally:
            process.kill()
            process.wait()
        self.check_untouched(profile)

    def test_symbols_with_nothing_behind_them_make_nothing_up(self):
        for how in ("zeros", "itself", "nowhere"):
            with self.subTest(how), self.pretender(os.path.join(SCRIPTS, "pretends.c"),
                                                   "python3.11", how) as target:
                profile = self.sample(target.pid, 400)
                # A list without an end is not followed to it.
                self.check_untouched(profile, NOT_FOUND if how == "itself" else "")
                for s in profile.samples:
                    names = [f.function for f in frames_of(s)]
                    self.assertIn(names.count(LOOP), range(0, 7) if "main" in names else [0])
                self.check_more([s for s in profile.samples
                                 if [f.function for f in frames_of(s)].count(LOOP) == 6],
                                profile.samples, 0.9, checks=3)

    def test_a_version_that_is_not_known_keeps_its_native_frames(self):
        """Debian's own, by a name of a version to come, and of one that it is not."""
        for name in ("python3.99", "python3.12"):
            with self.subTest(name):
                python = shutil.copy(os.path.realpath(DEBIAN), os.path.join(self.dir, name))
                self.check_native(python, PYTHONHOME="/usr")

    def check_native(self, python, **env):
        with Script(python, "shares.py", env=env) as target:
            profile = self.sample(target.pid, 400)
        self.check_untouched(profile)
        stats.check_more(self, count_with(profile.samples, LOOP), count(profile.samples), 0.95)

    def test_a_build_for_debugging_is_named_or_left_as_it_is(self):
        python = shutil.which("python3d")
        self.assertTrue(python, "no python3d: run tools/setup.sh test")
        with Script(python, "stacks.py") as target:
            paths = set(map(tuple, target.told))
            profile = self.sample(target.pid, 1000)
        parts = {path[i:n] for path in paths for n in range(1, len(path) + 1) for i in range(n)}
        for s in profile.samples:
            self.assertIn(python_part(s), parts | {()})
            if not python_part(s):
                self.assertTrue({LOOP, "Py_BytesMain"} & {f.function for f in frames_of(s)} or
                                len(s.stack) < 3)

    def test_the_agent_stores_them(self):
        with self.script("shares.py", env={"OTEL_SERVICE_NAME": "snakes"}) as target, \
                Agent(os.path.join(self.dir, "data"), "--cpu-hz", "199") as agent:
            before, found = target.ask("counters").split(), {}

            def enough():
                time.sleep(1)
                if "snakes" in {s["service"] for s in agent.api("services")["services"]}:
                    found.update(agent.stored("snakes", "cpu:cpu:nanoseconds"))
                return sum(found.values()) >= 300 * 1e9 / 199

            wait_for(enough, lambda: f"stored is {found}")
            after = target.ask("counters").split()
            samples = {name: round(ns * 199 / 1e9) for name, ns in found.items()}
            total = sum(samples.values())
            done = [int(b) - int(a) for a, b in zip(before, after)]
            # Flat, but for what C does of it.
            three = {name: samples.get(name, 0) for name in ("heavy", "medium", "light")}
            for (name, hits), units in zip(three.items(), done):
                stats.check_share(self, hits, sum(three.values()), units / sum(done), 0.02, 4, name)
            stats.check_less(self, samples.get(LOOP, 0), total, 0.05, 4, LOOP)
            # Where it does not get a CPU in time there are some.
            self.assertRegex(agent.get("metrics"), rb"\nsonde_cpu_samples_lost_total \d+\n")
            self.assertEqual(agent.stop(), 0)


class PythonUnknown(PythonOnce):
    """A version that was never known."""

    def test_it_keeps_its_native_frames(self):
        self.check_native(self.python)


def load(every, suite):
    loader = unittest.defaultTestLoader
    for name, minor, path in interpreters(every):
        case = type(f"Python_{name}", (Python,), {"python": path, "minor": minor})
        suite.addTests(loader.loadTestsFromTestCase(case))
    suite.addTests(loader.loadTestsFromTestCase(PythonOnce))
    for _, path in pyenv((8,)) if every else ():
        suite.addTest(type("Python_3_8", (PythonUnknown,), {"python": path})(
            "test_it_keeps_its_native_frames"))
