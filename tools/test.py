#!/usr/bin/env python3
"""Runs all suites and adds up what passed and failed; the last line is the sum, alone.

    test.py                  what `make test` runs
    test.py --all            with every Go, Java and Python release that can be had (make test-all)
    test.py -k WORD[,WORD]   only suites whose name contains a WORD: unit, oracle/java, browser, ...

Logs are in build/test-logs, one for each suite.
"""
import argparse
import sys
import time

import runner
import suites

SLOWEST = 10


def print_table(results, seconds):
    """By kind of suite; the seconds of suites that ran side by side add up to more than the whole."""
    rows = {}
    for r in results:
        row = rows.setdefault(r.suite.name.split("/")[0], [0, 0, 0, 0.0])
        for i, n in enumerate((r.passed, r.failed, r.skipped, r.seconds)):
            row[i] += n
    print(f"\n{'suites':<12} {'passed':>7} {'failed':>7} {'skipped':>8} {'seconds':>8}")
    for name, (passed, failed, skipped, took) in sorted(rows.items()):
        print(f"{name:<12} {passed:>7} {failed:>7} {skipped:>8} {took:>8.1f}")
    print(f"{'all':<12} {'':>7} {'':>7} {'':>8} {seconds:>8.1f}")


def print_slowest(results):
    tests = sorted(((s, r.suite.name, name) for r in results for s, name in r.tests), reverse=True)
    print(f"\nThe {SLOWEST} slowest tests")
    for seconds, suite, name in tests[:SLOWEST]:
        print(f"{seconds:>8.1f} s  {suite}" + (f": {name}" if name != suite else ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--asan", default="build-asan", help="build folder with the sanitizers")
    parser.add_argument("--sonde", default="build/sonde", help="the binary to test")
    parser.add_argument("--all", action="store_true", help="every release that can be had")
    parser.add_argument("-k", metavar="WORD", default="", help="only these suites")
    args = parser.parse_args()

    wanted = suites.chosen(suites.suites(args.asan, args.sonde, args.all), args.k)
    if not wanted:
        parser.error(f"no suite has '{args.k}' in its name")
    began = time.monotonic()
    try:
        results = runner.run_suites(wanted, cost=runner.times())
    except KeyboardInterrupt:
        print("interrupted")
        return 130
    runner.keep_times(results)
    print_table(results, time.monotonic() - began)
    print_slowest(results)
    passed, failed, skipped = (sum(getattr(r, word) for r in results)
                               for word in ("passed", "failed", "skipped"))
    print(f"\n{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
