#!/usr/bin/env python3
"""Runs the benchmarks, prints their figures beside the goals, and writes docs/BENCHMARKS.md.

    run.py [--build DIR] [--rounds N] [--days N] [--only GROUP,...] [--no-doc]

DIR holds sonde and the benchmark programs (meson setup -Dbench=true). Nothing here fails because
of a slow machine: goals are met or missed, and said to be. With --only some groups are measured, and
the others stay as docs/BENCHMARKS.md has them.
"""
import argparse
import os
import resource
import statistics
import subprocess
import sys

import agent
import cpu
import goroutines
import java
import metrics
import report
import rig
import store
import throughput
import ui

MEGABYTE = 1e6
STARTS = 5


def verdict(met):
    return "met" if met else "MISSED"


def spread(values):
    """The median, and from where to where the values go."""
    return f"{statistics.median(values):.1f}x ({min(values):.1f} to {max(values):.1f})"


class Bench:
    def __init__(self, build, rounds):
        self.build = build
        self.rounds = rounds
        self.groups = []
        newest = rig.targets.newest()
        self.toolchains = dict([rig.targets.mandatory(), newest])
        self.newest = newest[1]

    def program(self, name):
        path = os.path.join(self.build, "sonde" if name == "sonde" else f"bench/{name}")
        if not os.access(path, os.X_OK):
            raise rig.BenchError(f"{path} is not there: run `make bench`")
        return path

    def run(self, name, measure):
        self.groups.append(report.Group(name, report.load()))
        measure()

    def goal(self, what, wanted, measured, outcome):
        self.groups[-1].goals.append((what, wanted, measured, outcome))

    def at_least(self, what, ratio, limit):
        self.goal(what, f">= {limit}x", f"{ratio:.1f}x", verdict(ratio >= limit))

    def at_most(self, what, value, limit, unit):
        text = f"{value:.1f}" if isinstance(value, float) else f"{value}"
        self.goal(what, f"<= {limit} {unit}".rstrip(), f"{text} {unit}".rstrip(),
                  verdict(value <= limit))

    def section(self, title, header, rows):
        text = report.table(header, rows)
        self.groups[-1].sections.append((title, text))
        print(f"\n{title}\n\n{text}", flush=True)

    # --- what is measured ---

    def heap(self):
        for version, go in self.toolchains.items():
            self.heap_of(f"table, Go {version}", [rig.targets.build("bigtable", go)])
            self.heap_of(f"service, Go {version}", [rig.service(go)])
            self.heap_of(f"two Ps in turns, Go {version}", [rig.service(go), "-turns"])

    def heap_of(self, name, argv):
        # Where buckets lie depends on how the target's threads were scheduled: several starts.
        runs = []
        for _ in range(STARTS):
            with rig.Target(argv) as target:
                runs.append(rig.run(self.program("heap_strategies"), target.pid, self.rounds))

        def middle(strategy, field):
            return statistics.median(r[strategy][field] for r in runs)

        def ratios(strategy):
            return [r[strategy]["cpu_us"] / r["repeated"]["cpu_us"] for r in runs]

        names = (("chase", "two reads per bucket"), ("centred", "centred window of 256 KB"),
                 ("first", "sonde, first reading"), ("repeated", "sonde, repeated"))
        rows = [[title, *(f"{middle(k, 'cpu_us') / 1e3:.2f} ms"
                          for k in (strategy, strategy + "_cold")),
                 f"{middle(strategy, 'wall_us') / 1e3:.2f} ms",
                 f"{middle(strategy, 'syscalls'):.0f}",
                 f"{middle(strategy, 'bytes') / MEGABYTE:.1f} MB", spread(ratios(strategy))]
                for strategy, title in names]
        self.section(f"Reading {min(r['buckets'] for r in runs):,} buckets: {name}",
                     ["strategy", "CPU", "cold", "wall", "calls", "bytes", "CPU / repeated"], rows)
        self.at_most(f"repeated reading, {name}", max(r["repeated"]["syscalls"] for r in runs), 4,
                     "calls")
        for strategy, title in names[:2]:
            found = ratios(strategy)
            self.goal(f"{title} / repeated, {name}", ">= 20x", spread(found),
                      verdict(statistics.median(found) >= 20))
        self.at_most(f"first reading, {name}", max(r["first"]["syscalls"] for r in runs), 150,
                     "calls")

    def variables(self):
        rows = []
        for version, go in self.toolchains.items():
            plain, stripped = rig.many(go)
            with rig.Target([stripped]) as target:
                r = rig.run(self.program("variables"), target.pid, plain, 3 * self.rounds)
            for key, title in (("open", "stripped: open, all of it"),
                               ("search", "stripped: variables by code"),
                               ("symbols", "symbol table, sonde"),
                               ("one_by_one", "symbol table, symbol by symbol")):
                calls = r[key]["syscalls"] or "-"
                rows.append([f"Go {version}, {title}", f"{r[key]['cpu_us'] / 1e3:.2f} ms",
                             f"{r[key]['wall_us'] / 1e3:.2f} ms", calls])
            count = f"{r['functions']:,} functions, Go {version}"
            self.at_most(f"variables of a stripped program, {count}", r["search"]["cpu_us"] / 1e3,
                         5, "ms")
            self.at_least(f"symbol by symbol / symbol search, {r['n_symbols']:,} symbols, "
                          f"Go {version}", r["one_by_one"]["cpu_us"] / r["symbols"]["cpu_us"], 50)
        self.section("Finding the runtime's variables", ["way", "CPU", "wall", "calls"], rows)

    def memory(self):
        rows = []
        for version, go in self.toolchains.items():
            with rig.Target([rig.targets.build("bigtable", go)]) as target:
                others = ("tree", "collapsed", "json") if go == self.newest else ()
                for kind in ("pprof", "top", *others):
                    command = [self.program("sonde"), "heap", str(target.pid), "-f", kind, "-o",
                               "/dev/null"]
                    m = rig.peak(self.program("peak"), *command)
                    rss, private = m["rss_kb"] / 1024, m["private_kb"] / 1024
                    rows.append([f"sonde heap -f {kind}, Go {version}", f"{rss:.1f} MB",
                                 f"{private:.1f} MB", f"{self.cpu_ms(command):.1f} ms"])
                    self.at_most(f"peak RSS, -f {kind}, Go {version}", rss, 12, "MB")
                    self.at_most(f"peak private memory, -f {kind}, Go {version}", private, 6, "MB")
        self.section("The whole command on the table", ["command", "peak RSS", "private", "CPU"],
                     rows)

    @staticmethod
    def cpu_ms(command):
        times = []
        for _ in range(7):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return statistics.median(times) * 1e3

    def throughput(self):
        if os.cpu_count() < 2:
            print("throughput needs two CPUs: left out", file=sys.stderr)
            return
        program = rig.targets.build("bigtable", self.newest)
        rows = []
        # This process must not disturb the target, either.
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {1})
        for on_cpu, command, title in ((1, "", "nothing (control)"),
                                    (1, "read", "reading, on another CPU"),
                                    (1, "profile", "profile, on another CPU"),
                                    (0, "profile", "profile, on the target's CPU")):
            t = throughput.measure(program, self.program("reader"), on_cpu, command)
            rows.append([title, f"{t['per_second']:.4f}", f"{t['per_cpu_second']:.4f}",
                         f"{t['noise'] * 100:.1f} %", f"{t['cost_ms']:.1f} ms"])
            if command == "read":
                self.ratio_goal("throughput with a reading every second", t["per_second"], 0.99,
                                2 * t["error"])
        os.sched_setaffinity(0, before)
        self.section("Throughput of a target, against without",
                     ["every second a", "per second", "per CPU second", "spread",
                      "CPU of it"], rows)

    def store(self, days):
        found = store.measure(self.build, days)
        for title, header, rows in store.sections(found):
            self.section(title, header, rows)
        for what, value, limit, unit, least in store.goals(found):
            met = value >= limit if least else value <= limit
            self.goal(what, f"{'>=' if least else '<='} {limit} {unit}", f"{value:.2f} {unit}",
                      verdict(met))

    def metrics(self):
        found = metrics.measure(self.build, self.newest)
        for title, header, rows in metrics.sections(found):
            self.section(title, header, rows)
        for what, value, limit, unit in metrics.goals(found):
            self.at_most(what, value, limit, unit)

    def agent(self):
        found = agent.measure(self.program("sonde"), rig.service(self.newest))
        self.section("Always on: 30 Go programs of 1,000 stacks", agent.HEADER,
                     agent.rows(found["agent"], found["fetch"]))
        for what, wanted, measured, met in agent.goals(found["agent"]):
            self.goal(what, wanted, measured, verdict(met))

    def cpu(self):
        found = cpu.measure(self.program("sonde"), self.newest)
        self.section("CPU profiles of 50 busy processes", cpu.HEADER, cpu.rows(found))
        for what, wanted, measured, met in cpu.goals(found):
            self.goal(what, wanted, measured, verdict(met))

    def goroutines(self):
        found = goroutines.measure(rig.goroutines(self.newest), self.program("goroutines"),
                                   self.program("reader"), self.rounds)
        for count in goroutines.COUNTS:
            self.section(f"Reading {count:,} goroutines", goroutines.HEADER,
                         goroutines.rows(found[count]))
        for what, value, limit, unit in goroutines.goals(found):
            self.at_most(what, value, limit, unit)
        if "load" not in found:
            print("throughput needs two CPUs: left out", file=sys.stderr)
            return
        self.section("Throughput of a target with 10,000 goroutines, against without",
                     goroutines.LOAD_HEADER, goroutines.load_rows(found["load"]))
        t = found["load"]["sonde"]
        self.ratio_goal("throughput with a goroutine profile every second", t["mean"], 0.98,
                        2 * t["error"])

    def ratio_goal(self, what, ratio, limit, error):
        near = abs(ratio - limit) <= error
        self.goal(what, f">= {limit}", f"{ratio:.3f} ± {error:.3f}",
                  "undecided: too noisy" if near and error > 0.005 else verdict(ratio >= limit))


