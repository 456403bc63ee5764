#!/usr/bin/env python3
"""The embedded store beside plain rows in SQLite and beside ClickHouse, on the same made-up load.

    store.py [--build DIR] [--days N] [--week-services N] [--compare-hours N]

Three passes, each engine in a process of its own:
- the whole load (30 services) for N days (default 1), the embedded store only;
- the whole load for a few hours (default 1), all engines: what writing costs and takes;
- one service (or more) for seven days and twelve hours, all engines: what sums cost.
Every figure is measured; nothing is extrapolated. The engines must give equal sums.
"""
import argparse
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

SERVICES = 30
WEEK_MINUTES = (7 * 24 + 12) * 60
MIDDLE_SERVICE = 10  # of an average number of samples, two processes
ENGINES = (("embedded", "sonde's store"), ("rows", "plain rows, SQLite"),
           ("clickhouse", "ClickHouse"))

CONFIG = """<yandex>
<logger><level>error</level><log>{folder}/log</log><errorlog>{folder}/errors</errorlog></logger>
<http_port>{http}</http_port><tcp_port>{tcp}</tcp_port><listen_host>127.0.0.1</listen_host>
<path>{folder}/</path><tmp_path>{folder}/tmp/</tmp_path>
<users_config>{folder}/users.xml</users_config><default_profile>default</default_profile>
<default_database>default</default_database><mark_cache_size>268435456</mark_cache_size>
<compression><case><min_part_size>0</min_part_size><min_part_size_ratio>0</min_part_size_ratio>
<method>zstd</method></case></compression>
</yandex>
"""
USERS = """<yandex>
<profiles><default><max_memory_usage>4000000000</max_memory_usage></default></profiles>
<users><default><password></password><networks><ip>127.0.0.1</ip></networks>
<profile>default</profile><quota>default</quota></default></users>
<quotas><default></default></quotas>
</yandex>
"""


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]


