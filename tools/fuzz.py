#!/usr/bin/env python3
"""Runs the fuzz targets for a while, and adds up how often each has run.

    fuzz.py                        every target for a minute, with the sanitizers
    fuzz.py --runs 1000000         those that have run less often, until they have
    fuzz.py --build build-fuzz     as `make fuzz PLAIN=1`: without the sanitizers, several times faster

The sums are in tests/fuzz/runs.json. New inputs go to build/fuzz/NAME, not into the corpus.
"""
import argparse
import fcntl
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SUMS = os.path.join(ROOT, "tests", "fuzz", "runs.json")
FOUND = os.path.join(ROOT, "build", "fuzz")
# Each of its inputs is a file of its own, with a database in it.
ENOUGH = {"day": 100_000}


def sums():
    """{target: {"sanitized": runs, "plain": runs}}"""
    try:
        with open(SUMS, encoding="utf-8") as f:
            return json.load(f)
    except FileNotFoundError:
        return {}


def add(name, kind, runs):
    """Other builds may be running too: their sums must not be lost."""
    os.makedirs(FOUND, exist_ok=True)
    with open(os.path.join(FOUND, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = sums()
        row = known.setdefault(name, {"sanitized": 0, "plain": 0})
        row[kind] += runs
        with open(SUMS + ".new", "w", encoding="utf-8") as f:
            f.write("{\n" + ",\n".join(f'  "{n}": {json.dumps(known[n])}' for n in sorted(known)) + "\n}\n")
        os.replace(SUMS + ".new", SUMS)
    return sum(row.values())


def fuzz(binary, name, kind, limits):
    """Whether it found nothing."""
    corpus = os.path.join(ROOT, "tests", "fuzz", "corpus", name)
    found = os.path.join(FOUND, name)
    os.makedirs(found, exist_ok=True)
    command = [binary, *limits, "-rss_limit_mb=2048", "-timeout=10", "-print_final_stats=1",
               f"-artifact_prefix={found}/crash-", found]
    if os.path.isdir(corpus):
        command.append(corpus)
    p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                       errors="replace")
    runs = re.search(r"number_of_executed_units:\s*(\d+)", p.stdout)
    runs = int(runs.group(1)) if runs else 0
    total = add(name, kind, runs)
    print(f"{name:<14} {'ok' if p.returncode == 0 else 'FAILED':<7} {runs:>11,} runs {total:>12,} in all",
          flush=True)
    if p.returncode != 0:
        print("\n".join(p.stdout.splitlines()[-40:]))
    return p.returncode == 0


def missing(name, wanted):
    return min(wanted, ENOUGH.get(name, wanted)) - sum(sums().get(name, {}).values())


def fuzz_until(wanted, targets, kind, seconds):
    """In turns of so many seconds, so that all come on."""
    while short := [(n, b) for n, b in targets if missing(n, wanted) > 0]:
        for name, binary in short:
            limits = [f"-max_total_time={seconds}", f"-runs={missing(name, wanted)}"]
            if not fuzz(binary, name, kind, limits):
                return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build-asan")
    parser.add_argument("--seconds", type=int, default=60, help="for each target, at a time")
    parser.add_argument("--runs", type=int, help="until each target has run so often, over all times")
    parser.add_argument("-k", metavar="WORD", default="", help="only targets whose name contains it")
    args = parser.parse_args()
    folder = os.path.join(ROOT, args.build, "tests", "fuzz")
    names = sorted(n.removeprefix("fuzz_") for n in os.listdir(folder) if re.fullmatch(r"fuzz_\w+", n))
    targets = [(n, os.path.join(folder, f"fuzz_{n}")) for n in names if args.k in n]
    if not targets:
        parser.error(f"no target has '{args.k}' in its name")
    kind = "sanitized" if "asan" in args.build else "plain"
    if args.runs:
        good = fuzz_until(args.runs, targets, kind, args.seconds)
    else:
        good = all([fuzz(b, n, kind, [f"-max_total_time={args.seconds}"]) for n, b in targets])
    print(f"all: {sum(sum(row.values()) for row in sums().values()):,} runs")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
