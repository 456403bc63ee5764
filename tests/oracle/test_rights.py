"""Who can do what to whom: names that processes claim, privileges that sonde keeps, and how little is enough."""
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

import rig
import test_oom
from rig import wait_for
from test_agent import Agent, leak

CPU = "cpu:cpu:nanoseconds"
NOBODY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
BURN = "while True: pass"

# linux/capability.h
CAPS = {"chown": 0, "dac_override": 1, "dac_read_search": 2, "fowner": 3, "kill": 5, "setgid": 6, "setuid": 7,
        "sys_chroot": 18, "sys_ptrace": 19, "sys_admin": 21, "sys_nice": 23, "syslog": 34, "perfmon": 38,
        "bpf": 39, "checkpoint_restore": 40}
# What collecting keeps (docs/SECURITY.md), on a machine with everything mounted.
KEPT = {"bpf", "perfmon", "sys_ptrace", "dac_read_search", "checkpoint_restore", "setuid", "setgid", "syslog", "sys_nice"}
# And what aides keep.
READING = {"sys_ptrace", "dac_read_search", "checkpoint_restore", "setuid", "setgid"}


def mask(names):
    return sum(1 << CAPS[name] for name in names)


def as_user_with(*caps):
    """Words that run a program as nobody, with exactly these capabilities."""
    words = ",".join(f"+cap_{CAPS[c]}" for c in caps)
    return (*NOBODY, "--inh-caps", f"-all,{words}" if caps else "-all", "--bounding-set",
            f"-all,{words}" if caps else "-all", *(("--ambient-caps", f"-all,{words}") if caps else ()))


@contextlib.contextmanager
def burner(service, prefix=()):
    """A program that only takes CPU, and calls itself so."""
    process = subprocess.Popen([*prefix, sys.executable, "-c", BURN],
                               env=dict(os.environ, OTEL_SERVICE_NAME=service))
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def contained(number):
    """Words that start a program in a control group as container managers name them."""
    folder = os.path.join(test_oom.group_root()[0], "docker")
    made = not os.path.isdir(folder)
    path = os.path.join(folder, f"{os.getpid():x}{number:x}".rjust(64, "a"))
    os.makedirs(path)
    try:
        yield ("sh", "-c", f"echo $$ > {path}/cgroup.procs && exec \"$@\"", "sh")
    finally:
        wait_for(lambda: test_oom.removed(path), f"somebody is in {path}")
        if made:
            test_oom.removed(folder)


def pids(agent, service):
    """Of the processes that were counted to a service."""
    labels = agent.api("labels", service=service, **{"from": "-1h"})["labels"]
    return {int(v["value"]) for label in labels if label["key"] == "process.pid" for v in label["values"]}


def names(agent, start):
    return {s["service"] for s in agent.api("services", **{"from": "-1h"})["services"]
            if s["service"].startswith(start)}


