"""What Go programs allocate over time, against their own counts: when it happens, not at the next
garbage collection."""
import bisect
import json
import os
import subprocess
import tempfile
import time
import unittest

import rig
from test_agent import ALLOC, Agent, check_sampled, counts, leak

COUNTED = "go_runtime:alloc:bytes"
CYCLES = "go_runtime:gc_cycles:count"
MB_PER_SECOND = 12
STEPS = 24
# The program itself is late at times where the machine is busy, and so are readings of it.
LATE = 0.35


def steady(service):
    """Allocates at a constant rate, in blocks of one size; a garbage collection takes many seconds."""
    return leak(service, leak_mb=0, churn_mb=MB_PER_SECOND, env={"GOGC": "500"})


def churned(target):
    return counts(target.ask("counts"))["main.churn"]


class Watch:
    """What the program says at any time; in between it is assumed to go on steadily."""

    def __init__(self, target):
        self.target, self.times, self.said = target, [], []
        self.look()

    def look(self):
        before = time.time()
        self.said.append(churned(self.target))
        self.times.append((before + time.time()) / 2)

    def at(self, when):
        i = min(max(bisect.bisect(self.times, when), 1), len(self.times) - 1)
        (t, u), (a, b) = self.times[i - 1:i + 1], self.said[i - 1:i + 1]
        return a + (b - a) * (when - t) / (u - t)

    def during(self, seconds):
        for _ in range(int(seconds / 0.1)):
            self.look()
            time.sleep(0.1)


class Alloc(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory()
        self.addCleanup(self.tmp.cleanup)

    def agent(self):
        return Agent(os.path.join(self.tmp.name, "data"), interval=1.0)

    def curves(self, agent, service, begin, end):
        answer = agent.api("series", service=service, type=[ALLOC, COUNTED, CYCLES], step_ms=1000,
                           to=end, **{"from": begin})
        return {s["type"]: s["points"] for s in answer["series"]}

    def level(self, watch, begin, counted):
        """Each second has what the program did in it, if readings are late by the same time."""
        mean = MB_PER_SECOND << 20

        def worst(late):
            return max(abs(n - (watch.at(t + late) - watch.at(t + late - 1))) for t, n in (
                (begin / 1000 + i, n) for i, n in counted)) / mean

        return min(worst(late / 20) for late in range(-24, 8))

    def test_the_curve_of_a_steady_program_is_level(self):
        with steady("level") as target, self.agent() as agent:
            agent.wait_collections(target.pid, 2)
            watch = Watch(target)
            # What is read at the start of that second happened before it.
            begin = (int(time.time()) + 3) * 1000
            watch.during(STEPS + 5)
            curves = self.curves(agent, "level", begin, begin + STEPS * 1000)
            pairs = list(enumerate(zip(curves[COUNTED], curves[ALLOC])))
            seen = [(i, c, a) for i, (c, a) in pairs if c is not None and a is not None]
            self.assertGreaterEqual(len(seen), STEPS * 2 // 3, curves)
            # There are few enough garbage collections for a curve that follows them to show it.
            self.assertLess(sum(n for n in curves[CYCLES] if n), STEPS // 3)
            self.assertLess(self.level(watch, begin, [(i, c) for i, c, _ in seen]), LATE, curves)
            for i, c, a in seen:
                check_sampled(self, "main.churn", a, c, len(seen) + 1)
            check_sampled(self, "main.churn", sum(a for *_, a in seen), sum(c for _, c, _ in seen),
                          len(seen) + 1)

    def test_sums_are_those_of_the_runtime_and_a_restart_books_nothing_twice(self):
        with steady("sums") as target:
            counted = 0
            for _ in range(2):
                with self.agent() as agent:
                    target.ask("pause")
                    agent.wait_collections(target.pid, 2)
                    before = churned(target)
                    target.ask("go")
                    rig.wait_for(lambda: churned(target) > before + (40 << 20), "churn")
                    target.ask("pause")
                    counted += churned(target) - before
                    agent.wait_collections(target.pid, 3)
                    self.assertEqual(agent.stop(), 0)
                # Nobody looks, and no garbage collection has ended when somebody does.
                target.ask("go")
                unseen = churned(target)
                rig.wait_for(lambda: churned(target) > unseen + (40 << 20), "churn")
            with self.agent() as agent:
                curves = self.curves(agent, "sums", (int(time.time()) - 3600) * 1000,
                                     (int(time.time()) + 2) * 1000)
                total = sum(n for n in curves[COUNTED] if n)
                # The runtime counts whole spans, and its own work.
                self.assertAlmostEqual(total / counted, 1, delta=0.02)
                check_sampled(self, "main.churn", sum(n for n in curves[ALLOC] if n), counted, 1)

    def test_top_has_the_rate_of_each_interval(self):
        with steady("level-top") as target:
            done = subprocess.Popen([rig.SONDE, "top", str(target.pid), "--json", "-d", "1s",
                                     "-t", "alloc_space"], stdout=subprocess.PIPE, text=True)
            try:
                frames = [json.loads(done.stdout.readline()) for _ in range(12)]
            finally:
                done.terminate()
                done.wait()
                done.stdout.close()
            rates = [f["totals"]["alloc_space"] for f in frames if not f["measuring"]]
            self.assertGreaterEqual(len(rates), 8)
            for rate in rates:
                self.assertAlmostEqual(rate / (MB_PER_SECOND << 20), 1, delta=LATE)
            last = frames[-1]
            self.assertEqual(last["functions"][0]["name"], "main.churn")
            # Functions share out all of it.
            self.assertAlmostEqual(sum(f["flat"] for f in last["functions"]) / last["total"], 1,
                                   delta=0.01)


def load(_, suite):
    suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(Alloc))
