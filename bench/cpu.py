"""What CPU profiling of a busy node costs: sonde, and perf in both of its ways, one after another.

50 processes of five kinds (Python, Go, C++, SQLite, OpenSSL) share the CPUs. Each profiler runs for
the same time at 99 Hz; its own CPU time, and for sonde that of its BPF programs by the kernel's own
account, are set against it.

What sonde does once for each program and library (unwind tables, symbols) falls mostly into the
first minute, which is counted apart: with 50 processes on few CPUs each has but a few samples a
second, and code is seen late. The rest is taken for the steady state, told by windows as long as
the agent's interval, together with how many processes were started on the whole machine meanwhile:
each one that is sampled is asked who it is and what it maps, so that two runs compare only if both
numbers are alike.
"""
import os
import re
import shutil
import subprocess
import tempfile
import time

import bpf_floor
import rig

HZ = 99
SECONDS = 60
FLOOR_SECONDS = 20
WARM_UP_SECONDS = 60
WINDOW_SECONDS = 10
KINDS = 10  # of each kind
PYTHON = "import json\nd = [{str(i): [i]} for i in range(999)]\nwhile 1: json.loads(json.dumps(d))"
SQL = ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 9000000000) "
       "SELECT sum(length(replace(hex(x), 'A', 'bc'))) FROM c;")


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mb(pid, field="VmRSS"):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return int(re.search(rf"{field}:\s+(\d+)", f.read())[1]) / 1024


def processes_started():
    """On the whole machine, threads included, since it was started."""
    with open("/proc/stat", encoding="utf-8") as f:
        return int(re.search(r"^processes (\d+)", f.read(), re.M)[1])


def bpf_program(pid, fd, kind=None):
    """(runs, nanoseconds) of a BPF program, as the kernel counts them; (0, 0) for another file."""
    try:
        with open(f"/proc/{pid}/fdinfo/{fd}", encoding="utf-8") as f:
            text = f.read()
    except OSError:
        return 0, 0
    found = dict(re.findall(r"^(prog_type|run_cnt|run_time_ns):\s*(\d+)", text, re.M))
    if "prog_type" not in found or (kind and int(found["prog_type"]) != kind):
        return 0, 0
    return int(found["run_cnt"]), int(found["run_time_ns"])


def bpf_programs(pid, kind=None):
    """The same of all programs of the process, or those of a type."""
    costs = [bpf_program(pid, fd, kind) for fd in os.listdir(f"/proc/{pid}/fdinfo")]
    return sum(runs for runs, _ in costs), sum(spent for _, spent in costs)


class Node:
    """Fifty processes that do nothing but work."""

    def __init__(self, directory, go):
        source = os.path.join(rig.ROOT, "tests", "targets", "cpu", "shares.cc")
        program = os.path.join(directory, "shares")
        subprocess.run(["g++", "-O2", "-fomit-frame-pointer", "-o", program, source], check=True)
        kinds = (["/usr/bin/python3", "-c", PYTHON], [rig.targets.build("cpugo", go)],
                 [program, "36000"], ["sqlite3", ":memory:", SQL],
                 ["openssl", "speed", "-seconds", "36000", "rsa2048"])
        self.processes = [subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                           stderr=subprocess.DEVNULL)
                          for argv in kinds for _ in range(KINDS)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for p in self.processes:
            p.kill()
            p.wait()
            p.stdin.close()


