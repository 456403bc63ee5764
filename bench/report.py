"""The figures of the benchmarks as tables, for the screen and for docs/BENCHMARKS.md.

The document keeps what belongs together in groups, so that one group can be measured anew: in
"Goals" each has a heading of its own, and a comment with its name stands above its tables.
"""
import dataclasses
import os
import platform
import re

INTRO = """# Benchmarks

Written by `make bench`. All values of a group come from one run on one machine. Compare ratios rather
than times: alternatives were measured in turn within that run.

"""

METHOD = """## How it is measured

- **CPU** is user and system time of the reading process; system calls are those that read the
  target or its file. Values are medians.
- **Reading buckets** (`bench/heap_strategies.c`): the target is started five times, because the
  placement of its buckets depends on thread scheduling. Ratios are medians over the starts, with
  minimum and maximum in brackets. Each round runs every strategy seven times in a row. *cold* is the
  first of each seven, with the CPU caches filled by another strategy. All strategies must find the
  same sums over all buckets, or the run fails. *Two reads per bucket* walks the list with `pread` on
  `/proc/PID/mem`. *Centred window* is the method of Coroot's node agent, rewritten in C: one buffer
  of 256 KB, read again around the wanted address whenever that is outside. If such a window starts
  in unmapped memory, the original loses the rest of the list; this one continues.
- **Table** (`tests/targets/bigtable`) fills its buckets in one goroutine, so their order in memory is
  nearly that of the list: the best case for a window. **Service** (`bench/targets/service`) handles
  the same 8,192 call stacks as requests on 64 connections with GOMAXPROCS=8. There the runtime
  allocates buckets from one chunk of memory per P, and neighbours in the list are far apart; how far
  depends on how many CPUs it really gets.
- **Always on** (`bench/agent.py`): thirty servers (`bench/targets/service -steady`), each with a
  thousand stacks and hundreds of functions that all allocate several times per second. CPU covers
  all threads of `sonde run` and its aides, including discovery, store and server, over four
  intervals of 15 s after three for warm-up, with minimum and maximum in brackets. RSS is the
  maximum, libraries included, and what aides add to it. *Fetched only*: curl gets `/debug/pprof/heap` of the same programs, which write the
  profile themselves; their normal CPU time is subtracted. System calls are counted by strace.
  Everything runs in its own PID namespace.
- **Variables** (`bench/variables.c`): a generated program; the search starts with nothing cached.
  *Symbol by symbol* stops as soon as it has all three variables.
- **Memory** (`bench/peak.c`): the command is stopped before each system call that can return memory,
  and its smaps are read; the peak is exact, not sampled.
- **Throughput** (`bench/throughput.py`): the target computes and allocates as fast as it can on
  CPU 0 with GOMAXPROCS=1. Windows of 100 ms alternate on the same process: two without a read around
  two that start with one (ABBA); progress is read from the target's memory. With one read per
  second, each second loses what one read takes from its window: that is what the table shows. A
  *reading* fetches the counts of all buckets; a *profile* also looks up all names and encodes it.
  The load keeps adding new call stacks, up to twice the table. *per CPU second* divides by the CPU
  time the target got, which excludes other programs on the machine. Values are medians over blocks
  of four; *spread* is that of single blocks. *nothing* is the same procedure without any read: a
  deviation from 1 there is noise.
- **CPU profiling** (`bench/cpu.py`): 50 processes of five kinds share the CPUs; each profiler runs for the same
  time, one after another. *In BPF* is the kernel's own account of all BPF programs of the agent, *per sample*
  that of the one on the perf event. *For comparison* (`bench/bpf_floor.py`) are programs on the same kind of event,
  right after: one that does nothing, and the kernel's own walks, which only follow frame pointers. On a shared
  machine the ratio to these holds from run to run, the time does not. Kernel frames cost the same for everyone.
- **Goroutines** (`bench/goroutines.py`, `bench/goroutines.c`): a server whose goroutines wait at 64
  places for channels, selects, mutexes and conditions (`bench/targets/goroutines`). *First* learns
  how to unwind each place, *repeated* knows it; *without ever waiting* uses `pread` only, as
  `sonde run` does. For *curl* the program writes the profile itself: its CPU time for that, minus
  its normal CPU time, is shown beside curl's. Throughput is that of a load on CPU 0 with
  GOMAXPROCS=1, in a program with 10,000 waiting goroutines, measured as above: median over the
  blocks and its standard error. *per CPU second* excludes other programs on the machine, but also
  the time the program was stopped.
- **Java** (`bench/java.py`): a JVM that does little but allocate (`bench/targets/java`), for each JDK
  on the machine that has a compiler, with a fixed heap size. Windows of two seconds with a profiler
  alternate with windows without, the profilers in turn; each is compared to the mean of its two
  neighbours. CPU is that of the whole JVM per operation, including garbage collector and compilers,
  so other programs on the machine do not count. Shown are median and standard error of these
  ratios, with minimum and maximum in brackets. *windows without* are compared to each other in the
  same way: a deviation from 0 there is noise. Starting and stopping are not counted, nor is CPU
  time on our side. The recorder and our library record allocations and locks, async-profiler also
  CPU, at their usual settings; it is fetched from Maven, or set by `ASYNC_PROFILER`. The first start
  of each is measured in a JVM of its own, which has 1200 copies of a class to run through and has
  warmed up for 45 seconds: requests in the *worst second* of the 25 after the start, against the mean
  of the ten before, and the seconds until each one reaches 90 % again; *per CPU second* is the worst
  second by the JVM's own CPU time, which other programs on the machine cannot take away. Latencies
  are medians of the percentiles of each second.
- **Store** (`bench/store.py`, `bench/store_bench.c`): a synthetic load from a seed, the same for
  every engine (`bench/store_load.h`). CPU time is that of the store's calls only, for ClickHouse that
  of its server; generating the profiles is not counted. Plain rows and ClickHouse get numbers for
  stacks and store no names. The store looks up every frame by name, keeps the names, and returns
  profiles with names, files and lines. All engines must return equal sums, or the run fails. Each
  time of a sum is the median of sixteen, over services and types in turn. *memory* is the growth of
  the process's peak RSS while writing, including the profile being written. ClickHouse is Debian's,
  with zstd, on loopback, started for this; its parts are merged into one per day before measuring.
  Nothing is extrapolated: what a title says was written.
- **Metrics** (`bench/metrics.py`, `bench/metrics_bench.c`): the `/metrics` of `sonde run` for six Go programs and
  two JVMs, busy and idle, recorded every 5 s for five minutes, times in nanoseconds. A day is built from this
  recording, one reading every 15 s: each of 30 Go programs and 5 JVMs replays one recorded process, 20 readings
  in a row from a place drawn by a seed. Values that mostly change are shifted by up to a quarter of their usual
  change, so nothing repeats. *Bytes per point* count the whole file of a closed day, including dictionaries and
  the database's own pages. Plain rows are (series, time, value) with that primary key. *Random floats*: the same
  series, each value drawn from 100 to 110 with all its bits. 24 h of series: one service of 200 processes like
  the recorded Go programs, one metric in 288 steps, median of nine; the same process writes and queries. *Memory*
  is the growth of the process's peak RSS while 10,000 series of 25 services are written for five minutes and
  packed.
- **The page** (`tests/browser/bench.ts`): Debian's headless Chromium; CPU is the busy time of the main
  thread as counted by the browser. Loading includes parsing, layout and the first paint.
  **/api/flame** (`bench/ui_flame.c`): a stored profile whose call tree exceeds the maximum of nodes;
  CPU is that of the server only, including the store.

## To repeat it

    make bench
    make bench ONLY=goroutines,cpu

The second command measures only these groups (the headings under Goals) and keeps the others. It
builds sonde and the target programs (the large one takes a minute, once), needs root and two CPUs, and
takes about twenty minutes; `bench/run.py --days 7` writes a whole week of the store's load, which takes
an hour. The machine should be idle: cache pressure from other programs hits a repeated read hardest,
and makes throughput impossible to measure.
"""


