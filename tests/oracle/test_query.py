"""sonde services and sonde query: what they say of a store is what the server says, and go tool
pprof of the same window, and what the program itself did."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import rig
from pprof import Profile
from test_agent import ALLOC, QUICK, Agent, Episode, leak, now_ms

SERVICE = f"omega-{os.getpid()}"  # the agent adds up all processes of a service
NATIVE = f"sigma-{os.getpid()}"  # has no heap that anybody knows
CPU = "cpu:cpu:nanoseconds"


def by_stack(path):
    """{stack of functions: value}, whatever the order in the file."""
    totals = {}
    for sample in Profile(path).samples:
        key = tuple(f.function for location in sample.stack for f in location.frames)
        totals[key] = totals.get(key, 0) + sample.values[0]
    return {key: value for key, value in totals.items() if value}


class Stored(unittest.TestCase):
    """Two pieces of work of one program, stored by an agent that runs on while we ask."""

    @classmethod
    def setUpClass(cls):
        cls.tmp = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.tmp.cleanup)
        cls.data = os.path.join(cls.tmp.name, "data")
        cls.target = cls.enterClassContext(leak(SERVICE, leak_mb=5))
        cls.agent = cls.enterClassContext(Agent(cls.data, interval=QUICK))
        cls.one = cls.episode(200)
        cls.two = cls.episode(300)
        # Whole intervals of rest lie around both, so that nothing is cut in two.
        cls.windows = ((cls.one.from_ms, cls.two.from_ms), (cls.two.from_ms, now_ms()))
        # Samples come late: those of the windows are stored when later ones are.
        cls.agent.wait_collections(cls.target.pid, 5)

    @classmethod
    def episode(cls, churn_mb):
        episode = Episode(cls.agent, cls.target)
        window = {"from": episode.from_ms}
        work = lambda: episode.work(leak_mb=5, churn_mb=churn_mb)
        work()
        # A fast machine does that between two samples.
        rig.wait_for(lambda: cls.agent.stored(SERVICE, CPU, **window) or work(),
                     "no CPU time of the target")
        episode.end()
        return episode

    def sonde(self, *args, check=rig.OK, **kwargs):
        return rig.sonde(*args, "--data-dir", self.data, check=check, **kwargs)

    def query(self, window, *args, kind="alloc_space", **kwargs):
        return self.sonde("query", SERVICE, "-t", kind, "--from", window[0], "--to", window[1],
                          *args, **kwargs)

    def functions(self, window, *args, **kwargs):
        answer = json.loads(self.query(window, "-f", "json", *args, **kwargs).stdout)
        return {f["name"]: f["flat"] for f in answer["functions"] if f["flat"]}

    def rows(self, window, kind=ALLOC):
        """The same of the server."""
        answer = self.agent.api("top", service=SERVICE, type=kind, limit=1000,
                                **{"from": window[0], "to": window[1]})
        return {row["name"]: (row["self"], row["total"]) for row in answer["rows"]}

    def file(self, name, window, *args):
        path = os.path.join(self.tmp.name, name)
        done = self.query(window, "-f", "pprof", "-o", path, *args)
        self.assertEqual(done.stdout, "")
        return path


class Query(Stored):
    def test_values_are_those_of_the_program_and_of_the_server(self):
        for episode, window in zip((self.one, self.two), self.windows):
            self.assertEqual(self.functions(window), episode.exact)
            answer = json.loads(self.query(window, "-f", "json").stdout)
            self.assertEqual({f["name"]: (f["flat"], f["cum"]) for f in answer["functions"]},
                             self.rows(window))
            self.assertEqual(answer["total"], sum(episode.exact.values()))
            self.assertEqual(answer["type"], "alloc_space")
        for kind in ("inuse_space:bytes", "inuse_objects:count", "alloc_objects:count"):
            answer = json.loads(self.query(self.windows[0], "-f", "json",
                                           kind=kind.split(":")[0]).stdout)
            rows = self.rows(self.windows[0], "go_heap:" + kind)
            self.assertGreater(len(rows), 3)
            # An average has fractions, a profile has none: each sample is rounded.
            half = len(answer["samples"]) / 2
            self.assertEqual({f["name"] for f in answer["functions"]}, set(rows))
            for f in answer["functions"]:
                self.assertAlmostEqual(f["flat"], rows[f["name"]][0], delta=half)
                self.assertAlmostEqual(f["cum"], rows[f["name"]][1], delta=half)
        # By its full name, and what is in use without a word.
        self.assertEqual(self.functions(self.windows[0], kind=ALLOC), self.one.exact)
        unsaid = self.sonde("query", SERVICE, "-f", "json").stdout
        self.assertEqual(json.loads(unsaid)["type"], "inuse_space")

    def test_a_word_means_a_type_of_the_service(self):
        kind = lambda word: json.loads(self.query(self.windows[0], "-f", "json", kind=word).stdout)["type"]
        for word, name in (("cpu", "cpu"), ("heap", "inuse_space"), ("alloc", "alloc_space"),
                           ("go_heap:alloc_objects", "alloc_objects"), ("goroutines", "goroutine")):
            self.assertEqual(kind(word), name)
        self.assertEqual(self.functions(self.windows[0], kind="alloc"), self.one.exact)
        # This program records no contention.
        refused = self.query(self.windows[0], kind="mutex", check=rig.FAILED).stderr
        self.assertIn("no type 'mutex'", refused)
        self.assertIn("go_heap:inuse_space", refused)

    def test_every_format_is_of_the_same_profile(self):
        window = self.windows[0]
        total = sum(self.one.exact.values())
        path = self.file("one.pb.gz", window)
        self.assertEqual(sum(by_stack(path).values()), total)
        served = os.path.join(self.tmp.name, "served.pb.gz")
        with open(served, "wb") as f:
            f.write(self.agent.get("api/pprof", service=SERVICE, type=ALLOC,
                                   **{"from": window[0], "to": window[1]}))
        self.assertEqual(by_stack(path), by_stack(served))
        top = [line for line in self.query(window).stdout.splitlines()
               if not line.startswith(("File:", "Time:", "Build ID:"))]
        self.assertEqual(top, rig.pprof_top(rig.build.newest()[1], path))
        collapsed = self.query(window, "-f", "collapsed").stdout.splitlines()
        self.assertEqual({tuple(reversed(line.rsplit(" ", 1)[0].split(";"))):
                          int(line.rsplit(" ", 1)[1]) for line in collapsed}, by_stack(path))
        tree = self.query(window, "-f", "tree").stdout
        self.assertIn("main.churn", tree)
        self.assertEqual(len([l for l in self.query(window, "-n", 1).stdout.splitlines()
                              if "main." in l]), 1)

    def function(self, path, name, window, kind=ALLOC):
        return self.agent.api(path, service=SERVICE, type=kind, name=name,
                              **{"from": window[0], "to": window[1]})

    def test_lines_of_a_function_are_those_of_pprof(self):
        window = self.windows[1]
        path = self.file("lines.pb.gz", window)
        named = [name for name in self.rows(window) if name.startswith("main.")]
        self.assertIn("main.churn", named)
        for name in named:
            f = self.function("function", name, window)
            self.assertEqual({l["line"]: (l["self"], l["total"]) for l in f["lines"]},
                             rig.pprof_list(rig.build.newest()[1], path, name, "B"), name)
            self.assertEqual({os.path.basename(l["file"]) for l in f["lines"]}, {"main.go"})
            self.assertEqual((f["self"], f["total"]), self.rows(window)[name])
        # What is allocated in one line is all that the program says it has allocated there.
        churn = self.function("function", "main.churn", window)
        self.assertEqual([l["self"] for l in churn["lines"]], [self.two.exact["main.churn"]])
        self.assertEqual(sum(c["total"] for c in churn["callers"]), churn["total"])

    def test_the_curve_of_a_function_adds_up_to_its_windows(self):
        window = self.windows[0][0], self.windows[1][1]
        for kind in (ALLOC, CPU):
            for name in ("main.churn", "main.run", "runtime.mallocgc"):
                curve = self.function("function/series", name, window, kind)
                for word in ("self", "total"):
                    whole = self.function("function", name, window, kind)[word]
                    self.assertEqual(sum(v for v in curve[word] if v), whole, (kind, name, word))
        # Step by step: the first piece of work is in the first window.
        curve = self.function("function/series", "main.churn", self.windows[0])
        self.assertEqual(sum(v for v in curve["self"] if v), self.one.exact["main.churn"])

    def test_baseline_subtracts_a_window(self):
        first, second = self.windows
        wanted = {n: self.two.exact.get(n, 0) - self.one.exact.get(n, 0)
                  for n in set(self.one.exact) | set(self.two.exact)}
        wanted = {n: v for n, v in wanted.items() if v}
        span = f"{first[0]}..{first[1]}"
        self.assertEqual(self.functions(second, "--baseline", span), wanted)
        path = self.file("change.pb.gz", second, "--baseline", span)
        self.assertEqual(sum(by_stack(path).values()), sum(wanted.values()))
        table = self.query(second, "--baseline", span).stdout
        self.assertRegex(table, r"(?i)before.*after.*change")
        self.assertRegex(table, r"main\.churn")
        # The window just before, of the same length.
        whole = (first[0], second[1])
        middle = (first[0] + second[1]) // 2
        late, early = (middle, second[1]), (middle - (second[1] - middle), middle)
        rows = {kind: self.functions(window) for kind, window in (("a", early), ("b", late))}
        wanted = {n: rows["b"].get(n, 0) - rows["a"].get(n, 0)
                  for n in set(rows["a"]) | set(rows["b"])}
        self.assertEqual(self.functions(late, "--baseline", "previous"),
                         {n: v for n, v in wanted.items() if v})
        # The same against itself is nothing.
        self.assertEqual(self.functions(whole, "--baseline", f"{whole[0]}..{whole[1]}"), {})

    def test_windows_and_labels(self):
        first, second = self.windows
        whole = self.functions((first[0], second[1]))
        self.assertEqual(whole, {n: self.one.exact.get(n, 0) + self.two.exact.get(n, 0)
                                 for n in set(self.one.exact) | set(self.two.exact)})
        pid = f"process.pid={self.target.pid}"
        self.assertEqual(self.functions(first, "--label", pid), self.one.exact)
        for nothing in (("--label", "process.pid=1"), ("--label", f"{pid},host.name=elsewhere")):
            self.assertEqual(self.functions(first, *nothing), {})
            self.assertIn("--label", self.query(first, *nothing).stderr)
        # Before anything was, and all there ever was.
        self.assertIn("Nothing was collected",
                      self.query((1000, 2000)).stderr)
        everything = self.functions((0, now_ms() + 10 ** 9))
        for name, value in whole.items():
            self.assertGreaterEqual(everything[name], value)

    def test_cpu_time_is_that_of_the_server_and_the_default_without_a_heap(self):
        window = self.windows[1]
        mine = self.functions(window, kind="cpu")
        self.assertTrue(mine)
        self.assertEqual(mine, {name: round(row[0]) for name, row in
                                self.rows(window, kind=CPU).items() if row[0]})
        env = dict(os.environ, OTEL_SERVICE_NAME=NATIVE)
        with subprocess.Popen([sys.executable, "-c", "while True: pass"], env=env) as native:
            try:
                rig.wait_for(lambda: NATIVE in self.sonde("services", "--names").stdout, f"no {NATIVE}")
            finally:
                native.kill()
        answer = json.loads(self.sonde("query", NATIVE, "-f", "json").stdout)
        self.assertEqual((answer["type"], answer["unit"]), ("cpu", "nanoseconds"))

    def test_services_lists_what_there_is(self):
        window = self.windows[1]
        listed = json.loads(self.sonde("services", "--json", "--from", window[0], "--to",
                                       window[1]).stdout)
        mine = {row["type"]: row for row in listed if row["service"] == SERVICE}
        self.assertEqual({t for t in mine if t.startswith("go_heap:")},
                         {"go_heap:alloc_space:bytes", "go_heap:alloc_objects:count",
                          "go_heap:inuse_space:bytes", "go_heap:inuse_objects:count"})
        self.assertEqual(mine[CPU]["mode"], "delta")
        self.assertEqual(mine[ALLOC]["value"], sum(self.two.exact.values()))
        self.assertEqual(mine[ALLOC]["mode"], "delta")
        self.assertEqual(mine["go_heap:inuse_space:bytes"]["mode"], "snapshot")
        for row in mine.values():
            self.assertLessEqual(row["first"], row["last"])
            self.assertGreaterEqual(row["last"], window[0])
            self.assertLessEqual(row["last"], now_ms() + 60000)
        text = self.sonde("services", "--all").stdout
        self.assertRegex(text, rf"(?m)^{SERVICE} +\S.* +1 +\d+\.\d\d +\S+ +.*\bcpu\b.*\bheap\b"
                         rf"|^{SERVICE} +\S.* +1 +\d+\.\d\d +\S+ +.*\bheap\b.*\bcpu\b")
        self.assertNotIn("\x1b", text)
        self.assertEqual(len(self.sonde("services", "--all", "-n", "1").stdout.splitlines()), 3)
        names = self.sonde("services", "--names").stdout.splitlines()
        self.assertIn(SERVICE, names)
        self.assertEqual(names, sorted(names))
        self.assertIn("--lines", self.sonde("services", "-n", "0", check=rig.USAGE).stderr)
        empty = self.sonde("services", "--from", 1000, "--to", 2000)
        self.assertEqual(empty.stdout, "")
        self.assertIn("Nothing was collected", empty.stderr)
        self.assertEqual(json.loads(self.sonde("services", "--json", "--from", 1000, "--to",
                                               2000).stdout), [])
        # By the variable as well.
        by_variable = rig.sonde("services", check=rig.OK, env=dict(os.environ,
                                                                   SONDE_DATA_DIR=self.data))
        self.assertIn(SERVICE, by_variable.stdout)

    def overview_agrees(self):
        """Whether the CPU time of the overview is that of the series, which is read from points."""
        window = {"from": self.windows[0][0], "to": self.windows[1][1]}
        o = self.agent.api("overview", step_ms=60000, **window)
        ids = {s["service"]: s for s in o["services"]}
        self.assertIn(CPU, [o["types"][t] for t in ids[SERVICE]["types"]])
        _, processes, at, cpu, memory = next(r for r in o["rows"] if r[0] == ids[SERVICE]["id"])
        self.assertEqual((processes, len(cpu)), (1, len(memory)))
        window = {"from": o["from"], "to": o["to"], "step_ms": o["step_ms"]}
        points = self.agent.api("series", service=SERVICE, type=CPU, **window)["points"]
        want = [None if p is None else int(p + 500000) // 1000000 for p in points]
        self.assertGreater(sum(p or 0 for p in want), 0)
        return cpu == want[at:at + len(cpu)] and not any(want[:at] + want[at + len(cpu):])

    def test_the_overview_says_what_the_points_say(self):
        # Something may be stored between the two questions.
        rig.wait_for(self.overview_agrees, "overview and series differ")

    def test_wrong_questions_are_answered_with_a_sentence(self):
        query = lambda *args, check: self.sonde("query", *args, check=check).stderr
        self.assertIn(f"did you mean '{SERVICE}'?", query(SERVICE.replace("eg", "ge"),
                                                              check=rig.FAILED))
        self.assertIn("sonde services", query("quite-another", check=rig.FAILED))
        self.assertIn("go_heap:alloc_space", query(SERVICE, "-t", "locks", check=rig.FAILED))
        for args, word in ((("--from", "soon"), "--from"), (("--to", "12:99"), "--to"),
                           (("--from", "-1h", "--to", "-2h"), "earlier"),
                           (("--from", "9" * 30), "--from"),
                           (("--from", "-999999999999d"), "--from"),
                           (("--baseline", "yesterday"), "--baseline"),
                           (("--baseline", "now..-1h"), "--baseline"),
                           (("--label", "pid"), "--label"),
                           (("--label", ",".join(f"k{i}=v" for i in range(100))), "--label"),
                           (("-f", "svg"), "svg"), (("another",), "another")):
            self.assertIn(word, query(SERVICE, *args, check=rig.USAGE))
        self.assertIn("SERVICE", query(check=rig.USAGE))
        self.assertIn("--to", self.sonde("services", "--to", "x", check=rig.USAGE).stderr)
        # Absurdly long windows are only long.
        self.assertEqual(self.sonde("query", SERVICE, "--from", "0", "--to", "8999999999",
                                    "-f", "json").returncode, 0)

    def test_folders_that_hold_nothing(self):
        missing = os.path.join(self.tmp.name, "missing")
        for command in (("services",), ("query", SERVICE)):
            done = rig.sonde(*command, "--data-dir", missing, check=rig.FAILED)
            self.assertIn("sonde run", done.stderr)
            self.assertFalse(os.path.exists(missing))
            done = rig.sonde(*command, "--data-dir", rig.SONDE, check=rig.FAILED)
            self.assertIn("not a directory", done.stderr)
            rig.sonde(*command, "--data-dir", "", check=rig.FAILED)


class AfterTheEnd(unittest.TestCase):
    def test_profiles_stay_when_the_agent_has_stopped(self):
        with tempfile.TemporaryDirectory() as tmp:
            data = os.path.join(tmp, "data")
            with leak(SERVICE, leak_mb=5) as target:
                with Agent(data, interval=QUICK) as agent:
                    episode = Episode(agent, target)
                    episode.work(leak_mb=5, churn_mb=100)
                    episode.end()
                    self.assertEqual(agent.stop(), 0)
            answer = rig.sonde("query", SERVICE, "-t", "alloc_space", "-f", "json", "--from",
                               episode.from_ms, "--data-dir", data, check=rig.OK)
            self.assertEqual({f["name"]: f["flat"] for f in json.loads(answer.stdout)["functions"]
                              if f["flat"]}, episode.exact)


def load(every, suite):
    del every
    for case in (Query, AfterTheEnd):
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
