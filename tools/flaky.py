#!/usr/bin/env python3
"""Runs the suites again and again under conditions in turn, and prints what ever failed, and where.

    flaky.py                 as often as the table of conditions says
    flaky.py -n 10           ten times under each condition
    flaky.py -c busy,stalls  under these conditions only
    flaky.py -k WORD[,WORD]  only suites whose name contains a WORD; NAME:WORD[+WORD] only tests of
                             oracle/NAME that contain a WORD
    flaky.py --report        the table of what has been run so far, and nothing else

Results are kept by suite, condition and the digest of the files that the suite depends on. So a hunt
that was stopped goes on where it was, and after a fix only those suites run again that it touches.
"""
import argparse
import contextlib
import json
import os
import random
import shlex
import subprocess
import sys
import time

import runner
import suites

# How long a CPU is taken away, and how long it is left alone.
STALL_S, PAUSE_S = 0.2, 1.0
COMPILERS_PER_CPU = 2


# --- conditions -----------------------------------------------------------------------------------


@contextlib.contextmanager
def children(argvs, **options):
    """Runs programs beside the block, each ended with its children."""
    started = [subprocess.Popen(argv, start_new_session=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
               for argv in argvs]
    try:
        yield
        early = [child.args for child in started if child.poll() is not None]
        if early:
            sys.exit(f"flaky: the condition ended too early: {shlex.join(early[0])}")
    finally:
        for child in started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, 9)
            child.wait()


@contextlib.contextmanager
def idle():
    yield (), None


@contextlib.contextmanager
def busy():
    """Compile jobs on all CPUs, two for each."""
    argv = [sys.executable, os.path.abspath(__file__), "--compile-forever"]
    with children([argv] * (COMPILERS_PER_CPU * runner.cpus())):
        yield (), None


@contextlib.contextmanager
def stalls():
    """Each CPU is taken away from everybody for up to 0.2 s, at random."""
    with children([[sys.executable, os.path.abspath(__file__), "--stall", str(cpu)]
                   for cpu in os.sched_getaffinity(0)]):
        yield (), None


@contextlib.contextmanager
def one_cpu():
    yield ("taskset", "-c", str(min(os.sched_getaffinity(0)))), 1


def in_namespace(script):
    """Runs each command where this script has changed what is mounted."""
    return "unshare", "-m", "sh", "-ec", script + '; exec "$@"', "sh"


@contextlib.contextmanager
def tracefs():
    yield in_namespace("mountpoint -q /sys/kernel/tracing || "
                       "mount -t tracefs tracefs /sys/kernel/tracing"), None


@contextlib.contextmanager
def no_tracefs():
    yield in_namespace("for at in $(awk '$3 ~ /^(tracefs|debugfs)$/ { print $2 }' /proc/self/mounts | tac); "
                       "do umount -l $at; done"), None


# How often each runs where nothing else is asked for.
CONDITIONS = {"idle": (idle, 5), "busy": (busy, 3), "stalls": (stalls, 2), "one-cpu": (one_cpu, 1),
              "tracefs": (tracefs, 1), "no-tracefs": (no_tracefs, 1)}


def compile_forever():
    """One compile job after another, taken from our own build."""
    with open(os.path.join(suites.ROOT, "build", "compile_commands.json"), encoding="utf-8") as f:
        entries = [e for e in json.load(f) if e["file"].endswith(".c")]
    while True:
        entry = random.choice(entries)
        argv = [word for word in shlex.split(entry["command"]) if word != "ccache"]
        argv[argv.index("-o") + 1] = os.devnull
        argv = [word for word in argv if word not in ("-MD", "-MQ", "-MF")
                and not word.endswith((".o", ".o.d"))]
        subprocess.run(argv, cwd=entry["directory"], env=dict(os.environ, CCACHE_DISABLE="1"),
                       check=False)


def stall_forever(cpu):
    os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(os.sched_get_priority_max(os.SCHED_FIFO)))
    while True:
        end = time.monotonic() + random.uniform(0, STALL_S)
        while time.monotonic() < end:
            pass
        time.sleep(random.uniform(0, PAUSE_S))


# --- results --------------------------------------------------------------------------------------


