"""Programs that nobody here wrote: Debian's Prometheus and its node exporter, under load."""
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request

import rig
from pprof import Profile


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def get(url):
    with urllib.request.urlopen(url, timeout=30) as reply:
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
    def profile(self, argv, port, pages):
        base = f"http://127.0.0.1:{port}"
        with tempfile.TemporaryDirectory() as tmp:
            process = subprocess.Popen(argv(tmp), stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, cwd=tmp)
            try:
                for page in pages:
                    self.wait_for(base + page, process)
                with Load(*(base + page for page in pages)) as load:
                    while load.served < 100:
                        self.assertTrue(load.thread.is_alive(), "the load has ended")
                        time.sleep(0.05)
                    facts = self.read_under_load(process.pid)
                self.assertGreaterEqual(facts["buckets"], 30)
                self.compare_at_rest(process.pid, base, tmp)
            finally:
                process.kill()
                process.wait()

    def wait_for(self, url, process):
        deadline = time.monotonic() + 60
        while True:
            self.assertIsNone(process.poll(), "the program ended")
            try:
                get(url)
                return
            except OSError:
                self.assertLess(time.monotonic(), deadline, f"no answer from {url}")
                time.sleep(0.1)

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
        for _ in range(20):
            ours_path, own_path = os.path.join(tmp, "ours"), os.path.join(tmp, "own")
            rig.sonde("heap", pid, "-f", "pprof", "-o", ours_path, check=rig.OK)
            own = get(base + "/debug/pprof/heap")
            with open(own_path, "wb") as f:
                f.write(own)
            a, b = Profile(ours_path).nonzero(), Profile(own_path).nonzero()
            if a == b and len(b) >= 10:
                return
            time.sleep(0.3)
        self.fail(f"{sum((a - b).values())} of {sum(a.values())} samples differ")

    def test_node_exporter(self):
        port = free_port()
        self.profile(lambda _: ["prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{port}"],
                     port, ["/metrics", "/debug/pprof/goroutine"])

    def test_prometheus(self):
        port = free_port()

        def argv(tmp):
            config = os.path.join(tmp, "prometheus.yml")
            with open(config, "w") as f:
                f.write("global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: self\n"
                        f"  static_configs: [{{targets: ['127.0.0.1:{port}']}}]\n")
            return ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={tmp}/data",
                    f"--web.listen-address=127.0.0.1:{port}"]

        self.profile(argv, port, ["/metrics", "/api/v1/query?query=up", "/-/ready"])


def load(_every, suite):
    suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(Debian))
