"""What `sonde run` costs with many Go programs, beside fetching their own profiles.

Thirty servers with a thousand stacks each (bench/targets/service -steady) allocate in all of them
all the time. Both ways get one profile of each every interval. It runs in a pid namespace of its
own, so that other programs of the machine are not looked at.
"""
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import rig

TARGETS = 30
INTERVAL = 15
WARM_UP = 3  # intervals: everything is looked at, opened and looked up
INTERVALS = 4
FETCHES = 3  # of each target


def cpu_ns(pid):
    """CPU time of a process, threads that have ended included: its clock, as in clock(3)."""
    return time.clock_gettime_ns((~pid << 3) | 2)


def family(pid):
    """The process and all that it has started: sonde run has aides read for it."""
    found = [pid]
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        for child in f.read().split():
            try:
                found += family(int(child))
            except OSError:
                pass  # it has ended
    return found


class Meter:
    """CPU time of a family, those that end meanwhile included: as of when they were last seen."""

    def __init__(self, pid):
        self.pid = pid
        self.seen = {}

    def cpu_ns(self):
        for pid in family(self.pid):
            try:
                self.seen[pid] = cpu_ns(pid)
            except OSError:
                pass
        return sum(self.seen.values())

    def wait(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(min(1, max(0, end - time.monotonic())))
            self.cpu_ns()


def memory_mb(pid):
    """RSS and private memory; of aides, which share most of it, what they add."""
    rss = private = 0
    for member in family(pid):
        try:
            with open(f"/proc/{member}/smaps_rollup", encoding="ascii") as f:
                found = dict(re.findall(r"^(Rss|Pss|Pss_Anon):\s+(\d+) kB", f.read(), re.M))
        except OSError:
            continue
        rss += int(found["Rss" if member == pid else "Pss"])
        private += int(found["Pss_Anon"])
    return rss / 1024, private / 1024


class Fleet:
    """The servers, and where each serves its profiles."""

    def __init__(self, program):
        self.targets = []
        self.ports = []
        for i in range(TARGETS):
            env = dict(os.environ, GOMAXPROCS="2", OTEL_SERVICE_NAME=f"service-{i}")
            target = subprocess.Popen([program, "-steady"], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True, env=env)
            self.targets.append(target)
            words = target.stdout.readline().split()
            if words[:1] != ["ready"]:
                self.__exit__()
                raise rig.BenchError("service -steady did not start")
            self.ports.append(int(words[2].rsplit(":", 1)[1]))

    def cpu_ns(self):
        return sum(cpu_ns(t.pid) for t in self.targets)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for target in self.targets:
            target.kill()
            target.wait()
            target.stdin.close()
            target.stdout.close()


def calls_of(pid):
    """System calls of a family in one interval, or None without strace."""
    if not shutil.which("strace"):
        return None
    pids = [word for member in family(pid) for word in ("-p", str(member))]
    with tempfile.NamedTemporaryFile("r", prefix="sonde-calls-") as out:
        tracer = subprocess.Popen(["strace", "-f", "-c", "-q", "-o", out.name, *pids],
                                  stderr=subprocess.DEVNULL)
        time.sleep(INTERVAL)
        tracer.send_signal(2)
        tracer.wait()
        found = re.search(r"^100\.00\s+\S+\s+\S+\s+(\d+)", out.read(), re.M)
    return int(found.group(1)) if found else None


def measure_agent(sonde):
    with tempfile.TemporaryDirectory(prefix="sonde-agent-") as folder, \
            rig.Agent(sonde, folder, INTERVAL) as agent:
        time.sleep(WARM_UP * INTERVAL)
        first, costs, memory, meter = agent.collections(), [], [], Meter(agent.pid)
        for _ in range(INTERVALS):
            before, start = meter.cpu_ns(), time.monotonic()
            meter.wait(INTERVAL)
            costs.append((meter.cpu_ns() - before) / 1e9 / (time.monotonic() - start))
            memory.append(memory_mb(agent.pid))
        collections = agent.collections() - first
        calls = calls_of(agent.pid)
    if collections < TARGETS * (INTERVALS - 1):
        raise rig.BenchError(f"sonde run has collected {collections} profiles only")
    return {"share": statistics.median(costs), "least": min(costs), "most": max(costs),
            "rss_mb": max(m[0] for m in memory), "private_mb": max(m[1] for m in memory),
            "calls": calls / TARGETS if calls else None}


def measure_fetch(fleet):
    """CPU of one profile, in the program and in curl; what the program does anyway is taken off."""
    before, start = fleet.cpu_ns(), time.monotonic()
    time.sleep(INTERVAL)
    idle = (fleet.cpu_ns() - before) / (time.monotonic() - start)
    target_ns, curl_ns = [], []
    for _ in range(FETCHES):
        before, start = fleet.cpu_ns(), time.monotonic()
        own = os.times()
        for port in fleet.ports:
            subprocess.run(["curl", "-s", "-f", "-o", "/dev/null",
                            f"http://127.0.0.1:{port}/debug/pprof/heap"], check=True)
        children = os.times()
        spent = fleet.cpu_ns() - before
        target_ns.append(spent - idle * (time.monotonic() - start))
        curl_ns.append(1e9 * (children.children_user - own.children_user
                              + children.children_system - own.children_system))
    return {"target_share": max(0, statistics.median(target_ns)) / 1e9 / INTERVAL,
            "curl_share": statistics.median(curl_ns) / 1e9 / INTERVAL}


def measure_here(sonde, program):
    with Fleet(program) as fleet:
        agent = measure_agent(sonde)
        # After it: a program that is asked for its profile has more stacks from then on.
        return {"agent": agent, "fetch": measure_fetch(fleet) if shutil.which("curl") else None}


def measure(sonde, program):
    """Shares of one core, and the memory: {"agent": ..., "fetch": ...}."""
    return rig.run("unshare", "--pid", "--fork", "--mount-proc", sys.executable, __file__, sonde,
                   program)


def goals(agent):
    """(what, wanted, measured, met)"""
    return [("CPU of sonde run, 30 Go programs of 1,000 stacks every 15 s", "<= 0.30 %",
             f"{agent['share'] * 100:.2f} %", agent["share"] <= 0.003),
            ("RSS of sonde run, 30 Go programs of 1,000 stacks", "<= 25 MB",
             f"{agent['rss_mb']:.1f} MB", agent["rss_mb"] <= 25)]


HEADER = ["every 15 s", "CPU of it, of a core", "CPU in the programs", "memory", "calls per profile"]


def rows(agent, fetch):
    """The table below HEADER."""
    calls = f"{agent['calls']:.0f}" if agent["calls"] else "-"
    found = [["sonde run: read, stored, served",
              f"{agent['share'] * 100:.2f} % ({agent['least'] * 100:.2f} to "
              f"{agent['most'] * 100:.2f})", "none",
              f"{agent['rss_mb']:.1f} MB ({agent['private_mb']:.1f} private)", calls]]
    if fetch:
        found.append(["curl /debug/pprof/heap: fetched only", f"{fetch['curl_share'] * 100:.2f} %",
                      f"{fetch['target_share'] * 100:.2f} %", "-", "-"])
    return found


if __name__ == "__main__":
    json.dump(measure_here(*sys.argv[1:]), sys.stdout)
