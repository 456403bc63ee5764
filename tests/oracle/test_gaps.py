"""What was not collected is a gap, what did not run is zero, and what came late lies where it happened."""
import os
import signal
import tempfile
import time
import unittest

from rig import wait_for
from test_agent import Agent, now_ms
from test_rights import CPU, burner

STEP = 1000  # ms, as the interval
STALL = 8    # s


def series(agent, service, since):
    """[(time, points)], and the steps that are spread; whole seconds from since on."""
    answer = agent.api("series", service=service, type=CPU, step_ms=STEP, to=now_ms(), **{"from": since})
    times = [answer["from"] + i * STEP for i in range(len(answer["points"]))]
    return list(zip(times, answer["points"])), [times[i] for i in answer["spread"]]


def known(agent, service):
    return service in {s["service"] for s in agent.api("services", **{"from": "-1h"})["services"]}


@unittest.skipUnless(os.geteuid() == 0, "needs root, to sample")
class Gaps(unittest.TestCase):
    def test_a_stall_leaves_no_peak(self):
        since = now_ms() // STEP * STEP
        with tempfile.TemporaryDirectory() as directory, burner("steady"), Agent(directory) as agent:
            wait_for(lambda: known(agent, "steady"), "it is not sampled")
            # The kernel goes on sampling meanwhile.
            agent.process.send_signal(signal.SIGSTOP)
            stopped = now_ms()
            time.sleep(STALL)
            agent.process.send_signal(signal.SIGCONT)
            went_on = now_ms()
            wait_for(lambda: any(t > went_on + 2 * STEP and v is not None for t, v in series(agent, "steady", since)[0]),
                     "it does not go on")
            points, spread = series(agent, "steady", since)
            # One thread uses one CPU at most; counting may add a little.
            self.assertLessEqual(max(v for _, v in points if v is not None), 1.6 * STEP * 1e6, points)
            during = [v for t, v in points if stopped + STEP < t < went_on - 2 * STEP]
            self.assertGreaterEqual(len(during), STALL - 5)
            self.assertNotIn(None, during, points)
            self.assertTrue([t for t in spread if stopped < t < went_on], spread)

    def test_nothing_ran_and_nothing_was_collected_are_told_apart(self):
        since = now_ms() // STEP * STEP
        with tempfile.TemporaryDirectory() as directory:
            with Agent(directory) as agent:
                with burner("brief"):
                    wait_for(lambda: known(agent, "brief"), "it is not sampled")
                rested = now_ms()
                # It has ended: nothing of it runs, and that is known.
                wait_for(lambda: [v for t, v in series(agent, "brief", since)[0] if t > rested + 2 * STEP].count(0) >= 3,
                         lambda: series(agent, "brief", since))
            stopped = now_ms()
            time.sleep(5)
            with Agent(directory) as agent:
                began = now_ms()
                wait_for(lambda: [v for t, v in series(agent, "brief", since)[0] if t > began + STEP].count(0) >= 3,
                         lambda: series(agent, "brief", since))
                points, _ = series(agent, "brief", since)
                away = [v for t, v in points if stopped + STEP < t < began - 2 * STEP]
                self.assertTrue(away)
                self.assertEqual(set(away), {None}, points)


def load(every, suite):
    del every
    suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(Gaps))
