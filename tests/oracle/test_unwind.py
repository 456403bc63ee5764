"""Unwind rows of real files equal what readelf makes of them; Go's frames equal runtime/pprof's."""
import glob
import os
import random
import subprocess
import tempfile
import unittest

import rig
import unwind_readelf

DUMP = os.path.join(os.path.dirname(rig.ELF_DUMP), "unwind_dump")
DEBIAN = (
    "/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libm.so.6",
    "/lib64/ld-linux-x86-64.so.2", "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
    "/usr/lib/x86_64-linux-gnu/libssl.so.3", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    "/usr/bin/python3", "/usr/bin/perl", "/usr/bin/sqlite3", "/usr/bin/openssl", "/bin/bash",
    "/usr/lib/x86_64-linux-gnu/libsqlite3.so.0",
)
# Where sonde knows more than DWARF: ends, switches of stacks, and what no rule describes.
SPECIAL = {
    "end": {"_rt0_amd64", "_rt0_amd64_linux", "gogo", "runtime.clone", "runtime.goexit",
            "runtime.gogo", "runtime.mcall", "runtime.morestack", "runtime.mstart",
            "runtime.rt0_go"},
    "signal": {"runtime.sigreturn", "runtime.sigreturn__sigaction"},
    "chain": {"runtime.systemstack", "runtime.asmcgocall", "runtime.jmpdefer"},
    "rbp+16": {"runtime.systemstack", "runtime.asmcgocall", "runtime.cgocallback",
               "runtime.callCgoMmap", "runtime.callCgoMunmap", "runtime.callCgoSigaction",
               "runtime.nanotime1", "runtime.walltime1", "runtime.walltime", "time.now",
               "runtime.vgetrandom1", "runtime.sigfwd", "runtime.switchToCrashStack0",
               "runtime.asmcgocall_no_g"},
    "unsupported": {"syscall.rawVforkSyscall"},
}
ADDRESSES = 20000


def without_sections(path, to):
    rig.build.drop_sections(path, to)
    return to


def vdso(to):
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb") as mem:
        for line in maps:
            if line.rstrip().endswith("[vdso]"):
                start, end = (int(x, 16) for x in line.split()[0].split("-"))
                mem.seek(start)
                with open(to, "wb") as f:
                    f.write(mem.read(end - start))
                return to
    raise unittest.SkipTest("no vdso in this process")


def dump(path, *how):
    return subprocess.run([DUMP, path, *how], capture_output=True, text=True, check=True).stdout


class Native(unittest.TestCase):
    def setUp(self):
        self.dir = self.enterContext(tempfile.TemporaryDirectory())

    def compare(self, *paths):
        for path in paths:
            self.assertEqual(unwind_readelf.compare(DUMP, path)[1][:20], [], path)

    def test_programs_and_libraries_of_Debian(self):
        found = [x for x in DEBIAN if os.path.exists(x)]
        self.assertGreater(len(found), 6)
        self.compare(*found)

    def test_the_vdso(self):
        self.compare(vdso(os.path.join(self.dir, "vdso.so")))

    def test_a_library_without_section_headers(self):
        libc = glob.glob("/lib/x86_64-linux-gnu/libc.so.6")[0]
        bare = without_sections(libc, os.path.join(self.dir, "libc"))
        self.assertEqual(dump(bare), dump(libc))

    def test_debug_frame_where_there_is_no_eh_frame(self):
        source, out = (os.path.join(self.dir, x) for x in ("a.c", "a"))
        with open(source, "w") as f:
            f.write("""
                int g(char *p);
                int big(int n) { char a[n] __attribute__((aligned(64))); return g(a) + a[0]; }
                int g(char *p) { *p = 1; return p ? big(3) : 2; }
                void _start(void) { g((char *)0); }
            """)
        subprocess.run(["gcc", "-O1", "-g", "-gz=none", "-nostdlib", "-static", "-o", out, source,
                        "-fno-asynchronous-unwind-tables", "-fno-unwind-tables",
                        "-fno-stack-protector"], check=True, capture_output=True)
        self.compare(out)


