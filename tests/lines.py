"""Runs tests of Python's unittest, with the lines that tools/runner.py understands."""
import time
import unittest


class Result(unittest.TestResult):
    """One line per test as it begins, and one as it ends."""

    started = time.monotonic()

    def startTest(self, test):
        super().startTest(test)
        self.started = time.monotonic()
        print(f"run              {self.name(test)}", flush=True)

    @staticmethod
    def name(test):
        """Of a test; or of a class that cannot be set up."""
        method = getattr(test, "_testMethodName", None)
        return f"{type(test).__name__}: {method[5:].replace('_', ' ')}" if method else test.id()

    def line(self, word, test, err=None):
        """err: of a test that failed, whose reason is told in the same line."""
        why = f" -- {err[0].__name__}: {err[1]}".splitlines()[0][:300] if err else ""
        print(f"{word:7} {time.monotonic() - self.started:6.1f}s  {self.name(test)}{why}", flush=True)

    def addSuccess(self, test):
        self.line("ok", test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.line("FAILED", test, err)
        print(self.failures[-1][1], flush=True)

    def addError(self, test, err):
        super().addError(test, err)
        self.line("ERROR", test, err)
        print(self.errors[-1][1], flush=True)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.line("FAILED", test, err)
            kept = self.failures if issubclass(err[0], test.failureException) else self.errors
            print(f"        {subtest}\n{kept[-1][1]}", flush=True)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.line("skipped", test)
        print(f"        {reason}", flush=True)


def run(suite):
    """Runs the tests of a suite; the last line says how many passed. Returns the exit code."""
    result = Result()
    suite.run(result)
    # One that fails in several of its parts is one.
    failed = len({getattr(t, "test_case", t).id() for t, _ in result.failures + result.errors})
    passed = max(0, result.testsRun - failed - len(result.skipped))
    skipped = f", {len(result.skipped)} skipped" if result.skipped else ""
    print(f"{passed} passed, {failed} failed{skipped}")
    return 1 if failed or not result.testsRun else 0
