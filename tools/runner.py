"""Runs suites side by side: one more than there are CPUs, then those that must be alone.

Each suite's output goes to a log of its own, line by line, and is understood on the way: what passed,
what failed and why, which test is at work, how long each took. Kinds of output:

    lines    'ok  1.2s  NAME', 'run  NAME'; the last line says 'N passed, N failed'
    cmocka   cmocka's own; a crash or a sanitizer's report is a failure
    status   each command is one test, and its exit status the result
"""
import contextlib
import json
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import threading
import time

from suites import ROOT

LOGS = os.path.join(ROOT, "build", "test-logs")
TIMES = os.path.join(LOGS, "times.json")
HUNT = os.path.join(ROOT, "tests", "flaky.json")
# A suite that prints nothing for so long hangs. Single tests have limits of their own.
SILENCE_S = 1800
NOTES = 20
# Without a terminal: how often to say what is at work.
HEARTBEAT_S = 60

# A shell starts what is in the background with SIGINT ignored, which children inherit; tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Ended from outside, it ends what it started, as at Ctrl-C.
signal.signal(signal.SIGTERM, signal.default_int_handler)

COUNTS = re.compile(r"(\d+) passed, (\d+) failed(?:, (\d+) skipped)?")
BEGINS = re.compile(r"run\s+(\S.*)|\[ RUN      \] (\S+)")
# oracle: 'ok  1.2s  NAME -- WHY'; browser: 'ok  NAME (12 ms)'; cmocka: '[ OK ] NAME'.
ENDS = re.compile(r"(?P<word>ok|FAILED|ERROR|FAIL|skipped)\s+(?:(?P<s>[\d.]+)s\s+)?(?P<name>\S.*?)"
                  r"(?: -- .*| \((?P<ms>\d+) ms\))?$|\[\s+(?P<cword>OK|FAILED|SKIPPED)\s+\] (?P<cname>\w+)$")
# Lines that tell what is wrong: cmocka's and those of the sanitizers.
WHY = re.compile(r"\[\s+(ERROR|LINE)\s+\]|ERROR: |SUMMARY: |runtime error: ")


class Result:
    """Of one suite. tests: (seconds, name); failures: names; notes: what to print of them."""

    def __init__(self, suite):
        self.suite = suite
        self.passed = self.failed = self.skipped = 0
        self.seconds = 0.0
        self.tests, self.failures, self.notes = [], [], []

    def fail(self, name, *notes):
        self.failed += 1
        self.failures.append(name)
        self.notes += [name, *notes]


