#!/usr/bin/env python3
"""Holds the server, the mock, the page's types and docs/API.md to docs/openapi.json.

    run.py           all of it; the server is SONDE, or build/sonde
    run.py -k WORD   only tests whose name contains WORD
"""
import argparse
import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
for folder in ("tools", "tests/oracle", "tests/oracle/lib", "tests/browser", "tests", "tests/api"):
    sys.path.insert(0, os.path.join(ROOT, folder))

import lines  # noqa: E402
import test_document  # noqa: E402
import test_servers  # noqa: E402

MODULES = (test_document, test_servers)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", metavar="WORD", default="")
    args = parser.parse_args()
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{args.k}*"]
    return lines.run(unittest.TestSuite(map(loader.loadTestsFromModule, MODULES)))


if __name__ == "__main__":
    sys.exit(main())
