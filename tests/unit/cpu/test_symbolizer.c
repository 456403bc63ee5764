/*
 * tests/unit/cpu/test_symbolizer.c: what addresses are called, in programs made here with the
 * compiler and binutils, in the kernel and in JIT code.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/io.h"
#include "cpu/symbols/symbolizer.h"
#include "elf/symbols.h"
#include "heap.h"
#include "run.h"

static const char program[] =
	"static inline __attribute__((always_inline)) int folded(volatile int *x)\n"
	"{\n"
	"	return *x * 3;\n"
	"}\n"
	"static __attribute__((noinline,used)) int hidden(volatile int *x)\n"
	"{\n"
	"	return folded(x) + 1;\n"
	"}\n"
	"extern \"C\" __attribute__((noinline)) int seen(volatile int *x) { return hidden(x) + 1; "
	"}\n"
	"namespace app { template <class T> struct Box {\n"
	"	__attribute__((noinline)) T get(volatile T *x) { return *x + 1; } }; }\n"
	"int main(int c, char **) { volatile int x = c; app::Box<int> b;\n"
	"	return seen(&x) + b.get(&x); }\n";

static char folder[] = "/tmp/test-cpu-names-XXXXXX";

#define run(...) run_in(folder, __VA_ARGS__)

static void in_folder(char *path, size_t cap, const char *name)
{
	(void)snprintf(path, cap, "%s/%s", folder, name);
}

static int setup(void **state)
{
	char path[128];

	(void)state;
	if (!mkdtemp(folder))
		return -1;
	in_folder(path, sizeof(path), "p.cc");
	if (io_write_file(path, view_str(program), NULL) < 0)
		return -1;
	run("c++ -g -O1 -rdynamic -Wl,--build-id=sha1 p.cc -o full"
	    " && objcopy --only-keep-debug full full.debug && strip full -o stripped"
	    " && id=$(readelf -n full | sed -n 's/.*Build ID: //p')"
	    " && mkdir -p debug/.build-id/${id%%${id#??}} none"
	    " && cp full.debug debug/.build-id/${id%%${id#??}}/${id#??}.debug");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	run("rm -rf %s", folder);
	return 0;
}

struct file {
	struct cpu_file file;
	char path[128];
};

static void file_open(struct file *f, uint32_t id, const char *name)
{
	in_folder(f->path, sizeof(f->path), name);
	f->file = (struct cpu_file){.id = id, .generation = 1, .path = f->path};
	f->file.fd = open(f->path, O_RDONLY | O_CLOEXEC);
	assert_true(f->file.fd >= 0);
}

static void file_release(struct file *f)
{
	close(f->file.fd);
}

static struct cpu_symbolizer *names_new(const char *debug_root, bool lines)
{
	char root[128], kallsyms[128];
	struct cpu_symbolizer_options options = {
		.lines = lines, .debug_root = root, .kallsyms = kallsyms};
	struct cpu_symbolizer *names = NULL;

	in_folder(root, sizeof(root), debug_root);
	in_folder(kallsyms, sizeof(kallsyms), "kallsyms");
	assert_int_equal(cpu_symbolizer_new(&options, &names, NULL), 0);
	return names;
}

static uint64_t address_of(const char *name)
{
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	struct elf_symbol wanted = {.name = name};
	struct file f;

	file_open(&f, 0, "full");
	assert_int_equal(elf_image_open_fd(f.file.fd, &image, NULL), 0);
	file_release(&f);
	assert_int_equal(elf_symbols_find(image, &wanted, 1, NULL), 1);
	return wanted.value;
}

/* The outermost function. */
static struct cpu_name name_at(struct cpu_symbolizer *names, const struct file *f, uint64_t vaddr)
{
	const struct cpu_name *found = NULL;
	size_t n = 0;

	assert_int_equal(cpu_symbolizer_file(names, &f->file, vaddr, &found, &n), 0);
	assert_true(n > 0 && n <= CPU_SYMBOLIZER_MAX);
	return found[n - 1];
}

