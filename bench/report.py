"""The figures of the benchmarks as tables, for the screen and for docs/BENCHMARKS.md."""
import os
import platform

INTRO = """# Benchmarks

Written by `make bench`; every figure below is of one run on one machine. Compare the ratios, not
the times: alternatives were measured in turns within that run.

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
  CPU 0, GOMAXPROCS=1. Intervals of three seconds with one reading a second and without alternate,
  on the same process. A *reading* takes the counts of all buckets, a *profile* also looks up all
  names and encodes it; the load adds new call paths all the time, up to twice the table. *per CPU
  second* divides by the CPU time that the target got: it leaves out what other programs on the
  machine took away. *noise* is half the distance of the quartiles, relative to the median.
  *nothing* is the same procedure without any reading: what differs from 1 there is not our doing.
- **Store** (`bench/store.py`, `bench/store_bench.c`): a made-up load, drawn by a seed and the same
  for every engine (`bench/store_load.h`). CPU time is that of the store's calls alone, for
  ClickHouse that of its server; making the profiles is not counted. Plain rows and ClickHouse are
  given numbers for stacks and keep no names; the store looks up every frame by its name, keeps the
  names, and its sums are profiles with names, files and lines. All engines must give equal sums,
  or the run fails. Each figure of a sum is the median of sixteen, over services and types in turn.
  *memory* is the growth of the process' peak RSS while it writes, with the profile being written.
  ClickHouse is Debian's, with zstd, on loopback, started for this; its parts are merged into one
  per day before bytes and sums are taken. Nothing is extrapolated: what a title says was written.
- **The page** (`tests/browser/bench.ts`): Debian's Chromium without a screen; CPU is what the main
  thread was busy, as the browser counts it: loading is parsing, layout and the first picture.
  **/api/flame** (`bench/ui_flame.c`): a stored profile whose call tree has more nodes than the
  answer may have; CPU is that of the server alone, the store included.

## To repeat it

    make bench

It builds sonde and the target programs (the large one takes a minute, once), needs root and two
CPUs, and takes about a quarter of an hour; `bench/run.py --days 7` writes a whole week of the
store's load, which takes an hour. The machine should be idle: what other programs push out of the
CPU's caches costs a repeated reading relatively most, and throughput cannot be told at all.
"""


def machine(versions):
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
        f"- load average when the run began: {os.getloadavg()[0]:.1f}",
    ]


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


def goals_table(goals):
    return table(["goal", "wanted", "measured", ""],
                 [[g.what, g.wanted, g.measured, g.verdict] for g in goals])


def document(about, goals, sections):
    parts = [INTRO + "\n".join(about), "## Goals\n\n" + goals_table(goals)]
    parts += [f"## {title}\n\n{text}" for title, text in sections]
    return "\n\n".join(parts) + "\n\n" + METHOD
