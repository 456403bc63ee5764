"""JVMs from outside, against what jcmd and jfr of the same JDK say of them."""
import contextlib
import glob
import json
import os
import signal
import subprocess
import tempfile
import time
import unittest

import rig
# Some of these are for those who import them from here.
from java_rig import (ALONE, DEBIAN, DUMP, NOBODY, OURS, QUICK_START,  # noqa: F401
                      FIRST_COMPILER, Case, Program, classes, descendant, dump, folder_for_tests,
                      inner_pid, jdks, major_of, ours_in, tmp_of, tool)


class Jvm(Program):
    """The target program; its output, with thread dumps if any, is kept."""

    def __init__(self, home, *options, where=ALONE, prefix=(), env=None, inner=False):
        super().__init__(home, "Target", "-Xmx96m", *options, env=env, prefix=[*where, *prefix])
        if inner:
            self.pid = descendant(self.pid)

    def jcmd(self, *args):
        done = subprocess.run(["nsenter", "-t", str(self.pid), "-m", tool(self.home, "jcmd"),
                               *QUICK_START, str(self.pid), *args], capture_output=True, text=True,
                              timeout=rig.LIMIT)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.split("\n", 1)[1]

    def still_well(self):
        """It answers, and has said nothing else, such as a dump of its threads."""
        answer = self.ask("alloc 1")
        assert answer == "done alloc 1", answer


