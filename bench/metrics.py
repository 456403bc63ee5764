#!/usr/bin/env python3
"""A day of sonde's own metrics in its store, beside plain rows in SQLite.

    metrics.py SONDE GO RECORDED    records into a file; the part that runs in its own pid namespace

Some Go programs and JVMs, busy and idle, are watched by a `sonde run` for some minutes, and what it
says of them in /metrics at each interval is kept, in the units of the runtimes (seconds as
nanoseconds). bench/metrics_bench.c makes a day of 30 Go programs and 5 JVMs of that.
"""
import os
import re
import subprocess
import sys
import tempfile
import time

import rig

INTERVAL = 5
READINGS = 60
LINE = re.compile(r"^(container_\w+)\{(.*)\} (\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
PROCESS = ("service", "container", "pid", "comm")
LOAD = os.path.join(rig.HERE, "targets", "java", "Load.java")
NAMES = {"day": "sonde's store", "rows": "plain rows, SQLite"}


def programs(go):
    """{service: command}"""
    leak = rig.targets.build("leak", go)
    return {
        "go-service": [rig.service(go), "-steady"],
        "go-busy": [leak, "-leak-mb", "0.05", "-churn-mb", "50"],
        "go-calm": [leak, "-leak-mb", "0.01", "-churn-mb", "2"],
        "go-some": [leak, "-leak-mb", "0", "-churn-mb", "10"],
        "go-idle": [leak, "-leak-mb", "0", "-churn-mb", "0"],
        "go-locks": [rig.targets.build("contention", go), "-block", "1", "-mutex", "1", "-load"],
        "java-busy": ["java", "-Xmx256m", LOAD],
        "java-idle": ["java", "-XX:+UseSerialGC", "-Xmx128m", os.path.join(rig.HERE, "targets", "java", "Idle.java")],
    }


def parse(text, wanted):
    """{(service, name, attributes): value} and {name: type}"""
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    found = {}
    for m in filter(None, map(LINE.match, text.splitlines())):
        labels = dict(LABEL.findall(m[2]))
        if labels["service"] not in wanted:
            continue
        extra = ",".join(f"{k}={v}" for k, v in labels.items() if k not in PROCESS)
        seconds = "_seconds" in m[1]
        value = float(m[3])
        found[labels["service"], m[1], extra.replace(" ", "_") or "-"] = round(value * 1e9) if seconds else value
    return found, types


def record(sonde, go, path):
    """Runs the programs and writes what sonde says of them."""
    wanted = programs(go)
    running, rows, types = [], [], {}
    with tempfile.TemporaryDirectory(prefix="sonde-metrics-") as folder, \
            rig.Agent(sonde, folder, INTERVAL) as agent:
        try:
            for service, argv in wanted.items():
                running.append(subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                                env=dict(os.environ, OTEL_SERVICE_NAME=service)))
            time.sleep(4 * INTERVAL)
            for _ in range(READINGS):
                time.sleep(INTERVAL)
                found, types = parse(agent.metrics(), wanted)
                rows.append(found)
        finally:
            for p in running:
                p.kill()
                p.wait()
                p.stdin.close()
                p.stdout.close()
    write(path, rows, types)


def write(path, rows, types):
    keys = sorted({key for row in rows for key in row})
    with open(path, "w", encoding="utf-8") as f:
        for key in keys:
            service, name, extra = key
            values = [row.get(key) for row in rows]
            if types[name] == "counter":
                values = [None if a is None or b is None else b - a for a, b in zip(values, values[1:])]
            else:
                values = values[1:]
            f.write(" ".join([service, service.split("-")[0], types[name], name, extra,
                              *("-" if v is None else f"{v:.17g}" for v in values)]) + "\n")


def measure(build, go):
    program = os.path.join(build, "bench", "metrics_bench")
    found = {}
    with tempfile.TemporaryDirectory(prefix="sonde-metrics-") as folder:
        recorded = os.path.join(folder, "recorded")
        done = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", sys.executable, __file__,
                               os.path.join(build, "sonde"), go, recorded],
                              stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise rig.BenchError(f"recording metrics failed: {done.stderr.strip()}")
        for mode in ("day", "rows", "floats", "fleet", "memory"):
            data = os.path.join(folder, mode)
            os.mkdir(data)
            found[mode] = rig.run(program, mode, recorded, data)
    return found


def sections(f):
    day, fleet = f["day"], f["fleet"]
    yield (f"Metrics: a day of 30 Go programs and 5 JVMs, {day['series']:.0f} series every 15 s",
           ["store", "bytes per point", "us of CPU per point in"],
           [[NAMES[mode], f"{f[mode]['bytes_per_point']:.2f}",
             f"{f[mode]['write_us_per_point'] + f[mode].get('pack_us_per_point', 0):.2f}"]
            for mode in ("day", "rows")] +
           [["sonde's store, random floats instead", f"{f['floats']['bytes_per_point']:.2f}",
             f"{f['floats']['write_us_per_point'] + f['floats']['pack_us_per_point']:.2f}"]])
    yield ("Metrics: reading and memory", ["what", "measured"],
           [[f"24 h of {fleet['query_series']:.0f} series of one metric, CPU", f"{fleet['query_24h_ms']:.1f} ms"],
            [f"memory of {f['memory']['series']:,.0f} active series", f"{f['memory']['memory_mb']:.1f} MB"]])


def goals(f):
    """[(what, value, limit, unit)]"""
    return [("metrics: bytes per point on disk, packed", f["day"]["bytes_per_point"], 1.5, "bytes"),
            ("metrics: 24 h of 200 series", f["fleet"]["query_24h_ms"], 20, "ms"),
            ("metrics: memory of 10,000 active series", f["memory"]["memory_mb"], 20, "MB")]


if __name__ == "__main__":
    record(*sys.argv[1:])
