"""JVMs for the tests of Java: which there are, what runs in them, and what of ours is in one."""
import atexit
import functools
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

import rig
import build

sys.path.insert(0, os.path.join(rig.ROOT, "tests", "targets", "java"))
import jdks as other_jdks  # noqa: E402

DUMP = os.path.join(os.path.dirname(rig.ELF_DUMP), "java_dump")
DEBIAN = "/usr/lib/jvm/java-17-openjdk-amd64"
NOBODY = 65534
# Of a JVM that does little: what is compiled well costs more than it saves.
FIRST_COMPILER = "-XX:TieredStopAtLevel=1"
QUICK_START = ("-J" + FIRST_COMPILER, "-J-XX:+UseSerialGC")
SOURCES = ("java/Chaos", "java/Target", "java_collected/Collected", "jfr/Work")
# Of a time waited, and how often it may be off: see check_delays().
DELAY_WITHIN, DELAY_ROUNDS = 0.05, 4
# Without the names of code (.map) that an agent on this machine may have asked any JVM for.
OURS = re.compile(r"\.sonde-[0-9a-f]+")
# A /tmp of its own, where nobody else's sonde mounts anything: JVMs of other tests run beside.
ALONE = ("unshare", "--mount", "sh", "-c",
         "mount -t tmpfs -o mode=1777 tmpfs /tmp && exec \"$@\"", "sh")


def folder_for_tests():
    """Outside the /tmp that goes."""
    folder = tempfile.TemporaryDirectory(prefix="sonde-java-", dir="/var/tmp")
    os.chmod(folder.name, 0o755)
    return folder


@functools.lru_cache(maxsize=None)
def why_not_alone():
    """What keeps a program from having a /tmp of its own; "" where nothing does."""
    done = subprocess.run([*ALONE, "true"], capture_output=True, text=True, timeout=rig.LIMIT)
    if done.returncode == 0:
        return ""
    said = done.stderr.strip() or f"exit code {done.returncode}"
    return (f"tests of Java need mount namespaces, and `unshare --mount` fails: {said}. Run them "
            "as root; where / is no mount point, as in a plain chroot, make it one by pivot_root(8)")


class Case(unittest.TestCase):
    """One whose programs have a /tmp of their own."""

    def setUp(self):
        if why_not_alone():
            self.fail(why_not_alone())

    def check_delays(self, work):
        """work() does some and returns pairs: how long threads waited, as recorded and as counted.

        The program takes a time just outside what the recorder times, so that it never counts
        less. It counts more where a thread stands still between the two, for a safepoint or
        because the CPU was taken away: rarely, and then by chance. What is off each time is not.
        """
        seen = []
        for _ in range(DELAY_ROUNDS):
            pairs = work()
            for recorded, counted in pairs:
                self.assertGreater(counted, 0)
                self.assertLessEqual(recorded, counted * 1.01)
                seen.append(f"{recorded} ns of {counted}, {(recorded / counted - 1) * 100:+.2f} %")
            if all(recorded >= counted * (1 - DELAY_WITHIN) for recorded, counted in pairs):
                return
        self.fail("less than what was waited, each time: " + "; ".join(seen))


def version_of(home):
    """As the JVM says it; None where there is none."""
    java = os.path.join(home, "bin", "java")
    if not os.access(java, os.X_OK):
        return None
    said = subprocess.run([java, "-XshowSettings:properties", "-version"], capture_output=True,
                          text=True, timeout=rig.LIMIT).stderr
    found = re.search(r"^ *java\.version = (\S+)", said, re.M)
    return found.group(1) if found else None


def major_of(version):
    """17 of 17.0.15, 8 of 1.8.0_504"""
    return int(version.removeprefix("1.").split(".")[0])


