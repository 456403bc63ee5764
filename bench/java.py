"""What a JVM pays for being profiled: by its own recorder, by our library, by async-profiler.

A program that does little but allocate. Windows with a profiler stand between windows without, the
profilers in turns; each is set against the mean of its two neighbours. CPU per operation is that of
the whole process, its collector and compilers included, so that what other programs of the machine
take away does not count. A profiler is started before its window and stopped after it, which
is no part of it; all have been there before. What the windows without say of each other is how far
such a ratio can be trusted.

What the start costs is measured by itself, in a JVM that has much compiled code and has never been
profiled: requests per second before, in the worst second after, and when 90 % are reached again for
good; and how long requests take, before and while profiled.
"""
import glob
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import rig

sys.path.insert(0, os.path.join(rig.ROOT, "tests", "targets", "java_collected"))
import async_profiler  # noqa: E402

ROUNDS = 5
SECONDS = 2
WARM_SECONDS = 15
SETTLE_SECONDS = 1
# A heap of one size, or what the collector does to its size drowns what is looked for.
JAVA_OPTIONS = ["-XX:+UseG1GC", "-Xms512m", "-Xmx512m", "-Xmn300m", "-XX:+AlwaysPreTouch"]
SOURCE = os.path.join(rig.HERE, "targets", "java", "Load.java")
DEBIAN = "/usr/lib/jvm/java-17-openjdk-amd64"
BROAD = os.path.join(rig.HERE, "targets", "java", "Broad.java")
BROAD_WARM_SECONDS = 45
BEFORE_SECONDS = 10
AFTER_SECONDS = 25
WORST = 0.9
NAMES = {"recorder": "its own recorder (allocations, monitors, parks)",
         "jvmti": "our library (allocations, monitors)",
         "async": "async-profiler (CPU, allocations, locks)"}
LIMIT = 1.03
START_NAMES = {"none": "none", "default": "what sonde chooses", **NAMES}


def jdks():
    """[(version, home)] of the JDKs that are new enough for all of it, Debian's first."""
    found = {}
    for home in [DEBIAN, *sorted(glob.glob("/usr/lib/jvm/*"))]:
        if os.access(os.path.join(home, "bin", "javac"), os.X_OK):
            with open(os.path.join(home, "release"), encoding="utf-8") as f:
                version = re.search(r'^JAVA_VERSION="([^"]+)"', f.read(), re.M).group(1)
            if int(version.split(".")[0]) >= 11:
                found.setdefault(version, home)
    if not found:
        raise rig.BenchError("there is no JDK: apt-get install openjdk-17-jdk-headless")
    return list(found.items())


def cpu_ns(pid):
    """CPU time of a process, with that of its threads that have ended."""
    return time.clock_gettime_ns(~pid << 3 | 2)


class Profiler:
    """A java_collectors on the JVM."""

    def __init__(self, program, way, pid, state, library, wait=True):
        argv = [program, way, str(pid), state] + ([library] if way == "async" else [])
        self.way = way
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        if wait:
            self.wait()

    def wait(self):
        """Until it is on."""
        if self.process.stdout.readline() != "on\n":
            raise rig.BenchError(f"{self.way}: {self.process.communicate()[1].strip()}")

    def keep(self):
        self.process.stdin.write("keep\n")
        self.process.stdin.flush()

    def close(self):
        _, err = self.process.communicate(timeout=120)
        if self.process.returncode:
            raise rig.BenchError(err.strip())


def window(target, profiler):
    """Microseconds of CPU per operation."""
    time.sleep(SETTLE_SECONDS)
    cpu, ops = cpu_ns(target.pid), int(target.ask("ops")[1])
    for _ in range(SECONDS):
        time.sleep(1)
        if profiler:
            profiler.keep()
    return (cpu_ns(target.pid) - cpu) / 1e3 / max(int(target.ask("ops")[1]) - ops, 1)