class Run(threading.Thread):
    """One suite at work."""

    def __init__(self, suite, prefix=(), on_end=None):
        super().__init__(daemon=True)
        self.suite, self.prefix, self.on_end = suite, list(prefix), on_end
        self.result = Result(suite)
        self.test, self.test_began, self.done = "", time.monotonic(), 0
        self.process, self.stopped = None, False
        self.lock = threading.Lock()

    @property
    def log_path(self):
        return os.path.join(LOGS, self.suite.name.replace("/", "-") + ".log")

    def run(self):
        began = time.monotonic()
        try:
            with open(self.log_path, "w", encoding="utf-8") as log:
                for command in self.suite.commands:
                    self.command(command, log)
            if not self.suite.commands:
                self.result.fail(f"{self.suite.name}: nothing to run")
        except OSError as e:
            self.result.fail(f"{self.suite.name}: {e}")
        self.result.seconds = time.monotonic() - began
        if self.on_end:
            self.on_end(self)

    def stop(self):
        """Ends what it started, and what these did; nothing is started after it."""
        with self.lock:
            self.stopped = True
            if self.process:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.process.pid, signal.SIGKILL)
        self.join()

    def start_command(self, command):
        with self.lock:
            if not self.stopped:
                self.process = subprocess.Popen(
                    self.prefix + command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT, cwd=ROOT, start_new_session=True,
                    env=dict(os.environ, **self.suite.env))
        return not self.stopped

    def command(self, command, log):
        """Counts one command's output."""
        log.write(f"$ {shlex.join(command)}\n")
        self.name_test(os.path.basename(command[0]) if self.suite.kind != "lines" else "")
        began = time.monotonic()
        try:
            if not self.start_command(command):
                return
        except OSError as e:
            self.result.fail(f"{command[0]}: {e.strerror}")
            return
        with self.process:
            lines = list(self.follow(log))
            status = self.process.wait()
        log.write(f"(exit status {status})\n\n")
        if self.stopped:
            return
        count = {"lines": self.count_lines, "cmocka": self.count_cmocka,
                 "status": self.count_status}[self.suite.kind]
        count(command, status, lines, time.monotonic() - began)

    def follow(self, log):
        """Its lines as they come, until it ends; one that is silent for too long is ended."""
        pipe, rest, heard = self.process.stdout.fileno(), b"", time.monotonic()
        while True:
            ended = self.process.poll() is not None
            if not select.select([pipe], [], [], 1)[0]:
                if ended:  # and somebody it started still has the other end
                    return
                if time.monotonic() - heard > SILENCE_S:
                    yield f"ERROR: nothing for {SILENCE_S} s, in {self.test or 'the beginning'}"
                    os.killpg(self.process.pid, signal.SIGKILL)
                    heard = time.monotonic()
                continue
            heard, chunk = time.monotonic(), os.read(pipe, 65536)
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole if chunk or not rest else [rest]:
                text = line.decode("utf-8", "replace")
                log.write(text + "\n")
                self.look_at(text)
                yield text
            log.flush()
            if not chunk:
                return

    def name_test(self, name):
        self.test, self.test_began = name, time.monotonic()

    def look_at(self, line):
        """Which test is at work, and how long each took."""
        begins, ends = BEGINS.match(line), ENDS.match(line)
        if begins:
            self.name_test(begins[1] or begins[2])
        elif ends:
            seconds = time.monotonic() - self.test_began
            if ends["s"] or ends["ms"]:
                seconds = float(ends["s"] or 0) + float(ends["ms"] or 0) / 1000
            name = ends["name"] or ends["cname"]
            word = ends["word"] or ends["cword"]
            self.result.tests.append((seconds, name))
            self.done += 1
            if word in ("FAILED", "ERROR", "FAIL") and name not in self.result.failures:
                self.result.failures.append(name)
            self.name_test("")

    def count_lines(self, _command, status, lines, seconds):
        result = self.result
        found = COUNTS.search(lines[-1]) if lines else None
        passed, failed, skipped = (int(n or 0) for n in found.groups()) if found else (status == 0,
                                                                                     status != 0, 0)
        result.passed += passed
        result.failed += failed
        result.skipped += skipped
        if not found:
            result.tests.append((seconds, self.suite.name))
        if status != 0 and failed == 0:
            result.fail(f"{self.suite.name}: exit status {status}")
        if result.failed:
            why = [line for line in lines if re.match(r"\s*(FAIL|ERROR|not ok)", line)]
            result.notes += why[:NOTES] or lines[-10:]
            result.failures = result.failures or [self.suite.name]

    def count_cmocka(self, command, status, lines, _seconds):
        def count(word):
            return sum(int(m[1]) for line in lines
                       if (m := re.search(r"\[\s*%s\s*\] (\d+) test\(s\)" % word, line)))

        result, name = self.result, os.path.basename(command[0])
        passed, failed, skipped = count("PASSED"), count("FAILED"), count("SKIPPED")
        result.passed += passed
        result.skipped += max(skipped, 1) if status == 77 else skipped
        why = [f"  {line}" for line in lines if WHY.search(line)][:NOTES]
        if failed:
            result.failed += failed
            result.notes += [name, *why]
        elif status not in (0, 77) or passed + skipped == 0:
            # A crash or a report of a sanitizer leaves no count behind.
            result.fail(name, f"  exit status {status}, in {self.test or name}", *why)

    def count_status(self, command, status, lines, seconds):
        name = os.path.basename(command[0])
        self.result.tests.append((seconds, name))
        self.done += 1
        if status == 0:
            self.result.passed += 1
        else:
            self.result.fail(name, *[f"  {line}" for line in lines if WHY.search(line)][:NOTES])