@unittest.skipUnless(os.geteuid() == 0, "needs root, to be another user")
class Names(unittest.TestCase):
    def setUp(self):
        tmp = tempfile.TemporaryDirectory()
        self.addCleanup(tmp.cleanup)
        self.dir = tmp.name

    def expect(self, agent, start, wanted):
        """wanted: {name: pid}; each has its own process and no other."""
        wait_for(lambda: names(agent, start) >= set(wanted), lambda: names(agent, start))
        wait_for(lambda: all(pids(agent, name) for name in wanted), "no processes")
        self.assertEqual({name: pids(agent, name) for name in names(agent, start)},
                         {name: {pid} for name, pid in wanted.items()})

    def test_a_claim_joins_nobody_elses_service(self):
        with burner("claimed") as ours, burner("claimed", NOBODY) as theirs, contained(1) as one, \
                burner("claimed", one) as third:
            with Agent(self.dir) as agent:
                wait_for(lambda: len(names(agent, "claimed")) >= 3, lambda: names(agent, "claimed"))
                container, = [n for n in names(agent, "claimed") if "(container aaaaaaaaaaaa)" in n]
                self.expect(agent, "claimed", {"claimed": ours.pid, "claimed (uid 65534)": theirs.pid,
                                               container: third.pid})
                shown = {t["pid"]: t["service"] for t in agent.api("targets")["targets"]}
                self.assertEqual(shown[theirs.pid], "claimed (uid 65534)")
                self.assertEqual(shown[ours.pid], "claimed")

    def test_who_comes_first_does_not_matter(self):
        with burner("squatted", NOBODY) as theirs, Agent(self.dir) as agent:
            wait_for(lambda: names(agent, "squatted") == {"squatted"}, lambda: names(agent, "squatted"))
            with burner("squatted") as ours:
                wait_for(lambda: "squatted (uid 65534)" in names(agent, "squatted"),
                         lambda: names(agent, "squatted"))
                shown = {t["pid"]: t["service"] for t in agent.api("targets")["targets"]}
                self.assertEqual((shown[ours.pid], shown[theirs.pid]), ("squatted", "squatted (uid 65534)"))

    def test_a_restart_changes_nothing(self):
        with burner("kept", NOBODY) as theirs:
            with burner("kept") as ours, Agent(self.dir) as agent:
                self.expect(agent, "kept", {"kept": ours.pid, "kept (uid 65534)": theirs.pid})
            with Agent(self.dir) as agent:
                since = str(int(time.time() * 1000))
                wait_for(lambda: agent.target(theirs.pid) and agent.target(theirs.pid)["runtime"] != "unknown",
                         "it is not found")
                self.assertEqual(agent.target(theirs.pid)["service"], "kept (uid 65534)")
                wait_for(lambda: "kept (uid 65534)" in
                         {s["service"] for s in agent.api("services", **{"from": since})["services"]}, "no data")
                self.assertNotIn("kept", {s["service"] for s in
                                          agent.api("services", **{"from": since})["services"]})

    def test_containers_of_one_pod_are_one_service(self):
        root = test_oom.group_root()[0]
        uid = "12345678-9abc-def0-1234-%012x" % os.getpid()
        paths = [os.path.join(root, "kubepods", f"pod{uid}", f"{i:x}" * 64) for i in (1, 2)]
        words = [("sh", "-c", f"echo $$ > {p}/cgroup.procs && exec \"$@\"", "sh") for p in paths]
        for p in paths:
            os.makedirs(p)
        try:
            with burner("replicas", words[0]) as one, burner("replicas", words[1]) as two, \
                    Agent(self.dir) as agent:
                wait_for(lambda: "replicas" in names(agent, "replicas") and
                         pids(agent, "replicas") == {one.pid, two.pid}, lambda: names(agent, "replicas"))
                self.assertEqual(names(agent, "replicas"), {"replicas"})
        finally:
            for p in (*paths, os.path.dirname(paths[0]), os.path.join(root, "kubepods")):
                wait_for(lambda p=p: test_oom.removed(p) or not os.path.isdir(p) or p.endswith("kubepods"),
                         f"somebody is in {p}")


def threads(pid):
    """[{field: value}] of the status of each."""
    found = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{tid}/status", encoding="utf-8") as f:
            found.append(dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line) | {"tid": tid})
    return found


def descendants(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as f:
        return [d for child in map(int, f.read().split()) for d in (child, *descendants(child))]
    return []


@unittest.skipUnless(os.geteuid() == 0, "needs root, to have something to give up")
class Privileges(unittest.TestCase):
    def test_what_is_not_needed_is_given_up(self):
        with tempfile.TemporaryDirectory() as directory, Agent(directory) as agent:
            wait_for(lambda: agent.api("health")["cpu_samples"] > 0, "no samples")
            pid = agent.process.pid
            alive = threads(pid)
            self.assertTrue(all(t["NoNewPrivs"] == "1" for t in alive), alive)
            held = 0
            for t in alive:
                held |= int(t["CapEff"], 16) | int(t["CapPrm"], 16) | int(t["CapBnd"], 16)
            self.assertEqual(held & ~mask(KEPT), 0, f"{held:x}")
            main, = [t for t in alive if t["tid"] == str(pid)]
            self.assertEqual(int(main["CapPrm"], 16), 0)
            server = [t for t in alive if t["Seccomp"] == "2"]
            self.assertTrue(server, [(t["Name"], t["Seccomp"]) for t in alive])
            for t in server:
                self.assertEqual(int(t["CapPrm"], 16), 0, t)
            aides = [status for child in descendants(pid) for status in threads(child)]
            self.assertIn("sonde-spawner", [t["Name"] for t in aides])
            for t in aides:
                self.assertEqual(t["NoNewPrivs"], "1")
                self.assertEqual((int(t["CapPrm"], 16) | int(t["CapBnd"], 16)) & ~mask(READING), 0, t)
            # All of the page and the API is answered under the filter.
            for path in ("", "metrics", "api/health", "api/targets", "api/services", "api/types", "api/events"):
                self.assertTrue(agent.get(path))
            wait_for(lambda: names(agent, "sonde"), "nothing of its own")
            self.assertTrue(agent.api("series", service="sonde", type=CPU)["points"])
            self.assertIsNone(agent.api("health")["trouble"])

    def test_slow_clients_keep_nobody_out(self):
        with tempfile.TemporaryDirectory() as directory, Agent(directory) as agent:
            port = int(re.search(r":(\d+)/", agent.url).group(1))
            slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(300)]
            try:
                for s in slow:
                    with contextlib.suppress(OSError):
                        s.send(b"GET / HT")
                begin = time.monotonic()
                self.assertIn(b"<html", agent.get(""))
                self.assertIn(b"sonde_", agent.get("metrics"))
                self.assertLess(time.monotonic() - begin, 15)
            finally:
                for s in slow:
                    s.close()


