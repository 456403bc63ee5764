"""Interpreters of Python, the programs in tests/targets/python, and what their samples say."""
import glob
import json
import os
import re
import subprocess
import sys
import zipfile

import rig
from rig import LIMIT

SCRIPTS = os.path.join(rig.ROOT, "tests", "targets", "python")
DEBIAN = "/usr/bin/python3"
LOOP = "_PyEval_EvalFrameDefault"
NOT_FOUND = "[its Python frames were not found among the first 512 threads]"
PY_SPY = "0.4.3"


class Script(rig.Target):
    """One of tests/targets/python, run by an interpreter."""

    def __init__(self, python, name, *args, env=None, prefix=()):
        super().__init__([python, os.path.join(SCRIPTS, name), *map(str, args)], ready=False,
                         prefix=prefix,
                         env={"PYTHONDONTWRITEBYTECODE": "1", **(env or {})})
        line = self.line().split(maxsplit=2)
        assert line[:1] == [b"ready"], f"{name} did not start: {line}"
        self.pid = int(line[1])
        self.told = json.loads(line[2]) if line[2:] else None


def frames_of(sample):
    """The outermost first."""
    return [f for location in reversed(sample.stack) for f in reversed(location.frames)]


def is_python(frame):
    return frame.file.endswith(".py") or frame.file.startswith("<")


def python_part(sample):
    return tuple(f.function for f in frames_of(sample) if is_python(f))


def with_python(profile):
    return [s for s in profile.samples if python_part(s)]


def has_static_names(python):
    """Whether C functions that are not exported can have names: from the file or its debug file."""
    done = subprocess.run([python, "-c", "print(open('/proc/self/maps').read())"],
                          capture_output=True, text=True, check=True)
    files = set(re.findall(r"r-xp .*?(/\S*python3\S*)$", done.stdout, re.M))
    return any("list_sort" in symbols(f) for path in files for f in (path, debug_file(path)) if f)


def symbols(path):
    return subprocess.run(["readelf", "-sW", path], capture_output=True, text=True).stdout


def debug_file(path):
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True).stdout
    build_id = re.search(r"Build ID: (\w\w)(\w+)", notes)
    debug = build_id and f"/usr/lib/debug/.build-id/{build_id[1]}/{build_id[2]}.debug"
    return debug if debug and os.path.exists(debug) else None


def threads_of(pid):
    """{name: nanoseconds of CPU time} of its threads."""
    spent = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/comm", encoding="utf-8") as f:
            name = f.read().strip()
        with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="utf-8") as f:
            spent[name] = int(f.read().split()[0])
    return spent


def py_spy():
    """Its path, kept among the targets; None where it can neither be found nor fetched."""
    folder = os.path.join(os.path.abspath(rig.build.default_outdir()), "py-spy")
    program = os.path.join(folder, f"py_spy-{PY_SPY}.data", "scripts", "py-spy")
    if not os.path.exists(program):
        done = subprocess.run([DEBIAN, "-m", "pip", "download", "-q", "--no-deps", "--only-binary",
                               ":all:", "--retries", "0", "-d", folder, f"py-spy=={PY_SPY}"],
                              capture_output=True, timeout=LIMIT)
        wheels = glob.glob(os.path.join(folder, "*.whl"))
        if done.returncode or not wheels:
            return None
        with zipfile.ZipFile(wheels[0]) as wheel:
            os.chmod(wheel.extract(os.path.relpath(program, folder), folder), 0o755)
    return program


def pyenv(minors):
    """[(minor, path)] of the interpreters of the versions 3.minor that pyenv has here."""
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    found = []
    for minor in minors:
        paths = glob.glob(os.path.join(root, "versions", f"3.{minor}.*", "bin", f"python3.{minor}"))
        if paths:
            found.append((minor, max(paths)))
    return found


def interpreters(every):
    """[(name, minor, path)]: Debian's, and all that can be had; what cannot is named on stderr."""
    minor = int(subprocess.run([DEBIAN, "-c", "import sys; print(sys.version_info[1])"], text=True,
                               capture_output=True, check=True).stdout)
    found = [("Debian", minor, DEBIAN)]
    if every:
        wanted = range(9, 14)
        others = dict(pyenv(wanted))
        for n in wanted:
            if n in others:
                found.append((f"3_{n}", n, others[n]))
            else:
                print(f"Python 3.{n} is not among the versions of pyenv: left out", file=sys.stderr)
    return found