@functools.lru_cache(maxsize=None)
def jdks(every=False):
    """((version, home)) of what is on this machine, Debian's first.

    With every also those that SONDE_JDKS names, homes with colons between, or else those that can
    be fetched.
    """
    homes = [DEBIAN, *sorted(glob.glob("/usr/lib/jvm/*"))]
    if every and "SONDE_JDKS" in os.environ:
        homes += os.environ["SONDE_JDKS"].split(":")
    elif every:
        try:
            homes += other_jdks.homes(os.path.join(build.default_outdir(), "jdks"))
        except (OSError, subprocess.SubprocessError) as e:
            print(f"other releases of Java cannot be fetched, and are left out: {e}",
                  file=sys.stderr)
    found, seen = {}, set()
    for home in homes:
        java = os.path.realpath(os.path.join(home, "bin", "java"))
        version = version_of(home) if java not in seen else None
        seen.add(java)
        if version:
            found.setdefault(version, home)
    if DEBIAN not in found.values():
        print("Debian's openjdk-17-jdk-headless is missing: its tests fail", file=sys.stderr)
        found = {"17.0": DEBIAN, **found}
    return tuple(found.items())


def tool(home, name):
    """Its own, or Debian's where it has none."""
    path = os.path.join(home, "bin", name)
    return path if os.access(path, os.X_OK) else os.path.join(DEBIAN, "bin", name)


@functools.lru_cache(maxsize=None)
def classes():
    """The folder of all programs, which the oldest JVM runs too; compiled once."""
    folder = folder_for_tests()
    atexit.register(folder.cleanup)
    # Not by --release 8, which hides the events that one of them has.
    subprocess.run([tool(DEBIAN, "javac"), *QUICK_START, "-source", "8", "-target", "8", "-nowarn",
                    "-Xlint:-options", "-d", folder.name,
                    *(os.path.join(rig.ROOT, "tests", "targets", s + ".java") for s in SOURCES)],
                   check=True, timeout=300)
    return folder.name


def dump(*args, check=0):
    done = subprocess.run([DUMP, *map(str, args)], capture_output=True, text=True, timeout=300)
    assert done.returncode == check, f"{args}: {done.returncode} {done.stdout}{done.stderr}"
    return done.stdout if check == 0 else done.stderr


def tmp_of(pid):
    return sorted(os.listdir(f"/proc/{pid}/root/tmp"))


def inner_pid(pid):
    """Its number for itself."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return re.search(r"^NSpid:.*\t(\d+)$", f.read(), re.M).group(1)


def ours_in(pid):
    """What of ours is in the target's /tmp, and mounted there."""
    inner = inner_pid(pid)
    there = tmp_of(pid)
    # A namespace begins with all mounts of the one it was made in; its own /tmp lies above them.
    with open(f"/proc/{pid}/mountinfo", encoding="utf-8") as f:
        mounts = [line for line in f if ".sonde-" in line
                  and os.path.basename(line.split()[4]) in there]
    return mounts + [name for name in there
                     if OURS.fullmatch(name) or name == f".attach_pid{inner}"
                     or re.fullmatch(rf"\d{{4}}(_\d\d){{5}}_{inner}", name)]


def descendant(pid):
    """The JVM below unshare(1) and its helpers."""
    while True:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as f:
            if f.read().strip() == "java":
                return pid
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as f:
            children = f.read().split()
        if not children:
            raise AssertionError("there is no JVM")
        pid = int(children[0])


class Program(rig.Target):
    """One that ends by itself at the end of its input, and clears away what is its own."""

    def __init__(self, home, main, *options, first="ready 0", **kwargs):
        super().__init__([os.path.join(home, "bin", "java"), *options, "-cp", classes(), main],
                         ready=False, **kwargs)
        self.home = home
        # What JAVA_TOOL_OPTIONS has picked up goes to standard error, which is not read.
        line = self.line()
        assert line == first.encode() + b"\n", line

    def __exit__(self, *_):
        try:
            self.process.stdin.close()
            self.process.wait(timeout=rig.LIMIT)
        except (OSError, subprocess.TimeoutExpired):
            pass
        super().__exit__()
