#!/usr/bin/env python3
"""Tests of what judges the tests: the statistics, the runner of suites and the hunt for flaky ones."""
import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
for folder in ("tools", os.path.join("tests", "oracle"), os.path.join("tests", "harness")):
    sys.path.insert(0, os.path.join(ROOT, folder))

import test_flaky  # noqa: E402
import test_runner  # noqa: E402
import test_stats  # noqa: E402
import test_suites  # noqa: E402

MODULES = (test_flaky, test_runner, test_stats, test_suites)


def main():
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromModule(m) for m in MODULES)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    return 1 if failed or not result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