class Recorder:
    """A java_dump that records."""

    def __init__(self, pid, state):
        self.process = subprocess.Popen([DUMP, "record", str(pid), state], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("recording"):
            raise AssertionError(self.process.communicate(timeout=rig.LIMIT)[1])

    def ask(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def stop(self):
        """What went wrong; "" for nothing."""
        _, err = self.process.communicate(timeout=rig.LIMIT)
        return err.strip()

    def kill(self):
        self.process.kill()
        self.process.communicate()


class JavaAttach(Case):
    """One class for each JDK, made by load()."""
    version, says, major, home = None, None, 0, None
    kept = None

    @classmethod
    def setUpClass(cls):
        cls.folder = folder_for_tests()
        cls.major = major_of(cls.version)
        # What the JVM calls itself.
        cls.says = cls.version.removeprefix("1.")

    @classmethod
    def tearDownClass(cls):
        if cls.kept:
            cls.kept.__exit__()
            cls.kept = None
        cls.folder.cleanup()

    def setUp(self):
        super().setUp()
        self.state = os.path.join(self.folder.name, "state")
        os.makedirs(self.state, exist_ok=True)
        self.assertEqual(os.listdir(self.state), [])

    def tearDown(self):
        """What a test that failed has left does not fail the next one."""
        subprocess.run([DUMP, "restore", self.state], check=False, timeout=300,
                       capture_output=True)
        for name in os.listdir(self.state):
            os.unlink(os.path.join(self.state, name))

    def jvm(self, *options, **kwargs):
        # That of JDK 8 hides what it allocates.
        first = [FIRST_COMPILER] if self.major > 8 else []
        return Jvm(self.home, *first, *options, **kwargs)

    @contextlib.contextmanager
    def shared(self):
        """For tests that leave it as it was; after one that failed there is a new one."""
        cls = type(self)
        cls.kept = cls.kept or self.jvm()
        try:
            yield cls.kept
        except BaseException:
            cls.kept.__exit__()
            cls.kept = None
            raise

    def elsewhere(self, *options, size="64m", tmp=None, user_ns=False):
        """A JVM of another user in pid and mount namespaces of its own, with its own /tmp.

        In a user namespace it is root there, and our root is nobody that its /tmp knows.
        """
        mount = f"--bind {tmp}" if tmp else f"-t tmpfs -o size={size},mode=1777 none"
        nobody = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
        script = f"mount {mount} /tmp && exec {'' if user_ns else ' '.join(nobody)} \"$@\""
        return self.jvm(*options, inner=True,
                        where=[*(nobody if user_ns else []), "unshare",
                               *(["--user", "--map-root-user"] if user_ns else []), "--mount",
                               "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c",
                               script, "sh"])

    def assert_nothing_left(self, jvm):
        self.assertEqual(ours_in(jvm.pid), [])
        self.assertEqual(os.listdir(self.state), [])
        jvm.still_well()

    def test_version_equals_that_of_jcmd(self):
        with self.shared() as jvm:
            kind = dump("detect", jvm.pid).strip().split("|")
            self.assertEqual(kind[1], self.version)
            self.assertEqual(kind[4:], ["yes", ""])
            self.assertEqual(dump("jcmd", jvm.pid, "VM.version"), jvm.jcmd("VM.version"))
            self.assert_nothing_left(jvm)

    def test_a_long_command_gets_through_or_is_refused(self):
        with self.shared() as jvm:
            command = "help VM.version" + " " * 2000
            if self.major >= 24:
                self.assertEqual(dump("jcmd", jvm.pid, command), jvm.jcmd("help", "VM.version"))
            else:
                self.assertIn("E2BIG", dump("jcmd", jvm.pid, command, check=1))
            self.assert_nothing_left(jvm)

    def test_counters_equal_those_of_jcmd(self):
        for options in ([], ["-XX:+UseSerialGC"], ["-XX:+UseParallelGC"]):
            with self.subTest(options), self.jvm(*options) as jvm:
                jvm.ask("alloc 2000")
                jvm.ask("gc")
                jvm.jcmd("VM.version")
                before = parse(dump("counters", jvm.pid))
                # The header of the file as counters is jcmd's own idea.
                own = {k: v for k, v in parse(jvm.jcmd("PerfCounter.print")).items()
                       if not k.startswith("sun.perfdata.")}
                after = parse(dump("counters", jvm.pid))
                # What stood still must be the same; what went on lies in between.
                still = {k for k in before if before[k] == after.get(k)}
                self.assertEqual(set(own), set(before))
                self.assertGreater(len(still), len(own) * 3 // 4)
                self.assertEqual({k: before[k] for k in still}, {k: own[k] for k in still})
                self.compare_metrics(jvm, own, still)

    def compare_metrics(self, jvm, own, still):
        series = {tuple(line.split("|")[:-1]): float(line.split("|")[-1])
                  for line in dump("metrics", jvm.pid).splitlines()}
        for key, name in {
                ("jvm.memory.used", "bytes",
                 f"jvm.memory.generation={own['sun.gc.generation.1.name'][1:-1]}",
                 f"jvm.memory.pool.name={own['sun.gc.generation.1.space.0.name'][1:-1]}"):
                "sun.gc.generation.1.space.0.used",
                ("jvm.gc.collections", "count",
                 f"jvm.gc.name={own['sun.gc.collector.0.name'][1:-1]}"):
                "sun.gc.collector.0.invocations"}.items():
            self.assertIn(name, still)
            self.assertEqual(series[key], float(own[name]))
        self.assertEqual(series["jvm.info", "bool", "process.runtime.name=OpenJDK 64-Bit Server VM",
                                f"process.runtime.version={self.version}"], 1)
        uptime = series["jvm.uptime", "nanoseconds"]
        self.assertTrue(0 < uptime < 3600e9, uptime)

    def test_counters_are_found_after_a_clean_up_of_tmp(self):
        with self.jvm() as jvm:
            for path in glob.glob(f"/proc/{jvm.pid}/root/tmp/hsperfdata_*/{jvm.pid}"):
                os.unlink(path)
            own = parse(dump("counters", jvm.pid))
            self.assertEqual(own["java.property.java.version"], f'"{self.version}"')

    def test_a_JVM_that_takes_no_commands_gets_no_signal(self):
        off = "-XX:+DisableAttachMechanism"
        cases = {"by its counters": ([off], {}),
                 "by its arguments": ([off, "-XX:-UsePerfData"], {}),
                 "by its environment": (["-XX:-UsePerfData"], {"JAVA_TOOL_OPTIONS": off})}
        for name, (options, env) in cases.items():
            with self.subTest(name), self.jvm(*options, env=env) as jvm:
                self.assertIn("ENOTSUP", dump("jcmd", jvm.pid, "VM.version", check=1))
                self.assertIn("ENOTSUP", dump("record", jvm.pid, self.state, check=1))
                self.assert_nothing_left(jvm)
                # As a signal would have shown.
                os.kill(jvm.pid, signal.SIGQUIT)
                self.assertNotEqual(jvm.line(), b"")
                self.assertIn(b"Full thread dump", jvm.line())

    def test_a_JVM_without_signal_handlers_is_asked_without_a_signal(self):
        with self.jvm("-Xrs") as jvm:
            self.assertIn(self.says, dump("jcmd", jvm.pid, "VM.version"))
            self.assert_nothing_left(jvm)

    def test_a_JVM_without_counters_works(self):
        with self.jvm("-XX:-UsePerfData") as jvm:
            found = dump("detect", jvm.pid).split("|")[1:5]
            if os.path.exists(os.path.join(self.home, "release")):
                self.assertEqual(found, [self.version, str(self.major),
                                         self.version.split(".")[2], "unknown"])
            else:
                self.assertEqual(found, ["", "0", "0", "unknown"])
            self.assertIn(self.says, dump("jcmd", jvm.pid, "VM.version"))
            self.assertIn("ENOENT", dump("counters", jvm.pid, check=1))
            self.assert_nothing_left(jvm)

    def test_a_JVM_of_another_user_in_its_own_namespaces(self):
        self.meet_elsewhere()

    def test_a_JVM_in_a_user_namespace(self):
        self.meet_elsewhere(user_ns=True)

    def meet_elsewhere(self, **kwargs):
        with self.elsewhere(**kwargs) as jvm:
            self.assertEqual(dump("detect", jvm.pid).split("|")[1], self.version)
            own = parse(dump("counters", jvm.pid))
            self.assertEqual(own["java.property.java.version"], f'"{self.version}"')
            self.assertIn(self.says, dump("jcmd", jvm.pid, "VM.version"))
            self.record_and_read(jvm)
            self.assert_nothing_left(jvm)

    def record_and_read(self, jvm):
        """What the JDK's own tool counts in a file that was recorded."""
        recorder = Recorder(jvm.pid, self.state)
        jvm.ask("alloc 3000")
        jvm.ask("monitor")
        jvm.ask("park")
        self.assertEqual(recorder.ask("check"), "ok")
        self.assertEqual(recorder.ask("rotate"), "ok")
        mounts = [name for name in tmp_of(jvm.pid) if OURS.fullmatch(name)]
        self.assertEqual(len(mounts), 1)
        root = f"/proc/{jvm.pid}/root/tmp/{mounts[0]}"
        self.assertEqual(os.stat(root).st_mode & 0o777, 0o700)
        files = sorted(glob.glob(f"{root}/*/*.jfr"))
        self.assertGreaterEqual(len(files), 2)
        copy = os.path.join(self.folder.name, "copy.jfr")
        subprocess.run(["cp", files[0], copy], check=True)
        alloc = "ObjectAllocationSample" if self.major >= 16 else "ObjectAllocationInNewTLAB"
        counts = {f"jdk.{e}": 0 for e in (alloc, "JavaMonitorEnter", "ThreadPark")}
        for event in self.printed(copy, *counts):
            counts[event["type"]] += 1
            self.assertIn("stackTrace", event["values"])
        self.assertTrue(all(counts.values()), counts)
        self.assertEqual(recorder.stop(), "")

    def printed(self, path, *events):
        done = subprocess.run([tool(self.home, "jfr"), *QUICK_START, "print", "--json", "--events",
                               ",".join(events), path], capture_output=True, text=True,
                              timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["recording"]["events"]

    def test_nothing_is_left_of_a_recording(self):
        with self.jvm() as jvm:
            before = tmp_of(jvm.pid)
            self.record_and_read(jvm)
            self.assert_nothing_left(jvm)
            self.assertEqual({n for n in tmp_of(jvm.pid) if str(jvm.pid) in n} -
                             set(before), {f".java_pid{jvm.pid}"})
            self.assertIn("No available recordings", jvm.jcmd("JFR.check"))
            # And again, in a JVM whose recorder has worked before.
            self.record_and_read(jvm)
            self.assert_nothing_left(jvm)

    def test_two_of_us_do_not_meet(self):
        with self.shared() as jvm:
            recorder = Recorder(jvm.pid, self.state)
            self.assertIn("EBUSY", dump("record", jvm.pid, self.state, check=1))
            self.assertEqual(dump("restore", self.state), "0\n")
            self.assertEqual(recorder.ask("check"), "ok")
            self.assertEqual(recorder.stop(), "")
            self.assert_nothing_left(jvm)

    def test_what_a_killed_one_left_is_taken_out_at_the_next_start(self):
        with self.shared() as jvm:
            recorder = Recorder(jvm.pid, self.state)
            recorder.kill()
            self.assertEqual(len(ours_in(jvm.pid)), 2)
            self.assertIn("sonde-", jvm.jcmd("JFR.check"))
            self.assertEqual(dump("restore", self.state), "1\n")
            self.assertIn("No available recordings", jvm.jcmd("JFR.check"))
            self.assert_nothing_left(jvm)

    def test_what_a_killed_one_left_in_a_JVM_that_ended_is_taken_out(self):
        for jvm, beside in ((self.jvm(), True), (self.elsewhere(), False)):
            where = ("nsenter", "-t", str(jvm.pid), "-m") if beside else ALONE
            with jvm, self.jvm(where=where) as other:
                Recorder(jvm.pid, self.state).kill()
                self.assertNotEqual(ours_in(jvm.pid), [])
                os.kill(jvm.pid, signal.SIGKILL)
                jvm.process.wait()
                self.assertEqual(dump("restore", self.state), "1\n")
                self.assert_nothing_left(other)

    def test_nothing_is_left_on_the_disk_of_a_container_that_ended(self):
        with folder_for_tests() as tmp:
            os.chmod(tmp, 0o1777)
            with self.elsewhere(tmp=tmp) as jvm:
                recorder = Recorder(jvm.pid, self.state)
                self.assertEqual(len(ours_in(jvm.pid)), 2)
                os.kill(jvm.pid, signal.SIGKILL)
                jvm.process.wait()
                self.assertTrue(recorder.ask("check").startswith("ESRCH"))
                self.assertEqual(recorder.stop(), "")
                self.assertEqual(os.listdir(self.state), [])
                self.assertEqual([n for n in os.listdir(tmp) if n.startswith(".sonde-")], [])

    def test_a_JVM_that_is_starting_gets_no_signal_too_early(self):
        for options in ([], ["-XX:-UsePerfData"]):
            command = [os.path.join(self.home, "bin", "java"), *options, "-cp",
                       classes(), "Target"]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            answers = []
            while not answers or answers[-1].returncode:
                answers.append(subprocess.run([DUMP, "jcmd", str(process.pid), "VM.version"],
                                              capture_output=True, text=True, timeout=300))
                self.assertIsNone(process.poll(), answers)
            self.assertEqual(process.communicate(timeout=rig.LIMIT)[0], b"ready 0\n")
            self.assertEqual({a.stderr.split(":")[0] for a in answers} -
                             {"", "ENOTSUP", "EAGAIN", "ETIMEDOUT"}, set())

    def test_a_recording_of_the_user_is_left_alone(self):
        with self.jvm() as jvm:
            dump("jcmd", jvm.pid, "JFR.start name=mine settings=default")
            self.assertIn("EBUSY", dump("record", jvm.pid, self.state, check=1))
            self.assertIn("name=mine", jvm.jcmd("JFR.check"))
            self.assertEqual(os.listdir(self.state), [])
            self.assertEqual([n for n in tmp_of(jvm.pid) if OURS.fullmatch(n)], [])

    def test_a_recording_that_the_user_starts_meanwhile_goes_on(self):
        # Collected as a whole by one collection at a time.
        with self.jvm("-XX:+UseSerialGC") as jvm:
            recorder = Recorder(jvm.pid, self.state)
            dump("jcmd", jvm.pid, "JFR.start name=mine settings=default")
            jvm.ask("gc")
            self.assertTrue(recorder.ask("check").startswith("EBUSY"))
            self.assertIn("EBUSY", recorder.stop())
            jvm.ask("gc")
            # Its first part lies where ours was; nothing of it is lost.
            self.assertEqual(len(os.listdir(self.state)), 1)
            self.assertEqual(dump("restore", self.state), "0\n")
            path = f"/proc/{jvm.pid}/root/tmp/mine.jfr"
            dump("jcmd", jvm.pid, "JFR.dump name=mine filename=/tmp/mine.jfr")
            events = self.printed(path, "jdk.GarbageCollection")
            self.assertEqual(len([e for e in events if e["values"]["cause"] == "System.gc()"]), 2)
            dump("jcmd", jvm.pid, "JFR.stop name=mine")
            self.assertEqual(dump("restore", self.state), "1\n")
            self.assertEqual([n for n in ours_in(jvm.pid) if ".sonde-" in n], [])
            jvm.still_well()

    def test_a_JVM_whose_disk_is_full_survives(self):
        with self.elsewhere(size="4m") as jvm:
            self.fill(jvm)
            recorder = Recorder(jvm.pid, self.state)
            self.fill(jvm)
            for _ in range(5):
                jvm.ask("alloc 2000")
                jvm.ask("monitor")
                self.assertEqual(recorder.ask("rotate"), "ok")
            self.assertEqual(recorder.ask("check"), "ok")
            self.assertEqual(recorder.stop(), "")
            self.assert_nothing_left(jvm)

    def fill(self, jvm):
        path = f"/proc/{jvm.pid}/root/tmp/full"
        try:
            with open(path, "ab", buffering=0) as f:
                while True:
                    f.write(b"x" * 4096)
        except OSError:
            pass
        stat = os.statvfs(f"/proc/{jvm.pid}/root/tmp")
        self.assertEqual(stat.f_bavail, 0)

    def test_links_planted_in_tmp_are_not_followed(self):
        with self.elsewhere() as jvm:
            root = f"/proc/{jvm.pid}/root/tmp"
            inner = inner_pid(jvm.pid)
            victim = os.path.join(self.folder.name, "victim")
            for name in (f".attach_pid{inner}", f".java_pid{inner}"):
                os.symlink(victim, os.path.join(root, name))
                self.assertIn("EPERM", dump("jcmd", jvm.pid, "VM.version", check=1))
                self.assertFalse(os.path.lexists(victim))
                os.unlink(os.path.join(root, name))
            self.assertIn(self.says, dump("jcmd", jvm.pid, "VM.version"))
            self.assert_nothing_left(jvm)

    def test_a_JVM_without_a_recorder_is_refused(self):
        image = os.path.join(self.folder.name, "image")
        subprocess.run([os.path.join(self.home, "bin", "jlink"), *QUICK_START, "--add-modules",
                        "java.base", "--output", image], check=True, timeout=300)
        with Jvm(image, FIRST_COMPILER) as jvm:
            self.assertIn(self.says, dump("jcmd", jvm.pid, "VM.version"))
            self.assertIn("jdk.jfr", dump("record", jvm.pid, self.state, check=1))
            self.assert_nothing_left(jvm)

    def test_without_root_commands_work_and_recordings_do_not(self):
        nobody = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
        program = os.path.join(self.folder.name, "dump")
        subprocess.run(["cp", DUMP, program], check=True)
        subprocess.run(["chmod", "-R", "a+rX", self.folder.name], check=True)
        os.chown(self.state, NOBODY, NOBODY)
        with self.jvm(prefix=nobody) as jvm, self.shared() as foreign:
            answers = [subprocess.run([*nobody, program, *map(str, args)], capture_output=True,
                                      text=True, timeout=300)
                       for args in (("jcmd", jvm.pid, "VM.version"),
                                    ("record", jvm.pid, self.state),
                                    ("jcmd", foreign.pid, "VM.version"))]
            self.assertIn(self.says, answers[0].stdout)
            self.assertTrue(answers[1].stderr.startswith("EPERM"), answers[1])
            self.assertTrue(answers[2].stderr.startswith("EPERM"), answers[2])
            self.assert_nothing_left(jvm)
            self.assert_nothing_left(foreign)
        os.chown(self.state, os.getuid(), os.getgid())

    def test_ps_names_the_JVM(self):
        with self.shared() as jvm:
            entry = json.loads(rig.sonde("ps", "--json", jvm.pid, check=rig.OK).stdout)[0]
            self.assertEqual((entry["runtime"], entry["version"]), ("java", self.version))
            jvm.still_well()


class JavaOthers(unittest.TestCase):
    def test_a_native_image_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path, data = os.path.join(folder, "app"), os.path.join(folder, "heap")
            with open(data, "wb") as f:
                f.write(bytes(64))
            subprocess.run(["objcopy", "--add-section", f".svm_heap={data}", "/bin/sleep", path],
                           check=True)
            process = subprocess.Popen([path, "100"])
            try:
                while os.readlink(f"/proc/{process.pid}/exe") != path:
                    time.sleep(0.01)
                self.assertTrue(dump("detect", process.pid).startswith("GraalVM native image|"))
                self.assertIn("ENOTSUP", dump("jcmd", process.pid, "VM.version", check=1))
                self.assertIsNone(process.poll())
            finally:
                process.kill()
                process.wait()

    def test_a_program_without_Java_is_none(self):
        self.assertEqual(dump("detect", os.getpid()), "no Java\n")
        self.assertIn("ENOTSUP", dump("jcmd", os.getpid(), "VM.version", check=1))


def parse(text):
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def can(home, name):
    """A runtime alone makes no other one."""
    return "without_a_recorder" not in name or os.path.isdir(os.path.join(home, "jmods"))


def load(every, suite):
    """Others than Debian's take minutes each."""
    suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(JavaOthers))
    for version, home in jdks(every)[:None if every else 1]:
        case = type(f"JavaAttach{major_of(version)}", (JavaAttach,),
                    {"version": version, "home": home})
        suite.addTests(case(name) for name in unittest.defaultTestLoader.getTestCaseNames(case)
                       if can(home, name))
