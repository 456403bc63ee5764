"""The table of suites, and which of them a changed file touches."""
import os
import re
import unittest
from unittest import mock

import suites
from suites import Suite


class Suites(unittest.TestCase):
    def digest_with(self, suite, path):
        """Its digest after the file at path has changed."""
        with mock.patch.object(suites, "files", lambda: dict(known, **{path: "other"})):
            known = self.known
            return suites.digest(suite)

    def setUp(self):
        suites.files.cache_clear()
        self.known = suites.files()

    def touched(self, suite, path):
        self.assertIn(path, self.known)
        return self.digest_with(suite, path) != suites.digest(suite)

    def test_every_module_of_tests_oracle_is_in_the_table(self):
        names = {m[1] for n in os.listdir(os.path.join(suites.ROOT, "tests/oracle"))
                 if (m := re.fullmatch(r"test_(\w+)\.py", n))}
        self.assertEqual(names, set(suites.ORACLE))

    def test_inputs_are_there(self):
        for name in suites.ORACLE:
            for path in suites.oracle_inputs(name):
                self.assertTrue(any(file.startswith(path) for file in self.known), path)

    def test_a_change_touches_what_depends_on_it_and_nothing_else(self):
        heap, elf = (Suite(n, [], suites.oracle_inputs(n)) for n in ("heap", "elf"))
        for path, of_heap, of_elf in (("src/base/err.c", True, True), ("src/elf/image.c", True, True),
                                      ("src/golang/heap/heap.c", True, False),
                                      ("src/server/server.c", False, False),
                                      ("tests/oracle/lib/rig.py", True, True),
                                      ("tests/oracle/test_heap.py", True, False),
                                      ("tests/oracle/dump/python_dump.c", False, False),
                                      ("README.md", False, False)):
            self.assertEqual((self.touched(heap, path), self.touched(elf, path)), (of_heap, of_elf), path)

    def test_modules_bring_those_that_they_import(self):
        sources = suites.python_sources("tests/oracle/test_python.py")
        self.assertLessEqual({"tests/oracle/test_python.py", "tests/oracle/test_cpu.py",
                              "tests/oracle/lib/rig.py", "tests/oracle/lib/stats.py"}, set(sources))
        self.assertIn("tests/oracle/lib/rig.py", suites.python_sources("tests/api/test_servers.py"))