def machine(versions):
    """Lines about where it is measured."""
    model = "unknown CPU"
    memory = 0
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        for line in f:
            if line.startswith("model name"):
                model = " ".join(line.split(":", 1)[1].split())
                break
    with open("/proc/meminfo", encoding="utf-8") as f:
        memory = int(f.readline().split()[1])
    return [
        f"- {os.cpu_count()} CPUs ({model}), {memory / 2**20:.0f} GB of memory",
        f"- Linux {platform.release()}, {platform.machine()}",
        f"- Go {', '.join(versions)}",
    ]


def load():
    return f"Load average at the start: {os.getloadavg()[0]:.1f}."


def table(header, rows):
    """A Markdown table that also reads well on a screen: first column left, others right."""
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(r[i]) for r in [header, *rows]) for i in range(len(header))]

    def line(cells):
        first = cells[0].ljust(widths[0])
        rest = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:])]
        return "| " + " | ".join([first, *rest]) + " |"

    rule = ["-" * widths[0]] + ["-" * (w - 1) + ":" for w in widths[1:]]
    return "\n".join([line(header), "| " + " | ".join(rule) + " |", *map(line, rows)])


GOALS_HEADER = ["goal", "wanted", "measured", ""]


@dataclasses.dataclass
class Group:
    """What one part of the benchmarks found."""
    name: str
    load: str
    goals: list = dataclasses.field(default_factory=list)  # (what, wanted, measured, verdict)
    sections: list = dataclasses.field(default_factory=list)  # (title, table)


def goals_table(goals):
    return table(GOALS_HEADER, goals)


def document(about, groups):
    parts = [INTRO + "\n".join(about), "## Goals"]
    parts += [f"### {g.name}\n\n{g.load}" + ("\n\n" + goals_table(g.goals) if g.goals else "")
              for g in groups]
    parts += [f"<!-- {g.name} -->\n## {title}\n\n{text}"
              for g in groups for title, text in g.sections]
    return "\n\n".join(parts) + "\n\n" + METHOD


def parse(text):
    """(lines about the machine, groups) of a document."""
    head, _, rest = text.partition("\n## Goals\n")
    figures, _, _ = rest.partition("\n## How it is measured\n")
    about = [line for line in head.split("\n") if line.startswith("- ")]
    goals, *tables = re.split(r"^<!-- (.+) -->$", figures, flags=re.M)
    groups = {}
    for part in re.split(r"^### ", goals, flags=re.M)[1:]:
        lines = [line for line in part.split("\n") if line]
        rows = [tuple(cell.strip() for cell in line.strip("|").split("|"))
                for line in lines if line.startswith("|")]
        groups[lines[0]] = Group(lines[0], lines[1], rows[2:])
    for name, part in zip(tables[::2], tables[1::2]):
        title, _, body = part.strip().removeprefix("## ").partition("\n")
        groups[name].sections.append((title, body.strip()))
    return about, list(groups.values())


def updated(old, new, order):
    """The groups of an old document with those measured anew in their place."""
    found = {g.name: g for g in [*old, *new]}
    return [found[name] for name in order if name in found]