def summary(ratios):
    """The median with its error, from the middle half of the values: a machine that was busy with
    something else for a moment has windows that say nothing."""
    quarters = statistics.quantiles(ratios, n=4)
    return {"ratio": quarters[1], "n": len(ratios), "least": min(ratios), "most": max(ratios),
            "error": 0.93 * (quarters[2] - quarters[0]) / len(ratios) ** 0.5}


def against_neighbours(windows, kind):
    """Each window of a kind, against the mean of the quiet ones before and after it."""
    # Every other window is a quiet one; the neighbours of such a one are two places away.
    step = 2 if kind == "quiet" else 1
    ratios = [windows[i][1] / statistics.mean((windows[i - step][1], windows[i + step][1]))
              for i in range(step, len(windows) - step) if windows[i][0] == kind]
    return summary(ratios) | {"us": statistics.median(us for k, us in windows if k == kind)}


def profiled(program, way, target, state, library):
    profiler = Profiler(program, way, target.pid, state, library)
    try:
        return window(target, profiler)
    finally:
        profiler.close()


def measure_jdk(home, program, library, folder):
    classes, state = os.path.join(folder, "classes"), os.path.join(folder, "state")
    os.makedirs(state, exist_ok=True)
    subprocess.run([os.path.join(home, "bin", "javac"), "-d", classes, SOURCE], check=True,
                   timeout=300)
    # The recorder is what there is a goal for: twice as often as the others.
    turn = ["recorder", "jvmti"] + ["recorder", "async"] * bool(library)
    windows = []
    with rig.Target([os.path.join(home, "bin", "java"), *JAVA_OPTIONS, "-cp", classes,
                     "Load"]) as target:
        time.sleep(WARM_SECONDS)
        # The first start of each loads what stays loaded.
        for way in sorted(set(turn)):
            Profiler(program, way, target.pid, state, library).close()
        windows.append(("quiet", window(target, None)))
        for way in turn * ROUNDS:
            windows.append((way, profiled(program, way, target, state, library)))
            windows.append(("quiet", window(target, None)))
    return {way: against_neighbours(windows, way) for way in ["quiet", *turn]}


class Second:
    """What a program did in about a second: requests per second and per second of its own CPU time,
    and percentiles of how long they took in microseconds."""

    def __init__(self, target, last=None):
        if last:
            time.sleep(max(0, last.time + 1 - time.monotonic()))
        answer = target.ask("ops")
        self.time, self.cpu, self.ops = time.monotonic(), cpu_ns(target.pid), int(answer[1])
        self.latency = tuple(map(int, answer[2:5]))
        if last:
            self.rate = (self.ops - last.ops) / (self.time - last.time)
            self.per_cpu = (self.ops - last.ops) / max(self.cpu - last.cpu, 1) * 1e9


def seconds(target, n, last):
    found = []
    for _ in range(n):
        last = Second(target, last)
        found.append(last)
    return found


def recovered(after, rate):
    """Seconds until each later one reaches the limit."""
    slow = [i for i, s in enumerate(after) if s.rate < WORST * rate]
    return slow[-1] + 1 if slow else 0


def latencies(found):
    """Medians of the seconds' percentiles."""
    return tuple(statistics.median(s.latency[i] for s in found) for i in range(3))


