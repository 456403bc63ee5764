"""What sonde reads of JFR recordings equals what the JDK's own tool prints of them.

Debian's OpenJDK 17 is always there. With --all other JDKs in /usr/lib/jvm are taken as well, and
those named in SONDE_JDKS (homes, with colons between); and async-profiler's library where
SONDE_ASYNC_PROFILER says where it is.
"""
import collections
import datetime
import functools
import glob
import json
import os
import re
import subprocess
import tempfile
import unittest

import rig
from java_rig import DEBIAN, FIRST_COMPILER, QUICK_START, classes

JFR_DUMP = os.environ.get("JFR_DUMP", os.path.join(rig.ROOT, "build-asan", "tests", "jfr_dump"))
SETTINGS = ("settings=profile,jdk.ObjectAllocationInNewTLAB#enabled=true,"
            "jdk.ObjectAllocationOutsideTLAB#enabled=true,jdk.JavaMonitorEnter#threshold=0ms,"
            "jdk.ThreadPark#threshold=0ms")
# Of each of the program's jobs.
ROUNDS = "40"
# Within this a recording is taken to begin with its JVM.
WITH_THE_JVM_NS = 5 * 10**9


EVERY = False


def homes():
    others = [*sorted(glob.glob("/usr/lib/jvm/*")), *os.environ.get("SONDE_JDKS", "").split(":")]
    found = [DEBIAN, *(others if EVERY else ())]
    unique = {}
    for home in found:
        java = os.path.join(home, "bin", "java")
        if home and os.access(java, os.X_OK):
            unique.setdefault(os.path.realpath(java), home)
    return list(unique.values())


def tool(home):
    """Its own `jfr`, or that of the last JDK which has one."""
    tools = [os.path.join(h, "bin", "jfr") for h in (*homes(), home)]
    return [t for t in tools if os.access(t, os.X_OK)][-1]


def run(*argv, **kwargs):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, **kwargs)
    assert done.returncode == 0, f"{argv}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


@functools.lru_cache(maxsize=None)
def scratch():
    return tempfile.TemporaryDirectory(prefix="sonde-jfr-")


def java(home, *options, work=(ROUNDS,)):
    return [os.path.join(home, "bin", "java"), *options, "-cp", classes(), "Work", *work]


@functools.lru_cache(maxsize=None)
def release(home):
    text = subprocess.run([os.path.join(home, "bin", "java"), "-version"], capture_output=True,
                          text=True, timeout=60).stderr
    return int(re.search(r'version "(?:1\.)?(\d+)', text).group(1))


def settings(home):
    """Single events cannot be set on the command line before JDK 17."""
    return SETTINGS if release(home) >= 17 else "settings=profile"


@functools.lru_cache(maxsize=None)
def recording(home):
    path = os.path.join(scratch().name, f"jdk{release(home)}.jfr")
    extra = ",jdk.CPUTimeSample#enabled=true,jdk.CPUTimeSample#throttle=10ms" \
        if release(home) >= 25 else ""
    run(*java(home, f"-XX:StartFlightRecording=filename={path},{settings(home)}{extra}"))
    return path


@functools.lru_cache(maxsize=None)
def summary(home, path):
    """{event: (count, bytes)} of those that there are."""
    text = run(tool(home), *QUICK_START, "summary", path)
    rows = re.findall(r"^ (\S+) +(\d+) +(\d+) *$", text, re.M)
    # Up to JDK 17 it is called CheckPoint.
    return {name.replace("CheckPoint", "Checkpoint"): (int(count), int(size))
            for name, count, size in rows if int(count)}


def ours(text):
    rows = re.findall(r"^(\S+) +(\d+) +(\d+)$", text, re.M)
    return {name: (int(count), int(size)) for name, count, size in rows if int(count)}


@functools.lru_cache(maxsize=None)
def all_events(home, path):
    text = run(tool(home), *QUICK_START, "print", "--json", "--stack-depth", "64", path)
    found = collections.defaultdict(list)
    for event in json.loads(text)["recording"]["events"]:
        found[event["type"]].append(event["values"])
    return found


def events(home, path, name):
    return list(all_events(home, path)[name])


def dump(path, name, fields):
    return [json.loads(line) for line in run(JFR_DUMP, path, name, *fields).splitlines()]