static void symbols_name_functions_and_are_demangled(void **state)
{
	_cleanup_(cpu_symbolizer_freep) struct cpu_symbolizer *names = names_new("none", false);
	_cleanup_(file_release) struct file f;
	struct cpu_name name;

	(void)state;
	file_open(&f, 1, "full");
	name = name_at(names, &f, address_of("seen"));
	assert_string_equal(name.function, "seen");
	assert_string_equal(name.system_name, "seen");
	assert_string_equal(name.file, "");
	name = name_at(names, &f, address_of("_ZL6hiddenPVi") + 1);
	assert_string_equal(name.function, "hidden");
	assert_string_equal(name.system_name, "_ZL6hiddenPVi");
	name = name_at(names, &f, address_of("_ZN3app3BoxIiE3getEPVi"));
	assert_string_equal(name.function, "app::Box<int>::get");
}

static void a_stripped_function_is_named_by_its_start(void **state)
{
	_cleanup_(cpu_symbolizer_freep) struct cpu_symbolizer *names = names_new("none", false);
	_cleanup_(file_release) struct file f;
	uint64_t hidden = address_of("_ZL6hiddenPVi");
	char wanted[64];

	(void)state;
	file_open(&f, 1, "stripped");
	(void)snprintf(wanted, sizeof(wanted), "[stripped+0x%llx]", (unsigned long long)hidden);
	assert_string_equal(name_at(names, &f, hidden).function, wanted);
	assert_string_equal(name_at(names, &f, hidden + 2).function, wanted);
	/* What it exports has a name all the same. */
	assert_string_equal(name_at(names, &f, address_of("seen")).function, "seen");
	assert_string_equal(name_at(names, &f, 1).function, "[stripped]");
}

static void a_separate_debug_file_names_what_was_stripped(void **state)
{
	_cleanup_(cpu_symbolizer_freep) struct cpu_symbolizer *names = names_new("debug", false);
	_cleanup_(file_release) struct file f;

	(void)state;
	file_open(&f, 1, "stripped");
	assert_string_equal(name_at(names, &f, address_of("_ZL6hiddenPVi")).function, "hidden");
	assert_string_equal(name_at(names, &f, address_of("seen")).function, "seen");
}

static void check_inlined(const char *program_name, const char *debug_root)
{
	_cleanup_(cpu_symbolizer_freep) struct cpu_symbolizer *names = names_new(debug_root, true);
	_cleanup_(file_release) struct file f;
	uint64_t hidden = address_of("_ZL6hiddenPVi");
	const struct cpu_name *found = NULL;
	bool was_inlined = false;
	size_t n = 0;

	file_open(&f, 1, program_name);
	for (uint64_t at = hidden; at < hidden + 6; at++) {
		assert_int_equal(cpu_symbolizer_file(names, &f.file, at, &found, &n), 0);
		assert_string_equal(found[n - 1].function, "hidden");
		assert_int_equal(found[n - 1].start_line, 5);
		assert_non_null(strstr(found[n - 1].file, "p.cc"));
		if (n == 2) {
			was_inlined = true;
			assert_string_equal(found[0].function, "folded");
			assert_int_equal(found[0].line, 3);
			assert_int_equal(found[1].line, 7);
		}
	}
	assert_true(was_inlined);
}

static void debug_information_gives_lines_and_inlined_calls(void **state)
{
	(void)state;
	check_inlined("full", "none");
	check_inlined("stripped", "debug");
}

static void a_file_that_cannot_be_read_has_its_own_name_only(void **state)
{
	_cleanup_(cpu_symbolizer_freep) struct cpu_symbolizer *names = names_new("none", true);
	_cleanup_(file_release) struct file f;

	(void)state;
	file_open(&f, 1, "p.cc");
	assert_string_equal(name_at(names, &f, 0x1000).function, "[p.cc]");
	f.file.path = "";
	assert_string_equal(name_at(names, &f, 0x2000).function, "[unknown]");
}

