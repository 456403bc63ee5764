"""sonde run against programs that count what they allocate: what it stores is what they did."""
import json
import os
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

import rig
from pprof import Profile
from test_force import rate_of

INTERVAL = 1.0
ALLOC = "go_heap:alloc_space:bytes"
INUSE = "go_heap:inuse_space:bytes"


class Agent:
    """A running `sonde run` on a port of its own."""

    def __init__(self, directory, *args):
        self.process = subprocess.Popen(
            [rig.SONDE, "run", "--listen", "127.0.0.1:0", "--data-dir", directory, "--interval",
             f"{int(INTERVAL * 1000)}ms", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True)
        line = self.process.stdout.readline()
        if "http://" not in line:
            raise AssertionError(f"sonde run did not start: {line}{self.process.stderr.read()}")
        self.url = line.split()[-1]

    def get(self, path, **params):
        query = urllib.parse.urlencode(params, doseq=True)
        with urllib.request.urlopen(f"{self.url}{path}?{query}", timeout=30) as answer:
            return answer.read()

    def api(self, path, **params):
        return json.loads(self.get("api/" + path, **params))

    def target(self, pid):
        for target in self.api("targets")["targets"]:
            if target["pid"] == pid:
                return target
        return None

    def wait_collections(self, pid, more=3, timeout=60):
        """Until so many readings of the process began and ended after now, and are stored."""
        deadline = time.monotonic() + timeout
        first = None
        while time.monotonic() < deadline:
            target = self.target(pid)
            if target:
                count = target["readers"][0]["collections"]
                first = count if first is None else first
                if count >= first + more:
                    return
            time.sleep(0.1)
        raise AssertionError(f"process {pid} is not collected: {self.target(pid)}")

    def stored(self, service, kind=ALLOC, **params):
        """{function: value} by the function that allocates."""
        answer = self.api("top", service=service, type=kind, limit=1000, to=now_ms() + 60000,
                          **params)
        return {row["name"]: row["self"] for row in answer["rows"] if row["self"]}

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        code = self.process.wait(timeout=30)
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.returncode is None:
            self.stop(signal.SIGKILL)


def now_ms():
    return int(time.time() * 1000)


def cumulative(pid):
    """{function: bytes ever allocated} as `sonde heap` reads it."""
    with tempfile.TemporaryDirectory() as tmp:
        out = os.path.join(tmp, "heap.pb.gz")
        rig.sonde("heap", pid, "-f", "pprof", "-o", out, check=rig.OK)
        profile = Profile(out)
    index = [name for name, _ in profile.types].index("alloc_space")
    totals = {}
    for sample in profile.samples:
        leaf = sample.stack[0].frames[0].function
        totals[leaf] = totals.get(leaf, 0) + sample.values[index]
    return totals


def difference(last, first):
    names = set(last) | set(first)
    return {n: last.get(n, 0) - first.get(n, 0) for n in names if last.get(n, 0) != first.get(n, 0)}


def counts(text):
    words = text.split()
    return {"main.leak": int(words[1]), "main.churn": int(words[3])}


def leak(service, leak_mb=30, churn_mb=150, env=None):
    program = rig.build.build("leak", rig.build.mandatory()[1])
    return rig.Target([program, "-leak-mb", str(leak_mb), "-churn-mb", str(churn_mb)],
                      env=dict(env or {}, OTEL_SERVICE_NAME=service))


class Episode:
    """A target at rest, then at work, then at rest; and what the two ends of it were."""

    def __init__(self, agent, target):
        self.agent, self.target = agent, target
        self.before = self.rest()
        self.first = cumulative(target.pid)
        self.from_ms = now_ms()

    def rest(self):
        said = counts(self.target.ask("pause"))
        self.target.ask("gc")
        self.agent.wait_collections(self.target.pid)
        time.sleep(INTERVAL)
        return said

    def work(self, seconds):
        self.target.ask("go")
        time.sleep(seconds)

    def end(self):
        after = self.rest()
        self.counted = {n: after[n] - self.before[n] for n in after}
        self.exact = difference(cumulative(self.target.pid), self.first)


class Run(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory()
        self.addCleanup(self.tmp.cleanup)

    def agent(self, *args):
        return Agent(os.path.join(self.tmp.name, "data"), *args)

    def near(self, stored, counted):
        """Sampling is random: hundreds of samples are within some percent."""
        for name, value in counted.items():
            self.assertGreater(value, 50 << 20, name)
            self.assertAlmostEqual(stored[name] / value, 1, delta=0.25, msg=name)

    def test_deltas_add_up_to_last_minus_first_and_to_what_was_counted(self):
        with self.agent() as agent, leak("alpha") as target:
            episode = Episode(agent, target)
            episode.work(6)
            episode.end()
            stored = agent.stored("alpha", **{"from": episode.from_ms})
            self.assertEqual(stored, episode.exact)
            self.near(stored, episode.counted)
            # The same by the file and by the series.
            path = os.path.join(self.tmp.name, "window.pb.gz")
            with open(path, "wb") as f:
                f.write(agent.get("api/pprof", service="alpha", type=ALLOC, to=now_ms() + 60000,
                                  **{"from": episode.from_ms}))
            self.assertEqual(sum(s.values[0] for s in Profile(path).samples),
                             sum(episode.exact.values()))
            begin = episode.from_ms // 1000 * 1000
            series = agent.api("series", service="alpha", type=ALLOC, step_ms=1000, to=begin + 60000,
                               **{"from": begin})
            self.assertEqual(sum(p for p in series["points"] if p), sum(episode.exact.values()))
            # What leaks is in use; what churns is not.
            inuse = agent.stored("alpha", INUSE, **{"from": now_ms() - 2500})
            self.assertGreater(inuse["main.leak"], episode.counted["main.leak"] * 0.75)
            self.assertLess(inuse.get("main.churn", 0), episode.counted["main.churn"] * 0.1)

    def test_what_was_allocated_before_is_a_baseline(self):
        with leak("beta", churn_mb=300) as target:
            time.sleep(2)
            before = counts(target.ask("pause"))
            self.assertGreater(before["main.churn"], 200 << 20)
            target.ask("gc")
            with self.agent() as agent:
                agent.wait_collections(target.pid, 4)
                stored = agent.stored("beta")
                self.assertEqual({n: v for n, v in stored.items() if n in before}, {})
                inuse = agent.stored("beta", INUSE)
                self.assertGreater(inuse["main.leak"], before["main.leak"] * 0.6)

    def test_restart_and_a_second_process_add_up(self):
        with self.agent() as agent:
            with leak("gamma") as first:
                one = Episode(agent, first)
                one.work(4)
                one.end()
            with leak("gamma") as second, leak("gamma") as third:
                two, three = Episode(agent, second), Episode(agent, third)
                two.work(4)
                three.work(4)
                two.end()
                three.end()
                total = {}
                for episode in (one, two, three):
                    stored = agent.stored("gamma", label=f"process.pid={episode.target.pid}",
                                          **{"from": episode.from_ms})
                    self.assertEqual(stored, episode.exact)
                    self.near(stored, episode.counted)
                for pid in (first.pid, second.pid, third.pid):
                    for name, value in agent.stored("gamma", label=f"process.pid={pid}").items():
                        total[name] = total.get(name, 0) + value
                self.assertEqual(agent.stored("gamma"), total)
                self.assertIsNone(agent.target(first.pid))

    def test_process_that_opts_out_is_left_alone(self):
        with self.agent() as agent, \
                leak("delta", env={"SONDE_PROFILING": "disabled"}) as target, leak("epsilon") as other:
            agent.wait_collections(other.pid)
            for reader in agent.target(target.pid)["readers"]:
                self.assertFalse(reader["available"])
                self.assertIn("SONDE_PROFILING=disabled", reader["reason"])
            services = [s["service"] for s in agent.api("services")["services"]]
            self.assertIn("epsilon", services)
            self.assertNotIn("delta", services)
            # Neither under the name that it has without its environment.
            self.assertNotIn("leak", services)

    def test_stops_cleanly_and_goes_on_with_what_was_stored(self):
        with leak("zeta") as target:
            with self.agent() as agent:
                agent.wait_collections(target.pid, 4)
                twice = rig.sonde("run", "--listen", "127.0.0.1:0", "--data-dir",
                                  os.path.join(self.tmp.name, "data"), check=rig.FAILED)
                self.assertIn("another sonde", twice.stderr)
                self.assertEqual(agent.stop(), 0)
            with self.agent() as agent:
                stored = agent.stored("zeta")
                self.assertGreater(stored["main.churn"], 50 << 20)
                agent.wait_collections(target.pid, 2)
                self.assertEqual(agent.stop(signal.SIGINT), 0)

    def test_forced_rate_is_set_back_at_the_end_and_after_a_kill(self):
        go = rig.build.mandatory()[1]
        program = rig.build.build("nopprof", go)
        with rig.Target([program], env={"OTEL_SERVICE_NAME": "eta"}) as target:
            rate = lambda: rate_of(go, program, target.pid)
            self.assertEqual(rate(), 0)
            with self.agent() as agent:
                time.sleep(2 * INTERVAL)
                reader = agent.target(target.pid)["readers"][0]
                self.assertFalse(reader["available"])
                self.assertIn("force", reader["remedy"])
                self.assertEqual(agent.stop(), 0)
            with self.agent("--go-heap", "force") as agent:
                agent.wait_collections(target.pid, 5)
                self.assertEqual(rate(), 524288)
                refused = rig.sonde("heap", target.pid, "--force", "--rate", "4096", "--wait",
                                    "1s", check=rig.FAILED)
                self.assertIn("another sonde", refused.stderr)
                self.assertIn("main.churn", agent.stored("eta"))
                self.assertEqual(agent.stop(), 0)
            self.assertEqual(rate(), 0)
            with self.agent("--go-heap", "force") as agent:
                agent.wait_collections(target.pid, 1)
                agent.stop(signal.SIGKILL)
            self.assertEqual(rate(), 524288)
            with self.agent() as agent:
                self.assertEqual(rate(), 0)
                agent.stop()
            with self.agent("--go-heap", "force", "--keep-rate") as agent:
                agent.wait_collections(target.pid, 1)
                self.assertEqual(agent.stop(), 0)
            self.assertEqual(rate(), 524288)

    @unittest.skipUnless(os.uname().machine == "x86_64", "the target's system calls are amd64's")
    def test_program_that_withholds_its_memory_delays_nobody(self):
        program = rig.build.build("withheld", rig.build.mandatory()[1])
        with self.agent() as agent, leak("theta") as other, \
                rig.Target([program], env={"OTEL_SERVICE_NAME": "iota"}) as target:
            agent.wait_collections(target.pid, 1)
            self.assertEqual(target.ask("withhold"), "done")
            before = agent.target(target.pid)["readers"][0]
            # The other one goes on; were a thread waiting for that page, it would be said.
            agent.wait_collections(other.pid, 4)
            reader = agent.target(target.pid)["readers"][0]
            self.assertGreater(reader["failures"], before["failures"])
            self.assertLessEqual(reader["collections"], before["collections"] + 1)
            self.assertTrue(reader["trouble"])
            self.assertFalse(reader["slow"], reader)
            self.assertEqual(agent.target(other.pid)["readers"][0]["failures"], 0)
            self.assertEqual(agent.stop(), 0)

    def test_settings_that_make_no_sense_are_refused(self):
        data = os.path.join(self.tmp.name, "data")
        for wrong in (("--interval", "1ms"), ("--retention", "soon"), ("--max-disk", "2X"),
                      ("--go-heap", "maybe"), ("--keep-rate",)):
            done = rig.sonde("run", "--data-dir", data, *wrong, check=rig.USAGE)
            self.assertIn(wrong[0], done.stderr)
        done = rig.sonde("run", "--data-dir", data, check=rig.USAGE,
                         env=dict(os.environ, SONDE_INTERVAL="never"))
        self.assertIn("SONDE_INTERVAL", done.stderr)
        rig.sonde("run", "--data-dir", data, "--listen", "192.0.2.1:80", check=rig.FAILED)


def load(every, suite):
    del every
    suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(Run))
