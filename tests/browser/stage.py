#!/usr/bin/env python3
"""Runs a command while a real `sonde run` and the mock serve the page, and ends both after it.

    stage.py COMMAND...

The command finds them by BASE_URL, MOCK_URL and, for the mock of a busy machine, MANY_URL in its
environment. sonde (SONDE, or build/sonde) profiles two processes that leak and one that does not, on a
port and in a folder of its own. A BASE_URL that is set already is left alone; with BENCH or SHOTS there
are the mocks only.
"""
import contextlib
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "targets"))
import build  # noqa: E402

SERVICE = "browser-test"
LOG = os.path.join(ROOT, "build", "test-logs", "browser-sonde.log")
# The page shows the last 40 seconds; the tests look at the newer two thirds of them.
SETTINGS = {"SERVICE": SERVICE, "LEAK_FUNCTION": "main.leak", "RANGE": "40s", "DRAG": "0.7,0.98",
            "COLLECTIONS": "30"}


class StageError(Exception):
    """Something did not start; the text says what and why."""


@contextlib.contextmanager
def process(argv, **options):
    """A child that is told to end, and ended if it does not listen."""
    with subprocess.Popen(argv, cwd=ROOT, text=True, **options) as child:
        try:
            yield child
        finally:
            child.terminate()
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()


def target(stack, *argv, service):
    """A Go program that says when it is ready, and runs until its input ends."""
    env = dict(os.environ, OTEL_SERVICE_NAME=service, GOGC="20")
    child = stack.enter_context(process([build.build(argv[0], build.mandatory()[1]), *argv[1:]],
                                        env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
    if not child.stdout.readline().startswith("ready"):
        raise StageError(f"the target {argv[0]} did not start")


def server(stack, argv, name, **options):
    """Starts a server that prints its address at the end of its first line."""
    child = stack.enter_context(process(argv, stdout=subprocess.PIPE, **options))
    line = child.stdout.readline()
    if "http://" not in line:
        raise StageError(f"{name} did not start: {line}")
    return line.split()[-1].rstrip("/")


def real(stack):
    sonde = os.environ.get("SONDE", os.path.join(ROOT, "build", "sonde"))
    data = stack.enter_context(tempfile.TemporaryDirectory(prefix="sonde-browser-"))
    for _ in range(2):
        target(stack, "leak", "-leak-mb", "1", "-churn-mb", "10", service=SERVICE)
    target(stack, "demo", service="browser-demo")
    # What it says at its end would come after the count of the tests, which is to be the last line.
    os.makedirs(os.path.dirname(LOG), exist_ok=True)
    log = stack.enter_context(open(LOG, "w", encoding="utf-8"))
    return server(stack, [sonde, "run", "--listen", "127.0.0.1:0", "--data-dir", data,
                          "--interval", "1s", "--goroutine-interval", "2s"], sonde, stderr=log)


def main():
    env = dict(os.environ)
    try:
        with contextlib.ExitStack() as stack:
            mock = ["node", "ui/mock/server.mjs", "--port", "0"]
            if not any(env.get(name) for name in ("BASE_URL", "BENCH", "SHOTS")):
                env.update(SETTINGS, BASE_URL=real(stack))
            env["MOCK_URL"] = server(stack, mock, "the mock")
            env["MANY_URL"] = server(stack, [*mock, "--services", "1000"], "the mock")
            return subprocess.run(sys.argv[1:], env=env, check=False, cwd=ROOT).returncode
    except (StageError, OSError, build.BuildError) as e:
        print(f"browser: {e}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
