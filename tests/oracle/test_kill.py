"""kill -9 of the whole program under load: what was committed is there after a restart, and is the same.

sonde is stopped first, so that SQLite itself and `sonde query` can say what is committed at the very moment of
the kill. Its wall clock goes an hour further at every other start: hours are packed and days are summed in between.
"""
import contextlib
import glob
import os
import random
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import rig
from test_agent import ALLOC, Agent, leak
from test_rights import CPU, burner

ROUNDS, MANY = 6, 200
HOUR_NS = 3600 * 10**9
INTERVAL = 0.3
SERVICES = [("killed leak", ALLOC), ("killed burner", CPU)]


class Clock:
    """The wall clock of the programs that have its environment; see tests/targets/clock."""

    def __init__(self, directory):
        library, self.path = os.path.join(directory, "shifted.so"), os.path.join(directory, "shift")
        rig.build.cc_build(os.path.join(rig.ROOT, "tests/targets/clock/shifted.c"), library, ["-shared", "-fPIC"])
        self.environment = {"LD_PRELOAD": library, "SHIFTED_CLOCK": self.path}
        self.ns = 0
        self.shift(0)

    def shift(self, ns):
        """Further, or back, at once."""
        self.ns += ns
        # In place: running programs have it mapped.
        with open(self.path, "r+b" if os.path.exists(self.path) else "wb") as f:
            f.write(struct.pack("<q", self.ns))

    def now_ms(self):
        return (time.time_ns() + self.ns) // 10**6


def rows(path):
    """What a day file holds, as SQLite reads it: {what: value}."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        found = {("point", *key): total for *key, total in db.execute(
            "SELECT s.name, t.type, k>>20 & 0x7ffffff, l.kv, total FROM point JOIN stream t ON t.id=k>>47"
            " JOIN service s ON s.id=t.service LEFT JOIN labelset l ON l.id=k & 0xfffff")}
        found.update((("reading", k), data) for k, data in db.execute("SELECT k, data FROM reading"))
        found.update((("event", k), data) for k, data in db.execute("SELECT k, data FROM event"))
    return found


class Store:
    """A data directory, and what is known to be committed in it."""

    def __init__(self, directory, clock):
        self.directory, self.clock = directory, clock
        self.days, self.profiles = {}, {}

    def paths(self):
        return sorted(glob.glob(os.path.join(self.directory, "*.db")))

    def query(self, service, kind, start, end):
        done = rig.sonde("query", service, "-t", kind, "-f", "collapsed", "--data-dir", self.directory, "--from", start,
                         "--to", end)
        # Before its first commit a service is not known.
        assert done.returncode == 0 or "no stored profiles" in done.stderr, done.stderr
        lines = (line.rsplit(" ", 1) for line in done.stdout.splitlines())
        return {stack: int(value) for stack, value in lines}

    def look(self, start):
        """Takes down what is committed now, of the newest days."""
        end = self.clock.now_ms()
        for path in self.paths()[-2:]:
            self.days[path] = rows(path)
        for service, kind in SERVICES:
            self.profiles[service, kind, start, end] = self.query(service, kind, start, end)

    def check(self, case, every):
        """All of it is there; every: also of days that are long over."""
        for path in sorted(self.days)[0 if every else -2:]:
            after = rows(path)
            missing = {key: value for key, value in self.days[path].items() if after.get(key) != value}
            if len(self.paths()) > 1 or self.clock.ns:
                # Readings of past hours become columns.
                missing = {key: value for key, value in missing.items() if key[0] != "reading"}
            case.assertEqual(missing, {}, path)
        chosen = list(self.profiles.items())
        for window, before in chosen if every else chosen[-6:]:
            after = self.query(*window)
            # More is no fault: allocations are booked when they happened, also those before the restart.
            less = {stack: value for stack, value in before.items() if after.get(stack, 0) < value}
            case.assertEqual(less, {}, window)


def stop(process, look):
    """Stops it in the middle of whatever it does, and looks."""
    for _ in range(100):
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        try:
            return look()
        except sqlite3.OperationalError as e:
            # It was about to truncate the log: nobody reads meanwhile.
            if "locked" not in str(e):
                raise
        process.send_signal(signal.SIGCONT)
        time.sleep(0.05)
    raise AssertionError("the store is locked whenever it is looked at")


@unittest.skipUnless(os.geteuid() == 0, "needs root, to sample")
class Killed(unittest.TestCase):
    rounds = ROUNDS

    def start(self, store):
        return Agent(store.directory, "--goroutine-interval", "1s", interval=INTERVAL,
                     env=store.clock.environment)

    def check_whole(self, store):
        done = rig.sonde("store", "check", "--data-dir", store.directory)
        self.assertEqual(done.returncode, rig.OK, done.stdout + done.stderr)

    def kill_running(self, store, start):
        """Once it has stored something new."""
        agent = self.start(store)
        store.check(self, every=False)
        with contextlib.ExitStack() as cleanup:
            cleanup.callback(lambda: agent.process.poll() is None and agent.stop(signal.SIGKILL))
            rig.wait_for(lambda: agent.api("health")["store"]["profiles"] > 10, "nothing is stored")
            state = agent.api("health")["store"]
            for key in "damaged_files", "damaged_blocks", "corrected_pages", "profiles_lost":
                self.assertEqual(state[key], 0, state)
            self.assertTrue(state["writing"], state)
            time.sleep(random.uniform(0, 2 * INTERVAL))
            stop(agent.process, lambda: store.look(start))
            self.assertEqual(agent.stop(signal.SIGKILL), -signal.SIGKILL)

    def kill_starting(self, store):
        """Somewhere in its start, which packs the hour that is over."""
        agent = subprocess.Popen([rig.SONDE, "run", "--listen", "127.0.0.1:0", "--data-dir", store.directory,
                                  "--interval", "100ms"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                 env=dict(os.environ, **store.clock.environment))
        time.sleep(random.uniform(0, 2))
        agent.kill()
        self.assertEqual(agent.wait(), -signal.SIGKILL)

    def test_nothing_committed_is_lost(self):
        with tempfile.TemporaryDirectory() as tmp, leak("killed leak"), burner("killed burner"), burner("another"):
            store = Store(os.path.join(tmp, "data"), Clock(tmp))
            for i in range(self.rounds):
                if i % 2:
                    store.clock.shift(HOUR_NS)
                if i % 4 == 3:
                    self.kill_starting(store)
                else:
                    self.kill_running(store, store.clock.now_ms())
                if i % 10 == 9:
                    print(f"{i + 1} of {self.rounds} kills", file=sys.stderr, flush=True)
                    self.check_whole(store)
                    store.check(self, every=True)
            with self.start(store) as agent:
                store.check(self, every=True)
                self.assertIsNone(agent.api("health")["store"]["damage"])
                self.assertEqual(agent.stop(), 0)
            self.check_whole(store)


def load(every, suite):
    Killed.rounds = MANY if every else ROUNDS
    suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(Killed))
