"""What a program loses while it is read or profiled once a second."""
import os
import statistics
import subprocess
import time

import rig

ROUNDS = 10
SECONDS = 3


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


def cpu_seconds(pid):
    """CPU time of all threads of a process."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as f:
            total += int(f.read().split()[0])
    return total / 1e9


def interval(target, reader, costs):
    """(units per second, units per CPU second); with readings when there is a reader."""
    cpu, start = cpu_seconds(target.pid), time.monotonic()
    units = int(target.ask("ops")[1])
    for second in range(SECONDS):
        if reader:
            costs.append(reader.work())
        time.sleep(max(0, start + second + 1 - time.monotonic()))
    units = int(target.ask("ops")[1]) - units
    return units / (time.monotonic() - start), units / (cpu_seconds(target.pid) - cpu)


def measure(program, reader_program, reader_cpu, command):
    """Ratios with/without, per second and per CPU second, and what one reading cost."""
    without, with_readings, costs = [], [], []
    with rig.Target([program, "-load"], cpus={0}) as target:
        reader = Reader(reader_program, target.pid, reader_cpu, command)
        reader.work()
        for i in range(ROUNDS):
            # ABBA: a drift of the machine hits both alike.
            for disturbed in ((False, True) if i % 2 == 0 else (True, False)):
                result = interval(target, reader if disturbed else None, costs)
                (with_readings if disturbed else without).append(result)
        reader.close()

    def ratio(k):
        return (statistics.median(r[k] for r in with_readings)
                / statistics.median(r[k] for r in without))

    spread = statistics.quantiles([r[0] for r in without], n=4)
    return {"per_second": ratio(0), "per_cpu_second": ratio(1),
            "noise": (spread[2] - spread[0]) / spread[1] / 2,
            "cost_ms": statistics.median(costs) / 1e3}
