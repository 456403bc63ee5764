"""What sonde says works, where something is really missing: rights, mounts, files, namespaces.

Each condition is made in a mount namespace or by setpriv, around sonde alone. What is not named there
must be on, and what sonde says of it must be the same everywhere: doctor, ps, the log, the API, metrics.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import rig
import test_agent
import test_oom

FEATURES = ["cpu", "off-cpu", "kernel-names", "python", "go", "java", "java-counters", "oom-kills",
            "oom-limits", "host-pids", "store"]
# Those that `sonde run` leaves alone unless it is told.
OPTIONAL = {"off-cpu", "java"}

NOBODY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
NO_CAPS = ("setpriv", "--bounding-set", "-all", "--inh-caps", "-all")


def without(cap):
    return ("setpriv", "--bounding-set", f"-{cap}", "--inh-caps", f"-{cap}")


def mounted(script):
    """Words that run a command after the script, in a mount namespace of its own."""
    return ("unshare", "-m", "sh", "-ec", f"{script}\nexec \"$@\"", "sh")


HIDE_CGROUPS = "mount -t tmpfs none /sys/fs/cgroup"
HIDE_KALLSYMS = "mount --bind /dev/null /proc/kallsyms"
HIDE_BTF = "mount --bind /dev/null /sys/kernel/btf/vmlinux"
HIDE_BTF_FOLDER = "mount -t tmpfs none /sys/kernel/btf"
NO_TRACEFS = "umount -A /sys/kernel/tracing /sys/kernel/debug/tracing 2>/dev/null || true"
TRACEFS = "mount -t tracefs none /sys/kernel/tracing"
OWN_PIDS = ("unshare", "-pf", "--mount-proc", "--kill-child")


def number(path):
    """Of a setting; 0 where this kernel has none."""
    try:
        with open(path, encoding="ascii") as f:
            return int(f.read())
    except FileNotFoundError:
        return 0


def sees_kernel_addresses(prefix):
    """Whether a program that is not ours does, under the same condition."""
    done = subprocess.run([*prefix, "grep", "-m1", "-E", "^[0-9a-f]*[1-9a-f][0-9a-f]* [tT] ",
                           "/proc/kallsyms"], capture_output=True, check=False)
    return done.returncode == 0


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(word) for word in f.read().split()]


def lacks(cause, *words, state="off", remedy):
    return {"state": state, "cause": cause, "words": words, "remedy": remedy}


def by_cpu(remedy):
    return {"python": lacks("needs_feature", "CPU profiles", remedy=remedy)}


def no_bpf(cause, *words, remedy):
    lack = lacks(cause, *words, remedy=remedy)
    return {"cpu": lack, "off-cpu": lack, "oom-kills": lack, **by_cpu(remedy)}


def unprivileged(prefix, remedy):
    """Without any capability, whoever it is."""
    scope = number("/proc/sys/kernel/yama/ptrace_scope")
    memory = lacks("ptrace_scope", "ptrace_scope", remedy="ptrace_scope=0") if scope else \
        lacks("privilege", "CAP_SYS_PTRACE", state="limited", remedy=remedy)
    wanted = no_bpf("privilege", "bpf()", "CAP_BPF", "CAP_PERFMON", remedy=remedy)
    wanted |= {"go": memory, "java-counters": memory,
               "java": lacks("privilege", "CAP_SYS_ADMIN", remedy=remedy)}
    if not sees_kernel_addresses(prefix):
        wanted["kernel-names"] = lacks("hidden" if number("/proc/sys/kernel/kptr_restrict") > 1
                                       else "privilege", "addresses", remedy="")
    return wanted


class Run(test_agent.Agent):
    """`sonde run` under a condition."""

    def __init__(self, prefix, binary, directory, *args):
        self.log = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(
            [*prefix, binary, "run", "--listen", "127.0.0.1:0", "--data-dir", directory,
             "--interval", "1s", *args], stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.url = self.process.stdout.readline().split()[-1]

    def warnings(self):
        """{feature: whole line} of what the log says at the start."""
        # Seeking would move where sonde writes.
        text = os.pread(self.log.fileno(), 1 << 20, 0).decode()
        return {m.group(1): line for line in text.splitlines()
                if (m := re.search(r" feature=(\S+) state=", line))}

    def __exit__(self, *_):
        # unshare does not pass it on.
        with open(f"/proc/{self.process.pid}/comm", encoding="utf-8") as f:
            forks = f.read() == "unshare\n"
        for pid in children(self.process.pid) if forks else [self.process.pid]:
            os.kill(pid, signal.SIGTERM)
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.log.close()


@unittest.skipUnless(os.geteuid() == 0, "needs root, to take things away from sonde")
class Features(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        # Others than root must be able to run it, wherever the tree lies.
        cls.tmp = tempfile.TemporaryDirectory()
        os.chmod(cls.tmp.name, 0o755)
        cls.sonde = os.path.join(cls.tmp.name, "sonde")
        shutil.copy(rig.SONDE, cls.sonde)

    @classmethod
    def tearDownClass(cls):
        cls.tmp.cleanup()

    def data_dir(self):
        folder = tempfile.mkdtemp(dir=self.tmp.name)
        os.chmod(folder, 0o777)
        return os.path.join(folder, "data")

    def doctor(self, prefix, *args):
        done = subprocess.run([*prefix, self.sonde, "doctor", "--json", *args], text=True,
                              capture_output=True, check=False, timeout=120)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual(answer["kernel"], os.uname().release)
        missing = sum(f["state"] != "on" for f in answer["features"])
        self.assertEqual(answer["missing"], missing)
        self.assertEqual(done.returncode, 3 if missing else 0)
        return answer["features"]

    def compare(self, features, wanted):
        """Every feature is there, on unless it is wanted otherwise, and then as wanted."""
        self.assertEqual([f["feature"] for f in features], FEATURES)
        for f in features:
            want = wanted.get(f["feature"], {"state": "on", "cause": None})
            self.assertEqual((f["state"], f["cause"]), (want["state"], want["cause"]), f)
            if f["state"] == "on":
                self.assertEqual((f["reason"], f["remedy"]), (None, None), f)
                continue
            for word in want["words"]:
                self.assertIn(word, f["reason"])
            self.assertTrue(f["remedy"], f)
            self.assertIn(want["remedy"], f["remedy"])

    def check_run(self, prefix, doctor):
        """sonde run says the same, and goes on with the rest."""
        asked = {name: f for name, f in doctor.items() if name not in OPTIONAL}
        with Run(prefix, self.sonde, self.data_dir()) as run:
            health = run.api("health")
            told = {f["feature"]: f for f in health["features"]}
            self.assertEqual(list(told), FEATURES)
            self.assertEqual({n: told[n] for n in asked}, asked)
            for name in OPTIONAL:
                self.assertEqual((told[name]["state"], told[name]["cause"]), ("off", "disabled"))
                self.assertIn("start sonde run with --", told[name]["remedy"])
            metrics = run.get("metrics").decode()
            on = dict(re.findall(r'^sonde_feature_on\{feature="([^"]+)"\} ([01])$', metrics, re.M))
            self.assertEqual(on, {n: str(int(f["state"] == "on")) for n, f in told.items()})
            self.assertIn("# TYPE sonde_feature_on gauge", metrics)
            # They may come after the server's first answers.
            missing = {n for n, f in asked.items() if f["state"] != "on"}
            rig.wait_for(lambda: missing <= set(run.warnings()), lambda: (missing, run.warnings()))
            warnings = run.warnings()
            self.assertEqual(set(warnings), missing)
            for name, line in warnings.items():
                self.assertIn(f'reason="{asked[name]["reason"]}"', line)
                self.assertIn(f'remedy="{asked[name]["remedy"]}"', line)
            deadline = time.monotonic() + 60
            while run.api("health")["intervals"] < 2:
                self.assertLess(time.monotonic(), deadline, "no interval ends")
                time.sleep(0.1)
            self.assertEqual(run.api("health")["oom_trouble"], told["oom-kills"]["reason"])

    def check_ps(self, prefix, doctor):
        """sonde ps says below its table what is missing, and in JSON its names."""
        missing = {n: f for n, f in doctor.items() if f["state"] != "on" and n != "store"}
        text = subprocess.run([*prefix, self.sonde, "ps", "-w"], capture_output=True, text=True,
                              check=True).stdout
        self.assertEqual("\nThis machine:\n" in text, bool(missing))
        for f in missing.values():
            self.assertIn(f'  {f["title"]}: {f["state"]}: {f["reason"]}; fix: {f["remedy"]}\n', text)
        done = subprocess.run([*prefix, self.sonde, "ps", "--json"], capture_output=True, text=True,
                              check=True)
        listed = json.loads(done.stdout)
        # In a namespace of its own sonde sees nobody else.
        self.assertTrue(listed or prefix == OWN_PIDS)
        self.assertLessEqual({tuple(p["features_off"]) for p in listed}, {tuple(missing)})

    def check(self, prefix, wanted):
        features = self.doctor(prefix, "--data-dir", self.data_dir())
        self.compare(features, wanted)
        doctor = {f["feature"]: f for f in features}
        self.check_ps(prefix, doctor)
        self.check_run(prefix, doctor)

    def check_remedy(self, hide, prefix, feature):
        """The command that sonde names, run where the file is hidden, turns the feature on."""
        def rows(script):
            found = self.doctor((*mounted(script), *prefix), "--data-dir", self.data_dir())
            return {f["feature"]: f for f in found}

        remedy = rows(hide)[feature]["remedy"]
        self.assertEqual(rows(f"{hide}\n{remedy}")[feature]["state"], "on")

    def test_root_has_all_features(self):
        self.check((), {})

    def test_tracefs_makes_no_difference(self):
        for script in (NO_TRACEFS, f"{NO_TRACEFS}\n{TRACEFS}"):
            with self.subTest(script=script):
                self.check(mounted(script), {})

    def test_another_user_is_told_what_root_would_have(self):
        self.check(NOBODY, unprivileged(NOBODY, "run as root"))

    def test_root_without_capabilities_is_told_how_to_get_them(self):
        self.check(NO_CAPS, unprivileged(NO_CAPS, "run the container with "))

    def test_without_ptrace_only_its_own_programs_are_read(self):
        scope = number("/proc/sys/kernel/yama/ptrace_scope")
        memory = lacks("ptrace_scope", "ptrace_scope", remedy="ptrace_scope=0") if scope else \
            lacks("privilege", "CAP_SYS_PTRACE", state="limited", remedy="--cap-add=SYS_PTRACE")
        self.check(without("sys_ptrace"), dict.fromkeys(["go", "java", "java-counters", "python"],
                                                        memory))

    def test_root_of_a_user_namespace_is_not_root(self):
        memory = lacks("user_namespace", "user namespace", state="limited", remedy="root on the host")
        wanted = no_bpf("user_namespace", "bpf()", remedy="root on the host")
        wanted |= {"go": memory, "java-counters": memory,
                   "java": lacks("user_namespace", "tmpfs", remedy="root on the host"),
                   "kernel-names": lacks("hidden", "addresses", remedy="root on the host")}
        if number("/proc/sys/kernel/yama/ptrace_scope"):
            wanted["go"] = wanted["java-counters"] = dict(memory, state="off")
        prefix = ("unshare", "-Ur")
        if sees_kernel_addresses(prefix):
            del wanted["kernel-names"]
        self.check(prefix, wanted)

    def test_an_own_pid_namespace_hides_the_host(self):
        lack = lacks("pid_namespace", "PID namespace", remedy="--pid=host")
        self.check(OWN_PIDS, {"cpu": lack, "off-cpu": lack, "host-pids": lack,
                              **by_cpu("--pid=host")})

    def test_hidden_kernel_names(self):
        self.check(mounted(HIDE_KALLSYMS), {
            "kernel-names": lacks("hidden", "/proc/kallsyms", remedy="umount /proc/kallsyms")})
        self.check_remedy(HIDE_KALLSYMS, (), "kernel-names")

    def test_hidden_type_information(self):
        for script in (HIDE_BTF, HIDE_BTF_FOLDER):
            with self.subTest(script=script):
                self.check(mounted(script), no_bpf("hidden", "BTF", "/sys/kernel/btf",
                                                   remedy="umount /sys/kernel/btf"))
                self.check_remedy(script, (), "cpu")

    def test_control_groups_that_are_not_mounted_are_found_all_the_same(self):
        self.check(mounted(HIDE_CGROUPS), {})

    def test_control_groups_that_may_not_be_mounted(self):
        prefix = without("sys_admin")
        self.check((*mounted(HIDE_CGROUPS), *prefix), {
            "oom-limits": lacks("not_mounted", "cgroups", "CAP_SYS_ADMIN", remedy="mount -t cgroup"),
            "java": lacks("privilege", "CAP_SYS_ADMIN", remedy="--privileged")})
        self.check_remedy(HIDE_CGROUPS, prefix, "oom-limits")

    def test_proc_that_is_not_mounted(self):
        lack = lacks("not_mounted", "/proc", remedy="mount -t proc proc /proc")
        wanted = dict.fromkeys(["cpu", "off-cpu", "kernel-names", "go", "java", "java-counters",
                                "oom-limits", "host-pids"], lack)
        self.compare(self.doctor(mounted("umount -l /proc"), "--data-dir", self.data_dir()),
                     wanted | by_cpu("mount -t proc"))

    def test_sys_that_is_not_mounted(self):
        # An empty folder, as in a root that somebody has just made.
        script = "umount -l /sys"
        self.check(mounted(script), no_bpf("not_mounted", "/sys", remedy="mount -t sysfs sysfs /sys"))
        self.check_remedy(script, (), "cpu")

    def test_a_store_that_cannot_be_written(self):
        for folder, cause in (("/proc/sonde", "disk"), ("/sys/sonde", "privilege")):
            found = self.doctor((), "--data-dir", folder)
            self.compare(found, {"store": lacks(cause, folder.rsplit("/", 1)[0],
                                                remedy="--data-dir")})
        small = "mount -t tmpfs -o size=1m none /mnt"
        self.compare(self.doctor(mounted(small), "--data-dir", "/mnt/data"),
                     {"store": lacks("disk", "/mnt", "left", remedy="--data-dir")})
        readonly = "mount -t tmpfs -o ro none /mnt"
        self.compare(self.doctor(mounted(readonly), "--data-dir", "/mnt/data"),
                     {"store": lacks("disk", "/mnt", remedy="--data-dir")})

    def test_doctor_prints_one_line_for_each_feature_and_no_colours_into_a_pipe(self):
        data = ("--data-dir", self.data_dir())
        plain = subprocess.run([self.sonde, "doctor", *data], capture_output=True, text=True,
                               check=True).stdout
        self.assertEqual([line.split()[:2] for line in plain.splitlines()],
                         [[name, "on"] for name in FEATURES])
        off = subprocess.run([*mounted(HIDE_KALLSYMS), self.sonde, "doctor", *data], text=True,
                             capture_output=True, check=False)
        self.assertEqual(off.returncode, 3)
        self.assertRegex(off.stdout, r"(?m)^kernel-names +off +\S.*; fix: umount /proc/kallsyms$")
        self.assertNotIn("\033", plain + off.stdout)
        terminal = subprocess.run(["script", "-qec", f"{self.sonde} doctor {' '.join(data)}",
                                   "/dev/null"], capture_output=True, text=True, check=True,
                                  env=dict(os.environ, TERM="xterm", NO_COLOR="")).stdout
        self.assertIn("\033[32mon", terminal)


@unittest.skipUnless(os.geteuid() == 0 and test_oom.group_root(),
                     "needs root, and control groups that limit memory")
class FeaturesAtWork(unittest.TestCase):
    """What is said to be on where less is mounted really does its work there."""

    def agent(self, prefix, *args):
        tmp = tempfile.TemporaryDirectory()
        self.addCleanup(tmp.cleanup)
        return Run(prefix, rig.SONDE, os.path.join(tmp.name, "data"), "--cpu-hz", "0", *args)

    def fill(self, agent, service, limited, kind, *args):
        """A program runs into its limit; the event that tells of it."""
        _, go = rig.build.mandatory()
        with test_oom.target(go, "plain", service, limited, *args) as process:
            agent.wait_collections(process.pid, more=1)
            test_oom.start(process)
            event = test_oom.wait_event(agent, kind, service)
            self.assertEqual(event["pid"], process.pid)
            self.assertEqual(event["top"]["name"], test_oom.LEAK)
            return event

    def test_limits_are_watched_where_control_groups_are_not_mounted(self):
        with self.agent(mounted(HIDE_CGROUPS), "--oom-watch", "70") as agent, \
                test_oom.limited(test_oom.LIMIT_MB) as prefix:
            self.fill(agent, "near", prefix, "oom_near",
                      "-max-mb", str(test_oom.LIMIT_MB * 85 // 100))

    def test_kills_are_heard_in_an_own_pid_namespace(self):
        with self.agent(OWN_PIDS) as agent, test_oom.limited(test_oom.LIMIT_MB) as prefix:
            inside = children(agent.process.pid)[0]
            words = (*prefix, "nsenter", "-t", str(inside), "-p")
            event = self.fill(agent, "inside", words, "oom_kill",
                              "-mb-per-s", str(test_oom.LIMIT_MB // 2))
            self.assertLess(event["pid"], inside)
            self.assertGreater(event["rss_bytes"], (test_oom.LIMIT_MB << 20) / 2)


def load(_, suite):
    for case in (Features, FeaturesAtWork):
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
