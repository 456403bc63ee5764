"""What a JVM pays for being profiled: by its own recorder, by our library, by async-profiler.

A program that does little but allocate. Windows with a profiler stand between windows without, the
profilers in turns; each is set against the mean of its two neighbours. CPU per operation is that of
the whole process, its collector and compilers included, so that what other programs of the machine
take away does not count. A profiler is started before its window and stopped after it, which
is no part of it; all have been there before. What the windows without say of each other is how far
such a ratio can be trusted.
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
NAMES = {"recorder": "its own recorder (allocations, monitors, parks)",
         "jvmti": "our library (allocations, monitors)",
         "async": "async-profiler (CPU, allocations, locks)"}
LIMIT = 1.03


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

    def __init__(self, program, way, pid, state, library):
        argv = [program, way, str(pid), state] + ([library] if way == "async" else [])
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "on\n":
            raise rig.BenchError(f"{way}: {self.process.communicate()[1].strip()}")

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
        finally:
            shutil.rmtree(folder)
        bench.section(f"A JVM that allocates 45 KB per operation, JDK {version}", HEADER,
                      rows(found))
        for goal in goals(version, found):
            bench.goal(*goal)