@unittest.skipUnless(os.geteuid() == 0, "needs root, to give some of it to another user")
class Enough(unittest.TestCase):
    """Another user with exactly the capabilities that the docs name, on a program of root's."""

    @classmethod
    def setUpClass(cls):
        # Others than root must be able to run it, wherever the tree lies.
        cls.tmp = tempfile.TemporaryDirectory()
        os.chmod(cls.tmp.name, 0o755)
        cls.sonde = os.path.join(cls.tmp.name, "sonde")
        shutil.copy(rig.SONDE, cls.sonde)
        cls.target = leak("enough")

    @classmethod
    def tearDownClass(cls):
        cls.target.__exit__()
        cls.tmp.cleanup()

    def run_as(self, caps, *args):
        return subprocess.run([*as_user_with(*caps), self.sonde, *map(str, args)], capture_output=True, text=True,
                              timeout=rig.LIMIT, check=False)

    def expect(self, caps, *args):
        done = self.run_as(caps, *args)
        self.assertEqual(done.returncode, 0, f"{args}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def test_heap(self):
        caps = ("sys_ptrace", "dac_read_search")
        self.assertIn("main.", self.expect(caps, "heap", self.target.pid))
        self.assertIn("goroutine", self.expect(caps, "goroutines", self.target.pid))
        self.expect(caps, "ps")

    def test_force(self):
        folder = tempfile.mkdtemp(dir=self.tmp.name)
        os.chown(folder, 65534, 65534)
        force = ("block", self.target.pid, "--force-block", "1", "--wait", "1s", "-f", "json")
        with unittest.mock.patch.dict(os.environ, SONDE_DATA_DIR=folder):
            done = self.run_as(("sys_ptrace", "dac_read_search"), *force)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("CAP_DAC_OVERRIDE", done.stderr)
            self.expect(("sys_ptrace", "dac_override"), *force)

    def test_messages_name_what_is_missing(self):
        for caps, word in (((), "CAP_SYS_PTRACE"), (("sys_ptrace",), "CAP_DAC_READ_SEARCH")):
            done = self.run_as(caps, "heap", self.target.pid)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(word, done.stderr)
            self.assertNotIn("namespace", done.stderr)

    def test_cpu(self):
        caps = ("bpf", "perfmon", "sys_ptrace", "dac_read_search")
        with burner("enough-cpu") as busy:
            text = self.expect(caps, "cpu", busy.pid, "-d", "3s", "-f", "tree")
            self.assertIn("Py_BytesMain", text)  # of its file
            self.assertIn("<module>", text)  # of its memory
            wait_for(lambda: "enough-cpu" in self.expect(caps, "top", "--once", "-d", "1s", "-n", "1000"),
                     "it is not in the table")

    def test_run(self):
        folder = tempfile.mkdtemp(dir=self.tmp.name)
        os.chmod(folder, 0o777)
        caps = ("bpf", "perfmon", "sys_ptrace", "dac_read_search")
        process = subprocess.Popen(
            [*as_user_with(*caps), self.sonde, "run", "--listen", "127.0.0.1:0", "--data-dir",
             os.path.join(folder, "data"), "--interval", "1s"], stdout=subprocess.PIPE, text=True)
        try:
            agent = Agent.__new__(Agent)
            agent.process, agent.url = process, process.stdout.readline().split()[-1]
            wait_for(lambda: names(agent, "enough") >= {"enough"}, lambda: names(agent, ""))
            off = {f["feature"]: f["reason"] for f in agent.api("health")["features"]
                   if f["state"] != "on" and f["cause"] != "disabled"}
            self.assertEqual(set(off) - {"kernel-names"}, set(), off)
            self.assertTrue(json.loads(agent.get("api/top", service="enough", type="go_heap:inuse_space:bytes"))["rows"])
        finally:
            process.terminate()
            self.assertEqual(process.wait(rig.LIMIT), 0)
            process.stdout.close()


def load(every, suite):
    del every
    for case in (Names, Privileges, Enough):
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
