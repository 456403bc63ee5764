"""Programs that nobody here wrote: Debian's Prometheus and its node exporter, under load."""
import json
import os
import socket
import subprocess
import tempfile
import threading
import unittest
import urllib.request

import rig
from pprof import Profile


def listen():
    """host:port that nobody else takes: the address is this process's own, for there are millions."""
    pid = os.getpid()
    host = f"127.{1 + (pid >> 16 & 127)}.{pid >> 8 & 255}.{pid & 255}"
    with socket.socket() as s:
        s.bind((host, 0))
        return f"{host}:{s.getsockname()[1]}"


def get(url):
    with urllib.request.urlopen(url, timeout=rig.LIMIT) as reply:
        return reply.read()


class Load:
    """Asks for pages in the background until the block ends."""

    def __init__(self, *urls):
        self.urls, self.stop, self.served = urls, threading.Event(), 0
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.stop.is_set():
            for url in self.urls:
                get(url)
                self.served += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()


class Debian(unittest.TestCase):
    def profile(self, argv, address, pages):
        base = f"http://{address}"
        with tempfile.TemporaryDirectory() as tmp:
            process = subprocess.Popen(argv(tmp), stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, cwd=tmp)
            try:
                for page in pages:
                    rig.wait_for(lambda: self.answers(base + page, process), f"no {base}{page}")
                with Load(*(base + page for page in pages)) as load:
                    own = rig.wait_for(lambda: self.stacks(load, base, tmp), "few stacks to compare")
                    facts = self.read_under_load(process.pid)
                # They only become more.
                self.assertGreaterEqual(facts["buckets"], own)
                self.compare_at_rest(process.pid, base, tmp)
            finally:
                process.kill()
                process.wait()

    def answers(self, url, process):
        self.assertIsNone(process.poll(), "the program ended")
        try:
            return get(url)
        except OSError:
            return None

    def own(self, base, tmp):
        """Its own profile."""
        path = os.path.join(tmp, "own")
        with open(path, "wb") as f:
            f.write(get(base + "/debug/pprof/heap"))
        return Profile(path)

    def stacks(self, load, base, tmp):
        """How many it has, once it has been at work for a while."""
        self.assertTrue(load.thread.is_alive(), "the load has ended")
        profile = self.own(base, tmp)
        return len(profile.samples) if load.served >= 100 and len(profile.nonzero()) >= 10 else 0

    def read_under_load(self, pid):
        """Complete, and with a name for every frame, however busy it is."""
        for _ in range(5):
            done = rig.sonde("heap", pid, "-f", "json", check=rig.OK)
            facts = json.loads(done.stdout)["reading"]
            for loss in ("bad_buckets", "torn_records", "unknown_frames"):
                self.assertEqual(facts[loss], 0, loss)
            self.assertFalse(facts["incomplete"])
            self.assertFalse(facts["mixed"])
        return facts

    def compare_at_rest(self, pid, base, tmp):
        """Its own /debug/pprof/heap has the stacks that we read just before, with the same figures.

        The program is not ours to quiet down: what a GC in between changed is read again.
        """
        def differ():
            ours = os.path.join(tmp, "ours")
            rig.sonde("heap", pid, "-f", "pprof", "-o", ours, check=rig.OK)
            a, b = Profile(ours).nonzero(), self.own(base, tmp).nonzero()
            # Those that only one of them has; of very few it is no proof.
            return sum(((a - b) + (b - a)).values()) if len(b) >= 10 else "few"

        rig.wait_for(lambda: differ() == 0, lambda: f"{differ()} samples differ", pause=0.3)

    def test_node_exporter(self):
        address = listen()
        self.profile(lambda _: ["prometheus-node-exporter", f"--web.listen-address={address}"],
                     address, ["/metrics", "/debug/pprof/goroutine"])

    def test_prometheus(self):
        address = listen()

        def argv(tmp):
            config = os.path.join(tmp, "prometheus.yml")
            with open(config, "w") as f:
                f.write("global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: self\n"
                        f"  static_configs: [{{targets: ['{address}']}}]\n")
            return ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={tmp}/data",
                    f"--web.listen-address={address}"]

        self.profile(argv, address, ["/metrics", "/api/v1/query?query=up", "/-/ready"])


def load(_every, suite):
    suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(Debian))
