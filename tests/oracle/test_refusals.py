"""Targets that go away, change, forbid or lie: a clear sentence, the right exit code, no profile."""
import json
import os
import shutil
import struct
import subprocess
import tempfile
import unittest

import rig


def heap_target(variant="plain", *args):
    program = rig.build.build("heap", rig.build.mandatory()[1], variant)
    return rig.Target([program, "-rate", "1", *args])


def waits_for_time(process):
    """In a call that ends at a given time, such as nanosleep or poll, and not in between."""
    with open(f"/proc/{process.pid}/syscall") as f:
        number = f.read().split()[0]
    return process.poll() is not None or number in WAITS[os.uname().machine]


# poll, nanosleep, clock_nanosleep, ppoll
WAITS = {"x86_64": ("7", "35", "230", "271"), "aarch64": ("73", "101", "115")}


def heap_answer(pid, *before, **kwargs):
    """What `sonde ps` says of the heap of one process."""
    done = subprocess.run([*(before or (rig.SONDE,)), "ps", str(pid), "--json"], capture_output=True, text=True,
                          check=True, timeout=rig.LIMIT, **kwargs)
    return json.loads(done.stdout)[0]["profiles"]["heap"]


class Refusals(unittest.TestCase):
    def while_diffing(self, act):
        """Runs `heap --diff` and does something to the target between the two readings."""
        for seconds in (1, 8, 64):
            with heap_target() as target:
                process = subprocess.Popen(
                    [rig.SONDE, "heap", str(target.pid), "--diff", f"{seconds}s"],
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                rig.wait_for(lambda: waits_for_time(process), "no first reading", pause=0.01)
                act(target)
                out, err = process.communicate(timeout=rig.LIMIT)
            # A machine that is too slow for that makes it too late.
            if process.returncode != rig.OK:
                break
        self.assertEqual(process.returncode, rig.FAILED, out + err)
        self.assertEqual(out, "")
        return err

    def test_target_exits_between_readings(self):
        self.assertIn("exited", self.while_diffing(lambda target: target.process.kill()))

    def test_a_storm_of_execs_is_named_as_such(self):
        """Two programs of different releases take turns: what is read of one may be looked up in
        the other, and then neither is to blame."""
        old, new = (rig.build.build("execs", go, "strip")
                    for go in (rig.build.mandatory()[1], rig.build.newest()[1]))
        said = []
        with rig.Target([old, "-next", new, "-every", "2000"]) as target:
            for i in range(120):
                command = ("heap", "goroutines", "mutex")[i % 3]
                done = rig.sonde(command, target.pid)
                said.append(done.stderr if done.returncode else "")
        self.assertTrue([text for text in said if "another program" in text], said)
        for text in said:
            self.assertNotRegex(text, "layout|match Go|not found in the code|impossible values")

    def test_target_execs_between_readings(self):
        """The pid and its start time stay; the program is another, here even of the same file."""
        self.assertIn("another program", self.while_diffing(lambda target: target.ask("exec")))

    def test_no_such_process(self):
        done = rig.sonde("heap", 2 ** 22 - 1, check=rig.FAILED)
        self.assertIn("no such process", done.stderr)

    def test_no_permission_names_the_capability(self):
        with heap_target() as target, tempfile.TemporaryDirectory() as tmp:
            # The build folder may lie where nobody can look.
            os.chmod(tmp, 0o755)
            copy = shutil.copy(rig.SONDE, tmp)
            done = subprocess.run([copy, "heap", str(target.pid)], capture_output=True, text=True,
                                  user=65534, group=65534, extra_groups=[], timeout=rig.LIMIT)
            self.assertEqual(done.returncode, rig.FAILED)
            self.assertIn("CAP_SYS_PTRACE", done.stderr)
            self.assertEqual(heap_answer(target.pid, copy, user=65534, group=65534, extra_groups=[])["cause"],
                             "denied")

    def test_not_a_Go_program(self):
        with rig.Target([rig.build.build("fakes", None), "notgo"]) as target:
            done = rig.sonde("heap", target.pid, check=rig.NOT_PROFILEABLE)
            self.assertIn("not a Go program", done.stderr)

    def test_a_32_bit_program_is_said_to_be_one(self):
        if os.uname().machine != "x86_64":
            self.skipTest("only amd64 runs programs of 386")
        with heap_target("386") as target:
            for command in ("heap", "goroutines"):
                done = rig.sonde(command, target.pid, check=rig.NOT_PROFILEABLE)
                self.assertRegex(done.stderr, "unsupported: .*32-bit")
            answer = heap_answer(target.pid)
            self.assertEqual(answer["cause"], "unsupported")
            self.assertRegex(answer["reason"], "unsupported: .*32-bit")

    def test_unknown_release_fails_closed_and_can_be_assumed(self):
        """A build info that claims go1.99: refused, and read with the layout that the user names."""
        program = rig.build.build("heap", rig.build.mandatory()[1], "strip")
        with open(program, "rb") as f:
            data = f.read()
        version = b"go" + rig.build.mandatory()[0].encode()
        at = data.index(b"\xff Go buildinf:")
        self.assertEqual(data[at + 33:at + 33 + len(version)], version)
        forged = b"go1.99.8"[:len(version)]
        with tempfile.TemporaryDirectory() as tmp:
            path = os.path.join(tmp, "future")
            with open(path, "wb") as f:
                f.write(data[:at + 33] + forged + data[at + 33 + len(forged):])
            os.chmod(path, 0o755)
            with rig.Target([path, "-rate", "1"]) as target:
                done = rig.sonde("heap", target.pid, check=rig.NOT_PROFILEABLE)
                self.assertIn("1.99", done.stderr)
                self.assertIn("; use --assume-layout", done.stderr)
                self.assertEqual(heap_answer(target.pid)["cause"], "unknown_version")
                self.assertIn("--assume-layout", heap_answer(target.pid)["remedy"])
                done = rig.sonde("heap", target.pid, "--assume-layout", "1.19", check=rig.OK)
                self.assertIn("work.sizes", done.stdout)
                rig.sonde("heap", target.pid, "--assume-layout", "nonsense", check=rig.USAGE)

    def test_program_without_build_info_tells_its_version_all_the_same(self):
        program = rig.build.build("heap", rig.build.mandatory()[1], "strip")
        with open(program, "rb") as f:
            data = bytearray(f.read())
        at = data.index(b"\xff Go buildinf:")
        data[at:at + 64] = bytes(64)
        with tempfile.TemporaryDirectory() as tmp:
            path = os.path.join(tmp, "anonymous")
            with open(path, "wb") as f:
                f.write(data)
            os.chmod(path, 0o755)
            with rig.Target([path, "-rate", "1"]) as target:
                done = rig.sonde("heap", target.pid, "-f", "json", check=rig.OK)
                facts = json.loads(done.stdout)
                self.assertEqual(facts["source"]["version_from"], "runtime.buildVersion")
                self.assertEqual(facts["source"]["go_version"], "go" + rig.build.mandatory()[0])

    def test_replaced_executable_is_read_from_what_runs(self):
        """A deploy overwrote the file: the process still runs the old one."""
        program = rig.build.build("heap", rig.build.mandatory()[1], "strip")
        with tempfile.TemporaryDirectory() as tmp:
            path = shutil.copy(program, os.path.join(tmp, "service"))
            with rig.Target([path, "-rate", "1"]) as target:
                os.unlink(path)
                shutil.copy("/bin/true", path)
                done = rig.sonde("heap", target.pid, check=rig.OK)
                self.assertIn("work.sizes", done.stdout)

    def test_forged_buckets_are_counted_as_lost(self):
        """One stack address changed in the target's memory: that bucket fails its hash."""
        program = rig.build.build("heap", rig.build.mandatory()[1], "plain")
        with rig.Target([program, "-rate", "1"]) as target:
            before = json.loads(rig.sonde("heap", target.pid, "-f", "json", check=rig.OK).stdout)
            with open(f"/proc/{target.pid}/mem", "r+b", buffering=0) as mem:
                head = self.word(mem, self.symbol(program, "runtime.mbuckets"))
                second = self.word(mem, head + 8)
                mem.seek(second + 48)
                mem.write(struct.pack("<Q", 0xDEAD))
            after = json.loads(rig.sonde("heap", target.pid, "-f", "json", check=rig.OK).stdout)
            self.assertEqual(before["reading"]["bad_buckets"], 0)
            self.assertEqual(after["reading"]["bad_buckets"], 1)
            self.assertEqual(after["reading"]["buckets"], before["reading"]["buckets"] - 1)

    def test_circle_of_buckets_is_refused(self):
        program = rig.build.build("heap", rig.build.mandatory()[1], "plain")
        with rig.Target([program, "-rate", "1"]) as target:
            with open(f"/proc/{target.pid}/mem", "r+b", buffering=0) as mem:
                head = self.word(mem, self.symbol(program, "runtime.mbuckets"))
                second = self.word(mem, head + 8)
                mem.seek(second + 8)
                mem.write(struct.pack("<Q", head))
            done = rig.sonde("heap", target.pid, check=rig.FAILED)
            self.assertIn("cycle", done.stderr)

    @staticmethod
    def word(mem, addr):
        mem.seek(addr)
        return struct.unpack("<Q", mem.read(8))[0]

    @staticmethod
    def symbol(program, name):
        out = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
        return next(int(line.split()[0], 16) for line in out.splitlines()
                    if line.split()[-1] == name)


class Ps(unittest.TestCase):
    def test_every_kind_has_its_answer(self):
        go = rig.build.mandatory()[1]
        forge = rig.build.build("fakes", None)
        with heap_target("pie-strip") as sampled, heap_target("cshared") as library, \
                heap_target("packed") as packed, \
                rig.Target([rig.build.build("nopprof", go, "strip")]) as off, \
                rig.Target([forge, "notgo"]) as native:
            table = {p["pid"]: p for p in json.loads(rig.sonde("ps", "--json", check=rig.OK).stdout)}
            for target in (sampled, library, packed):
                self.assertEqual(table[target.pid]["version"], "go" + rig.build.mandatory()[0])
                self.assertTrue(table[target.pid]["profiles"]["heap"]["available"])
            heap = table[off.pid]["profiles"]["heap"]
            self.assertFalse(heap["available"])
            self.assertEqual(heap["cause"], "profiling_off")
            self.assertIn("--force", heap["remedy"])
            self.assertIsNone(table[sampled.pid]["profiles"]["heap"]["cause"])
            self.assertEqual(table[native.pid]["runtime"], "native")
            self.assertFalse(table[native.pid]["profiles"]["heap"]["available"])
            self.assertEqual(table[native.pid]["profiles"]["heap"]["cause"], "not_go")
            text = rig.sonde("ps", check=rig.OK).stdout
            self.assertRegex(text, rf"(?m)^ *{sampled.pid} .*\byes")
            self.assertNotIn("\x1b", text)


def load(_every, suite):
    for case in (Refusals, Ps):
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
