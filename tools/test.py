#!/usr/bin/env python3
"""Runs all suites one by one, keeps their output, and adds up what passed and failed.

Built-in suites: unit (cmocka, under the sanitizers), fuzz (every corpus once), includes (who may
include whom), docs (manual and completions against the help). Others are given as
--suite NAME=COMMAND; a command counts by its last line "N passed, N failed", or as one test.
The last line is the sum, alone.
"""
import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Lines of a failing unit test that tell what is wrong: cmocka's, and those of the sanitizers.
WHY = re.compile(r"\[\s+(ERROR|LINE)\s+\]|ERROR: |SUMMARY: |runtime error: ")
COUNTS = re.compile(r"(\d+) passed, (\d+) failed(?:, (\d+) skipped)?")


class Result:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.notes = []

    def add(self, passed, failed, skipped=0, note=None):
        self.passed += passed
        self.failed += failed
        self.skipped += skipped
        if note:
            self.notes.append(note)


def sanitized_env():
    env = dict(os.environ)
    env["ASAN_OPTIONS"] = "detect_leaks=1:allocator_may_return_null=1"
    env["UBSAN_OPTIONS"] = "print_stacktrace=1:halt_on_error=1"
    return env


def run(command, log, env=None, timeout=900):
    """Runs a command, its output goes to the log as it comes; returns (exit status, output)."""
    log.write(f"$ {shlex.join(command)}\n".encode())
    log.flush()
    start = log.tell()
    try:
        rc = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log,
                            stderr=subprocess.STDOUT, env=env, timeout=timeout,
                            cwd=ROOT).returncode
    except subprocess.TimeoutExpired:
        rc = 124
    except OSError as e:
        log.write(f"{e}\n".encode())
        rc = 127
    log.seek(start)
    out = log.read().decode("utf-8", "replace")
    log.write(f"(exit {rc})\n\n".encode())
    return rc, out


def cmocka_counts(rc, out):
    def count(word):
        return sum(int(n) for n in re.findall(r"\[\s*%s\s*\] (\d+) test\(s\)" % word, out))

    passed, failed, skipped = count("PASSED"), count("FAILED"), count("SKIPPED")
    if rc == 77:
        return passed, 0, max(skipped, 1)
    # A crash or a report of a sanitizer leaves no count behind.
    if rc != 0 and failed == 0:
        failed = 1
    if rc == 0 and passed + skipped == 0:
        failed = 1
    return passed, failed, skipped


def suite_unit(args, log):
    result = Result()
    listing = subprocess.run(["meson", "introspect", "--tests", args.asan], cwd=ROOT, check=True,
                             capture_output=True, text=True).stdout
    for test in json.loads(listing):
        if "unit" not in " ".join(test["suite"]):
            continue
        rc, out = run(test["cmd"], log, sanitized_env())
        passed, failed, skipped = cmocka_counts(rc, out)
        result.add(passed, failed, skipped, f"unit test {test['name']}" if failed else None)
        if failed:
            result.notes += [f"  {line}" for line in out.splitlines() if WHY.search(line)][:20]
    return result


def suite_fuzz(args, log):
    result = Result()
    folder = os.path.join(ROOT, args.asan, "tests", "fuzz")
    targets = sorted(n for n in os.listdir(folder) if re.fullmatch(r"fuzz_\w+", n)) \
        if os.path.isdir(folder) else []
    for target in targets:
        corpus = os.path.join("tests", "fuzz", "corpus", target.removeprefix("fuzz_"))
        if not os.path.isdir(os.path.join(ROOT, corpus)):
            result.add(0, 1, note=f"{target}: no corpus in {corpus}")
            continue
        rc, _ = run([os.path.join(folder, target), "-runs=0", "-rss_limit_mb=2048",
                     f"-artifact_prefix=build/test-logs/{target}-", corpus], log, sanitized_env())
        result.add(rc == 0, rc != 0, note=None if rc == 0 else target)
    if not targets:
        result.add(0, 1, note="no fuzz targets were built")
    return result


def command_suite(command):
    def suite(args, log):
        result = Result()
        env = dict(os.environ, SONDE=os.path.abspath(args.sonde),
                   ELF_DUMP=os.path.abspath(os.path.join(args.asan, "tests", "elf_dump")))
        rc, out = run(command, log, env, timeout=7200)
        found = COUNTS.findall(out)
        if found:
            passed, failed, skipped = (int(n or 0) for n in found[-1])
            if rc != 0 and failed == 0:
                failed = 1
            result.add(passed, failed, skipped)
        else:
            result.add(rc == 0, rc != 0)
        if result.failed:
            result.notes += [line for line in out.splitlines() if re.match(r"\s*(FAIL|ERROR|not ok)", line)]
            result.notes = result.notes[:20] or out.splitlines()[-10:]
        return result
    return suite


def print_table(rows, seconds):
    print(f"\n{'suite':<12} {'passed':>7} {'failed':>7} {'skipped':>8} {'seconds':>8}")
    for name, r, took in rows:
        print(f"{name:<12} {r.passed:>7} {r.failed:>7} {r.skipped:>8} {took:>8.1f}")
    print(f"{'':<12} {'':>7} {'':>7} {'':>8} {seconds:>8.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--asan", default="build-asan", help="build folder with the sanitizers")
    parser.add_argument("--sonde", default="build/sonde", help="the binary for the docs check")
    parser.add_argument("--suite", action="append", default=[], metavar="NAME=COMMAND")
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    args = parser.parse_args()

    suites = [("unit", suite_unit), ("fuzz", suite_fuzz)]
    for given in args.suite:
        name, _, command = given.partition("=")
        suites.append((name, command_suite(shlex.split(command))))
    suites.append(("includes", command_suite([sys.executable, "tools/check_includes.py"])))
    suites.append(("docs", command_suite([sys.executable, "tools/check_docs.py", args.sonde])))

    logs = os.path.join(ROOT, "build", "test-logs")
    os.makedirs(logs, exist_ok=True)
    rows, begin = [], time.monotonic()
    for name, suite in suites:
        if args.only and name not in args.only:
            continue
        path = os.path.join(logs, name + ".log")
        print(f"{name} ... ", end="", flush=True)
        start = time.monotonic()
        with open(path, "w+b") as log:
            r = suite(args, log)
        rows.append((name, r, time.monotonic() - start))
        print("ok" if not r.failed else f"FAILED (build/test-logs/{name}.log)", flush=True)
        for note in r.notes:
            print(f"  {note}")

    print_table(rows, time.monotonic() - begin)
    passed, failed = sum(r.passed for _, r, _ in rows), sum(r.failed for _, r, _ in rows)
    skipped = sum(r.skipped for _, r, _ in rows)
    print(f"\n{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
