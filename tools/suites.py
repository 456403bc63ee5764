"""The table of suites: what each one runs, and which files decide its result.

A suite is what runs as one: the unit tests of a room, one module of tests/oracle, the page's tests. Its
digest is that of the files below `inputs`; a suite whose digest is unchanged need not run again
(tools/flaky.py). Rooms stand for themselves and for what they may use, by the table of
docs/ARCHITECTURE.md.
"""
import functools
import glob
import hashlib
import json
import os
import re
import subprocess
import sys

import check_includes

ROOT = check_includes.ROOT

# tests/oracle/test_NAME.py: the rooms it exercises, besides the command line.
ORACLE = {
    "agent": ["server"],
    "agent_beyond": ["server"],
    "alloc": ["server"],
    "cli": ["server"],
    "contention": ["golang"],
    "core": ["golang"],
    "cpu": ["cpu", "agent"],
    "cpu_whole": ["server"],
    "debian": ["golang"],
    "dwarf": ["elf"],
    "elf": ["elf"],
    "features": ["server"],
    "force": ["golang"],
    "gaps": ["server"],
    "goroutines": ["golang"],
    "heap": ["golang"],
    "hostile": ["server"],
    "java": ["server"],
    "java_attach": ["java"],
    "java_cpu": ["cpu", "java", "agent"],
    "java_collectors": ["java"],
    "jfr": ["java"],
    "kill": ["server"],
    "metrics": ["server"],
    "names": ["server"],
    "node": ["server"],
    "oom": ["server"],
    "python": ["server"],
    "python_layout": ["cpu"],
    "query": ["server"],
    "refusals": ["golang"],
    "rights": ["server"],
    "source": ["server"],
    "top": ["server"],
    "unwind": ["cpu"],
}
# These judge how soon something happens: nothing runs beside them.
ALONE = ("oracle/hostile", "oracle/oom")
# These ask every JVM of the machine, or look whether anybody does: one at a time.
JAVA = ("oracle/java", "oracle/java_attach", "oracle/java_cpu", "oracle/java_collectors")


class Suite:
    """commands: run in turn, all of them. kind: how their output counts (see runner.py). Of a lane one
    runs at a time."""

    def __init__(self, name, commands, inputs, kind="lines", env=None):
        self.name, self.commands, self.inputs = name, commands, inputs
        self.kind, self.env = kind, env or {}
        self.alone = name in ALONE
        self.lane = "java" if name in JAVA else name

    def __repr__(self):
        return self.name


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def rooms(*names):
    """The folders of these rooms and of all that they use, directly or not."""
    uses, found, queue = check_includes.table(), set(), list(names)
    while queue:
        room = queue.pop()
        if room not in found:
            found.add(room)
            queue += uses[room]
    return [f"src/{room}/" for room in sorted(found)]


# --- what runs ------------------------------------------------------------------------------------


# cmocka catches these, too; in a thread that is not the test's it ends without a word.
CRASHES = "handle_segv=2:handle_sigbus=2:handle_sigfpe=2:handle_sigill=2"


