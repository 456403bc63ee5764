#!/usr/bin/env python3
"""Tests of what judges the tests: the statistics, the checks, the runner of suites and the hunt for flaky ones."""
import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
for folder in ("tests", "tools", "tests/oracle", "tests/oracle/lib", "tests/harness"):
    sys.path.insert(0, os.path.join(ROOT, folder))

import lines  # noqa: E402
import test_flaky  # noqa: E402
import test_names  # noqa: E402
import test_runner  # noqa: E402
import test_stats  # noqa: E402
import test_suites  # noqa: E402

MODULES = (test_flaky, test_names, test_runner, test_stats, test_suites)


def main():
    return lines.run(unittest.TestSuite(map(unittest.defaultTestLoader.loadTestsFromModule, MODULES)))


if __name__ == "__main__":
    sys.exit(main())