def nanoseconds(text):
    """Of "2026-11-15T11:04:09.525739392Z", "PT0.02S", "PT1M2.5S"; None for what is neither."""
    m = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d)(?::(\d\d))?(?:\.(\d+))?(Z|[+-]\d\d:\d\d)", text)
    if m:
        zone = "+00:00" if m[4] == "Z" else m[4]
        whole = datetime.datetime.fromisoformat(f"{m[1]}:{m[2] or '00'}{zone}")
        return int(whole.timestamp()) * 10**9 + int((m[3] or "0").ljust(9, "0"))
    m = re.fullmatch(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d+))?S)?", text)
    if m:
        return ((int(m[1] or 0) * 60 + int(m[2] or 0)) * 60 + int(m[3] or 0)) * 10**9 + \
            int((m[4] or "0").ljust(9, "0"))
    return None


def class_name(value):
    return value["name"].replace("/", ".")


def thread_id(value):
    """None where the recording does not tell: of the last thread of a JVM, for one."""
    return value["javaThreadId"] if value else None


def stack(value):
    return (value["truncated"], [(f["method"]["type"]["name"].replace("/", "."),
                                  f["method"]["name"], f["lineNumber"], f["type"])
                                 for f in value["frames"]])


def our_stack(value):
    return (value["truncated"], [(f[0].replace("/", "."), f[1], f[2], f[3])
                                 for f in value["frames"]])


def same(field, mine, theirs):
    """Whether both are the same value. What the tool prints in a way of its own is not compared."""
    if field in ("startTime", "duration"):
        return theirs is None or abs(mine - nanoseconds(theirs)) <= 1
    if isinstance(theirs, bool):
        return mine == int(theirs)
    if isinstance(theirs, int):
        return mine == theirs or abs(mine - theirs) in (1 << 8, 1 << 16, 1 << 32, 1 << 64)
    if isinstance(theirs, float):
        return abs(mine - theirs) <= 1e-6 * max(1, abs(theirs))
    if isinstance(theirs, dict) and "javaThreadId" in theirs:
        return all(mine[k] == (theirs[k] or ("" if k.endswith("Name") else 0))
                   for k in ("javaName", "osName", "javaThreadId", "osThreadId"))
    if isinstance(theirs, dict) and "frames" in theirs:
        return our_stack(mine) == stack(theirs)
    if isinstance(theirs, dict) and {"classLoader", "modifiers"} <= set(theirs):
        return mine.replace("/", ".") == class_name(theirs)
    if isinstance(theirs, str) and isinstance(mine, int):
        return len(theirs) == 1 and mine == ord(theirs) or nanoseconds(theirs) is not None or \
            not re.fullmatch(r"-?\d+", theirs)
    if isinstance(theirs, str):
        return mine == theirs
    return theirs is not None or mine in (None, 0)