@contextlib.contextmanager
def clickhouse(folder):
    """A server of our own: (port, pid, version), or None with the reason said."""
    program = shutil.which("clickhouse-server") or shutil.which("clickhouse-server", path="/usr/sbin")
    if not program:
        print("ClickHouse is left out: clickhouse-server is not installed "
              "(Debian: apt-get install clickhouse-server)", file=sys.stderr)
        yield None
        return
    http, tcp = free_ports(2)
    for name, text in (("config.xml", CONFIG), ("users.xml", USERS)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text.format(folder=folder, http=http, tcp=tcp))
    server = subprocess.Popen([program, f"--config-file={folder}/config.xml"], cwd=folder,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        version = wait_for(server, f"http://127.0.0.1:{http}/?query=SELECT%20version()")
        if not version:
            print("ClickHouse is left out: the server does not start", file=sys.stderr)
        yield (http, server.pid, version) if version else None
    finally:
        server.kill()
        server.wait()


def wait_for(server, url):
    for _ in range(600):
        if server.poll() is not None:
            return None
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return answer.read().decode().strip()
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    return None


def run(build, engine, first, services, minutes, batch=1):
    """One engine over one pass: its figures, or None where the engine is not there."""
    with tempfile.TemporaryDirectory(prefix="sonde-store-") as folder:
        if engine != "clickhouse":
            return bench(build, engine, folder, first, services, minutes)
        with clickhouse(folder) as server:
            if not server:
                return None
            place = f"{server[0]} {server[1]} {batch}"
            return {"version": server[2],
                    **bench(build, engine, place, first, services, minutes)}


def bench(build, engine, place, first, services, minutes):
    done = subprocess.run([os.path.join(build, "bench", "store_bench"), engine, place, str(first),
                           str(services), str(minutes)],
                          check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def measure(build, days=1, compare_hours=1, week_services=1):
    """All passes: {"days": …, "day": …, "hours": {engine: …}, "week": {engine: …}}."""
    found = {
        "days": days, "compare_hours": compare_hours, "week_services": week_services,
        "day": run(build, "embedded", 0, SERVICES, days * 1440),
        "hours": {name: run(build, name, 0, SERVICES, compare_hours * 60) for name, _ in ENGINES},
        # Inserts of a minute would be a few thousand rows: ClickHouse gets an hour at a time.
        "week": {name: run(build, name, MIDDLE_SERVICE, week_services, WEEK_MINUTES, 60)
                 for name, _ in ENGINES},
    }
    for results in (found["hours"], found["week"]):
        compare({name: r for name, r in results.items() if r})
    return found


def compare(results):
    """The engines hold the same: every sum must be equal."""
    for window, value in results["embedded"].items():
        if not isinstance(value, dict):
            continue
        for name, other in results.items():
            if [other[window][k] for k in ("total", "stacks")] != [value["total"], value["stacks"]]:
                raise ValueError(f"{name} gives another sum over {window} than the store")


def ms(result, window):
    return f"{result[window]['cpu_ms']:.1f}" if window in result else "-"


def sections(f):
    """[(title, header, rows)] of what was measured."""
    day = f["day"]
    windows = (("now_1h", "the last hour, still open"), ("past_1h", "an hour of the past"),
               ("across_1h", "an hour, from half past"),
               ("now_24h", "the last 24 h, the day still open"), ("past_24h", "a whole day"),
               ("across_24h", "24 h, from half past noon"),
               ("past_7d", "seven whole days"))
    yield (f"Store: {day['samples'] / 1e6:.0f} M samples of {SERVICES} services in "
           f"{f['days']} d", ["what", "measured"],
           [["M samples per CPU second, packing included", f"{day['million_samples_per_cpu_s']:.2f}"],
            ["the same in the last hour", f"{day['million_samples_per_cpu_s_last_hour']:.2f}"],
            ["bytes per sample, days closed", f"{day['bytes_per_sample']:.2f}"],
            ["memory that writing adds, at most", f"{day['memory_mb']:.0f} MB"],
            *[[f"sum of one service and type, {title}", f"{day[w]['cpu_ms']:.1f} ms"]
              for w, title in windows if w in day],
            *[["curve of one function, the last 24 h", f"{day[w]['cpu_ms']:.1f} ms"]
              for w in ("curve_24h",) if w in day]])
    rows = [[name_of(name, title, r), f"{r['million_samples_per_cpu_s']:.2f}",
             f"{r['bytes_per_sample']:.2f}", ms(r, "past_1h")]
            for name, title in ENGINES if (r := f["hours"][name])]
    yield (f"Stores on the first {f['compare_hours']} h of it", ["store", "M samples per CPU-s",
           "bytes per sample", "sum of 1 h, ms"], rows)
    rows = [[name_of(name, title, r), f"{r['million_samples_per_cpu_s']:.2f}",
             f"{r['bytes_per_sample']:.2f}", ms(r, "across_1h"), ms(r, "past_24h"),
             ms(r, "across_24h"), ms(r, "past_7d")]
            for name, title in ENGINES if (r := f["week"][name])]
    yield (f"Stores on 7.5 days of {f['week_services']} service(s), "
           f"{f['week']['embedded']['samples'] / 1e6:.0f} M samples",
           ["store", "M samples per CPU-s", "bytes per sample", "sum of 1 h, ms",
            "24 h to noon", "24 h, half past", "7 d to noon"], rows)


def name_of(name, title, result):
    return f"{title} {result['version']}" if name == "clickhouse" else title


def goals(f):
    """[(what, value, limit, unit, whether at least)]"""
    day, week = f["day"], f["week"]["embedded"]
    hour = max(day[w]["cpu_ms"] for w in ("now_1h", "past_1h", "across_1h"))
    whole = max(day["now_24h"]["cpu_ms"], day["past_24h"]["cpu_ms"], week["across_24h"]["cpu_ms"])
    return [
        ("store: M samples per CPU second in, packing included",
         day["million_samples_per_cpu_s"], 3, "M/s", True),
        ("store: bytes per sample on disk", day["bytes_per_sample"], 2.6, "bytes", False),
        ("store: sum of 1 h", hour, 10, "ms", False),
        ("store: sum of 24 h", whole, 40, "ms", False),
        ("store: sum of 7 d", week["past_7d"]["cpu_ms"], 150, "ms", False),
        ("store: memory of the writer", day["memory_mb"], 64, "MB", False),
    ]


def main():
    import report  # of this folder; not needed by who imports us

    parser = argparse.ArgumentParser(description="the store's benchmark")
    parser.add_argument("--build", default="build")
    parser.add_argument("--days", type=int, default=1)
    parser.add_argument("--compare-hours", type=int, default=1)
    parser.add_argument("--week-services", type=int, default=1)
    args = parser.parse_args()
    found = measure(args.build, args.days, args.compare_hours, args.week_services)
    for title, header, rows in sections(found):
        print(f"\n{title}\n\n{report.table(header, rows)}")
    print()
    for what, value, limit, unit, least in goals(found):
        met = value >= limit if least else value <= limit
        print(f"{what}: {value:.2f} {unit}, wanted {'>=' if least else '<='} {limit}: "
              f"{'met' if met else 'MISSED'}")


if __name__ == "__main__":
    main()
