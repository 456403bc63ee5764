#!/usr/bin/env python3
"""Runs commands on a terminal of its own and draws what they really print as an SVG picture.

    term2svg.py -o docs/img/heap.svg [--columns 100] [--lines 30] COMMAND...

Each COMMAND is one shell line and is shown behind a prompt. Colours and bold are kept.
"""
import argparse
import fcntl
import html
import os
import pty
import re
import struct
import sys
import termios

CELL_W, CELL_H, PAD = 8.4, 18, 16
COLOURS = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "2": "#8b949e"}
SGR = re.compile(r"\x1b\[([0-9;]*)m")
OTHER_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-ln-z]")


def run(command, columns):
    """What the command prints on a terminal of that width."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm-256color"
        os.environ.pop("NO_COLOR", None)
        os.execvp("bash", ["bash", "-c", "sleep 0.2; " + command])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    data = b""
    try:
        while chunk := os.read(fd, 65536):
            data += chunk
    except OSError:
        pass  # the other side is closed
    os.waitpid(pid, 0)
    text = OTHER_ESCAPES.sub("", data.decode("utf-8", "replace").replace("\r\n", "\n"))
    # A progress line draws over itself: what counts is what was drawn last.
    return "\n".join(line.split("\r")[-1] for line in text.split("\n"))


def spans(line):
    """(text, colour or None, bold) for each run of equal style."""
    colour, bold, at = None, False, 0
    for m in list(SGR.finditer(line)) + [None]:
        text = line[at:m.start()] if m else line[at:]
        if text:
            yield text, colour, bold
        if m:
            at = m.end()
            for code in m.group(1).split(";"):
                if code in ("", "0"):
                    colour, bold = None, False
                elif code == "1":
                    bold = True
                elif code in COLOURS:
                    colour = COLOURS[code]


def draw(lines, columns):
    width, height = columns * CELL_W + 2 * PAD, len(lines) * CELL_H + 2 * PAD
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
           f'viewBox="0 0 {width:.0f} {height}">',
           f'<rect width="{width:.0f}" height="{height}" rx="8" fill="#0d1117"/>',
           '<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" '
           'font-size="14" fill="#e6edf3" xml:space="preserve">']
    for row, line in enumerate(lines):
        column = 0
        for text, colour, bold in spans(line):
            style = (f' fill="{colour}"' if colour else "") + (' font-weight="bold"' if bold else "")
            out.append(f'<text x="{PAD + column * CELL_W:.1f}" y="{PAD + 13 + row * CELL_H}" '
                       f'textLength="{len(text) * CELL_W:.1f}"{style}>{html.escape(text)}</text>')
            column += len(text)
    return "\n".join(out + ["</g>", "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--lines", type=int, default=0, help="at most so many of each command")
    parser.add_argument("commands", nargs="+")
    args = parser.parse_args()
    lines = []
    for command in args.commands:
        shown = run(command, args.columns).rstrip("\n").split("\n")
        if args.lines and len(shown) > args.lines:
            shown = shown[:args.lines] + ["..."]
        lines += ([""] if lines else []) + [f"\x1b[1m$ {command}\x1b[0m"] + shown
    with open(args.output, "w", encoding="utf-8") as f:
        f.write(draw([line[:400] for line in lines], args.columns))
    return 0


if __name__ == "__main__":
    sys.exit(main())
