"""Writes a Go program with very many functions, as the largest services have them.

Names are as long as in such programs, and every function is reachable, so that the linker keeps it.
"""
import os

PACKAGES = 60
TYPES = 250  # per package
METHODS = ("Decode", "Validate", "Execute", "Encode")
FUNCTIONS = PACKAGES * TYPES * len(METHODS)  # besides those of the runtime

HEADER = """package handlers{p:02}

type Handler interface {{
	Decode(x int) int
	Validate(x int) int
	Execute(x int) int
	Encode(x int) int
}}

var All = []Handler{{{all}}}
"""

METHOD = """
//go:noinline
func (r *Request{t:03}) {m}(x int) int {{ return r.state*{n} + x }}
"""

MAIN = """// A program with {functions} functions and a heap profile, which ends with its input.
package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"

{imports}
)

func main() {{
	sum := 0
{calls}
	runtime.GC()
	runtime.GC()
	if pprof.Lookup("heap") == nil || sum == 0 {{
		panic("no heap profile")
	}}
	fmt.Printf("ready %d\\n", os.Getpid())
	io.Copy(io.Discard, os.Stdin)
}}

func init() {{
	runtime.MemProfileRate = 1
}}
"""

CALL = """	for i, h := range handlers{p:02}.All {{
		sum += h.Encode(h.Execute(h.Validate(h.Decode(i)))) + 1
	}}"""


def write_package(directory, p):
    os.makedirs(directory)
    parts = [HEADER.format(p=p, all=", ".join(f"&Request{t:03}{{}}" for t in range(TYPES)))]
    for t in range(TYPES):
        parts.append(f"\ntype Request{t:03} struct{{ state int }}\n")
        parts += [METHOD.format(t=t, m=m, n=t * 7 + i) for i, m in enumerate(METHODS)]
    with open(os.path.join(directory, "handlers.go"), "w", encoding="utf-8") as f:
        f.write("".join(parts))


def write(directory):
    """Writes the module into directory, which must not exist."""
    for p in range(PACKAGES):
        write_package(os.path.join(directory, "internal", f"handlers{p:02}"), p)
    imports = "\n".join(f'\t"example.org/platform/internal/handlers{p:02}"'
                        for p in range(PACKAGES))
    calls = "\n".join(CALL.format(p=p) for p in range(PACKAGES))
    with open(os.path.join(directory, "main.go"), "w", encoding="utf-8") as f:
        f.write(MAIN.format(functions=FUNCTIONS, imports=imports, calls=calls))
    with open(os.path.join(directory, "go.mod"), "w", encoding="utf-8") as f:
        f.write("module example.org/platform\n\ngo 1.17\n")