class Results:
    """Kept in a file, a row for each suite, condition and digest; the file is whole at any time."""

    def __init__(self, path):
        self.path, self.rows = path, runner.load(path, None if os.path.exists(path) else [])
        if self.rows is None:
            sys.exit(f"flaky: {path} is damaged; restore it, or remove it to begin anew")

    def row(self, suite, condition):
        wanted = {"suite": suite.name, "condition": condition, "inputs": suites.digest(suite)}
        for row in self.rows:
            if wanted.items() <= row.items():
                return row
        return dict(wanted, commit="", runs=0, failed=0, tests=0, seconds=0, failures={})

    def add(self, result, condition):
        if suites.changed(result.suite):
            print(f"        {result.suite.name} is not counted: its files changed meanwhile")
            return
        row = self.row(result.suite, condition)
        if not row["runs"]:
            self.rows.append(row)
        row["runs"] += 1
        row["failed"] += bool(result.failed)
        row["tests"] = result.passed + result.failed + result.skipped
        row["seconds"] = round(max(row["seconds"], result.seconds))
        row["commit"] = commit()
        for name in result.failures:
            row["failures"][name] = row["failures"].get(name, 0) + 1
        self.save()

    def drop_outdated(self, found):
        """Rows of digests that are gone, unless something failed: that is worth remembering."""
        current = {(s.name, suites.digest(s)) for s in found}
        self.rows = [r for r in self.rows if r["failed"] or (r["suite"], r["inputs"]) in current]

    def save(self):
        self.rows.sort(key=lambda r: (r["suite"], r["condition"], r["inputs"]))
        text = ",\n".join(json.dumps(row) for row in self.rows)
        with open(self.path + ".new", "w", encoding="utf-8") as f:
            f.write(f"[\n{text}\n]\n")
        os.replace(self.path + ".new", self.path)


def commit():
    done = subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=9"], cwd=suites.ROOT,
                          capture_output=True, text=True, check=False)
    return done.stdout.strip()


def report(results, found, conditions):
    """The table for the files as they are now: runs, and failed ones where there are any."""
    def cell(row):
        return f"{row['runs']}" + (f", {row['failed']} failed" if row["failed"] else "") \
            if row["runs"] else "-"

    table = [["suite", "tests", *conditions]]
    for suite in found:
        rows = [results.row(suite, c) for c in conditions]
        table.append([suite.name, str(max(r["tests"] for r in rows)), *map(cell, rows)])
    widths = [max(map(len, column)) for column in zip(*table)]
    for line in table:
        print("  ".join(f"{text:<{width}}" for text, width in zip(line, widths)).rstrip())
    failures = [(r, name, n) for r in results.rows for name, n in r["failures"].items()]
    if failures:
        print("\nWhat ever failed")
    for row, name, n in failures:
        now = any(row["suite"] == s.name and row["inputs"] == suites.digest(s) for s in found)
        print(f"  {row['condition']:<10} {n} of {row['runs']}  {row['suite']}: {name} "
              f"({row['commit']}{'' if now else '; changed since'})")


# --- the hunt -------------------------------------------------------------------------------------


def narrowed(suite, words):
    """A suite of tests/oracle with those of its tests only that contain one of words."""
    return suites.Suite(f"{suite.name}:{words}",
                        [c + ["-k", words.replace("+", ",")] for c in suite.commands],
                        suite.inputs, suite.kind, suite.env)


def choose(found, words):
    chosen_ones = []
    for word in words.split(","):
        name, _, tests = word.partition(":")
        for suite in suites.chosen(found, name):
            chosen_ones.append(narrowed(suite, tests) if tests else suite)
    return list(dict.fromkeys(chosen_ones))


def hunt(found, condition, runs, results):
    """Until each suite has run so often under this condition."""
    while True:
        left = [s for s in found if results.row(s, condition)["runs"] < runs]
        if not left:
            return
        least = min(results.row(s, condition)["runs"] for s in left)
        left = [s for s in left if results.row(s, condition)["runs"] == least]
        print(f"\n{condition}, run {least + 1} of {runs}: {len(left)} suites", flush=True)
        with CONDITIONS[condition][0]() as (prefix, workers):
            runner.run_suites(left, prefix, workers, runner.times(), lambda r: results.add(r, condition))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--asan", default="build-asan", help=argparse.SUPPRESS)
    parser.add_argument("--sonde", default="build/sonde", help=argparse.SUPPRESS)
    parser.add_argument("--results", default=runner.HUNT, help="where results are kept")
    parser.add_argument("-n", type=int, default=0, metavar="N", help="runs under each condition")
    parser.add_argument("-c", default=",".join(CONDITIONS), metavar="CONDITION[,...]",
                        help=f"of {', '.join(CONDITIONS)}")
    parser.add_argument("-k", default="", metavar="WORD[,...]", help="only these suites")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("--compile-forever", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--stall", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.compile_forever:
        compile_forever()
    if args.stall is not None:
        stall_forever(args.stall)

    conditions = args.c.split(",")
    for name in conditions:
        if name not in CONDITIONS:
            parser.error(f"no condition '{name}' (expected: {', '.join(CONDITIONS)})")
    everything = suites.suites(args.asan, args.sonde)
    found = choose(everything, args.k)
    if not found:
        parser.error(f"no suite has '{args.k}' in its name")
    results = Results(args.results)
    results.drop_outdated(everything + found)
    try:
        for condition in [] if args.report else conditions:
            hunt(found, condition, args.n or CONDITIONS[condition][1], results)
    except KeyboardInterrupt:
        print("\nstopped; the next hunt goes on from here\n")
    report(results, found, conditions)
    return any(results.row(s, c)["failed"] for s in found for c in conditions)


if __name__ == "__main__":
    sys.exit(main())
