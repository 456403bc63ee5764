"""A terminal of our own, with `sonde top` or another command on it."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

import rig
from rig import LIMIT

ESCAPE = re.compile(rb"\x1b(?:\[([0-9;?]*)([A-Za-z])|(.))")


class Screen:
    """What a terminal would show that does not wrap: knows what sonde sends, and refuses the rest.

    What goes over an edge is noted, not refused: it may have been drawn for a window before.
    """

    def __init__(self, columns, lines):
        self.columns, self.lines = columns, lines
        self.modes = {}
        self.bytes = b""
        self.rest = b""
        self.over_edge = False
        self.clear()

    def clear(self):
        self.rows = [[" "] * self.columns for _ in range(self.lines)]
        self.x = self.y = 0

    def resize(self, columns, lines):
        self.columns, self.lines = columns, lines
        self.clear()

    def text(self):
        return "\n".join("".join(row).rstrip() for row in self.rows)

    def escape(self, params, last):
        if last in "hl":
            self.modes[params] = last
        elif last == "H":
            self.x = self.y = 0
            self.over_edge = False
        elif last == "K":
            self.rows[self.y][self.x:] = [" "] * (self.columns - self.x)
        elif last == "J":
            if params == "2":
                place = self.x, self.y
                self.clear()
                self.x, self.y = place
            else:
                self.rows[self.y][self.x:] = [" "] * (self.columns - self.x)
                self.rows[self.y + 1:] = [[" "] * self.columns
                                          for _ in range(self.lines - self.y - 1)]
        elif last != "m":
            raise AssertionError(f"unknown sequence {params}{last}")

    def put(self, char):
        if char == "\r":
            self.x = 0
        elif char == "\n":
            self.over_edge |= self.y + 1 == self.lines
            self.y = min(self.y + 1, self.lines - 1)
        else:
            assert char.isprintable(), repr(char)
            self.over_edge |= self.x == self.columns
            self.rows[self.y][min(self.x, self.columns - 1)] = char
            self.x = min(self.x + 1, self.columns)

    def feed(self, data):
        self.bytes += data
        data, self.rest = self.rest + data, b""
        while data:
            if data[:1] != b"\x1b":
                length = 1 if data[0] < 0x80 else 2 if data[0] < 0xe0 else 3
                if len(data) < length:
                    self.rest = data
                    return
                self.put(data[:length].decode())
                data = data[length:]
                continue
            match = ESCAPE.match(data)
            if not match or match.group(3):
                self.rest = data
                return
            self.escape(match.group(1).decode(), match.group(2).decode())
            data = data[match.end():]


class Terminal:
    """sonde top on a terminal."""

    def __init__(self, *args, columns=100, lines=30, env=None):
        self.screen = Screen(columns, lines)
        self.status = None
        self.master, self.slave = pty.openpty()
        self.size(columns, lines)
        self.before = termios.tcgetattr(self.slave)
        # A session of its own, so that Ctrl-C is a signal.
        self.process = subprocess.Popen(
            [rig.SONDE, "top", *map(str, args)], stdin=self.slave, stdout=self.slave,
            stderr=subprocess.PIPE, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env=dict(os.environ, TERM="xterm", **(env or {})))

    def size(self, columns, lines):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def resize(self, columns, lines):
        self.screen.resize(columns, lines)
        self.size(columns, lines)

    def pump(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.master], [], [], left)[0]:
                self.screen.feed(os.read(self.master, 65536))
                return

    def wait(self, wanted):
        """Until the screen's text satisfies it: a text, or a function."""
        check = wanted if callable(wanted) else lambda text: wanted in text
        deadline = time.monotonic() + LIMIT
        while self.screen.over_edge or not check(self.screen.text()):
            if time.monotonic() > deadline:
                raise AssertionError(f"{wanted} does not come:\n{self.screen.text()}")
            self.pump(0.2)
        return self.screen.text()

    def press(self, keys):
        os.write(self.master, keys.encode())

    def wait_for(self, what):
        deadline = time.monotonic() + LIMIT
        while not what():
            if time.monotonic() > deadline:
                raise AssertionError("it does not happen")
            self.pump(0.05)

    def ended(self):
        """Its exit code, when the terminal has got all that it wrote."""
        self.wait_for(lambda: self.process.poll() is not None)
        self.wait_for(self.is_restored)
        return self.process.returncode

    def is_restored(self):
        return termios.tcgetattr(self.slave) == self.before and self.screen.modes == {
            "?1049": "l", "?25": "h", "?7": "h"}

    def is_taken(self):
        return self.screen.modes == {"?1049": "h", "?25": "l", "?7": "l"} and \
            not termios.tcgetattr(self.slave)[3] & termios.ECHO

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        os.close(self.master)
        os.close(self.slave)


def output(*args, columns=80, lines=24, env=None):
    """(exit code, all that a command writes) on a terminal of this size, as text."""
    master, slave = pty.openpty()
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    with subprocess.Popen([rig.SONDE, *map(str, args)], stdin=slave, stdout=slave, stderr=slave,
                          env={**os.environ, "TERM": "xterm", **(env or {})}) as process:
        os.close(slave)
        written = b""
        try:
            # The end of a terminal is an error.
            while select.select([master], [], [], LIMIT)[0]:
                written += os.read(master, 65536)
            process.kill()
        except OSError:
            pass
        finally:
            os.close(master)
        return process.wait(), written.decode().replace("\r\n", "\n")
