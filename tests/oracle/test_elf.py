"""What the elf room reads of real files equals what readelf prints."""
import glob
import os
import subprocess
import sys
import unittest

import rig


class Elf(unittest.TestCase):
    def compare(self, *paths):
        self.assertTrue(paths)
        script = os.path.join(rig.HERE, "lib", "elf_readelf.py")
        done = subprocess.run([sys.executable, script, rig.ELF_DUMP, *paths], capture_output=True,
                              text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_programs_and_libraries_of_Debian(self):
        self.compare("/bin/ls", "/bin/bash", *glob.glob("/lib/x86_64-linux-gnu/libc.so.6"),
                     *glob.glob("/usr/lib/x86_64-linux-gnu/libstdc++.so.6"))

    def test_Go_programs(self):
        go = rig.build.mandatory()[1]
        self.compare(*(rig.build.build("heap", go, variant)
                       for variant in ("plain", "strip", "pie", "cgo", "packed")))

    def test_Go_library(self):
        program = rig.build.build("heap", rig.build.mandatory()[1], "cshared")
        self.compare(os.path.join(os.path.dirname(program), "libtarget.so"))


def load(_every, suite):
    suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(Elf))
