#!/usr/bin/env python3
"""Tests against what we did not write: the programs' own profiles, go tool pprof, gcore, readelf.

    run.py --quick    the oldest, a middle and the newest Go release (make test)
    run.py --all      every Go release that can be had (make test-all)
    run.py -k WORD    only tests whose name contains WORD, or one of WORD,WORD
    run.py --module NAME,NAME    only tests of test_NAME.py
"""
import argparse
import importlib
import os
import re
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.join(HERE, "lib")]
import lines  # noqa: E402

MODULES = sorted(name[5:-3] for name in os.listdir(HERE) if re.fullmatch(r"test_\w+\.py", name))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("-k", metavar="WORD", default="")
    parser.add_argument("--module", metavar="NAME", default=",".join(MODULES))
    args = parser.parse_args()
    suite = unittest.TestSuite()
    for name in args.module.split(","):
        if name not in MODULES:
            parser.error(f"no module '{name}' (expected: {', '.join(MODULES)})")
        importlib.import_module(f"test_{name}").load(args.all, suite)
    words = args.k.split(",")
    chosen = unittest.TestSuite(t for t in suite if any(word in str(t) for word in words))
    return lines.run(chosen)


if __name__ == "__main__":
    sys.exit(main())
