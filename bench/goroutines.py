"""What reading goroutines costs, beside fetching the program's own goroutine profile.

The target (bench/targets/goroutines) is a server with so many goroutines that wait. Fetching has its
profile written by the program itself, for which the runtime stops it; what the program does anyway is
taken off. For throughput it computes besides, on a CPU of its own, and windows of time in which it is
left alone, read once a second, and asked for its profile once a second take turns.
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
SECONDS = 2  # of a window
WINDOWS = 10  # of each kind


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


def window(target, action):
    """Units per second, and per CPU second of the target, while action is done every second."""
    cpu, start = cpu_ns(target.pid), time.monotonic()
    units = int(target.ask("ops")[1])
    for second in range(SECONDS):
        if action:
            action()
        time.sleep(max(0, start + second + 1 - time.monotonic()))
    units = int(target.ask("ops")[1]) - units
    return {"second": units / (time.monotonic() - start),
            "cpu_second": units * 1e9 / (cpu_ns(target.pid) - cpu)}


def against_neighbours(windows, kind, per):
    """Each window of a kind, against the mean of the quiet ones before and after it."""
    ratios = []
    for i in range(1, len(windows) - 1):
        if windows[i][0] == kind:
            quiet = [windows[k][1][per] for k in (i - 1, i + 1)]
            ratios.append(windows[i][1][per] / statistics.mean(quiet))
    spread = statistics.stdev(ratios)
    return {"mean": statistics.mean(ratios), "spread": spread, "n": len(ratios),
            "error": spread / len(ratios) ** 0.5}


def measure_load(program, reader_program):
    """{"control": ..., "sonde": ..., "curl": ...}: throughput against the quiet windows around."""
    windows, costs = [], []
    with Program([program, str(LOADED), "-load"], cpus={0}) as target:
        reader = throughput.Reader(reader_program, target.pid, 1, "goroutines")
        reader.work()
        actions = {"quiet": None, "control": lambda: None,
                   "sonde": lambda: costs.append(reader.work()), "curl": target.fetch}
        kinds = ["control", "sonde"] + ["curl"] * bool(shutil.which("curl"))
        windows.append(("quiet", window(target, None)))
        for i in range(WINDOWS):
            for kind in kinds[i % len(kinds):] + kinds[:i % len(kinds)]:
                windows.append((kind, window(target, actions[kind])))
                windows.append(("quiet", window(target, None)))
        reader.close()
    found = {kind: against_neighbours(windows, kind, "second") for kind in kinds}
    for kind in kinds:
        found[kind]["per_cpu"] = against_neighbours(windows, kind, "cpu_second")
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
LOAD_HEADER = ["every second a", "throughput", "spread", "per CPU second", "windows", "CPU of it"]


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

    return [[title, text(load[k]), f"{load[k]['spread']:.4f}", text(load[k]["per_cpu"]),
             load[k]["n"], f"{load[k]['cost_us'] / 1e3:.1f} ms" if "cost_us" in load[k] else "-"]
            for k, title in titles.items() if k in load]


def goals(found):
    """(what, value, limit, unit): at most."""
    small, large = found[1000], found[100000]
    return [("repeated reading of 1,000 goroutines, CPU", small["later"]["cpu_us"] / 1e3, 1, "ms"),
            ("first reading of 1,000 goroutines, CPU", small["first"]["cpu_us"] / 1e3, 1, "ms"),
            ("first reading of 100,000 goroutines, CPU", large["first"]["cpu_us"] / 1e3, 250, "ms"),
            ("the same, system calls", large["first"]["syscalls"], 250, "calls")]
