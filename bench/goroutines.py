"""What reading goroutines costs, beside fetching the program's own goroutine profile.

The target (bench/targets/goroutines) is a server with so many goroutines that wait. Fetching has its
profile written by the program itself, for which the runtime stops it; what the program does anyway is
taken off. For throughput it computes besides, on a CPU of its own, and windows of time in which it is
left alone, read, and asked for its profile take turns (bench/throughput.py).
"""
import os
import shutil
import statistics
import subprocess
import time

import rig
import throughput
from agent import cpu_ns

COUNTS = (1000, 100000)
LOADED = 10000
FETCHES = {1000: 21, 100000: 5}
KINDS = ("control", "sonde", "curl")
TURNS = 20
BLOCKS = 10  # of control and sonde in a turn: throughput.py
CURL_WINDOW = 0.5  # seconds: the program takes longer for its own profile
CURL_BLOCKS = 1


class Program(rig.Target):
    """The target, and where it serves its profiles."""

    def fetch(self):
        subprocess.run(["curl", "-s", "-f", "-o", "/dev/null",
                        f"http://{self.words[2]}/debug/pprof/goroutine"], check=True)


def measure_fetch(target, times):
    """Medians of the CPU time of one profile, in the program and in curl, in microseconds."""
    before, start = cpu_ns(target.pid), time.monotonic()
    time.sleep(2)
    idle = (cpu_ns(target.pid) - before) / (time.monotonic() - start)
    inside, curl = [], []
    for _ in range(times):
        before, start, own = cpu_ns(target.pid), time.monotonic(), os.times()
        target.fetch()
        children = os.times()
        inside.append(cpu_ns(target.pid) - before - idle * (time.monotonic() - start))
        curl.append(1e9 * (children.children_user - own.children_user
                           + children.children_system - own.children_system))
    # The kernel counts a child's time in ticks where it is short: the mean then tells more.
    return {"inside_us": statistics.median(inside) / 1e3, "curl_us": statistics.mean(curl) / 1e3}


def measure_count(program, bench, count, rounds):
    with Program([program, str(count)]) as target:
        found = rig.run(bench, target.pid, rounds)
        found["fetch"] = measure_fetch(target, FETCHES[count]) if shutil.which("curl") else None
    return found


def extend(to, more):
    for per, values in more.items():
        to[per] += values


def measure_load(program, reader_program):
    """{"control": ..., "sonde": ..., "curl": ...}: throughput with one a second, against without."""
    costs = []
    with Program([program, str(LOADED), "-load"], cpus={0}) as target:
        reader = throughput.Reader(reader_program, target.pid, 1, "goroutines")
        load = throughput.Load(program, target.pid)
        reader.work()
        actions = {"control": lambda: None, "sonde": lambda: costs.append(reader.work())}
        # In turns of a few seconds: the machine may be busy for a while.
        left = {kind: {per: [] for per in throughput.PER} for kind in KINDS}
        for _ in range(TURNS):
            for kind, action in actions.items():
                extend(left[kind], throughput.compare(load, action, rounds=BLOCKS))
            if shutil.which("curl"):
                extend(left["curl"], throughput.compare(load, target.fetch, CURL_WINDOW,
                                                        CURL_BLOCKS))
        load.close()
        reader.close()
    found = {}
    for kind in KINDS:
        if left[kind]["second"]:
            found[kind] = throughput.summary(left[kind]["second"])
            found[kind]["per_cpu"] = throughput.summary(left[kind]["cpu_second"])
    found["sonde"]["cost_us"] = statistics.median(costs)
    return found


def measure(program, bench, reader, rounds):
    found = {count: measure_count(program, bench, count, 3 * rounds if count < 5000 else rounds)
             for count in COUNTS}
    if os.cpu_count() >= 2:
        # This process must not disturb the target, either.
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {1})
        try:
            found["load"] = measure_load(program, reader)
        finally:
            os.sched_setaffinity(0, before)
    return found


HEADER = ["way", "CPU of it", "CPU in the program", "calls", "CPU / sonde"]
LOAD_HEADER = ["every second a", "throughput", "per CPU second", "lost by one", "blocks", "CPU of it"]


def rows(one):
    """The table of one count, below HEADER."""
    def ms(us):
        return f"{us / 1e3:.2f} ms"

    whole = one["later"]["cpu_us"] + one["profile"]["cpu_us"]
    out = [[title, ms(one[key]["cpu_us"]), "none", one[key]["syscalls"] or "-",
            f"{one[key]['cpu_us'] / whole:.2f}x"]
           for key, title in (("first", "sonde, first reading"),
                              ("later", "sonde, repeated"),
                              ("never_wait", "sonde, first, without ever waiting"),
                              ("profile", "sonde, profile with names of it"))]
    out.append(["sonde, repeated, with its profile", ms(whole), "none", one["later"]["syscalls"],
                "1.00x"])
    if one["fetch"]:
        total = one["fetch"]["curl_us"] + one["fetch"]["inside_us"]
        out.append(["curl /debug/pprof/goroutine", ms(one["fetch"]["curl_us"]),
                    ms(one["fetch"]["inside_us"]), "-", f"{total / whole:.2f}x"])
    return out


def load_rows(load):
    titles = {"control": "nothing (control)", "sonde": "profile by sonde",
              "curl": "profile by curl /debug/pprof/goroutine"}

    def text(found):
        return f"{found['mean']:.4f} ± {found['error']:.4f}"

    return [[title, text(load[k]), text(load[k]["per_cpu"]), f"{load[k]['lost_ms']:.1f} ms",
             load[k]["n"], f"{load[k]['cost_us'] / 1e3:.1f} ms" if "cost_us" in load[k] else "-"]
            for k, title in titles.items() if k in load]


def goals(found):
    """(what, value, limit, unit): at most."""
    small, large = found[1000], found[100000]
    return [("repeated reading of 1,000 goroutines, CPU", small["later"]["cpu_us"] / 1e3, 1, "ms"),
            ("first reading of 1,000 goroutines, CPU", small["first"]["cpu_us"] / 1e3, 1, "ms"),
            ("first reading of 100,000 goroutines, CPU", large["first"]["cpu_us"] / 1e3, 250, "ms"),
            ("the same, system calls", large["first"]["syscalls"], 250, "calls")]
