#!/usr/bin/env python3
"""Tests against what we did not write: the programs' own profiles, go tool pprof, gcore, readelf.

    run.py --quick    the oldest, a middle and the newest Go release (make test)
    run.py --all      every Go release that can be had (make test-all)
    run.py -k WORD    only tests whose name contains WORD, or one of WORD,WORD
"""
import argparse
import sys
import time
import unittest

import rig  # noqa: F401  (sets the module path)
import test_agent
import test_agent_beyond
import test_contention
import test_core
import test_cpu
import test_debian
import test_dwarf
import test_elf
import test_features
import test_force
import test_goroutines
import test_heap
import test_java
import test_jfr
import test_java_attach
import test_java_cpu
import test_java_ways
import test_metrics
import test_oom
import test_python
import test_python_layout
import test_query
import test_refusals
import test_top
import test_unwind

MODULES = (test_elf, test_unwind, test_dwarf, test_jfr, test_heap, test_goroutines, test_contention,
           test_metrics, test_core, test_force, test_debian, test_refusals, test_agent,
           test_agent_beyond, test_query, test_top, test_cpu, test_python_layout, test_python,
           test_oom, test_features, test_java_attach, test_java_ways, test_java, test_java_cpu)


class Result(unittest.TestResult):
    """One line per test, as it ends."""

    def startTest(self, test):
        super().startTest(test)
        self.started = time.monotonic()

    def line(self, word, test, err=None):
        """err: of a test that failed, whose reason is told in the same line."""
        why = f": {err[0].__name__}: {err[1]}".splitlines()[0][:300] if err else ""
        print(f"{word:7} {time.monotonic() - self.started:6.1f}s  "
              f"{type(test).__name__}: {test._testMethodName[5:].replace('_', ' ')}{why}",
              flush=True)

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


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("-k", metavar="WORD", default="")
    args = parser.parse_args()
    suite = unittest.TestSuite()
    for module in MODULES:
        module.load(args.all, suite)
    words = args.k.split(",")
    chosen = unittest.TestSuite(t for t in suite if any(word in str(t) for word in words))
    result = Result()
    chosen.run(result)
    # One that fails in several of its parts is one.
    failed = len({getattr(t, "test_case", t).id() for t, _ in result.failures + result.errors})
    passed = result.testsRun - failed - len(result.skipped)
    skipped = f", {len(result.skipped)} skipped" if result.skipped else ""
    print(f"{passed} passed, {failed} failed{skipped}")
    return 1 if failed or not result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