static void an_id_that_is_used_again_is_another_file(void **state)
{
	_cleanup_(cpu_symbolizer_freep) struct cpu_symbolizer *names = names_new("none", false);
	_cleanup_(file_release) struct file f, other;

	(void)state;
	file_open(&f, 1, "full");
	file_open(&other, 1, "p.cc");
	other.file.generation = 2;
	assert_string_equal(name_at(names, &f, address_of("seen")).function, "seen");
	assert_string_equal(name_at(names, &other, address_of("seen")).function, "[p.cc]");
	assert_string_equal(name_at(names, &f, address_of("seen")).function, "seen");
}

static void names_are_safe_to_show(void **state)
{
	_cleanup_(cpu_symbolizer_freep) struct cpu_symbolizer *names = names_new("none", false);
	_cleanup_(file_release) struct file f, versioned;

	(void)state;
	run("objcopy --redefine-sym seen=$(printf 'a\\033[31mb') full odd");
	run("objcopy --redefine-sym seen=seen@@VERS_1 full versioned");
	file_open(&f, 1, "odd");
	assert_string_equal(name_at(names, &f, address_of("seen")).function, "a?[31mb");
	file_open(&versioned, 2, "versioned");
	assert_string_equal(name_at(names, &versioned, address_of("seen")).function, "seen");
}

static void the_vdso_has_names(void **state)
{
	_cleanup_(cpu_symbolizer_freep) struct cpu_symbolizer *names = names_new("none", false);
	const struct file f = {.file = {.id = 1, .fd = -1, .is_vdso = true, .path = "[vdso]"}};
	size_t n = 0;

	(void)state;
	for (uint64_t at = 0; at < 0x4000; at += 16)
		n += strstr(name_at(names, &f, at).function, "time [vdso]") != NULL;
	assert_true(n > 0);
	assert_string_equal(name_at(names, &f, UINT64_MAX).function +
				    strlen(name_at(names, &f, UINT64_MAX).function) - 1,
			    "]");
}

static const char *kernel_at(struct cpu_symbolizer *names, uint64_t addr)
{
	const struct cpu_name *found = NULL;
	size_t n = 0;

	assert_int_equal(cpu_symbolizer_kernel(names, addr, &found, &n), 0);
	assert_int_equal(n, 1);
	return found[0].function;
}

static void kernel_functions_have_names_where_they_are_known(void **state)
{
	_cleanup_(cpu_symbolizer_freep) struct cpu_symbolizer *names = names_new("none", false);
	char path[128];

	(void)state;
	in_folder(path, sizeof(path), "kallsyms");
	(void)unlink(path);
	assert_string_equal(kernel_at(names, 0xffffffff81000010), "[kernel]");
	cpu_symbolizer_free(names);

	assert_int_equal(io_write_file(path,
				       view_str("ffffffff81000000 T start\n"
						"ffffffffc0000000 t probe\t[driver]\n"),
				       NULL),
			 0);
	names = names_new("none", false);
	for (int i = 0; i < 2; i++) {
		assert_string_equal(kernel_at(names, 0xffffffff81000010), "start");
		assert_string_equal(kernel_at(names, 0xffffffffc0000010), "probe [driver]");
	}
	assert_string_equal(kernel_at(names, 0x10), "[kernel]");
}

static const char *jit_at(struct cpu_symbolizer *names, uint64_t generation, uint64_t addr)
{
	const struct cpu_name *found = NULL;
	size_t n = 0;

	assert_int_equal(cpu_symbolizer_jit(names, getpid(), generation, addr, &found, &n), 0);
	assert_int_equal(n, 1);
	return found[0].function;
}