class Go(unittest.TestCase):
    def rows(self, go, variant):
        """Rows as DWARF has them, but for the functions that we know better."""
        program = rig.build.build("heap", go, variant)
        said, wrong = unwind_readelf.compare_go(DUMP, program)
        self.assertEqual(wrong[:20], [])
        for line in said:
            if line.startswith("special "):
                _, name, cfa = line.split()
                self.assertIn(name.split(".abi")[0], SPECIAL.get(cfa, ()), line)

    def alike(self, go, *variants):
        """Stripping changes nothing."""
        first, *others = (dump(rig.build.build("heap", go, x), "go") for x in variants)
        for other in others:
            self.assertEqual(first, other)

    def library(self, go):
        program = rig.build.build("heap", go, "cshared-strip")
        rows = dump(os.path.join(os.path.dirname(program), "libtarget.so"), "go")
        # Programs that may fork have syscall.rawVforkSyscall, which pops its return address.
        self.assertRegex(rows.splitlines()[0], "unsupported [01] damaged 0")
        self.assertGreater(rows.count("\n"), 5000)

    def frames(self, go, version):
        """Addresses all over a program, named by the program itself."""
        with tempfile.TemporaryDirectory() as directory:
            program = os.path.join(directory, "goframes")
            flags = ["-ldflags=-checklinkname=0"] if version >= (1, 23) else []
            env = dict(rig.build.go_environment(False), GO111MODULE="off", GOFLAGS="")
            rig.build.run([go, "build", "-o", program, *flags], env=env,
                          cwd=os.path.join(rig.HERE, "goframes"))
            starts = [int(x[2:], 16) for x in dump(program, "go").splitlines()
                      if x.startswith("S ")]
            ours, theirs = self.ask(program, starts)
        self.assertGreater(sum(len(x) > 1 for x in theirs.values()), ADDRESSES // 20)
        wrong = [x for x in ours if not self.same(ours[x], theirs[x], version)]
        # The runtime itself does not know the very first name of its table.
        self.assertLessEqual(len(wrong), ADDRESSES // 2000,
                             [(hex(x), ours[x], theirs[x]) for x in wrong[:5]])

    @staticmethod
    def same(ours, theirs, version):
        # Before 1.21 it is the traceback that leaves out wrappers, not who names its addresses.
        return ours == theirs or (version < (1, 21) and len(ours) and ours == theirs[:-1])

    def ask(self, program, starts):
        rand = random.Random(1)
        ends = {x - 1 for x in starts}
        addresses = [x for x in (rand.randrange(starts[0], starts[-1]) for _ in range(ADDRESSES))
                     if x not in ends]
        text = "".join(f"{x:x}\n" for x in addresses)
        answers = []
        for argv, cut in (([DUMP, program, "frames"], True), ([program], False)):
            out = subprocess.run(argv, input=text, capture_output=True, text=True, check=True)
            found = {}
            for line in out.stdout.splitlines():
                if not line.startswith(" "):
                    now = found.setdefault(int(line, 16), [])
                    now.clear()
                else:
                    now.append(line[1:].rsplit(" ", 1)[0] if cut else line[1:])
            answers.append(found)
        return answers


def load(every, suite):
    suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(Native))
    for version, go in rig.versions(every):
        key = rig.build.version_key(version)[:2]
        cases = {
            "rows": lambda self, g=go: self.rows(g, "plain"),
            "rows_of_a_cgo_PIE": lambda self, g=go: self.rows(g, "cgo-pie"),
            "rows_of_stripped_programs": lambda self, g=go: (
                self.alike(g, "plain", "strip", "nosections"),
                self.alike(g, "cgo-pie", "cgo-pie-strip")),
            "rows_of_a_library": lambda self, g=go: self.library(g),
            "frames": lambda self, g=go, k=key: self.frames(g, k),
        }
        for case, test in cases.items():
            name = f"test_{version}_{case}"
            setattr(Go, name, test)
            suite.addTest(Go(name))