class Jfr(unittest.TestCase):
    def compare_events(self, home, path, name):
        theirs = events(home, path, name)
        fields = list(theirs[0])[:24]
        mine = dump(path, name, fields)
        self.assertEqual(len(mine), len(theirs), name)
        # The tool orders by time, a file by thread: equal times are told apart by the rest.
        theirs.sort(key=lambda e: (nanoseconds(e["startTime"]), json.dumps(e, sort_keys=True)))
        by_time = collections.defaultdict(list)
        for event in mine:
            by_time[event[fields.index("startTime")]].append(event)
        for event in theirs:
            at = nanoseconds(event["startTime"])
            found = [m for t in (at, at - 1, at + 1) for m in by_time[t]
                     if all(same(f, v, event[f]) for f, v in zip(fields, m))]
            self.assertTrue(found, f"{name} at {event['startTime']}: {event}\nnot in "
                                   f"{[m for t in (at, at - 1, at + 1) for m in by_time[t]]}")
            by_time[found[0][fields.index("startTime")]].remove(found[0])

    def test_counts_and_sizes_of_all_events(self):
        for home in homes():
            path = recording(home)
            expected = summary(home, path)
            self.assertGreater(len(expected), 30)
            self.assertEqual(ours(run(JFR_DUMP, path)), expected)
            self.assertEqual(ours(rig.sonde("jfr", path, check=rig.OK).stdout), expected)

    def test_values_of_all_fields(self):
        for home in homes():
            path = recording(home)
            for name in sorted(summary(home, path)):
                if name not in ("jdk.Metadata", "jdk.Checkpoint"):
                    self.compare_events(home, path, name)

    def collapsed(self, path, *args):
        text = rig.sonde("jfr", path, *args, "-f", "collapsed", check=rig.OK).stdout
        return {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in text.splitlines()}

    def test_sums_of_the_profiles(self):
        for home in homes():
            path = recording(home)
            tlab = sum(e["tlabSize"]
                       for e in events(home, path, "jdk.ObjectAllocationInNewTLAB"))
            outside = sum(e["allocationSize"]
                          for e in events(home, path, "jdk.ObjectAllocationOutsideTLAB"))
            self.assertEqual(sum(self.collapsed(path, "alloc").values()), tlab + outside)
            waits = events(home, path, "jdk.JavaMonitorEnter")
            waits += [e for e in events(home, path, "jdk.ThreadPark") if e["parkedClass"] and
                      re.match(r"java[./]util[./]concurrent[./](locks[./](Reentrant|Stamped)|"
                               r"Semaphore)", e["parkedClass"]["name"])]
            self.assertEqual(sum(self.collapsed(path, "lock", "-t", "contentions").values()),
                             len(waits))
            self.assertAlmostEqual(sum(self.collapsed(path, "lock").values()),
                                   sum(nanoseconds(e["duration"]) for e in waits),
                                   delta=len(waits))
            self.compare_cpu(home, path)

    def compare_cpu(self, home, path):
        timed = events(home, path, "jdk.CPUTimeSample") if release(home) >= 25 else []
        if timed:
            self.assertAlmostEqual(sum(self.collapsed(path, "cpu").values()),
                                   sum(nanoseconds(e["samplingPeriod"]) for e in timed),
                                   delta=len(timed))
        else:
            self.assertEqual(sum(self.collapsed(path, "cpu").values()),
                             len(events(home, path, "jdk.ExecutionSample")))

    def test_weights_of_allocation_samples(self):
        path = os.path.join(scratch().name, "weights.jfr")
        run(*java(DEBIAN, FIRST_COMPILER,
                  f"-XX:StartFlightRecording=filename={path},settings=default"))
        samples = events(DEBIAN, path, "jdk.ObjectAllocationSample")
        self.assertGreater(len(samples), 20)
        self.assertEqual(sum(self.collapsed(path, "alloc").values()),
                         sum(e["weight"] for e in samples) - self.of_before(path, samples))

    @staticmethod
    def of_before(path, samples):
        """The first samples of threads that are older than the recording: 0 where it began with
        the JVM. On a machine that is too busy a JVM begins to record long after its start."""
        began = min(nanoseconds(e["recordingStart"])
                    for e in events(DEBIAN, path, "jdk.ActiveRecording"))
        jvm = events(DEBIAN, path, "jdk.JVMInformation")[0]
        if began - nanoseconds(jvm["jvmStartTime"]) < WITH_THE_JVM_NS:
            return 0
        born = {thread_id(e["thread"]) for e in events(DEBIAN, path, "jdk.ThreadStart")}
        firsts = {}
        for e in sorted(samples, key=lambda e: nanoseconds(e["startTime"])):
            firsts.setdefault(thread_id(e["eventThread"]), e["weight"])
        return sum(weight for thread, weight in firsts.items() if thread not in born)

    def test_methods_and_locks_have_their_names(self):
        for home in homes():
            path = recording(home)
            alloc = self.collapsed(path, "alloc")
            mine = sum(v for k, v in alloc.items() if "Work.allocateArrays" in k.split(";"))
            self.assertGreater(mine, 0)
            self.assertEqual(mine, self.allocated_in(home, path, ("Work", "allocateArrays")))
            lock = self.collapsed(path, "lock")
            self.assertTrue(any(k.endswith(";Work.waitForMonitor;Work$Table") for k in lock))
            self.assertTrue(any(
                ";Work.waitForLock;" in k and
                k.endswith(";java.util.concurrent.locks.ReentrantLock$NonfairSync")
                for k in lock))
            every = "\n".join([*alloc, *lock])
            self.assertNotRegex(every, r"0x[0-9a-f]{6}|\$\$Lambda[^.;\n]|\$Proxy\d")
            self.assertIn("Work$$Lambda.run", every)

    @staticmethod
    def allocated_in(home, path, method):
        return sum(e[size] for name, size in (("jdk.ObjectAllocationInNewTLAB", "tlabSize"),
                                              ("jdk.ObjectAllocationOutsideTLAB", "allocationSize"))
                   for e in events(home, path, name)
                   if e["stackTrace"] and method in [f[:2] for f in stack(e["stackTrace"])[1]])

    def test_pprof_files_are_read_by_others(self):
        out = os.path.join(scratch().name, "lock.pb.gz")
        rig.sonde("jfr", recording(DEBIAN), "lock", "-f", "pprof", "-o", out, check=rig.OK)
        top = "\n".join(rig.pprof_top(rig.build.mandatory()[1], out))
        self.assertIn("Type: delay", top)
        self.assertIn("Work$Table", top)
        shown = rig.sonde("show", out, check=rig.OK).stdout
        self.assertIn("Work$Table", shown)

    def test_standard_input_and_pieces_give_the_same(self):
        path = recording(DEBIAN)
        with open(path, "rb") as f:
            fed = rig.sonde("jfr", "-", "alloc", "-f", "collapsed", check=rig.OK, stdin=f).stdout
        self.assertEqual(fed, rig.sonde("jfr", path, "alloc", "-f", "collapsed",
                                        check=rig.OK).stdout)
        self.assertEqual(run(JFR_DUMP, "--feed", "10007", path), run(JFR_DUMP, path))

    def test_what_is_cut_or_no_recording(self):
        path = os.path.join(scratch().name, "cut.jfr")
        with open(recording(DEBIAN), "rb") as f:
            data = f.read()
        with open(path, "wb") as f:
            f.write(data + data[:-1000])
        done = rig.sonde("jfr", path, check=rig.OK)
        self.assertIn(f"last {len(data) - 1000} bytes: an incomplete chunk", done.stderr)
        self.assertEqual(ours(done.stdout), summary(DEBIAN, recording(DEBIAN)))
        with open(path, "wb") as f:
            f.write(b"no recording" * 10)
        self.assertIn("is not a JFR recording", rig.sonde("jfr", path, check=rig.FAILED).stderr)

    def test_a_running_JVM_is_followed_without_a_gap(self):
        for home in homes():
            with tempfile.TemporaryDirectory() as repository:
                path = os.path.join(scratch().name, "whole.jfr")
                argv = java(home, FIRST_COMPILER,
                            f"-XX:FlightRecorderOptions=repository={repository}",
                            f"-XX:StartFlightRecording=filename={path},{settings(home)}",
                            work=(ROUNDS, "2"))
                with subprocess.Popen([JFR_DUMP, "--follow", repository], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      text=True) as follower:
                    run(*argv)
                    out, problems = follower.communicate("", timeout=300)
                self.assertEqual(follower.returncode, 0, problems)
                self.assertEqual(ours(out), summary(home, path))
                # It did go on from file to file: a recording that starts or stops begins one.
                self.assertGreaterEqual(ours(out)["jdk.Metadata"][0], 3)

    def test_recordings_of_async_profiler(self):
        library = os.environ["SONDE_ASYNC_PROFILER"]
        path = os.path.join(scratch().name, "async.jfr")
        run(*java(DEBIAN, f"-agentpath:{library}=start,event=itimer,interval=10ms,alloc=512k,"
                          f"lock=0,jfr,loglevel=none,file={path}"))
        self.assertEqual(ours(run(JFR_DUMP, path)), summary(DEBIAN, path))
        self.assertEqual(sum(self.collapsed(path, "cpu").values()),
                         10_000_000 * len(events(DEBIAN, path, "jdk.ExecutionSample")))
        self.assertEqual(sum(self.collapsed(path, "alloc").values()),
                         sum(e["tlabSize"]
                             for e in events(DEBIAN, path, "jdk.ObjectAllocationInNewTLAB")) +
                         sum(e["allocationSize"]
                             for e in events(DEBIAN, path, "jdk.ObjectAllocationOutsideTLAB")))


def load(every, suite):
    global EVERY  # pylint: disable=global-statement
    EVERY = every
    for test in unittest.defaultTestLoader.loadTestsFromTestCase(Jfr):
        if "async" not in test.id() or "SONDE_ASYNC_PROFILER" in os.environ:
            suite.addTest(test)