def measure_sonde(sonde, directory):
    """The agent as people run it, all readers on."""
    agent = subprocess.Popen([sonde, "run", "--data-dir", os.path.join(directory, "data"),
                              "--listen", "127.0.0.1:0", "--cpu-hz", str(HZ)],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(WARM_UP_SECONDS)
        warm_up, started = cpu_seconds(agent.pid), processes_started()
        spent = bpf_programs(agent.pid)[1]
        samples, sampled = bpf_programs(agent.pid, bpf_floor.PROG_TYPE_PERF_EVENT)
        spents = [warm_up]
        for _ in range(SECONDS // WINDOW_SECONDS):
            time.sleep(WINDOW_SECONDS)
            spents.append(cpu_seconds(agent.pid))
        started = processes_started() - started
        spent = bpf_programs(agent.pid)[1] - spent
        after = bpf_programs(agent.pid, bpf_floor.PROG_TYPE_PERF_EVENT)
        rss, peak = rss_mb(agent.pid), rss_mb(agent.pid, "VmHWM")
    finally:
        agent.terminate()
        agent.wait()
    return {"cpu": (spents[-1] - warm_up) / SECONDS, "warm_up": warm_up,
            "windows": [(b - a) / WINDOW_SECONDS for a, b in zip(spents, spents[1:])],
            "started": started / SECONDS, "rss_mb": rss, "peak_mb": peak,
            "bpf_ns": spent, "sample_ns": (after[1] - sampled) / max(after[0] - samples, 1)}


def measure_perf(directory, *how):
    """`perf record` on all CPUs; what `perf script` needs afterwards is not even counted."""
    path = os.path.join(directory, "perf.data")
    perf = subprocess.Popen(["perf", "record", "-q", "-a", "-e", "cpu-clock", "-F", str(HZ), *how,
                             "-o", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(5)
        cpu, size = cpu_seconds(perf.pid), os.path.getsize(path)
        time.sleep(SECONDS)
        cpu, rss = cpu_seconds(perf.pid) - cpu, rss_mb(perf.pid)
        size = os.path.getsize(path) - size
    finally:
        perf.terminate()
        perf.wait()
    return {"cpu": cpu / SECONDS, "rss_mb": rss, "bytes": size / SECONDS}


def measure(sonde, go):
    for program in ("perf", "sqlite3", "openssl", "g++"):
        if not shutil.which(program):
            raise rig.BenchError(f"{program} is not there: run `make bench`")
    directory = tempfile.mkdtemp(prefix="sonde-bench-")
    try:
        with bpf_floor.accounts(), Node(directory, go):
            return {"sonde": measure_sonde(sonde, directory),
                    "floor": bpf_floor.measure(bpf_program, HZ, FLOOR_SECONDS),
                    "perf -g": measure_perf(directory, "-g"),
                    "perf --call-graph dwarf": measure_perf(directory, "--call-graph", "dwarf")}
    finally:
        shutil.rmtree(directory)


HEADER = ["profiler at 99 Hz", "CPU of it", "in BPF, per CPU", "per sample", "RSS", "written"]


def rows(found):
    cpus = os.cpu_count()
    sonde = found["sonde"]
    floor, sample = found["floor"], sonde["sample_ns"]
    out = [["sonde run, steady state: whole stacks, named, stored", f"{sonde['cpu'] * 100:.2f} %",
            f"{sonde['bpf_ns'] / 1e9 / SECONDS / cpus * 100:.2f} %", f"{sample / 1e3:.1f} µs",
            f"{sonde['rss_mb']:.1f} MB, {sonde['peak_mb']:.1f} at most", "-"],
           [f"its windows of {WINDOW_SECONDS} s; the machine started {sonde['started']:.1f} "
            "processes and threads a second",
            f"{min(sonde['windows']) * 100:.2f} to {max(sonde['windows']) * 100:.2f} %",
            "-", "-", "-", "-"],
           [f"its first {WARM_UP_SECONDS} s: tables and symbols of all that runs",
            f"{sonde['warm_up']:.2f} s", "-", "-", "-", "-"]]
    for name, about in (("empty", "a BPF program that does nothing"),
                        ("kernel", "one that has the kernel take kernel frames"),
                        ("user", "one that has it take user frames, by frame pointers")):
        out.append([f"for comparison, {about}", "-", f"{floor[name] / 1e9 * HZ * 100:.2f} %",
                    f"{floor[name] / 1e3:.1f} µs, {floor[name] / sample * 100:.0f} % of sonde's",
                    "-", "-"])
    for name, about in (("perf -g", "frame pointers only, not named"),
                        ("perf --call-graph dwarf", "8 KB of stack per sample, not unwound")):
        p = found[name]
        out.append([f"{name}: {about}", f"{p['cpu'] * 100:.2f} %", "not told", "-",
                    f"{p['rss_mb']:.1f} MB", f"{p['bytes'] / 1e6:.2f} MB/s"])
    return out


def goals(found):
    """(what, wanted, measured, met)"""
    sonde = found["sonde"]
    bpf = sonde["bpf_ns"] / 1e9 / SECONDS / os.cpu_count() * 100
    return [("CPU profiling of 50 busy processes: BPF, of each CPU", "<= 0.30 %", f"{bpf:.2f} %",
             bpf <= 0.30),
            ("the same, user space, of one core, steady state", "<= 0.50 %",
             f"{sonde['cpu'] * 100:.2f} %", sonde["cpu"] <= 0.005),
            ("the same, RSS of the agent at its peak", "<= 40 MB", f"{sonde['peak_mb']:.1f} MB",
             sonde["peak_mb"] <= 40)]
