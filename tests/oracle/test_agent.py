"""sonde run against programs that count what they allocate: what it stores is what they did."""
import json
import math
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import rig
import stats
from pprof import Profile
from test_force import rate_of

INTERVAL = 1.0
QUICK = 0.2  # where a test only waits for readings
ALLOC = "go_heap:alloc_space:bytes"
INUSE = "go_heap:inuse_space:bytes"


class Agent:
    """A running `sonde run` on a port of its own."""

    def __init__(self, directory, *args, interval=INTERVAL, env=None):
        # A file: a pipe that nobody reads would stop it when it is full.
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [rig.SONDE, "run", "--listen", "127.0.0.1:0", "--data-dir", directory, "--interval",
             f"{int(interval * 1000)}ms", *args], stdout=subprocess.PIPE, stderr=self.log,
            text=True, env=dict(os.environ, **(env or {})))
        line = self.process.stdout.readline()
        if "http://" not in line:
            self.process.wait(rig.LIMIT)
            self.log.seek(0)
            raise AssertionError(f"sonde run did not start: {line}{self.log.read()}")
        self.url = line.split()[-1]

    def get(self, path, **params):
        query = urllib.parse.urlencode(params, doseq=True)
        try:
            with urllib.request.urlopen(f"{self.url}{path}?{query}", timeout=rig.LIMIT) as answer:
                return answer.read()
        except urllib.error.HTTPError:
            raise
        except OSError:
            self.check_alive()
            raise

    def check_alive(self):
        """One that ended by itself fails the test, and says why."""
        code = self.process.poll()
        if code is not None:
            self.log.seek(0)
            raise AssertionError(f"sonde run ended by itself: {code}\n{self.log.read()[-4000:]}")

    def api(self, path, **params):
        return json.loads(self.get("api/" + path, **params))

    def target(self, pid):
        for target in self.api("targets")["targets"]:
            if target["pid"] == pid:
                return target
        return None

    def wait_collections(self, pid, more=3, timeout=rig.LIMIT):
        """Until so many readings of the process have ended after now.

        They come in different intervals, and what was read in one is stored at its end: so all but
        the last are stored, with times that are over.
        """
        first = None

        def there():
            nonlocal first
            target = self.target(pid)
            if not target:
                return False
            count = target["readers"][0]["collections"]
            first = count if first is None else first
            return count >= first + more

        rig.wait_for(there, lambda: f"process {pid} is not collected: {self.target(pid)}", timeout)

    def stored(self, service, kind=ALLOC, **params):
        """{function: value} by the function that allocates; {} of what is not stored yet."""
        try:
            answer = self.api("top", service=service, type=kind, limit=1000,
                              **{"to": now_ms() + 60000, **params})
        except urllib.error.HTTPError as e:
            if e.code == 404:
                return {}
            raise
        return {row["name"]: row["self"] for row in answer["rows"] if row["self"]}

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        code = self.process.wait(timeout=rig.LIMIT)
        self.process.stdout.close()
        self.log.close()
        return code

    def __enter__(self):
        return self

    def check_registered(self):
        """Whatever was stored or is on /metrics, the registry knows it."""
        registry = self.api("types")
        modes = registered_modes(registry)
        for service in self.api("services")["services"]:
            for t in service["types"]:
                assert modes.get(t["type"]) == t["mode"], t
        names = re.findall(r"^# TYPE (\S+) (\S+)$", self.get("metrics").decode(), re.M)
        assert names == [(m["prometheus"], m["kind"]) for m in registry["metrics"] if m["prometheus"]], names

    def __exit__(self, kind, *_):
        if self.process.returncode is None:
            self.check_alive()
            try:
                if kind is None:
                    self.check_registered()
            finally:
                self.stop(signal.SIGKILL)


def registered_modes(registry):
    """{type: mode} of an answer to /api/types: profiles, and metrics that are stored."""
    modes = {t["type"]: t["mode"] for t in registry["types"]}
    modes.update({m["stream"]: {"gauge": "snapshot", "counter": "delta"}[m["kind"]]
                  for m in registry["metrics"] if m["stream"]})
    return modes


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