class Progress:
    """On a terminal one line that changes; else a line now and then."""

    def __init__(self, total):
        self.total, self.ended, self.tests = total, 0, 0
        self.began, self.said = time.monotonic(), time.monotonic()
        self.live = sys.stdout.isatty()

    def clear(self):
        if self.live:
            print("\r\033[K", end="")

    def end(self, run):
        result = run.result
        self.ended += 1
        self.tests += result.passed + result.failed + result.skipped
        skipped = f", {result.skipped} skipped" if result.skipped else ""
        self.clear()
        print(f"{'FAILED' if result.failed else 'ok':<7} {result.seconds:>7.1f}s  "
              f"{run.suite.name}: {result.passed} passed, {result.failed} failed{skipped}"
              + (f" ({os.path.relpath(run.log_path, ROOT)})" if result.failed else ""))
        for note in result.notes:
            print(f"          {note}")
        sys.stdout.flush()
        self.said = time.monotonic()

    def tick(self, runs):
        now = time.monotonic()
        if not self.live and now - self.said < HEARTBEAT_S:
            return
        self.said = now
        at_work = [f"{run.suite.name} {run.done + 1}" + (f" {run.test}" if run.test else "")
                   for run in runs]
        tests = self.tests + sum(run.done for run in runs)
        text = f"{self.ended} of {self.total} suites, {tests} tests, " \
               f"{now - self.began:.0f} s: {'; '.join(at_work)}"
        if self.live:
            width = os.get_terminal_size().columns
            print("\r\033[K" + text[:width - 1], end="", flush=True)
        else:
            print(f"...              {text}", flush=True)


def load(path, default):
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f)
    except (OSError, ValueError):
        return default


def times():
    """{suite: seconds} of earlier runs here; where there are none, of the last hunt (flaky.py)."""
    known = {row["suite"]: row["seconds"] for row in load(HUNT, []) if row["condition"] == "idle"}
    return dict(known, **load(TIMES, {}))


def keep_times(results):
    kept = dict(load(TIMES, {}), **{r.suite.name: round(r.seconds, 1) for r in results})
    with open(TIMES, "w", encoding="utf-8") as f:
        json.dump(kept, f, indent=1)


def cpus():
    return len(os.sched_getaffinity(0))


def run_suites(suites, prefix=(), workers=None, cost=None, on_result=None):
    """Runs them all and returns their results.

    prefix: words before each command. workers: how many at a time; by default one more than there are
    CPUs, for most wait more than half of the time. cost: {name: seconds}, for the longest go first.
    on_result is called with each result in the main thread. KeyboardInterrupt ends what runs and is
    passed on.
    """
    os.makedirs(LOGS, exist_ok=True)
    cost, lanes = cost or {}, {}
    for suite in suites:
        lanes[suite.lane] = lanes.get(suite.lane, 0) + cost.get(suite.name, 60)
    by_cost = sorted(suites, key=lambda s: -lanes[s.lane])
    together = [s for s in by_cost if not s.alone]
    alone = [s for s in by_cost if s.alone]
    progress, results = Progress(len(suites)), []
    try:
        for group, width in ((together, workers or cpus() + 1), (alone, 1)):
            # Closed at once: what runs must end before an interrupt goes on.
            with contextlib.closing(run_group(group, width, prefix, progress)) as runs:
                for run in runs:
                    progress.end(run)
                    results.append(run.result)
                    if on_result:
                        on_result(run.result)
    finally:
        progress.clear()
    return results


def next_of(waiting, running):
    """The first whose lane is free."""
    taken = {run.suite.lane for run in running}
    return next((suite for suite in waiting if suite.lane not in taken), None)


def run_group(suites, width, prefix, progress):
    """Yields each run as it ends."""
    waiting, running = list(suites), []
    changed = threading.Event()
    try:
        while waiting or running:
            while len(running) < width and (suite := next_of(waiting, running)):
                waiting.remove(suite)
                run = Run(suite, prefix, on_end=lambda _: changed.set())
                running.append(run)
                run.start()
            changed.wait(1)
            changed.clear()
            for run in [r for r in running if not r.is_alive()]:
                running.remove(run)
                yield run
            progress.tick(running)
    finally:
        for run in running:
            run.stop()
