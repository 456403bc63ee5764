"""Starts target programs and sonde itself, for the oracle tests."""
import functools
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "targets"))
import build  # noqa: E402

SONDE = os.environ.get("SONDE", os.path.join(ROOT, "build", "sonde"))
ELF_DUMP = os.environ.get("ELF_DUMP", os.path.join(ROOT, "build-asan", "tests", "elf_dump"))
# Whoever starts us in the background has these ignored, and so would have what we start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
OK, FAILED, USAGE, NOT_PROFILEABLE = 0, 1, 2, 3
# Where sonde notes what it changes in programs: not in the machine's own place. Gone with us.
STATE = tempfile.TemporaryDirectory(prefix="sonde-test-state-")
os.environ["SONDE_DATA_DIR"] = STATE.name
# An emulated machine: programs take many times longer.
SLOW = "SONDE_TEST_SLOW" in os.environ
LIMIT = 1200 if SLOW else 300  # seconds: longer than anything takes that does not hang


def wait_for(condition, what, limit=LIMIT, pause=0.05):
    """The first true value of condition(); within the limit, or the test fails and says what.

    what: a text, or a function whose value is told, such as the figures at the end.
    """
    deadline = time.monotonic() + limit
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {limit} s: {what() if callable(what) else what}")
        time.sleep(pause)


class Target:
    """A running target program; see tests/targets for its commands."""

    def __init__(self, argv, env=None, ready=True, prefix=()):
        # Unbuffered: select() does not see a line that lies in a buffer of ours.
        self.process = subprocess.Popen([*prefix, *argv], stdin=subprocess.PIPE, bufsize=0,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        env=dict(os.environ, **(env or {})))
        self.pid = self.process.pid
        if ready:
            line = self.line().split()
            assert line[:1] == [b"ready"], f"{argv[0]} did not start: {line}"
            self.pid = int(line[1])

    def line(self, timeout=LIMIT):
        """The next line of its answer; a target that hangs fails its test."""
        if not select.select([self.process.stdout], [], [], timeout)[0]:
            raise AssertionError(f"the target does not answer within {timeout} s")
        return self.process.stdout.readline()

    def ask(self, command):
        self.process.stdin.write(command.encode() + b"\n")
        self.process.stdin.flush()
        return self.line().decode().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def sonde(*args, check=None, timeout=LIMIT, **kwargs):
    """Runs sonde; check is the exit code that must come back."""
    done = subprocess.run([SONDE, *map(str, args)], capture_output=True, text=True,
                          timeout=timeout, **kwargs)
    if check is not None and done.returncode != check:
        raise AssertionError(f"sonde {' '.join(map(str, args))}: exit code {done.returncode}, "
                             f"not {check}\n{done.stdout}{done.stderr}")
    return done


def pprof_top(go, path, *args):
    """What `go tool pprof -top` prints, without the lines that name the file and the time."""
    # Go 1.25 and later compile it at its first use.
    done = subprocess.run([go, "tool", "pprof", "-top", *args, path], capture_output=True,
                          text=True, timeout=3 * LIMIT,
                          env=dict(os.environ, GOTOOLCHAIN="local", GOFLAGS="", GOENV="off"))
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines()
            if not line.startswith(("File:", "Time:", "Build ID:"))]


def pprof_list(go, path, function, unit):
    """{line: (flat, cum)} as `go tool pprof -list` prints them, of lines that have any."""
    done = subprocess.run([go, "tool", "pprof", f"-list=^{re.escape(function)}$", f"-unit={unit}", path],
                          capture_output=True, text=True, timeout=3 * LIMIT,
                          env=dict(os.environ, GOTOOLCHAIN="local", GOFLAGS="", GOENV="off"))
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^ *(\S+) +(\S+) +(\d+):", done.stdout, re.M)
    value = lambda text: 0 if text == "." else float(text.removesuffix(unit))
    return {int(line): (value(flat), value(cum)) for flat, cum, line in rows if (flat, cum) != (".", ".")}


@functools.lru_cache(maxsize=None)
def versions(every):
    """[(version, go)]: the oldest that is always there, a middle one and the newest; or all.

    What cannot be had is named on stderr: a test of it is not passed silently.
    """
    wanted = ["1.17.13", "1.18.10", "1.20.14", "1.21.13", "1.22.12", "1.23.12", "1.24.13",
              "1.25.14", "1.26.8"] if every else ["1.22.12"]
    found = {v: go for v, go in [build.mandatory()]}
    for version in wanted:
        go = build.fetch(version)
        if go:
            found[version] = go
        else:
            print(f"Go {version} is not on this machine and cannot be fetched: left out",
                  file=sys.stderr)
    newest = build.newest()
    found[newest[0]] = newest[1]
    return sorted(found.items(), key=lambda item: build.version_key(item[0]))


def add_test(suite, case, name, call):
    """A test that the class has no method for yet."""
    method = "test_" + name.replace(" ", "_")
    setattr(case, method, call)
    suite.addTest(case(method))