LEAK_BLOCK, CHURN_BLOCK, RATE = 4 << 10, 32 << 10, 512 << 10


def counts(text):
    words = text.split()
    return {"main.leak": int(words[1]), "main.churn": int(words[3])}


def leak(service, leak_mb=30, churn_mb=150, env=None):
    program = rig.build.build("leak", rig.build.mandatory()[1])
    return rig.Target([program, "-leak-mb", str(leak_mb), "-churn-mb", str(churn_mb)],
                      env=dict(env or {}, OTEL_SERVICE_NAME=service))


def check_sampled(case, name, sampled, counted, checks):
    """So many bytes in samples are likely where so many were allocated, in blocks of one size.

    The runtime samples each block by itself, and stands it for as many as its chance says.
    """
    block = {"main.leak": LEAK_BLOCK, "main.churn": CHURN_BLOCK}[name]
    share = 1 - math.exp(-block / RATE)
    stats.check_share(case, round(sampled * share / block), counted // block, share,
                      checks=checks, msg=name)


class Episode:
    """A target at rest, then at work, then at rest; and what the two ends of it were."""

    def __init__(self, agent, target):
        self.agent, self.target = agent, target
        # The runtime allocates now and then, too. The agent sees it at once, others after a GC.
        while not self.begins():
            pass

    def begins(self):
        """Whether nothing was allocated since its last rest."""
        self.before = self.rest()
        # Steps of a series are whole seconds.
        self.from_ms = -(-now_ms() // 1000) * 1000
        rig.wait_for(lambda: now_ms() >= self.from_ms, "the next second")
        # A collection that comes late is spread, back to the one before: that is in the window, too.
        self.agent.wait_collections(self.target.pid, 2)
        self.first = cumulative(self.target.pid)
        return self.settled() == self.first

    def settled(self):
        self.target.ask("gc")
        return cumulative(self.target.pid)

    def rest(self):
        said = counts(self.target.ask("pause"))
        self.target.ask("gc")
        self.agent.wait_collections(self.target.pid)
        return said

    def work(self, leak_mb=100, churn_mb=300, collections=3):
        """Until it has allocated so much, and was read while it did."""
        said = counts(self.target.ask("go"))
        wanted = {"main.leak": leak_mb << 20, "main.churn": churn_mb << 20}
        self.agent.wait_collections(self.target.pid, collections)
        rig.wait_for(lambda: all(n - said[name] >= wanted[name] for name, n in
                                 counts(self.target.ask("counts")).items()),
                     lambda: f"{wanted} more than {said}: {self.target.ask('counts')}")

    def end(self):
        self.after = self.rest()
        self.counted = {n: self.after[n] - self.before[n] for n in self.after}
        last = cumulative(self.target.pid)
        while (now := self.settled()) != last:
            self.agent.wait_collections(self.target.pid)
            last = now
        self.exact = difference(last, self.first)


class Run(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory()
        self.addCleanup(self.tmp.cleanup)

    def agent(self, *args):
        return Agent(os.path.join(self.tmp.name, "data"), *args, interval=QUICK)

    def check_counted(self, stored, counted, checks=1):
        for name, value in counted.items():
            check_sampled(self, name, stored.get(name, 0), value, checks * len(counted))

    def test_deltas_add_up_to_last_minus_first_and_to_what_was_counted(self):
        with leak("alpha") as target, self.agent() as agent:
            episode = Episode(agent, target)
            episode.work()
            episode.end()
            stored = agent.stored("alpha", **{"from": episode.from_ms})
            self.assertEqual(stored, episode.exact)
            self.check_counted(stored, episode.counted, checks=2)
            # The same by the file and by the series.
            path = os.path.join(self.tmp.name, "window.pb.gz")
            with open(path, "wb") as f:
                f.write(agent.get("api/pprof", service="alpha", type=ALLOC, to=now_ms() + 60000,
                                  **{"from": episode.from_ms}))
            self.assertEqual(sum(s.values[0] for s in Profile(path).samples),
                             sum(episode.exact.values()))
            series = agent.api("series", service="alpha", type=ALLOC, step_ms=1000,
                               to=now_ms() // 1000 * 1000 + 2000, **{"from": episode.from_ms})
            self.assertEqual(sum(p for p in series["points"] if p), sum(episode.exact.values()))
            # What leaks is in use; what churns is not, but for the last block of it.
            since = now_ms()
            agent.wait_collections(target.pid, 2)
            inuse = agent.stored("alpha", INUSE, **{"from": since})
            self.check_counted(inuse, {"main.leak": episode.after["main.leak"]}, checks=2)
            self.assertLess(inuse.get("main.churn", 0), 2 * (RATE + CHURN_BLOCK))

    def test_what_was_allocated_before_is_a_baseline(self):
        with leak("beta", churn_mb=300) as target:
            rig.wait_for(lambda: counts(target.ask("counts"))["main.churn"] > 200 << 20, "churn")
            before = counts(target.ask("pause"))
            target.ask("gc")
            with self.agent() as agent:
                agent.wait_collections(target.pid, 4)
                stored = agent.stored("beta")
                self.assertEqual({n: v for n, v in stored.items() if n in before}, {})
                inuse = agent.stored("beta", INUSE)
                self.check_counted(inuse, {"main.leak": before["main.leak"]})

    def test_restart_and_a_second_process_add_up(self):
        with self.agent() as agent:
            with leak("gamma") as first:
                one = Episode(agent, first)
                one.work()
                one.end()
            with leak("gamma") as second, leak("gamma") as third:
                two, three = Episode(agent, second), Episode(agent, third)
                two.work()
                three.work()
                two.end()
                three.end()
                total = {}
                for episode in (one, two, three):
                    stored = agent.stored("gamma", label=f"process.pid={episode.target.pid}",
                                          **{"from": episode.from_ms})
                    self.assertEqual(stored, episode.exact)
                    self.check_counted(stored, episode.counted, checks=3)
                for pid in (first.pid, second.pid, third.pid):
                    for name, value in agent.stored("gamma", label=f"process.pid={pid}").items():
                        total[name] = total.get(name, 0) + value
                self.assertEqual(agent.stored("gamma"), total)
                rig.wait_for(lambda: agent.target(first.pid) is None, "the first is still shown")

    def test_process_that_opts_out_is_left_alone(self):
        with leak("delta", env={"SONDE_PROFILING": "disabled"}) as target, \
                leak("epsilon") as other, self.agent() as agent:
            agent.wait_collections(other.pid)
            readers = rig.wait_for(lambda: agent.target(target.pid), "the target")["readers"]
            for reader in readers:
                self.assertFalse(reader["available"])
                self.assertEqual(reader["cause"], "opted_out")
            types = {s["service"]: {t["type"] for t in s["types"]}
                     for s in agent.api("services")["services"]}
            self.assertIn("epsilon", types)
            self.assertNotIn("delta", types)
            # Neither under the name that it has without its environment.
            for service in types:
                for kind in types[service] & {ALLOC, INUSE, "cpu:cpu:nanoseconds"}:
                    self.assertEqual(agent.stored(service, kind,
                                                  label=f"process.pid={target.pid}"), {})

    def test_stops_cleanly_and_goes_on_with_what_was_stored(self):
        attributes = {"service.namespace": "greek", "service.version": "1.4.2"}
        with leak("zeta", env={"OTEL_RESOURCE_ATTRIBUTES": ",".join(
                f"{k}={v}" for k, v in attributes.items())}) as target:
            with self.agent() as agent:
                agent.wait_collections(target.pid, 1)
                before = rig.wait_for(lambda: agent.stored("zeta").get("main.churn"), "churn")
                labels = {l["key"]: [v["value"] for v in l["values"]]
                          for l in agent.api("labels", service="zeta")["labels"]}
                self.assertLessEqual({k: [v] for k, v in attributes.items()}.items(), labels.items())
                twice = rig.sonde("run", "--listen", "127.0.0.1:0", "--data-dir",
                                  os.path.join(self.tmp.name, "data"), check=rig.FAILED)
                self.assertIn("another sonde", twice.stderr)
                self.assertEqual(agent.stop(), 0)
            with self.agent() as agent:
                self.assertGreaterEqual(agent.stored("zeta")["main.churn"], before)
                agent.wait_collections(target.pid, 2)
                self.assertEqual(agent.stop(signal.SIGINT), 0)

    def test_names_of_services_are_saved_at_the_end(self):
        data = os.path.join(self.tmp.name, "data")
        saved = os.path.join(data, "services")
        os.mkdir(data, 0o700)
        # No file can take its place.
        os.mkdir(saved)
        with leak("saved-at-the-end") as target, self.agent() as agent:
            agent.wait_collections(target.pid, 1)
            # It tries once a second, so this is most likely the last time.
            os.rmdir(saved)
            self.assertEqual(agent.stop(), 0)
        with open(saved) as f:
            self.assertIn("saved-at-the-end", f.read())

    def test_forced_rate_is_set_back_at_the_end_and_after_a_kill(self):
        go = rig.build.mandatory()[1]
        program = rig.build.build("nopprof", go)
        with rig.Target([program], env={"OTEL_SERVICE_NAME": "eta"}) as target:
            rate = lambda: rate_of(go, program, target.pid)
            self.assertEqual(rate(), 0)
            with self.agent() as agent:
                cause = lambda: (agent.target(target.pid) or {"readers": [{}]})["readers"][0].get("cause")
                rig.wait_for(lambda: cause() == "profiling_off", cause)
                self.assertFalse(agent.target(target.pid)["readers"][0]["available"])
                self.assertEqual(agent.stop(), 0)
            with self.agent("--go-heap", "force") as agent:
                agent.wait_collections(target.pid, 1)
                self.assertEqual(rate(), 524288)
                refused = rig.sonde("heap", target.pid, "--force", "--rate", "4096", "--wait",
                                    "1s", check=rig.FAILED)
                self.assertIn("another sonde", refused.stderr)
                rig.wait_for(lambda: "main.churn" in agent.stored("eta"),
                             lambda: agent.stored("eta"))
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

    def test_processes_that_come_and_go_delay_nothing(self):
        """Somebody is always too young to be examined."""
        spawn = "while :; do sleep 4 & sleep 0.3; done"
        with subprocess.Popen(["sh", "-c", spawn], start_new_session=True) as shell, self.agent() as agent:
            try:
                rig.wait_for(lambda: agent.api("health")["store"]["profiles"], lambda: agent.api("health"), 60)
            finally:
                os.killpg(shell.pid, signal.SIGKILL)

    @unittest.skipUnless(os.uname().machine == "x86_64", "the target's system calls are amd64's")
    def test_program_that_withholds_its_memory_delays_nobody(self):
        program = rig.build.build("withheld", rig.build.mandatory()[1])
        with leak("theta") as other, \
                rig.Target([program], env={"OTEL_SERVICE_NAME": "iota"}) as target, \
                self.agent() as agent:
            reader = lambda: agent.target(target.pid)["readers"][0]
            agent.wait_collections(target.pid, 1)
            self.assertEqual(target.ask("withhold"), "done")
            before = reader()
            # The other one goes on.
            agent.wait_collections(other.pid, 4)
            # A machine may be slow for a while; a thread that waits for that page is so for ever.
            rig.wait_for(lambda: reader()["failures"] > before["failures"] and
                         reader()["trouble"] and not reader()["slow"], reader)
            self.assertLessEqual(reader()["collections"], before["collections"] + 1)
            agent.wait_collections(other.pid, 1)
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
