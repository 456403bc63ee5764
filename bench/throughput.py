"""What a program loses while it is read or profiled.

The loss of one reading is looked for where it happens: in windows of a tenth of a second, each with
one reading or without any, in the order ABBA, so that a drift of the machine hits both alike. Units of
load are taken from the target's memory, not asked for: the target is not disturbed by the measuring,
and no answer comes late. What one reading takes from its window it takes from each second when there
is one reading a second.
"""
import os
import statistics
import subprocess
import time

import rig
from agent import cpu_ns

WINDOW = 0.1  # seconds: a few collections of garbage of the target, and longer than a reading
ROUNDS = 150  # blocks of four windows
PER = ("second", "cpu_second")


class Reader:
    """bench/reader.c on one CPU; work() makes it do its work once, or nothing without command."""

    def __init__(self, program, pid, cpu, command):
        self.command = command
        self.process = subprocess.Popen([program, str(pid)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True,
                                        preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))

    def work(self):
        if not self.command:
            return 0
        self.process.stdin.write(self.command + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise rig.BenchError("the reader ended")
        return int(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Load:
    """The units of load of a running target: its variable main.units."""

    def __init__(self, program, pid):
        symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
        found = [line.split()[0] for line in symbols.splitlines() if line.endswith(" main.units")]
        if not found:
            raise rig.BenchError(f"{os.path.basename(program)} has no main.units")
        self.pid = pid
        self.address = int(found[0], 16)
        self.memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)

    def now(self):
        """(units, seconds, CPU seconds of the target) so far"""
        units = int.from_bytes(os.pread(self.memory, 8, self.address), "little")
        return units, time.monotonic(), cpu_ns(self.pid) / 1e9

    def window(self, seconds, action):
        """Units per second and per CPU second, and seconds, of one window, at the beginning of which
        action is done; None when the target did not get to run."""
        units, start, cpu = self.now()
        if action:
            action()
        time.sleep(max(0, start + seconds - time.monotonic()))
        after = self.now()
        units = after[0] - units
        if not units or after[2] <= cpu:
            return None
        return {"second": units / (after[1] - start), "cpu_second": units / (after[2] - cpu),
                "seconds": after[1] - start}

    def close(self):
        os.close(self.memory)


def compare(load, action, seconds=WINDOW, rounds=ROUNDS):
    """What is left of a second with one action in it, as each block of windows has it: {per: [...]}"""
    found = {per: [] for per in PER}
    for _ in range(rounds):
        block = [load.window(seconds, a) for a in (None, action, action, None)]
        if None in block:
            continue
        # A window is longer than it should be where the action is, or the machine is busy.
        length = (block[1]["seconds"] + block[2]["seconds"]) / 2
        for per in PER:
            ratio = (block[1][per] + block[2][per]) / (block[0][per] + block[3][per])
            found[per].append(1 - (1 - ratio) * length)
    if not found["second"]:
        raise rig.BenchError("the target did not get to run: the machine is too busy")
    return found


def summary(left):
    """The median of the blocks, and its standard error; and what one action takes, in ms."""
    middle = statistics.median(left)
    # The deviation of a normal distribution that has this median deviation.
    spread = 1.4826 * statistics.median(abs(r - middle) for r in left)
    return {"mean": middle, "error": 1.2533 * spread / len(left) ** 0.5, "spread": spread,
            "lost_ms": (1 - middle) * 1e3, "n": len(left)}


def measure(program, reader_program, reader_cpu, command):
    """Ratios with/without, per second and per CPU second, and what one reading cost."""
    costs = []
    with rig.Target([program, "-load"], cpus={0}) as target:
        reader = Reader(reader_program, target.pid, reader_cpu, command)
        load = Load(program, target.pid)
        reader.work()
        found = compare(load, lambda: costs.append(reader.work()))
        load.close()
        reader.close()
    wall, own = (summary(found[per]) for per in PER)
    return {"per_second": wall["mean"], "per_cpu_second": own["mean"], "noise": wall["spread"],
            "error": wall["error"], "cost_ms": statistics.median(costs) / 1e3}
