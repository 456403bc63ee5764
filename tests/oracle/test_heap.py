"""The heap profile from outside equals the one that the program writes of itself."""
import os
import tempfile
import unittest

import rig
from pprof import Profile

# name: (build variant, arguments, environment, oldest release that has it)
CASES = {
    "plain": ("plain", ["-rate", "1"], {}, 17),
    "stripped": ("strip", ["-rate", "1"], {}, 17),
    "PIE": ("pie", ["-rate", "1"], {}, 17),
    "PIE, stripped": ("pie-strip", ["-rate", "1"], {}, 17),
    "cgo": ("cgo", ["-rate", "1"], {}, 17),
    "cgo, stripped": ("cgo-strip", ["-rate", "1"], {}, 17),
    "cgo, PIE": ("cgo-pie", ["-rate", "1"], {}, 17),
    "cgo, PIE, stripped": ("cgo-pie-strip", ["-rate", "1"], {}, 17),
    "c-shared": ("cshared", ["-rate", "1"], {}, 17),
    "c-shared, stripped": ("cshared-strip", ["-rate", "1"], {}, 17),
    "plugin": ("plugin", ["-rate", "1"], {}, 17),
    "plugin, stripped": ("plugin-strip", ["-rate", "1"], {}, 17),
    "PGO": ("pgo", ["-rate", "1"], {}, 21),
    "PGO, stripped": ("pgo-strip", ["-rate", "1"], {}, 21),
    "no section headers": ("nosections", ["-rate", "1"], {}, 17),
    "packed": ("packed", ["-rate", "1"], {}, 17),
    "before the first GC": ("plain", ["-rate", "1", "-gc", "0"], {}, 17),
    "before the first GC, stripped": ("strip", ["-rate", "1", "-gc", "0"], {}, 17),
    "after one GC": ("strip", ["-rate", "1", "-gc", "1"], {}, 17),
    "sampled at 512": ("plain", ["-rate", "512"], {}, 17),
    "sampled at 4096, stripped": ("strip", ["-rate", "4096"], {}, 17),
    "default rate": ("plain", [], {}, 17),
    "default rate, stripped": ("strip", [], {}, 17),
    "deep stacks": ("strip", ["-rate", "1"], {"GODEBUG": "profstackdepth=1000"}, 23),
    "shallow stacks": ("strip", ["-rate", "1"], {"GODEBUG": "profstackdepth=7"}, 23),
}

# What dumping itself allocates before the runtime takes its snapshot (tests/targets/heap/work).
OF_THE_DUMP = ("runtime/pprof.",)


class Heap(unittest.TestCase):
    """Filled by load()."""

    def compare(self, version, go, case):
        variant, args, env, _ = CASES[case]
        program = rig.build.build("heap", go, variant)
        with tempfile.TemporaryDirectory() as tmp:
            prefix = os.path.join(tmp, "own")
            with rig.Target([program, "-o", prefix, *args], env=env) as target:
                ours_path = os.path.join(tmp, "ours.pb.gz")
                rig.sonde("heap", target.pid, "-f", "pprof", "-o", ours_path, check=rig.OK)
                self.assertEqual(target.ask("dump"), "dumped")
                ours, own = Profile(ours_path), Profile(prefix + ".heap.pb.gz")
                self.compare_profiles(ours, own)
                if "-gc" not in args:
                    self.assertEqual(rig.pprof_top(go, ours_path),
                                     rig.pprof_top(go, prefix + ".heap.pb.gz"))

    def name_c_frames(self, go):
        """Go's own profile has C addresses without a name; ours names them as nm does."""
        program = rig.build.build("heap", go, "cgotrace")
        with tempfile.TemporaryDirectory() as tmp:
            prefix, ours_path = os.path.join(tmp, "own"), os.path.join(tmp, "ours.pb.gz")
            with rig.Target([program, "-rate", "1", "-o", prefix]) as target:
                rig.sonde("heap", target.pid, "-f", "pprof", "-o", ours_path, check=rig.OK)
                self.assertEqual(target.ask("dump"), "dumped")
            ours, own = Profile(ours_path), Profile(prefix + ".heap.pb.gz")
            addresses = lambda p: sorted((tuple(loc.address for loc in s.stack), s.values)
                                         for s in p.nonzero(OF_THE_DUMP).elements())
            self.assertEqual(addresses(ours), addresses(own))
            self.assertNotIn("c_inner", own.functions())
            stacks = [[f.function for loc in s.stack for f in loc.frames] for s in ours.samples]
            self.assertTrue(any("c_inner" in s and s.index("c_inner") + 1 == s.index("c_outer") and
                                "main.goAllocate" in s for s in stacks))

    def compare_profiles(self, ours, own):
        self.assertEqual(ours.types, own.types)
        self.assertEqual(ours.period_type, own.period_type)
        self.assertEqual(ours.period, own.period)
        self.assertEqual([m[:4] for m in ours.mappings], [m[:4] for m in own.mappings])
        a, b = ours.nonzero(OF_THE_DUMP), own.nonzero(OF_THE_DUMP)
        self.assertGreater(len(b), 1)
        if a != b:
            only_ours, only_own = a - b, b - a
            self.fail(f"{sum(only_ours.values())} samples only in ours, "
                      f"{sum(only_own.values())} only in the program's own, of {sum(b.values())}"
                      f"\nours: {next(iter(only_ours), None)}\nown: {next(iter(only_own), None)}")


def load(every, suite):
    for version, go in rig.versions(every):
        minor = rig.build.version_key(version)[1]
        name = f"test_{version}_names_of_C_frames"
        setattr(Heap, name, lambda self, g=go: self.name_c_frames(g))
        suite.addTest(Heap(name))
        for case, (_, _, _, since) in CASES.items():
            if minor < since:
                continue
            name = f"test_{version}_{case}"
            setattr(Heap, name, lambda self, v=version, g=go, c=case: self.compare(v, g, c))
            suite.addTest(Heap(name))
