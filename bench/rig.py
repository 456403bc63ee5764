"""Builds and starts what the benchmarks measure."""
import hashlib
import http.client
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(ROOT, "tests", "targets"))
import build as targets  # noqa: E402
import manyfuncs  # noqa: E402


class BenchError(Exception):
    """A benchmark could not be run; the text says which and why."""


class Target:
    """A running program that says "ready PID", and then answers lines or waits for its end."""

    def __init__(self, argv, cpus=None):
        env = dict(os.environ)
        if cpus:
            env["GOMAXPROCS"] = str(len(cpus))
        pin = (lambda: os.sched_setaffinity(0, cpus)) if cpus else None
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=env, preexec_fn=pin)
        self.pid = self.process.pid
        self.words = self.process.stdout.readline().split()  # "ready", the pid, what else it says
        if self.words[:1] != ["ready"]:
            raise BenchError(f"{os.path.basename(argv[0])} did not start")

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().split()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Agent:
    """A running `sonde run` with a store of its own."""

    def __init__(self, sonde, folder, interval):
        self.process = subprocess.Popen(
            [sonde, "run", "--listen", "127.0.0.1:0", "--data-dir", folder, "--interval",
             f"{interval}s"], stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        line = self.process.stdout.readline()
        if "http://" not in line:
            raise BenchError("sonde run did not start")
        self.address = line.split("http://")[1].strip().rstrip("/")

    def metrics(self):
        connection = http.client.HTTPConnection(self.address, timeout=30)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return text

    def collections(self):
        found = re.search(r"^sonde_collections_total(?:\{[^}]*\})? (\d+)", self.metrics(), re.M)
        return int(found.group(1)) if found else 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


def run(*argv, **kwargs):
    """Runs a benchmark program and returns the JSON that it prints."""
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, **kwargs)
    if done.returncode:
        raise BenchError(f"{os.path.basename(argv[0])} failed: {done.stderr.strip()}")
    return json.loads(done.stdout)


def peak(program, *argv):
    """The most memory that a command ever held, as bench/peak.c measures it."""
    read_end, write_end = os.pipe()

    def third():
        os.dup2(write_end, 3)

    done = subprocess.run([program, *map(str, argv)], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, preexec_fn=third, pass_fds=(3,))
    os.close(write_end)
    with os.fdopen(read_end) as f:
        text = f.read()
    if done.returncode:
        raise BenchError(f"{' '.join(map(str, argv))} failed: {done.stderr.strip()}")
    return json.loads(text)


def outdir(go):
    return os.path.join(os.path.abspath(targets.default_outdir()), targets.go_version(go))


def built(directory, wanted, make):
    """Calls make(directory) unless the directory holds what was made from the same input."""
    stamp = os.path.join(directory, "stamp")
    if os.path.exists(stamp):
        with open(stamp, encoding="utf-8") as f:
            if f.read() == wanted:
                return
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    make(directory)
    with open(stamp, "w", encoding="utf-8") as f:
        f.write(wanted)


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def go_build(go, source, out, *flags):
    done = subprocess.run([go, "build", "-o", out, *flags, "."], cwd=source, capture_output=True,
                          text=True, env=targets.go_environment(cgo=False))
    if done.returncode:
        raise BenchError(f"building {os.path.basename(out)} failed: {done.stderr}")


def service(go):
    """The path of the server of targets/service."""
    def make(folder):
        copy = os.path.join(folder, "source")
        shutil.copytree(source, copy)
        with open(os.path.join(copy, "handlers.go"), "w", encoding="utf-8") as f:
            f.write(handlers(1 << 9))
        go_build(go, copy, os.path.join(folder, "service"))

    directory = os.path.join(outdir(go), "bench-service")
    source = os.path.join(HERE, "targets", "service")
    built(directory, digest(os.path.join(source, "main.go")) + digest(__file__), make)
    return os.path.join(directory, "service")


def goroutines(go):
    """The path of the server of targets/goroutines."""
    source = os.path.join(HERE, "targets", "goroutines")
    directory = os.path.join(outdir(go), "bench-goroutines")
    built(directory, digest(os.path.join(source, "main.go")),
          lambda folder: go_build(go, source, os.path.join(folder, "goroutines")))
    return os.path.join(directory, "goroutines")


def handlers(n):
    """A function of its own for each kind of request, as services have."""
    return "\n".join([
        "package main", "", "func init() {",
        *(f"\thandlers[{i}] = handleKind{i}" for i in range(n)), "}",
        *(f"\n//go:noinline\nfunc handleKind{i}(kind, level int) *record "
          "{ return route(kind, level) }" for i in range(n)), ""])


def many(go):
    """The paths of a program with very many functions, and of its stripped twin."""
    def make(directory):
        source = os.path.join(directory, "source")
        manyfuncs.write(source)
        go_build(go, source, os.path.join(directory, "many"))
        go_build(go, source, os.path.join(directory, "many-stripped"), "-ldflags=-s -w")

    directory = os.path.join(outdir(go), "bench-many")
    built(directory, digest(os.path.join(HERE, "manyfuncs.py")), make)
    return os.path.join(directory, "many"), os.path.join(directory, "many-stripped")