def sanitized():
    return {"ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1:" + CRASHES,
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1"}


def included(room):
    """The rooms that the unit tests of a room include: its own, and sometimes another."""
    found = {room}
    for path in glob.glob(os.path.join(ROOT, f"tests/unit/{room}/*.[ch]")):
        found.update(re.findall(r'^#include "(\w+)/', read(path), re.M))
    return found


def unit(asan):
    """One suite for each room; its tests are those that Meson knows."""
    listing = subprocess.run(["meson", "introspect", "--tests", asan], cwd=ROOT, check=True,
                             capture_output=True, text=True).stdout
    by_room = {}
    for test in json.loads(listing):
        if "unit" in " ".join(test["suite"]):
            by_room.setdefault(test["name"].split("_")[0], []).append(test["cmd"])
    return [Suite(f"unit/{room}", sorted(commands),
                  rooms(*included(room)) + [f"tests/unit/{room}/", "tests/support/"],
                  kind="cmocka", env=sanitized())
            for room, commands in sorted(by_room.items())]


def fuzz(asan):
    """Every corpus once. A target without a corpus is a failure that libFuzzer reports."""
    folder = os.path.join(ROOT, asan, "tests", "fuzz")
    targets = sorted(n for n in os.listdir(folder) if re.fullmatch(r"fuzz_\w+", n)) \
        if os.path.isdir(folder) else []
    commands = [[os.path.join(folder, target), "-runs=0", "-rss_limit_mb=2048",
                 f"-artifact_prefix=build/test-logs/{target}-",
                 os.path.join("tests", "fuzz", "corpus", target.removeprefix("fuzz_"))]
                for target in targets]
    return Suite("fuzz", commands, ["src/", "tests/fuzz/", "tests/support/"], kind="status", env=sanitized())


def python_sources(*paths):
    """These and what they import of ours."""
    found, queue = set(), list(paths)
    while queue:
        path = queue.pop()
        if path not in found and os.path.exists(os.path.join(ROOT, path)):
            found.add(path)
            queue += [f"{folder}/{module}.py" for folder in ("tests/oracle", "tests/oracle/lib", os.path.dirname(path))
                      for module in re.findall(r"^\s*(?:from|import) (\w+)", read(path), re.M)]
    return sorted(found)


def python_inputs(*paths):
    """Sources of tests, and the programs that these name."""
    sources = python_sources(*paths)
    text = "".join(map(read, sources))
    words = set(re.findall(r"\w+", text))
    targets = [f"tests/targets/{folder}/" for folder in os.listdir(os.path.join(ROOT, "tests/targets"))
               if folder in words and os.path.isdir(os.path.join(ROOT, "tests/targets", folder))]
    dumps = [os.path.relpath(path, ROOT) for path in glob.glob(os.path.join(ROOT, "tests/oracle/dump/*.c"))
             if os.path.basename(path)[:-2] in words]
    return sources + sorted(targets) + sorted(dumps) + ["tests/targets/build.py", "tests/targets/go.mod"]


def oracle_inputs(name):
    extra = ["completions/"] if name == "cli" else []
    return python_inputs(f"tests/oracle/test_{name}.py") + rooms(*ORACLE[name]) + ["src/cli/"] + extra


def oracle(asan, sonde, every):
    env = {"SONDE": os.path.abspath(sonde),
           "ELF_DUMP": os.path.abspath(os.path.join(asan, "tests", "elf_dump"))}
    depth = "--all" if every else "--quick"
    for path in glob.glob(os.path.join(ROOT, "tests/oracle/test_*.py")):
        name = os.path.basename(path)[5:-3]
        if name not in ORACLE:
            sys.exit(f"suites: {name} of tests/oracle is missing in the table of tools/suites.py")
        yield Suite(f"oracle/{name}",
                    [[sys.executable, "-u", "tests/oracle/run.py", depth, "--module", name]],
                    oracle_inputs(name), env=env)


def suites(asan, sonde, every=False):
    """All suites, sorted by name; every: those of `make test-all`."""
    served = rooms("server") + ["src/cli/"]
    programs = ["tests/targets/leak/", "tests/targets/demo/", "tests/targets/build.py"]
    env = {"SONDE": os.path.abspath(sonde)}
    found = [*unit(asan), fuzz(asan), *oracle(asan, sonde, every),
             Suite("ui", [["npm", "--prefix", "ui", "test", "--silent"]], ["ui/"]),
             Suite("browser", [["tests/browser/run.sh"]],
                   ["ui/", "tests/browser/", *programs, *served], env=env),
             Suite("api", [[sys.executable, "-u", "tests/api/run.py"]],
                   ["docs/API.md", "docs/openapi.json", "ui/mock/", "ui/src/schema.ts", "tools/api_types.py",
                    "tools/registry_docs.py", "tests/browser/stage.py", *served,
                    *python_inputs("tests/api/test_document.py", "tests/api/test_servers.py")], env=env),
             Suite("unused", [[sys.executable, "tools/check_unused.py"]],
                   ["src/", "tests/fuzz/", "tests/oracle/", "tests/support/", "tests/unit/", "bench/",
                    "tools/check_unused.py"]),
             Suite("includes", [[sys.executable, "tools/check_includes.py"]],
                   ["src/", "docs/ARCHITECTURE.md", "tools/check_includes.py"]),
             Suite("names", [[sys.executable, "tools/check_names.py"]],
                   ["src/", "docs/ARCHITECTURE.md", "tools/check_names.py"]),
             Suite("docs", [[sys.executable, "tools/check_docs.py", sonde]],
                   ["src/cli/", "src/pipeline/registry/", "man/", "completions/", "tools/check_docs.py"]),
             Suite("harness", [[sys.executable, "tests/harness/run.py"]],
                   ["tools/", "tests/harness/", "tests/lines.py", "tests/oracle/lib/stats.py"])]
    if every:
        found.append(Suite("arm64", [["tools/test-arm64.sh", "build-arm64"]],
                           ["src/", "tools/", "tests/"]))
    return sorted(found, key=lambda suite: suite.name)


def chosen(found, words):
    """Those whose name contains one of WORD,WORD."""
    return [s for s in found if any(word in s.name for word in words.split(","))]


# --- what decides the result ----------------------------------------------------------------------


@functools.lru_cache(maxsize=None)
def files():
    """{path: hash of its content} of all files that git knows or would know; cleared by changed()."""
    listing = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT,
                             check=True, capture_output=True).stdout.decode()
    found = {}
    for path in filter(None, listing.split("\0")):
        whole = os.path.join(ROOT, path)
        if os.path.isfile(whole):
            with open(whole, "rb") as f:
                found[path] = hashlib.sha256(f.read()).hexdigest()
    return found


def digest(suite):
    """Twelve characters that change when a file changes that can change the suite's result."""
    total = hashlib.sha256()
    for path, content in sorted(files().items()):
        if path.startswith(tuple(suite.inputs)):
            total.update(f"{path} {content}\n".encode())
    return total.hexdigest()[:12]


def changed(suite):
    """Whether its files are no longer those that the last digest was made of."""
    before = digest(suite)
    files.cache_clear()
    return digest(suite) != before