def measure_start(home, program, way, library, folder):
    """The first start of a profiler in a JVM of its own."""
    classes, state = os.path.join(folder, "classes"), os.path.join(folder, "state-" + way)
    os.makedirs(state)
    with rig.Target([os.path.join(home, "bin", "java"), *JAVA_OPTIONS, "-cp", classes,
                     "Broad"]) as target:
        time.sleep(BROAD_WARM_SECONDS)
        before = seconds(target, BEFORE_SECONDS, Second(target))
        profiler = None
        if way != "none":
            profiler = Profiler(program, way, target.pid, state, library, wait=False)
        after = seconds(target, AFTER_SECONDS, before[-1])
        if profiler:
            profiler.wait()
            profiler.close()
    rate = statistics.mean(s.rate for s in before)
    per_cpu = statistics.mean(s.per_cpu for s in before)
    return {"rate": rate, "worst_per_cpu": min(s.per_cpu for s in after) / per_cpu, "worst": min(s.rate for s in after) / rate,
            "worst_before": min(s.rate for s in before) / rate,
            "recovered": recovered(after, rate), "before": latencies(before),
            "after": latencies(after[AFTER_SECONDS // 2:])}


def measure_starts(home, program, library, folder):
    subprocess.run([os.path.join(home, "bin", "javac"), "-d", os.path.join(folder, "classes"),
                    BROAD], check=True, timeout=300)
    ways = ["none", "default", "recorder", "jvmti"] + ["async"] * bool(library)
    return {way: measure_start(home, program, way, library, folder) for way in ways}


START_HEADER = ["profiler", "requests/s before", "worst second", "per CPU second",
                "at 90 % again after",
                "p50, p99, p99.9 before", "while profiled"]


def start_rows(found):
    def text(latency):
        return ", ".join(f"{v:.0f}" for v in latency) + " µs"

    return [[START_NAMES[way], f"{f['rate']:.0f}",
             f"{f['worst'] * 100:.0f} % (before: {f['worst_before'] * 100:.0f} %)",
             f"{f['worst_per_cpu'] * 100:.0f} %", f"{f['recovered']} s", text(f["before"]), text(f["after"])]
            for way, f in found.items()]


def start_goals(version, found):
    f, quiet = found["default"], found["none"]
    # A machine that takes the CPU away by itself says nothing.
    usual = min(quiet["worst"], f["worst_before"])
    noisy = usual - 0.1 < f["worst"] < WORST and usual < WORST + 0.03
    return [(f"requests per second in the worst second after the start, JDK {version}",
             f">= {WORST * 100:.0f} %", f"{f['worst'] * 100:.0f} %, without a profiler "
             f"{quiet['worst'] * 100:.0f} %",
             "undecided: too noisy" if noisy else "met" if f["worst"] >= WORST else "MISSED")]


HEADER = ["profiler", "CPU per operation", "against without", "windows"]


def percent(f):
    return (f"{(f['ratio'] - 1) * 100:+.1f} ± {f['error'] * 100:.1f} % "
            f"({(f['least'] - 1) * 100:+.1f} to {(f['most'] - 1) * 100:+.1f})")


def rows(found):
    return [[name, f"{found[way]['us']:.2f} µs", percent(found[way]), found[way]["n"]]
            for way, name in [("quiet", "none"), *NAMES.items()] if way in found]


def goals(version, found):
    """(what, wanted, measured, verdict)"""
    f = found["recorder"]
    near = abs(f["ratio"] - LIMIT) <= 2 * f["error"] and f["error"] > 0.005
    return [(f"CPU per operation of an allocating program with the JVM's recorder, JDK {version}",
             f"<= {(LIMIT - 1) * 100:+.0f} %", percent(f),
             "undecided: too noisy" if near else "met" if f["ratio"] <= LIMIT else "MISSED")]


def measure(bench):
    program = bench.program("java_collectors")
    library = async_profiler.library(
        os.path.join(os.path.abspath(rig.targets.default_outdir()), "async-profiler"))
    if not library:
        print("async-profiler cannot be had: left out", file=sys.stderr)
    for version, home in jdks():
        folder = tempfile.mkdtemp(prefix="sonde-bench-")
        try:
            found = measure_jdk(home, program, library, folder)
            starts = measure_starts(home, program, library, folder)
        finally:
            shutil.rmtree(folder)
        bench.section(f"A JVM that allocates 45 KB per operation, JDK {version}", HEADER,
                      rows(found))
        bench.section(f"The first start of a profiler in a JVM with much compiled code, JDK {version}",
                      START_HEADER, start_rows(starts))
        for goal in goals(version, found) + start_goals(version, starts):
            bench.goal(*goal)
