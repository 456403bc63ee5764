"""The figures of the benchmarks as tables, for the screen and for docs/BENCHMARKS.md.

The document keeps what belongs together in groups, so that one group can be measured anew: in
"Goals" each has a heading of its own, and a comment with its name stands above its tables.
"""
import dataclasses
import os
import platform
import re

INTRO = """# Benchmarks

Written by `make bench`; all figures of a group are of one run on one machine. Compare the ratios,
not the times: alternatives were measured in turns within that run.

"""

METHOD = """## How it is measured

- **CPU** is user and system time of the reading process; system calls are those that read the
  target or its file. Figures are medians.
- **Reading buckets** (`bench/heap_strategies.c`): the target is started five times, for where its
  buckets lie depends on how its threads were scheduled; ratios are the median of the starts, and
  in brackets the least and the greatest. Each round runs every strategy seven times in a row.
  *cold* is the first of each seven, which finds the CPU's caches filled by another strategy. All
  strategies must find the same sums over all buckets, or the run fails. *Two reads per bucket*
  walks the list with `pread` on `/proc/PID/mem`. *Centred window* is the way of Coroot's node
  agent, written in C: one buffer of 256 KB, read again around the wanted address whenever that
  lies outside; where such a window begins in unmapped memory, the original loses the rest of the
  list, and this one reads on.
- **Table** (`tests/targets/bigtable`) fills its buckets in one goroutine, so that they lie in
  memory nearly as they lie in the list: the best case for a window. **Service**
  (`bench/targets/service`) handles the same 8,192 call paths as requests on 64 connections with
  GOMAXPROCS=8; there the runtime hands out buckets from one chunk of memory per P, and neighbours
  in the list lie apart. How far they are mixed depends on how many CPUs it really gets.
- **Always on** (`bench/agent.py`): thirty servers (`bench/targets/service -steady`), each with a
  thousand stacks and hundreds of functions, which all allocate several times a second. CPU is that of
  all threads of `sonde run`, discovery, store and server included, over four intervals of 15 s
  after three for warming up; in brackets the least and the greatest. RSS is the greatest of them,
  libraries included. *Fetched only*: curl gets `/debug/pprof/heap` of the same programs, which
  write the profile themselves; what they do anyway is taken off. System calls are counted by
  strace. All of it runs in a pid namespace of its own.
- **Variables** (`bench/variables.c`): a generated program; the search starts with nothing cached
  of the target. *Symbol by symbol* stops as soon as it has all three variables.
- **Memory** (`bench/peak.c`): the command is stopped before each system call that can give memory
  back, and its smaps are read; the peak is exact, not sampled.
- **Throughput** (`bench/throughput.py`): the target computes and allocates as fast as it can on
  CPU 0, GOMAXPROCS=1. Windows of a tenth of a second, two without a reading around two that begin
  with one (ABBA), on the same process; what it has done is read from its memory. What one reading
  takes from its window it takes from each second when there is one a second: that is what the
  table shows. A *reading* takes the counts of all buckets, a *profile* also looks up all names and
  encodes it; the load adds new call paths all the time, up to twice the table. *per CPU second*
  divides by the CPU time that the target got: it leaves out what other programs on the machine
  took away. Median of the blocks of four; *spread* is that of single blocks. *nothing* is the same
  procedure without any reading: what differs from 1 there is not our doing.
- **Goroutines** (`bench/goroutines.py`, `bench/goroutines.c`): a server whose goroutines wait at 64
  places for channels, selects, mutexes and conditions (`bench/targets/goroutines`). *First* finds
  out how each place is left, *repeated* knows it; *without ever waiting* is by `pread` alone, as
  `sonde run` reads. For *curl* the program writes the profile itself: what it spends on that, less
  what it does anyway, stands beside what curl takes. Throughput is that of a load on CPU 0,
  GOMAXPROCS=1, in a program with 10,000 goroutines that wait besides, measured as above: median of
  the blocks and its standard error. *per CPU second* leaves out what other programs of the machine
  took away, but also what the program lost by standing still.
- **Java** (`bench/java.py`): a JVM that does little but allocate (`bench/targets/java`), of each
  JDK on the machine that has a compiler, with a heap of one size. Windows of two seconds with a
  profiler stand between windows without, the profilers in turns; each is set against the mean of
  its two neighbours. CPU is that of the whole JVM, its collector and compilers included, so that
  what other programs of the machine take away does not count, per operation. Median and standard
  error of those ratios, in brackets the least and the greatest; *windows without* are set against
  each other in the same way: what differs from 0 there is not the profilers' doing. Starting and
  stopping is not counted, nor what the profiler takes on our side. The recorder and our library
  tell allocations and locks, async-profiler CPU besides, at their usual settings; it is fetched
  from Maven, or named by `ASYNC_PROFILER`.
- **Store** (`bench/store.py`, `bench/store_bench.c`): a made-up load, drawn by a seed and the same
  for every engine (`bench/store_load.h`). CPU time is that of the store's calls alone, for
  ClickHouse that of its server; making the profiles is not counted. Plain rows and ClickHouse are
  given numbers for stacks and keep no names; the store looks up every frame by its name, keeps the
  names, and its sums are profiles with names, files and lines. All engines must give equal sums,
  or the run fails. Each figure of a sum is the median of sixteen, over services and types in turn.
  *memory* is the growth of the process' peak RSS while it writes, with the profile being written.
  ClickHouse is Debian's, with zstd, on loopback, started for this; its parts are merged into one
  per day before bytes and sums are taken. Nothing is extrapolated: what a title says was written.
- **Metrics** (`bench/metrics.py`, `bench/metrics_bench.c`): what `sonde run` says in `/metrics` of six Go programs and
  two JVMs, busy and idle, every 5 s for five minutes, is recorded, times in nanoseconds. A day is made of it, a reading
  every 15 s: each of 30 Go programs and 5 JVMs goes through the recording of one of them, 20 readings in a row from
  a place that a seed draws, and numbers that change most of the time are moved by up to a quarter of their usual change, so
  that nothing repeats. *Bytes per point* are those of the whole file when the day is closed, dictionaries and the database's
  own pages included. Plain rows are (series, time, value) with that primary key. *Random floats*: the same series, each
  value drawn from 100 to 110 with all its bits. 24 h of series: one service of 200 processes, as the Go programs of the
  recording, and one metric of it in 288 steps, median of nine; the same process writes and asks. *Memory* is the growth of the
  process' peak RSS while 10,000 series of 25 services are written for five minutes and packed.
- **The page** (`tests/browser/bench.ts`): Debian's Chromium without a screen; CPU is what the main
  thread was busy, as the browser counts it: loading is parsing, layout and the first picture.
  **/api/flame** (`bench/ui_flame.c`): a stored profile whose call tree has more nodes than the
  answer may have; CPU is that of the server alone, the store included.

## To repeat it

    make bench
    make bench ONLY=goroutines,cpu

The second measures some groups, by the names that head the goals, and leaves the others as they
are. It builds sonde and the target programs (the large one takes a minute, once), needs root and two
CPUs, and takes about twenty minutes; `bench/run.py --days 7` writes a whole week of the
store's load, which takes an hour. The machine should be idle: what other programs push out of the
CPU's caches costs a repeated reading relatively most, and throughput cannot be told at all.
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
    return f"Load average when it began: {os.getloadavg()[0]:.1f}."


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
