"""That the runner counts what suites print, and takes nothing that ends badly for a success."""
import contextlib
import io
import os
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

import runner
from suites import Suite

CMOCKA = """[==========] Running 2 test(s).
[ RUN      ] one
[       OK ] one
[ RUN      ] two
[  ERROR   ] --- 1 != 2
[   LINE   ] --- test.c:7: error: Failure!
[  FAILED  ] two
[==========] 2 test(s) run.
[  PASSED  ] 1 test(s).
[  FAILED  ] 1 test(s), listed below:
[  FAILED  ] two
 1 FAILED TEST(S)
"""


def printing(text, status=0):
    return ["sh", "-c", 'printf %s "$1"; exit "$2"', "sh", text, str(status)]


class Runner(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name, value in (("LOGS", folder.name), ("TIMES", folder.name + "/times.json")):
            patch = mock.patch.object(runner, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def run_all(self, *suites, **options):
        self.printed = io.StringIO()
        with contextlib.redirect_stdout(self.printed):
            return {r.suite.name: r for r in runner.run_suites(suites, **options)}

    def run_one(self, *commands, kind="lines"):
        return self.run_all(Suite("one", list(commands), [], kind))["one"]

    def test_lines_are_counted_by_the_last_one(self):
        r = self.run_one(printing("run  A: b\nok     1.5s  A: b\nskipped 0.1s  A: c\n"
                                  "1 passed, 0 failed, 1 skipped\n"))
        self.assertEqual((r.passed, r.failed, r.skipped), (1, 0, 1))
        self.assertEqual(r.tests, [(1.5, "A: b"), (0.1, "A: c")])

    def test_failures_are_named_without_their_reason_and_noted_with_it(self):
        r = self.run_one(printing("FAILED   1.5s  A: b -- AssertionError: 1 != 2\n0 passed, 1 failed\n", 1))
        self.assertEqual((r.failed, r.failures), (1, ["A: b"]))
        self.assertIn("1 != 2", "".join(r.notes))

    def test_a_status_that_is_not_0_is_a_failure_whatever_was_printed(self):
        r = self.run_one(printing("5 passed, 0 failed\n", 1))
        self.assertEqual((r.passed, r.failed), (5, 1))

    def test_output_without_a_count_is_one_test(self):
        self.assertEqual(self.run_one(printing("hello\n")).passed, 1)
        self.assertEqual(self.run_one(printing("hello\n", 2)).failed, 1)
        self.assertEqual(self.run_one(["/nonexistent"]).failed, 1)
        self.assertEqual(self.run_one().failed, 1)

    def test_a_count_that_is_not_at_the_end_does_not_count(self):
        self.assertEqual(self.run_one(printing("5 passed, 0 failed\nkilled\n", 137)).passed, 0)

    def test_cmocka_is_understood(self):
        r = self.run_one(printing(CMOCKA, 1), kind="cmocka")
        self.assertEqual((r.passed, r.failed, r.failures), (1, 1, ["two"]))
        self.assertIn("test.c:7", "".join(r.notes))

    def test_a_crash_is_a_failure_that_names_the_test(self):
        r = self.run_one(printing("[ RUN      ] one\n", 139), kind="cmocka")
        self.assertEqual(r.failed, 1)
        self.assertIn("one", "".join(r.notes))

    def test_a_cmocka_program_without_tests_is_a_failure(self):
        self.assertEqual(self.run_one(printing(""), kind="cmocka").failed, 1)

    def test_each_command_of_a_status_suite_is_a_test(self):
        r = self.run_one(printing(""), printing("", 1), kind="status")
        self.assertEqual((r.passed, r.failed), (1, 1))

    def test_one_that_is_silent_for_too_long_is_ended_and_fails(self):
        with mock.patch.object(runner, "SILENCE_S", 0.3):
            r = self.run_one(["sh", "-c", "echo 'run  A: b'; sleep 60 & wait"])
        self.assertEqual(r.failed, 1)
        self.assertIn("A: b", "".join(r.notes))

    def test_what_a_suite_leaves_behind_does_not_hold_it_up(self):
        with tempfile.TemporaryDirectory() as folder:
            r = self.run_one(["sh", "-c", f"sleep 600 & echo $! > {folder}/pid; echo 1 passed, 0 failed"])
            with open(f"{folder}/pid", encoding="utf-8") as f:
                os.kill(int(f.read()), 9)
        self.assertEqual((r.passed, r.failed), (1, 0))

    def test_suites_run_side_by_side_and_those_alone_after_them(self):
        with tempfile.TemporaryDirectory() as folder:
            def meets(mine, other):
                return ["sh", "-c", f"cd {folder}; touch {mine}; until [ -e {other} ]; do sleep 0.05; done"]

            alone = Suite("alone", [["sh", "-c", f"cd {folder} && rm a b"]], [])
            alone.alone = True
            results = self.run_all(alone, Suite("a", [meets("a", "b")], []),
                                   Suite("b", [meets("b", "a")], []), workers=2)
            self.assertEqual([r.failed for r in results.values()], [0, 0, 0])
            self.assertEqual(list(results)[-1], "alone")

    def test_of_a_lane_one_runs_at_a_time(self):
        with tempfile.TemporaryDirectory() as folder:
            command = ["sh", "-c", f"mkdir {folder}/lock && sleep 0.2 && rmdir {folder}/lock"]
            suites = [Suite(name, [command], []) for name in "abc"]
            for suite in suites:
                suite.lane = "one"
            results = self.run_all(*suites, Suite("d", [["true"]], []), workers=4)
            self.assertEqual([r.failed for r in results.values()], [0, 0, 0, 0])

    def test_what_runs_is_ended_when_the_runner_is_interrupted(self):
        def interrupt(_result):
            raise KeyboardInterrupt

        with tempfile.TemporaryDirectory() as folder:
            pid_file = os.path.join(folder, "pid")
            slow = Suite("slow", [["sh", "-c", f"echo $$ > {pid_file}; sleep 600"]], [])
            quick = Suite("quick", [["sh", "-c", f"until [ -s {pid_file} ]; do sleep 0.05; done"]], [])
            with self.assertRaises(KeyboardInterrupt):
                self.run_all(slow, quick, workers=2, on_result=interrupt)
            with open(pid_file, encoding="utf-8") as f:
                pid = int(f.read())
            while os.path.exists(f"/proc/{pid}/exe"):  # a zombie has none
                time.sleep(0.05)

    def test_what_it_starts_takes_signals_in_the_background_too(self):
        tools = os.path.dirname(os.path.abspath(runner.__file__))
        done = subprocess.run(
            ["sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, "-c",
             "import runner, subprocess; subprocess.run(['sh', '-c', 'kill -INT $$; echo alive'])"],
            cwd=tools, capture_output=True, text=True, check=False)
        self.assertNotIn("alive", done.stdout)

    def test_the_words_before_commands_are_there(self):
        r = self.run_all(Suite("one", [[sys.executable, "-c", "import os; print(os.environ['A'])"]], []),
                         prefix=["env", "A=1 passed, 0 failed"])["one"]
        self.assertEqual((r.passed, r.failed), (1, 0))
