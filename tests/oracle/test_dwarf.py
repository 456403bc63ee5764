"""Functions, files and lines of native code equal what addr2line and llvm-symbolizer say.

Addresses are drawn from all executable sections. Where the two differ, to equal either is right:

- addr2line (binutils 2.40) does not read inlined calls of clang's DWARF 5 (ranges by index), nor
  64-bit DWARF, and names the unit's first file for rows of file 1 in DWARF 5;
- llvm-symbolizer 14 reads no sections compressed by zstd, prefers names of the symbol table, and
  says nothing where there is a line but no function.

Names may differ in three ways. An entry without a linkage name gets namespaces from us and the
symbol's name from the others: they are compared demangled, without arguments. Clones and cold
parts have suffixes in the symbol table (.cold, .isra.0, .lto_priv.0), and __second_sect_of_ before
the name in strict DWARF 2. Where no entry of a function holds the address (padding) there is no
name, and the others take the nearest symbol.
"""
import glob
import os
import random
import re
import shutil
import subprocess
import tempfile
import unittest

import rig

DUMP = os.path.join(os.path.dirname(rig.ELF_DUMP), "dwarf_dump")
CORPUS = os.path.join(rig.ROOT, "tests", "fuzz", "corpus", "dwarf")
ADDRESSES = 1500

C = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static inline __attribute__((always_inline)) int leaf(int x)
{
	if (x > 7)
		return x * 3;
	return x + rand();
}
static inline int middle(int x)
{
	int s = 0;
	for (int i = 0; i < x; i++) {
		s += leaf(i);
		if (s > 1000)
			abort();
	}
	return s;
}
__attribute__((cold)) void bad(const char *s) { fprintf(stderr, "%s\n", s); exit(1); }
static __attribute__((noinline)) int outer(int n)
{
	int r = middle(n) + leaf(n);
	if (__builtin_expect(r == 78, 0)) {
		puts("rare");
		bad(getenv("HOME"));
	}
	return r;
}
int main(int argc, char **argv)
{
	char b[64];
	strcpy(b, argv[0]);
	return outer(argc) + (int)strlen(b);
}
"""

CXX = r"""
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>
namespace outer { namespace {
template <typename T> struct Box { T v; static T twice(T x) { return x + x; } };
int hidden(int x)
{
	std::vector<int> v;
	for (int i = 0; i < x; i++)
		v.push_back(Box<int>::twice(i));
	std::sort(v.begin(), v.end());
	return v.empty() ? 0 : v.back();
}
}
struct Base { virtual ~Base() {} virtual int f(int) = 0; };
struct Derived : Base {
	int f(int x) override
	{
		auto l = [&](int y) { return hidden(y) + x; };
		return l(x) + l(x + 1);
	}
};
}
static int count(const std::string &s)
{
	std::map<std::string, int> m;
	int r = 0;
	for (char c : s)
		m[std::string(1, c)]++;
	for (auto &p : m)
		r += p.second;
	return r;
}
int main(int argc, char **argv)
{
	std::unique_ptr<outer::Base> d(new outer::Derived);
	struct Local { int g(int x) { return x ? x * outer::hidden(x) : 3; } } l;
	try {
		if (argc > 5)
			throw std::string("x");
	} catch (std::string &s) {
		puts(s.c_str());
	}
	return d->f(argc) + count(argv[0]) + l.g(argc);
}
"""


def addresses(path, n):
    """Up to n of the executable sections, at random but always the same."""
    out = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True).stdout
    found = re.findall(r"^ *\[ *\d+\] +\.\S+ +\S+ +([0-9a-f]+) +[0-9a-f]+ +([0-9a-f]+) +\S+ +\S*X",
                       out, re.M)
    sections = [(int(start, 16), int(size, 16)) for start, size in found]
    total = sum(size for _, size in sections)
    picked = range(total) if total <= n else random.Random(4).sample(range(total), n)
    result = []
    for i in picked:
        for start, size in sections:
            if i < size:
                result.append(start + i)
                break
            i -= size
    return result


def place(text):
    """FILE:LINE in one spelling; nothing where the line is not known."""
    text = re.sub(r" \(discriminator \d+\)", "", text)
    path, _, line = text.rpartition(":")
    return "?:0" if line in ("0", "?") else f"{os.path.normpath(path)}:{line}"


def frames(command, inp):
    """One list of (name, place) for each address."""
    done = subprocess.run(command, input=inp, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    result, lines = [], iter(done.stdout.splitlines())
    for line in lines:
        if re.fullmatch("0x[0-9a-f]+", line):
            result.append([])
        elif line:
            result[-1].append((line, place(next(lines))))
    return result


def plain(names):
    """Demangled, without arguments and the suffixes of clones."""
    out = subprocess.run(["c++filt"], input="\n".join(re.sub(r"\..*|@.*", "", n) for n in names),
                         capture_output=True, text=True).stdout.split("\n")
    return dict(zip(names, (n.split("(")[0] if not n.startswith("(") and "(anonymous" not in n
                            else re.sub(r"\((?!anonymous).*", "", n) for n in out)))


class Dwarf(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        for name, text in ("a.c", C), ("b.cc", CXX):
            with open(os.path.join(cls.dir.name, name), "w") as f:
                f.write(text)
        cls.llvm = shutil.which("llvm-symbolizer-14") or shutil.which("llvm-symbolizer")

    @classmethod
    def tearDownClass(cls):
        cls.dir.cleanup()

    def build(self, compiler, *flags):
        source = "b.cc" if compiler.endswith("++") else "a.c"
        subprocess.run([compiler, "-g", *flags, source, "-o", "out"], cwd=self.dir.name, check=True)
        return os.path.join(self.dir.name, "out")

    def compare(self, path, least=0.999):
        """Places equal those of one of the others at `least` of the addresses, names at all."""
        inp = "".join(f"0x{a:x}\n" for a in addresses(path, ADDRESSES))
        ours = frames([DUMP, path], inp)
        others = [frames(["addr2line", "-aif", "-e", path], inp)]
        if self.llvm:
            others.append(frames([self.llvm, f"--obj={path}", "-f=linkage", "--no-demangle",
                                  "--inlining", "--output-style=GNU", "-a"], inp))
        known = right = 0
        names = set()
        for us, *them in zip(ours, *others, strict=True):
            if all(p == "?:0" for f in (us, *them) for _, p in f):
                continue
            known += 1
            if any([p for _, p in f] == [p for _, p in us] for f in them):
                right += 1
                names.update((n, *(f[i][0] for f in them if len(f) == len(us)))
                             for i, (n, _) in enumerate(us))
        self.assertGreater(known, 100)
        self.assertGreaterEqual(right / known, least, f"{path}: {known - right} of {known} places")
        self.compare_names(names)

    def compare_names(self, pairs):
        short = plain(sorted({n for pair in pairs for n in pair}))
        for ours, *others in pairs:
            if ours == "??" or ours in others or ours.startswith("__second_sect_of_"):
                continue
            same = any(short[ours] == short[n] or short[ours].endswith("::" + short[n])
                       for n in others)
            self.assertTrue(same, f"{ours}, not {others}")

    def test_C_and_Cxx_of_gcc_and_clang_in_all_versions(self):
        for compiler in "gcc", "g++", "clang", "clang++":
            for version in 2, 3, 4, 5:
                with self.subTest(compiler=compiler, version=version):
                    self.compare(self.build(compiler, "-O2", f"-gdwarf-{version}"))

    def test_strict_DWARF_2_which_has_no_lists_of_ranges(self):
        self.compare(self.build("gcc", "-O2", "-gdwarf-2", "-gstrict-dwarf"))

    def test_64_bit_DWARF(self):
        if not self.llvm:
            self.skipTest("needs llvm-symbolizer: addr2line does not read it")
        self.compare(self.build("g++", "-O2", "-gdwarf64"))

    def test_without_optimisation(self):
        self.compare(self.build("g++", "-O0"))

    def test_LTO(self):
        self.compare(self.build("g++", "-O2", "-flto"))

    def test_sections_for_functions_and_code_thrown_away(self):
        self.compare(self.build("g++", "-O2", "-ffunction-sections", "-Wl,--gc-sections"))

    def test_compressed_sections(self):
        for kind in "zlib", "zlib-gnu":
            with self.subTest(kind=kind):
                self.compare(self.build("g++", "-O2", f"-gz={kind}"))

    def test_sections_compressed_by_zstd(self):
        path = self.build("g++", "-O2")
        inp = "".join(f"0x{a:x}\n" for a in addresses(path, ADDRESSES))
        before = frames([DUMP, path], inp)
        subprocess.run(["objcopy", "--compress-debug-sections=zstd", path], check=True)
        self.assertEqual(frames([DUMP, path], inp), before)

    def test_split_DWARF_is_refused(self):
        path = self.build("gcc", "-O2", "-gsplit-dwarf")
        done = subprocess.run([DUMP, path], input="", capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn(".dwo", done.stderr)

    def test_names_from_the_shared_file_of_dwz(self):
        inp = "0x401000\n"
        path, common = (os.path.join(CORPUS, name) for name in ("cc_dwz", "dwz_common"))
        self.assertEqual(frames([DUMP, path, "0x1000000", common], inp),
                         [[("a::(anonymous namespace)::hidden", "/src/s.cc:2")]])
        self.assertEqual([p for _, p in frames([DUMP, path], inp)[0]], ["/src/s.cc:2"])

    def test_debug_packages_of_Debian(self):
        found = [f for f in glob.glob("/usr/lib/debug/.build-id/*/*.debug")
                 if os.path.getsize(f) > 1 << 20]
        self.assertTrue(found, "needs debug packages, such as libc6-dbg")
        for path in sorted(found, key=os.path.getsize)[:2]:
            with self.subTest(path=path):
                self.compare(path, least=0.998)

    def test_little_memory_changes_nothing(self):
        path = self.build("g++", "-O2", "-gz=zlib")
        inp = "".join(f"0x{a:x}\n" for a in addresses(path, ADDRESSES))
        self.assertEqual(frames([DUMP, path, "1"], inp), frames([DUMP, path, "0x4000000"], inp))


def load(_every, suite):
    suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(Dwarf))
