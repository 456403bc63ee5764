"""sonde run beside Go programs: goroutines, waits and runtime figures are the programs' own."""
import collections
import math
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import rig
import test_oom
from pprof import Profile
from test_agent import QUICK, Agent, now_ms
from test_contention import KINDS, is_runtime_lock
from test_force import heed_interrupts
from test_goroutines import OF_THE_DUMP
from test_metrics import stats_of

CUT = "[stack is deeper than was recorded]"
STATES = ("waiting", "runnable", "running", "syscall")
MANY = 120000  # goroutines: more than are read one by one


def frames_of(sample):
    return tuple((f.function, f.line) for location in sample.stack for f in location.frames)


def by_leaf(path, value):
    """{function that waits: value}, without the runtime's own locks."""
    found = collections.Counter()
    for sample in Profile(path).samples:
        if not is_runtime_lock(sample):
            found[sample.stack[0].frames[0].function] += sample.values[value]
    return {k: v for k, v in found.items() if v}


def series_of(text):
    """{(name, labels): value} of what Prometheus would read, which is strict about it."""
    found, types, helps, last = {}, {}, set(), None
    for line in text.splitlines():
        word = line.split(" ", 3)
        if line.startswith("# HELP "):
            assert word[2] not in helps and len(word) == 4, line
            helps.add(word[2])
        elif line.startswith("# TYPE "):
            assert word[2] not in types and word[2] in helps, line
            assert word[3] in ("gauge", "counter"), line
            assert (word[3] == "counter") == word[2].endswith("_total"), line
            types[word[2]] = word[3]
            last = word[2]
        else:
            match = re.fullmatch(r'([a-z_]+)(\{(?:[a-z_]+="(?:[^"\\]|\\.)*",?)*\})? (\S+)', line)
            assert match, line
            # All of a name come in one piece, below what it is.
            assert match.group(1) == last, line
            labels = dict(re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', match.group(2) or ""))
            key = match.group(1), tuple(sorted(labels.items()))
            assert key not in found, line
            found[key] = float(match.group(3))
    return found


def figures_of(agent, pid):
    """{name, or (name, state): value} of one process."""
    found = {}
    for (name, labels), value in series_of(agent.get("metrics").decode()).items():
        labels = dict(labels)
        if labels.get("pid") == str(pid):
            name = name.replace("container_go_", "")
            found[(name, labels["state"]) if "state" in labels else name] = value
    return found


def reader_of(agent, pid, name):
    target = agent.target(pid) or {"readers": []}
    return next((r for r in target["readers"] if r["reader"] == name), None)


class Beyond(unittest.TestCase):
    go = None  # the one that is always there

    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory()
        self.addCleanup(self.tmp.cleanup)

    def agent(self, *args):
        return Agent(os.path.join(self.tmp.name, "data"), "--cpu-hz", "0", *args, interval=QUICK)

    def path(self, name):
        return os.path.join(self.tmp.name, name)

    def wait_reader(self, agent, pid, name, more=3):
        """Until so many readings have ended after now: all but the last are stored."""
        count = lambda: (reader_of(agent, pid, name) or {"collections": 0})["collections"]
        first = count()
        rig.wait_for(lambda: count() >= first + more,
                     lambda: f"{count() - first} of {more} readings: {reader_of(agent, pid, name)}")

    def target(self, name, *args, service, go=None, env=None):
        program = rig.build.build(name, go or self.go or rig.build.mandatory()[1])
        return rig.Target([program, *args], env=dict(env or {}, OTEL_SERVICE_NAME=service))

    def window(self, agent, service, kind, since):
        """The stored profile of a window; at the start, records wait for the names of parents."""
        window = {"service": service, "from": since, "to": now_ms() + 60000}
        stored = lambda: [t["type"] for s in agent.api("services", **window)["services"] for t in s["types"]]
        rig.wait_for(lambda: kind in stored(), lambda: f"{kind} of {service} is not stored: {stored()}")
        with open(self.path("window"), "wb") as f:
            f.write(agent.get("api/pprof", type=kind, **window))
        return Profile(self.path("window"))

    def test_goroutines_are_those_of_the_programs_own_profile(self):
        with self.target("goroutines", "-o", self.path("own"), service="beyond-alpha") as target, \
                self.agent("--goroutine-interval", "400ms") as agent:
            self.assertEqual(target.ask("gc"), "collected")
            self.wait_reader(agent, target.pid, "go-goroutines")
            since = now_ms()
            self.wait_reader(agent, target.pid, "go-goroutines")
            stacks = {}
            for kind in ("goroutine", *STATES):
                stacks[kind] = collections.Counter()
                for s in self.window(agent, "beyond-alpha", f"go_goroutine:{kind}:count", since).samples:
                    stacks[kind][frames_of(s)] += s.values[0]
            figures = figures_of(agent, target.pid)
            self.assertEqual(target.ask("dump"), "dumped")
            own = collections.Counter()
            for s in Profile(self.path("own.goroutine.pb.gz")).samples:
                own[frames_of(s)] += s.values[0]
        # The program's own profile cuts deep stacks without a word; ours says so.
        marked = [k for k in stacks["goroutine"] if k[-1][0] == CUT]
        self.assertEqual({len(k) - 1 for k in marked}, {max(len(k) for k in own)})
        whole = lambda k: k[:-1] if k[-1][0] == CUT else k
        without = lambda counts: {whole(k): v for k, v in counts.items()
                                  if not any(f == OF_THE_DUMP for f, _ in k)}
        self.assertEqual(without(stacks["goroutine"]), without(own))
        self.assertGreater(sum(own.values()), 30)
        self.assertEqual(sum((stacks[s] for s in STATES), collections.Counter()),
                         stacks["goroutine"])
        self.assertEqual(sum(stacks["goroutine"].values()), sum(own.values()))
        # And by state as figures; not once more without.
        self.assertEqual({s: figures["goroutines", s] for s in STATES},
                         {s: sum(stacks[s].values()) for s in STATES})
        self.assertNotIn("goroutines", figures)

    def test_waits_are_stored_when_they_are_turned_on_and_add_up_to_the_programs_own(self):
        go = rig.build.newest()[1]
        with self.target("contention", "-load", "-o", self.path("own"), service="beyond-beta",
                         go=go) as target, \
                self.agent("--goroutine-interval", "off") as agent:
            # It makes the program measure its clock, so that both tell the same time.
            self.assertEqual(target.ask("dump"), "dumped")
            agent.wait_collections(target.pid, 2)
            reader = reader_of(agent, target.pid, "go-goroutines")
            self.assertEqual(reader["cause"], "disabled")
            self.assertIn("goroutines", figures_of(agent, target.pid))
            before = {}
            for episode in range(2):
                since = now_ms()
                for kind in KINDS:
                    reader = reader_of(agent, target.pid, f"go-{kind}")
                    self.assertFalse(reader["available"])
                    self.assertEqual((reader["family"], reader["cause"]), (f"go_{kind}", "profiling_off"))
                    self.assertIn(f"sonde {kind} {target.pid} --force-{kind} ", reader["remedy"])
                    self.force(agent, target, kind, before.get((kind, 0), {}))
                rig.wait_for(lambda: not any(reader_of(agent, target.pid, f"go-{k}")["available"]
                                             for k in KINDS), "they stay on")
                # What was read last is stored when others have been read again.
                agent.wait_collections(target.pid, 2)
                self.assertEqual(target.ask("dump"), "dumped")
                for kind in KINDS:
                    for value, name in enumerate(("contentions:count", "delay:nanoseconds")):
                        own = by_leaf(self.path(f"own.{kind}.pb.gz"), value)
                        first = before.get((kind, value), {})
                        stored = {k: v for k, v in agent.stored(
                            "beyond-beta", f"go_{kind}:{name}", **{"from": since}).items()
                            if not k.startswith(("runtime.unlock", "runtime._Lost"))}
                        self.assertEqual(stored, {k: v - first.get(k, 0) for k, v in own.items()
                                                  if v != first.get(k, 0)}, (kind, name))
                        self.assertGreater(sum(stored.values()), 20, (kind, name, episode))
                        before[kind, value] = own
            figures = figures_of(agent, target.pid)
            self.assertEqual(figures["block_contentions_total"], sum(before["block", 0].values()))
            self.assertAlmostEqual(figures["block_delay_seconds_total"],
                                   sum(before["block", 1].values()) / 1e9, places=6)
            self.assertGreaterEqual(figures["mutex_delay_seconds_total"],
                                    sum(before["mutex", 1].values()) / 1e9 - 1e-6)

    def force(self, agent, target, kind, before):
        """Turns a profile on until the agent has read it and there is something in it."""
        def waits():
            self.assertEqual(target.ask("dump"), "dumped")
            own = by_leaf(self.path(f"own.{kind}.pb.gz"), 0)
            return sum(own.values()) - sum(before.values())

        with subprocess.Popen([rig.SONDE, kind, str(target.pid), f"--force-{kind}", "1", "--wait",
                               "1h"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              preexec_fn=heed_interrupts) as force:
            try:
                rig.wait_for(lambda: reader_of(agent, target.pid, f"go-{kind}")["available"],
                             f"the {kind} profile stays off")
                rig.wait_for(lambda: waits() > 20, lambda: f"{waits()} waits")
            finally:
                force.send_signal(signal.SIGINT)

    def quiet(self, agent, target, service, since):
        """What the program says, and what is stored and shown of it after that."""
        def stored(since, *names):
            found = {name: sum(agent.stored(service, f"go_runtime:{name}",
                                            **{"from": since}).values()) for name in names}
            return found if all(found.values()) else None

        own = stats_of(target)[0]
        self.wait_reader(agent, target.pid, "go-runtime")
        after = now_ms()
        # However late it is stored; and then what came before is, too.
        now = rig.wait_for(lambda: stored(after, "heap_live:bytes", "heap_goal:bytes",
                                          "heap_inuse:bytes", "memory_limit:bytes",
                                          "memory_used:bytes",
                                          "goroutines:count", "gomaxprocs:count"), "figures")
        deltas = stored(since, "gc_cycles:count", "gc_pause:nanoseconds", "alloc:bytes")
        return own, deltas, now, figures_of(agent, target.pid)

    def test_figures_of_the_runtime_are_the_programs_own(self):
        env = {"GOMAXPROCS": "3", "GOMEMLIMIT": "512MiB"}
        with self.target("metrics", service="beyond-gamma", env=env) as target, \
                self.target("metrics", service="beyond-delta") as unlimited, self.agent() as agent:
            for command in ("grow 20", "gc", "gc", "go 50", "end 20"):
                self.assertEqual(target.ask(command), "done")
            first = self.quiet(agent, target, "beyond-gamma", now_ms())[0]
            since = now_ms()
            for command in ("grow 5", "gc", "gc", "gc", "end 10"):
                self.assertEqual(target.ask(command), "done")
            own, deltas, now, figures = self.quiet(agent, target, "beyond-gamma", since)
            with open(f"/proc/{target.pid}/statm") as f:
                resident = int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")
            others = [t["type"] for s in agent.api("services", to=now_ms() + 60000)["services"]
                      if s["service"] == "beyond-delta" for t in s["types"]]
            self.assertNotIn("memory_limit_bytes", figures_of(agent, unlimited.pid))
        self.assertIn("go_runtime:heap_live:bytes", others)
        self.assertNotIn("go_runtime:memory_limit:bytes", others)
        grown = {k: own[k] - first[k] for k in ("NumGC", "PauseTotalNs", "TotalAlloc")}
        self.assertEqual(deltas, {"gc_cycles:count": grown["NumGC"],
                                  "gc_pause:nanoseconds": grown["PauseTotalNs"],
                                  "alloc:bytes": grown["TotalAlloc"]})
        self.assertEqual(deltas["gc_cycles:count"], 3)
        self.assertGreaterEqual(deltas["alloc:bytes"], 5 << 20)
        self.assertGreater(now.pop("heap_live:bytes"), 25 << 20)
        self.assertAlmostEqual(figures["resident_memory_bytes"] / resident, 1, delta=0.1)
        self.assertEqual(now, {"heap_goal:bytes": own["NextGC"],
                               "heap_inuse:bytes": own["HeapInuse"],
                               "memory_used:bytes": own["Sys"] - own["HeapReleased"],
                               "memory_limit:bytes": 512 << 20,
                               "goroutines:count": own["NumGoroutine"], "gomaxprocs:count": 3})
        self.assertEqual(own["NumGoroutine"], 21)
        self.assertEqual({k: figures[k] for k in ("heap_goal_bytes", "heap_inuse_bytes",
                                                  "memory_limit_bytes", "gomaxprocs",
                                                  "gc_cycles_total")},
                         {"heap_goal_bytes": own["NextGC"], "heap_inuse_bytes": own["HeapInuse"],
                          "memory_limit_bytes": 512 << 20, "gomaxprocs": 3,
                          "gc_cycles_total": own["NumGC"]})
        self.assertAlmostEqual(figures["gc_pause_seconds_total"], own["PauseTotalNs"] / 1e9)
        self.assertGreater(figures["gc_cpu_fraction"], 0)
        self.assertLess(figures["gc_cpu_fraction"], 1)

    def test_of_very_many_goroutines_some_are_read_now_and_then_and_it_says_so(self):
        with self.target("goroutines", "-n", str(MANY), service="beyond-epsilon") as target, \
                self.agent("--goroutine-interval", "1s") as agent:
            rig.wait_for(lambda: (reader_of(agent, target.pid, "go-goroutines") or
                                  {"collections": 0})["collections"], "goroutines")
            reader = reader_of(agent, target.pid, "go-goroutines")
            said = re.match(r"(\d+) goroutines; (\d+) stacks sampled; "
                            r"a collection takes \d+ ms of CPU; collected every (\d+) s$",
                            reader["trouble"])
            self.assertTrue(said, reader)
            total, read, every = map(int, said.groups())
            self.assertGreater(total, MANY)
            self.assertLess(read, 100000)
            self.assertGreater(every, 1)
            agent.wait_collections(target.pid)
            stored = agent.stored("beyond-epsilon", "go_goroutine:goroutine:count")
            self.assertAlmostEqual(sum(stored.values()) / total, 1, delta=0.01, msg=(reader, stored))
            figures = figures_of(agent, target.pid)
            self.assertEqual(sum(figures["goroutines", s] for s in STATES), total)
            # The heap of this program is read as often as ever.
            count = lambda name: reader_of(agent, target.pid, name)["collections"]
            rig.wait_for(lambda: count("go-heap") > count("go-goroutines"),
                         lambda: [count("go-heap"), count("go-goroutines")])

    @unittest.skipUnless(shutil.which("strace"), "needs strace")
    def test_a_reading_takes_few_system_calls(self):
        """Heap, figures and waits of a program with some hundred stacks, each interval."""
        with self.target("heap", "-rate", "1", service="beyond-theta") as target:
            trace, port = self.path("trace"), "127.0.0.1:0"
            sonde = subprocess.Popen(
                ["strace", "-f", "-y", "-e", "trace=process_vm_readv,pread64", "-o", trace, rig.SONDE,
                 "run", "--listen", port, "--data-dir", self.path("traced"), "--interval", "1s",
                 "--cpu-hz", "0", "--goroutine-interval", "off"],
                stdout=subprocess.PIPE, text=True, start_new_session=True)

            def calls():
                with open(trace) as f:
                    return sum(f"process_vm_readv({target.pid}," in line or
                               f"</proc/{target.pid}/mem>" in line for line in f)

            try:
                self.assertIn("http://", sonde.stdout.readline())
                rig.wait_for(lambda: calls() > 20, "no reading")
                # Everything is found by now.
                time.sleep(4)
                each = math.inf
                deadline = time.monotonic() + rig.LIMIT
                # Where the program's garbage collector comes in between, a reading is repeated.
                while each >= 12 and time.monotonic() < deadline:
                    before, begin = calls(), time.monotonic()
                    time.sleep(8)
                    each = (calls() - before) / (time.monotonic() - begin)
            finally:
                # strace itself ignores this as long as sonde runs.
                os.killpg(sonde.pid, signal.SIGTERM)
                sonde.wait(timeout=rig.LIMIT)
                sonde.stdout.close()
        self.assertGreater(each, 3)
        # Four of the heap, two of the figures, and one each to see whether waits are recorded.
        self.assertLess(each, 12)

    def test_very_many_stacks_leave_room_for_others(self):
        service, kind, ways = "beyond-eta", "go_goroutine:goroutine:count", 12000
        go = rig.build.newest()[1]
        with self.target("goroutines", service=service, go=go) as target, \
                self.agent("--goroutine-interval", "1s") as agent:
            self.assertEqual(target.ask(f"ways {ways}"), "waiting")
            self.wait_reader(agent, target.pid, "go-goroutines", 2)
            since = now_ms()
            self.wait_reader(agent, target.pid, "go-goroutines", 2)
            said = reader_of(agent, target.pid, "go-goroutines")["trouble"]
            stacks = self.window(agent, service, kind, since).samples
        self.assertRegex(said, r"too many different stacks: \d+ of them are in \(other\)")
        self.assertLessEqual(len(stacks), 10001)
        values = {frames_of(s)[0][0]: s.values[0] for s in stacks if len(s.stack) == 1}
        total = sum(s.values[0] for s in stacks)
        self.assertGreater(total, ways)
        # Those with many goroutines are all there, and so is the number of the rest.
        self.assertAlmostEqual(values["(other)"], total - 10000, delta=100)

    def test_who_is_read_less_often_counts_all_the_time(self):
        service, kind, some = "beyond-zeta", "go_goroutine:goroutine:count", 30000
        count = lambda pid: (reader_of(agent, pid, "go-goroutines") or
                             {"collections": 0})["collections"]
        with self.target("goroutines", "-n", str(some), service=service) as large, \
                self.target("goroutines", service=service) as small, \
                self.agent("--goroutine-interval", "1s") as agent:
            rig.wait_for(lambda: count(large.pid) >= 2 and count(small.pid) > 2, "goroutines")
            begin = now_ms() // 1000 * 1000
            first, other = count(large.pid), count(small.pid)
            rig.wait_for(lambda: count(large.pid) >= first + 3, "goroutines")
            end = now_ms() // 1000 * 1000
            self.assertGreater(count(small.pid) - other, count(large.pid) - first)
            points = agent.api("series", service=service, type=kind, step_ms=1000, to=end,
                               **{"from": begin})["points"]
            total = sum(agent.stored(service, kind, **{"from": begin, "to": end}).values())
        seen = [p for p in points if p is not None]
        self.assertGreater(len(seen), 3, points)
        for point in seen:
            self.assertAlmostEqual(point / some, 1, delta=0.02, msg=points)
        self.assertAlmostEqual(total / some, 1, delta=0.02)

    @unittest.skipUnless(os.geteuid() == 0 and test_oom.group_root(),
                         "needs root, and control groups that limit memory")
    def test_the_picture_near_a_limit_has_goroutines(self):
        with self.agent("--oom-watch", "70") as agent, \
                test_oom.limited(test_oom.LIMIT_MB) as prefix:
            leaked = str(test_oom.LIMIT_MB * 85 // 100)
            with test_oom.target(rig.build.mandatory()[1], "strip", "beyond-zeta", prefix, "-max-mb",
                                 leaked) as process:
                agent.wait_collections(process.pid, more=1)
                test_oom.start(process)
                event = test_oom.wait_event(agent, "oom_near", "beyond-zeta")
                self.assertEqual(event["top"]["name"], test_oom.LEAK)
                kind = "go_oom:goroutine:count"
                stored = rig.wait_for(lambda: agent.stored("beyond-zeta", kind), "goroutines")
                self.assertGreaterEqual(sum(stored.values()), 1)
                # It is part of that event, and none of its own.
                self.assertEqual(len(test_oom.events(agent, service="beyond-zeta")), 1)

    def test_intervals_that_make_no_sense_are_refused(self):
        for wrong in ("never", "48h", "-1s"):
            done = rig.sonde("run", "--data-dir", self.path("data"), "--goroutine-interval", wrong,
                             check=rig.USAGE)
            self.assertIn("--goroutine-interval", done.stderr)


def load(every, suite):
    suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(Beyond))
    for version, go in rig.versions(every) if every else []:
        case = type(f"Beyond {version}", (Beyond,), {"go": go})
        suite.addTest(case("test_goroutines_are_those_of_the_programs_own_profile"))
        # Older ones know less of themselves.
        if rig.build.version_key(version)[1] >= 19:
            suite.addTest(case("test_figures_of_the_runtime_are_the_programs_own"))
