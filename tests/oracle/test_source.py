"""The source of a function's lines: what lies in the file, while everybody may read it, and never otherwise."""
import os
import signal
import subprocess
import tempfile
import unittest
import urllib.error

import rig
from rig import build, wait_for
from test_agent import INUSE, Agent, now_ms

# The heap holds what keep() allocates, in one line.
PROGRAM = """package main

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

var kept [][]byte

//go:noinline
func keep() {
	// first
	kept = append(kept, make([]byte, 1<<20)) // the line: \x1b[31m \u202e
	// last
}

func main() {
	fmt.Println("ready", os.Getpid())
	for i := 0; i < 64; i++ {
		keep()
	}
	runtime.MemProfile(nil, false) // or the linker turns the profile off
	for {
		time.Sleep(time.Second)
	}
}
"""
LINE = next(i for i, line in enumerate(PROGRAM.split("\n"), 1) if "the line" in line)
CLEAN = PROGRAM.split("\n")[LINE - 1].replace("\x1b", "?").replace("\u202e", "???")


def program(folder, service):
    """Compiled where its source lies, and started."""
    source, exe = os.path.join(folder, "main.go"), os.path.join(folder, service)
    with open(source, "w", encoding="utf-8") as f:
        f.write(PROGRAM)
    os.chmod(folder, 0o755)
    os.chmod(source, 0o644)
    env = dict(os.environ, GOTOOLCHAIN="local", GOENV="off", GOFLAGS="", GO111MODULE="off")
    subprocess.run([build.mandatory()[1], "build", "-o", exe, source], env=env, check=True, cwd=folder)
    return source, rig.Target([exe], env={"OTEL_SERVICE_NAME": service})


class Source(unittest.TestCase):
    def ask(self, service, file, name="main.keep", **params):
        return self.agent.api("function/source", service=service, type=INUSE, name=name, file=file,
                              **{"to": now_ms() + 60000, **params})

    def check_refused(self, service, file, reason, **params):
        answer = self.ask(service, file, **params)
        self.assertEqual((answer["file"], answer["modified"], answer["lines"]), (file, None, []))
        self.assertIn(reason, answer["reason"])

    def stored(self, service):
        try:
            f = self.agent.api("function", service=service, type=INUSE, name="main.keep", to=now_ms() + 60000)
        except urllib.error.HTTPError:
            return None
        return f if f["lines"] else None

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to read as nobody")
    def test_lines_are_those_of_the_file_while_everybody_may_read_it(self):
        with tempfile.TemporaryDirectory() as data, tempfile.TemporaryDirectory() as folder:
            source, target = program(folder, "source-go")
            with target, Agent(data, interval=0.5) as self.agent:
                f = wait_for(lambda: self.stored("source-go"), "nothing is stored")
                self.assertEqual([(x["file"], x["line"]) for x in f["lines"]], [(source, LINE)])
                self.check_text(source)
                self.check_gate(source)
                self.check_changes(source, folder)
                target.process.send_signal(signal.SIGKILL)
                target.process.wait()
                os.chmod(source, 0o644)
                wait_for(lambda: self.ask("source-go", source)["reason"] == "no process of this service is running",
                         "the process is gone, and its source still there")

    def check_text(self, source):
        answer = self.ask("source-go", source)
        self.assertIsNone(answer["reason"])
        self.assertEqual([x["line"] for x in answer["lines"]], list(range(LINE - 2, LINE + 3)))
        self.assertEqual([x["text"] for x in answer["lines"]],
                         ["func keep() {", "\t// first", CLEAN, "\t// last", "}"])
        self.assertAlmostEqual(answer["modified"], os.stat(source).st_mtime * 1000, delta=2)

    def check_gate(self, source):
        """Only what the profile names, exactly, as this function's file in this window."""
        for other in ("/etc/passwd", "/etc/hostname", source + "x", os.path.join(os.path.dirname(source), ".", "main.go")):
            self.check_refused("source-go", other, "the profile has no line of this file")
        self.check_refused("source-go", source, "the profile has no line", name="main.main.none")
        self.check_refused("source-go", source, "the profile has no line", **{"from": 1000, "to": 2000})
        with self.assertRaises(urllib.error.HTTPError) as caught:
            self.ask("no-such-service", source)
        self.assertEqual(caught.exception.code, 404)
        caught.exception.close()

    def check_changes(self, source, folder):
        everybody = "not everybody on this machine may read it"
        os.chmod(source, 0o600)
        self.check_refused("source-go", source, everybody)
        os.chmod(source, 0o644)
        os.chmod(folder, 0o700)
        self.check_refused("source-go", source, everybody)
        os.chmod(folder, 0o755)
        self.check_text(source)
        os.rename(source, source + ".away")
        self.check_refused("source-go", source, "no such file")
        os.symlink("/etc/shadow", source)
        self.check_refused("source-go", source, "not a regular file")
        os.remove(source)
        os.mkfifo(source, 0o666)
        os.chmod(source, 0o666)
        self.check_refused("source-go", source, "not a regular file")
        os.remove(source)
        with open(source, "wb") as f:
            f.truncate((4 << 20) + 1)
        os.chmod(source, 0o644)
        self.check_refused("source-go", source, "larger than 4 MB")
        # Shorter than it was: what is not there is not shown.
        with open(source, "w", encoding="utf-8") as f:
            f.write("one\n")
        self.assertEqual((self.ask("source-go", source)["reason"], self.ask("source-go", source)["lines"]), (None, []))
        os.rename(source + ".away", source)
        self.check_text(source)


def load(every, suite):
    del every
    suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(Source))
