"""The web page: what it weighs, what the browser does with a large profile, what that costs sonde."""
import gzip
import json
import os
import subprocess
import tempfile

import rig

DIST = os.path.join(rig.ROOT, "ui", "dist")
SERVICES, INTERVAL_S = 1000, 15


def weight_kb():
    """All files of the page, compressed as the server sends them."""
    size = 0
    for folder, _, names in os.walk(DIST):
        for name in names:
            with open(os.path.join(folder, name), "rb") as f:
                size += len(gzip.compress(f.read(), 9))
    if not size:
        raise rig.BenchError(f"{DIST} is empty: run `make ui`")
    return size / 1024


def browser():
    """The figures of tests/browser/bench.ts, which prints them as one line of JSON."""
    out = subprocess.run([os.path.join(rig.ROOT, "tests", "browser", "run.sh"), "--bench"],
                         capture_output=True, text=True, check=False)
    for line in out.stdout.splitlines():
        if line.startswith("{"):
            return json.loads(line)
    raise rig.BenchError(f"the browser measured nothing:\n{out.stdout}{out.stderr}")


def flame(program, rounds):
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        return rig.run(program, folder, rounds)


def overview(program, rounds):
    """1,000 services and a day at the usual interval; writing it takes some minutes."""
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        return rig.run(program, folder, rounds, SERVICES, INTERVAL_S)


def measure_overview(bench):
    cost = overview(bench.program("ui_overview"), 2 * bench.rounds + 1)
    ms = {key: cost[key]["cpu_us"] / 1e3 for key in ("whole", "refresh", "services")}
    size = f"{SERVICES:,} services over 24 h"
    bench.section(f"/api/overview with {size}", ["response", "CPU", "compressed"],
                  [["all of it", f"{ms['whole']:.1f} ms", f"{cost['whole_bytes'] / 1e3:.0f} kB"],
                   ["a refresh", f"{ms['refresh']:.1f} ms", f"{cost['refresh_bytes'] / 1e3:.1f} kB"],
                   ["/api/services, from points", f"{ms['services']:.0f} ms", "-"],
                   ["ratio", f"{ms['services'] / ms['whole']:.0f}", "-"]])
    bench.at_most(f"/api/overview of {size}", ms["whole"], 50, "ms of CPU")
    bench.at_most(f"a refresh of {size}", ms["refresh"], 5, "ms of CPU")
    bench.at_most(f"a refresh of {size}", cost["refresh_bytes"] / 1e3, 10, "kB")


def measure(bench):
    measure_overview(bench)
    page = browser()
    nodes = f"{page['nodes']:,} nodes"

    def row(title, key):
        return [title, f"{page[key]['median']:.0f} ms", f"{page[key]['worst']:.0f} ms"]

    bench.section(f"The page with {nodes}: CPU of its main thread", ["action", "median", "worst"],
                  [row("load, from the first byte to the picture", "load"), row("zoom", "zoom"),
                   row("search, six keys", "search"), row("sandwich", "sandwich"),
                   ["a frame while hovering", f"{page['frames']['cpu']:.1f} ms", "-"]])
    services = f"{page['services']:,} services"
    bench.section(f"The overview of {services} over 24 hours: CPU of the page's main thread",
                  ["action", "median", "worst"],
                  [row("load, from the first byte to the picture", "overview_load"),
                   row("refresh", "refresh"), row("scroll by a screen", "scroll")])
    bench.at_most(f"first picture of {services}", float(page["picture"]["median"]), 300, "ms")
    bench.at_most("the page, compressed", weight_kb(), 90, "kB")
    bench.at_most(f"load {nodes}", float(page["load"]["median"]), 300, "ms of CPU")
    bench.at_most(f"zoom in {nodes}", float(page["zoom"]["median"]), 50, "ms of CPU")
    # Whether a frame comes in time depends on what else runs; what it costs does not.
    bench.at_most(f"a frame while hovering over {nodes}", page["frames"]["cpu"], 16.6, "ms of CPU")
    bench.at_most(f"time between frames while hovering over {nodes}, median",
                  page["frames"]["p50"], 16.8, "ms")

    answer = flame(bench.program("ui_flame"), 2 * bench.rounds + 1)
    size = f"{answer['nodes']:,} nodes"
    rows = [["query alone", f"{answer['query']['cpu_us'] / 1e3:.0f} ms", "-"]]
    rows += [[title, f"{answer[key]['cpu_us'] / 1e3:.0f} ms", f"{answer[size_key] / 1e6:.2f} MB"]
             for title, key, size_key in (("as JSON", "plain", "bytes"),
                                          ("as JSON, compressed", "packed", "gzip_bytes"))]
    bench.section(f"/api/flame with {size}", ["answer", "CPU", "size"], rows)
    bench.at_most(f"/api/flame with {size}, compressed", answer["packed"]["cpu_us"] / 1e3, 250,
                  "ms of CPU")
