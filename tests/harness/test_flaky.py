"""The hunt: it goes on where it was stopped, and repeats what a change touches."""
import contextlib
import io
import os
import tempfile
import unittest
from unittest import mock

import flaky
import runner
import suites
from suites import Suite


class Flaky(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "results.json")
        self.content = {"a/x": "1", "b/x": "1"}
        for module, name, value in ((suites, "digest", self.digest), (suites, "changed", lambda _: False),
                                    (runner, "LOGS", folder.name), (flaky, "commit", lambda: "abc")):
            patch = mock.patch.object(module, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        self.a = Suite("a", [["true"]], ["a/"])
        self.b = Suite("b", [["false"]], ["b/"])

    def digest(self, suite):
        return self.content[suite.inputs[0] + "x"]

    def hunt(self, runs, condition="idle", found=None):
        """[(suite, runs, failed)] after it."""
        found = found or [self.a, self.b]
        results = flaky.Results(self.path)
        self.printed = io.StringIO()
        with contextlib.redirect_stdout(self.printed):
            flaky.hunt(found, condition, runs, results)
            flaky.report(results, found, [condition])
        return [(s.name, r["runs"], r["failed"]) for s in found for r in [results.row(s, condition)]]

    def test_each_suite_runs_as_often_as_asked_and_failures_are_kept(self):
        self.assertEqual(self.hunt(2), [("a", 2, 0), ("b", 2, 2)])
        self.assertRegex(self.printed.getvalue(), r"idle +2 of 2  b: b \(abc\)")

    def test_a_hunt_that_was_stopped_goes_on(self):
        self.hunt(1, found=[self.a])
        self.assertEqual(self.hunt(2), [("a", 2, 0), ("b", 2, 2)])
        self.assertEqual(self.printed.getvalue().count(" a: 1 passed"), 1)

    def test_only_what_a_change_touches_runs_again(self):
        self.hunt(1)
        self.content["b/x"], self.b.commands = "2", [["true"]]
        self.assertEqual(self.hunt(1), [("a", 1, 0), ("b", 1, 0)])
        self.assertNotIn(" a: 1 passed", self.printed.getvalue())
        # What failed before is still told.
        self.assertIn("changed since", self.printed.getvalue())

    def test_conditions_are_counted_apart(self):
        self.hunt(1)
        self.assertEqual(self.hunt(1, "one-cpu"), [("a", 1, 0), ("b", 1, 1)])

    def test_a_suite_whose_files_change_meanwhile_is_not_counted(self):
        results = flaky.Results(self.path)
        with mock.patch.object(suites, "changed", lambda _: True), \
                contextlib.redirect_stdout(io.StringIO()):
            results.add(runner.Result(self.a), "idle")
        self.assertEqual(results.row(self.a, "idle")["runs"], 0)

    def test_a_damaged_file_is_not_overwritten(self):
        with open(self.path, "w", encoding="utf-8") as f:
            f.write("[{")
        with self.assertRaisesRegex(SystemExit, "damaged"):
            flaky.Results(self.path)

    def test_outdated_rows_go_and_failed_ones_stay(self):
        self.hunt(1)
        self.content.update({"a/x": "2", "b/x": "2"})
        results = flaky.Results(self.path)
        results.drop_outdated([self.a, self.b])
        self.assertEqual([r["suite"] for r in results.rows], ["b"])

    def test_tests_of_a_suite_are_chosen_by_words_after_a_colon(self):
        one, = flaky.choose([self.a, self.b], "a:x+y")
        self.assertEqual((one.name, one.commands), ("a:x+y", [["true", "-k", "x,y"]]))

    def test_a_condition_changes_what_it_says(self):
        wanted = {"one-cpu": "test $(nproc) = 1", "tracefs": "grep -q ' tracefs ' /proc/self/mounts",
                  "no-tracefs": "! grep -qE ' (tracefs|debugfs) ' /proc/self/mounts"}
        for condition, check in wanted.items():
            suite = Suite(condition, [["sh", "-c", check]], ["a/"])
            self.assertEqual(self.hunt(1, condition, [suite]), [(condition, 1, 0)], condition)

    def test_a_condition_that_ends_too_early_ends_the_hunt(self):
        with self.assertRaises(SystemExit), flaky.children([["true"]]):
            while not os.path.exists(self.path):  # until it has ended for sure
                with open(self.path, "w", encoding="utf-8"), contextlib.suppress(ChildProcessError):
                    os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)

    def test_beside_the_load_suites_run(self):
        for condition in ("busy", "stalls"):
            suite = Suite(condition, [["sleep", "1"]], ["a/"])
            self.assertEqual(self.hunt(1, condition, [suite]), [(condition, 1, 0)], condition)