# What --only can name, in the order of the document.
GROUPS = {
    "heap": lambda bench, args: bench.heap(),
    "variables": lambda bench, args: bench.variables(),
    "memory": lambda bench, args: bench.memory(),
    "agent": lambda bench, args: bench.agent(),
    "cpu": lambda bench, args: bench.cpu(),
    "goroutines": lambda bench, args: bench.goroutines(),
    "java": lambda bench, args: java.measure(bench),
    "throughput": lambda bench, args: bench.throughput(),
    "ui": lambda bench, args: ui.measure(bench),
    "store": lambda bench, args: bench.store(args.days),
    "metrics": lambda bench, args: bench.metrics(),
}
DOCUMENT = os.path.join(rig.ROOT, "docs", "BENCHMARKS.md")


def chosen(text):
    """The names in --only, or all."""
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in GROUPS:
            raise argparse.ArgumentTypeError(f"no group is called {name}: there are "
                                             f"{', '.join(GROUPS)}")
    return names or list(GROUPS)


def write_document(about, groups):
    with open(DOCUMENT, encoding="utf-8") as f:
        _, old = report.parse(f.read())
    with open(DOCUMENT, "w", encoding="utf-8") as f:
        f.write(report.document(about, report.updated(old, groups, GROUPS)))


def main():
    parser = argparse.ArgumentParser(description="run the benchmarks")
    parser.add_argument("--build", default=os.path.join(rig.ROOT, "build"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--days", type=int, default=1, help="of the store's load")
    parser.add_argument("--only", type=chosen, default="", metavar="GROUP,...",
                        help=f"of {', '.join(GROUPS)}")
    parser.add_argument("--no-doc", action="store_true", help="leave docs/BENCHMARKS.md as it is")
    args = parser.parse_args()
    try:
        bench = Bench(args.build, args.rounds)
        about = report.machine(bench.toolchains)
        print("\n".join(about))
        for name in GROUPS:
            if name in args.only:
                bench.run(name, lambda measure=GROUPS[name]: measure(bench, args))
    except (rig.BenchError, rig.targets.BuildError) as e:
        print(e, file=sys.stderr)
        return 1
    print("\nGoals\n\n" + report.goals_table([row for g in bench.groups for row in g.goals]))
    if not args.no_doc:
        write_document(about, bench.groups)
    return 0


if __name__ == "__main__":
    sys.exit(main())