static void jit_functions_come_from_the_perf_map(void **state)
{
	_cleanup_(cpu_symbolizer_freep) struct cpu_symbolizer *names = names_new("none", false);
	char path[64];

	(void)state;
	(void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	(void)unlink(path);
	assert_string_equal(jit_at(names, 7, 0x1000), "[anonymous]");
	assert_int_equal(io_write_file(path, view_str("1000 10 js:main app.js\n"), NULL), 0);
	assert_string_equal(jit_at(names, 8, 0x1004), "js:main app.js");
	assert_string_equal(jit_at(names, 8, 0x1004), "js:main app.js");
	assert_string_equal(jit_at(names, 8, 0x2000), "[jit]");
	/* An exec: nothing of the old program is left. */
	assert_int_equal(unlink(path), 0);
	assert_string_equal(jit_at(names, 9, 0x1004), "[anonymous]");
	cpu_symbolizer_forget_process(names, 8);
	cpu_symbolizer_forget_process(names, 12345);
	assert_string_equal(jit_at(names, 8, 0x1004), "[anonymous]");
}

/* Takes all descriptors but `left`. */
static size_t take_descriptors(int *taken, size_t cap, size_t left)
{
	size_t n = 0;

	while (n < cap && (taken[n] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0)
		n++;
	while (n > 0 && left-- > 0)
		close(taken[--n]);
	return n;
}

static void names_come_back_with_descriptors(void **state)
{
	_cleanup_(cpu_symbolizer_freep) struct cpu_symbolizer *names = names_new("none", false);
	struct rlimit few;
	_cleanup_(file_release) struct file f;
	uint64_t seen = address_of("seen");
	struct rlimit before;
	int taken[64];

	(void)state;
	file_open(&f, 1, "full");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){.rlim_cur = 64, .rlim_max = before.rlim_max};
	assert_int_equal(prlimit(0, RLIMIT_NOFILE, &few, NULL), 0);
	for (size_t left = 0; left < 2; left++) {
		size_t n = take_descriptors(taken, ARRAY_SIZE(taken), left);
		struct cpu_name name = name_at(names, &f, seen);

		while (n > 0)
			close(taken[--n]);
		assert_string_equal(name.function, "[unknown]");
	}
	(void)prlimit(0, RLIMIT_NOFILE, &before, NULL);
	assert_string_equal(name_at(names, &f, seen).function, "seen");
}

static void memory_stays_within_its_limit(void **state)
{
	const struct cpu_symbolizer_options options = {.max_bytes = (size_t)256 << 10,
						       .debug_root = "/nonexistent",
						       .kallsyms = "/nonexistent"};
	_cleanup_(cpu_symbolizer_freep) struct cpu_symbolizer *names = NULL;
	_cleanup_(file_release) struct file f;
	uint64_t seen = address_of("seen");
	size_t most = 0, before;

	(void)state;
	file_open(&f, 1, "full");
	before = heap_bytes();
	assert_int_equal(cpu_symbolizer_new(&options, &names, NULL), 0);
	for (uint64_t i = 0; i < 100000; i++) {
		size_t bytes;

		(void)name_at(names, &f, i << 20 | (i & 0xfff));
		bytes = heap_bytes() - before;
		most = bytes > most ? bytes : most;
		if (i % 1000 == 0)
			assert_string_equal(name_at(names, &f, seen).function, "seen");
	}
	assert_true(most > (size_t)64 << 10);
	assert_true(most < (size_t)384 << 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(symbols_name_functions_and_are_demangled),
		cmocka_unit_test(a_stripped_function_is_named_by_its_start),
		cmocka_unit_test(a_separate_debug_file_names_what_was_stripped),
		cmocka_unit_test(debug_information_gives_lines_and_inlined_calls),
		cmocka_unit_test(a_file_that_cannot_be_read_has_its_own_name_only),
		cmocka_unit_test(an_id_that_is_used_again_is_another_file),
		cmocka_unit_test(names_are_safe_to_show),
		cmocka_unit_test(the_vdso_has_names),
		cmocka_unit_test(kernel_functions_have_names_where_they_are_known),
		cmocka_unit_test(jit_functions_come_from_the_perf_map),
		cmocka_unit_test(names_come_back_with_descriptors),
		cmocka_unit_test(memory_stays_within_its_limit),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
