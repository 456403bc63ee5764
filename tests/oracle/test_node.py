"""CPU time and memory of the machine and of processes are what the kernel and other programs say."""
import os
import subprocess
import sys
import tempfile
import unittest
import urllib.error

from rig import wait_for
from test_agent import Agent, now_ms

MACHINE = "(machine)"
TICKS = os.sysconf("SC_CLK_TCK")
MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
MB = 1 << 20
HOLD = "import sys\nx = bytearray(300 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\n" \
       "print('ready', flush=True)\nsys.stdin.read()\n"


def busy_seconds():
    with open("/proc/stat", encoding="ascii") as f:
        ticks = dict(zip(MODES, map(int, f.readline().split()[1:])))
    return (sum(ticks.values()) - ticks["idle"] - ticks["iowait"]) / TICKS


def used_bytes():
    """By free(1): total - available."""
    out = subprocess.run(["free", "-b"], capture_output=True, text=True, check=True).stdout
    head, line = (row.split() for row in out.splitlines()[:2])
    row = dict(zip(head, map(int, line[1:])))
    return row["total"] - row["available"]


def resident_bytes(pid):
    out = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True).stdout
    return int(out) * 1024


def points(agent, service, kind, since):
    """{time: value} of whole seconds from since on; without gaps. {} of what is not stored yet."""
    try:
        answer = agent.api("series", service=service, type=kind, step_ms=1000, to=max(now_ms(), since + 1000),
                           **{"from": since})
    except urllib.error.HTTPError as e:
        if e.code != 404:
            raise
        return {}
    return {answer["from"] + 1000 * i: v for i, v in enumerate(answer["points"]) if v is not None}


def on_metrics(agent, name):
    text = agent.get("metrics").decode()
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
            if line.startswith(name)}


class Node(unittest.TestCase):
    def test_cpu_time_of_the_machine_is_the_kernels(self):
        with tempfile.TemporaryDirectory() as folder, Agent(folder) as agent:
            wait_for(lambda: on_metrics(agent, "system_cpu_seconds_total"), "nothing is collected")
            since, before = now_ms() // 1000 * 1000 + 1000, busy_seconds()
            wait_for(lambda: len(points(agent, MACHINE, "system:cpu_busy:nanoseconds", since)) >= 8,
                     lambda: points(agent, MACHINE, "system:cpu_busy:nanoseconds", since))
            found = points(agent, MACHINE, "system:cpu_busy:nanoseconds", since)
            took = (now_ms() - since) / 1000
            theirs = (busy_seconds() - before) / took
            ours = sum(found.values()) / 1e9 / len(found)
            # The moments differ by up to two intervals of all CPUs.
            slack = 2.5 * os.cpu_count() / len(found)
            self.assertAlmostEqual(ours, theirs, delta=slack)
            self.assertLessEqual(max(found.values()) / 1e9, 2.1 * os.cpu_count())
            shown = on_metrics(agent, "system_cpus")
            self.assertEqual(list(shown.values()), [os.sysconf("SC_NPROCESSORS_ONLN")])

    def test_memory_of_the_machine_is_what_free_says(self):
        with tempfile.TemporaryDirectory() as folder, Agent(folder) as agent, \
                subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True) as holder:
            self.assertEqual(holder.stdout.readline(), "ready\n")

            def near():
                # Others come and go: at one moment both are the same but for a tenth.
                ours = list(on_metrics(agent, "system_memory_used_bytes").values())
                return ours and abs(ours[0] / used_bytes() - 1) < 0.1
            wait_for(near, lambda: (on_metrics(agent, "system_memory_used_bytes"), used_bytes()))
            states = on_metrics(agent, "system_memory_usage_bytes")
            limit = list(on_metrics(agent, "system_memory_limit_bytes").values())[0]
            self.assertEqual(len(states), 4)
            self.assertEqual(sum(states.values()), limit)
            self.assertEqual(limit, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE"))
            holder.stdin.close()

    def test_memory_of_a_process_is_what_ps_says_and_a_gap_after_its_end(self):
        with tempfile.TemporaryDirectory() as folder, Agent(folder) as agent:
            with subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  text=True, env=dict(os.environ, OTEL_SERVICE_NAME="holder")) as holder:
                self.assertEqual(holder.stdout.readline(), "ready\n")
                since = now_ms() // 1000 * 1000 + 2000
                wait_for(lambda: len(points(agent, "holder", "process:memory:bytes", since)) >= 3, "it is not stored")
                found = points(agent, "holder", "process:memory:bytes", since)
                theirs = resident_bytes(holder.pid)
                self.assertGreater(theirs, 300 * MB)
                for value in found.values():
                    self.assertAlmostEqual(value / theirs, 1, delta=0.02)
                shown = [v for k, v in on_metrics(agent, "container_resident_memory_bytes").items()
                         if f'pid="{holder.pid}"' in k]
                self.assertEqual(len(shown), 1)
                self.assertAlmostEqual(shown[0] / theirs, 1, delta=0.02)
                holder.stdin.close()
            ended = now_ms()
            wait_for(lambda: max(points(agent, MACHINE, "system:memory_used:bytes", ended), default=0) > ended + 4000,
                     "collection does not go on")
            self.assertFalse([t for t in points(agent, "holder", "process:memory:bytes", ended) if t > ended + 3000])


def load(every, suite):
    del every
    suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(Node))
