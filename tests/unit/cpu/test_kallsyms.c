/* tests/unit/cpu/test_kallsyms.c: names of kernel functions, from made up texts and this kernel's.
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
#include <unistd.h>

#include "cpu/symbols/kallsyms.h"
#include "heap.h"

#define SEC 1000000000ULL

struct file {
	char path[64];
	struct cpu_kallsyms *k;
};

static void file_write(const struct file *f, const char *text)
{
	int fd = open(f->path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static struct file file_new(const char *text)
{
	struct file f = {.path = "/tmp/test-kallsyms-XXXXXX"};
	struct err err = {0};
	int fd = mkstemp(f.path);

	assert_true(fd >= 0);
	close(fd);
	file_write(&f, text);
	assert_int_equal(cpu_kallsyms_new(f.path, &f.k, &err), 0);
	return f;
}

static void file_release(struct file *f)
{
	cpu_kallsyms_free(f->k);
	(void)unlink(f->path);
}

static void expect(const struct file *f, uint64_t addr, uint64_t now_ns, const char *name)
{
	char text[256] = "";
	int r = cpu_kallsyms_lookup(f->k, addr, now_ns, text, sizeof(text));

	assert_int_equal(r, name ? 0 : -ENOENT);
	assert_string_equal(text, name ? name : "");
}

static const char small[] = "ffffffff81000000 T _stext\n"
			    "ffffffff81000000 T startup\n"
			    "ffffffff81000100 t do_it\n"
			    "ffffffff81000200 T __do_other\n"
			    "ffffffff81000200 t do_other\n"
			    "ffffffff81000300 D some_data\n"
			    "ffffffffc0202000 t second_open\t[second]\n"
			    "ffffffffc0201000 t first_open\t[first]\n";

static void functions_reach_to_the_next(void **state)
{
	_cleanup_(file_release) struct file f = file_new(small);

	(void)state;
	expect(&f, 0xffffffff81000000, 1, "startup"); /* of equals that without underscores */
	expect(&f, 0xffffffff810000ff, 1, "startup");
	expect(&f, 0xffffffff81000100, 1, "do_it");
	expect(&f, 0xffffffff81000210, 1, "__do_other"); /* global before local */
	expect(&f, 0xffffffff81000310, 1, "__do_other"); /* data are no functions */
	expect(&f, 0xffffffff80ffffff, 1, NULL);
	expect(&f, 0x1000, 1, NULL);
}

static void of_aliases_that_which_people_look_for_is_taken(void **state)
{
	_cleanup_(file_release) struct file f =
		file_new("ffffffff81000000 t __do_sys_getpid\n"
			 "ffffffff81000000 T __ia32_sys_getpid\n"
			 "ffffffff81000000 T __x64_sys_getpid\n"
			 "ffffffff81000100 T __irqentry_text_end\n"
			 "ffffffff81000100 t common_interrupt_return\n"
			 "ffffffff81000200 T __entry_text_end\n");

	(void)state;
	expect(&f, 0xffffffff81000000, 1, "__x64_sys_getpid");
	expect(&f, 0xffffffff81000100, 1, "common_interrupt_return");
	expect(&f, 0xffffffff81000200, 1, "__entry_text_end");
}

static void functions_of_modules_name_them(void **state)
{
	_cleanup_(file_release) struct file f = file_new(small);

	(void)state;
	expect(&f, 0xffffffffc0201fff, 1, "first_open [first]");
	expect(&f, 0xffffffffc0202004, 1, "second_open [second]");
	expect(&f, 0xffffffffc1202004, 1, NULL); /* too far behind the last */
}

static void it_is_read_again_for_an_unknown_address_but_not_at_once(void **state)
{
	_cleanup_(file_release) struct file f = file_new(small);
	uint64_t unknown = 0xffffffffc9000010;

	(void)state;
	expect(&f, 0xffffffff81000100, SEC, "do_it");
	assert_int_equal(cpu_kallsyms_epoch(f.k), 1);
	file_write(&f, "ffffffff81000000 T startup\nffffffffc9000000 t late\t[third]\n");
	expect(&f, unknown, 2 * SEC, NULL);
	expect(&f, unknown, 60 * SEC, NULL);
	assert_int_equal(cpu_kallsyms_epoch(f.k), 1);
	expect(&f, unknown, 61 * SEC, "late [third]");
	assert_int_equal(cpu_kallsyms_epoch(f.k), 2);
	expect(&f, unknown, 10000 * SEC, "late [third]");
	assert_int_equal(cpu_kallsyms_epoch(f.k), 3); /* a module's, and it is old */
	expect(&f, 0xffffffff81000000, 20000 * SEC, "startup");
	assert_int_equal(cpu_kallsyms_epoch(f.k), 3);
}

static void hidden_addresses_are_looked_for_again(void **state)
{
	_cleanup_(file_release) struct file f =
		file_new("0000000000000000 T _stext\n0000000000000000 t do_it\n");

	(void)state;
	expect(&f, 0xffffffff81000000, SEC, NULL);
	expect(&f, 0xffffffff81000000, 100 * SEC, NULL);
	assert_int_equal(cpu_kallsyms_epoch(f.k), 1); /* they will not appear so soon */
	file_write(&f, small);
	expect(&f, 0xffffffff81000100, 700 * SEC, "do_it");
}

static void a_check_tells_names_from_none_and_says_what_helps(void **state)
{
	_cleanup_(file_release) struct file f = file_new(small);
	struct err err = {};

	(void)state;
	assert_int_equal(cpu_kallsyms_check(f.path, &err), 0);
	file_write(&f, "0000000000000000 T _stext\n0000000000000000 t do_it\n");
	assert_int_equal(cpu_kallsyms_check(f.path, &err), -EPERM);
	assert_non_null(strstr(err.text, "kptr_restrict"));
	assert_true(err.remedy[0]);
	file_write(&f, "ffffffff81000000 D jiffies\n");
	assert_int_equal(cpu_kallsyms_check(f.path, &err), -ENOENT);
	assert_int_equal(err.cause, ERR_CAUSE_KERNEL);
	assert_int_equal(cpu_kallsyms_check("/nonexistent/kallsyms", &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/kallsyms"));
}

static void a_missing_file_has_no_names(void **state)
{
	_cleanup_(cpu_kallsyms_freep) struct cpu_kallsyms *k = NULL;
	struct err err = {0};
	char text[16];

	(void)state;
	assert_int_equal(cpu_kallsyms_new("/nonexistent/kallsyms", &k, &err), 0);
	assert_int_equal(cpu_kallsyms_lookup(k, UINT64_MAX, 1, text, sizeof(text)), -ENOENT);
}

static void lines_that_make_no_sense_are_left_out(void **state)
{
	_cleanup_(file_release) struct file f = file_new("\n"
							 "ffffffff81000000\n"
							 "ffffffff81000000 T\n"
							 "ffffffff81000000 T \n"
							 "fffffffff81000000 T too_long\n"
							 "ffffffff8100000g T not_hex\n"
							 "ffffffff81000010 T good\x1b[31m\n"
							 "ffffffff81000020 T\tx\n"
							 "00000000ffff0000 T user_half\n"
							 "ffffffff81000030 T without_an_end");

	(void)state;
	expect(&f, 0xffffffff81000010, 1, "good?[31m");
	expect(&f, 0xffffffff81000040, 1, "good?[31m");
	expect(&f, 0xffff0000, 1, NULL);
}

/* The lines of one address: aliases, of which any may be the answer. */
struct group {
	uint64_t addr;
	size_t n;
	char names[16][600];
};

static void check_group(struct cpu_kallsyms *k, const struct group *g)
{
	char text[600];
	size_t matched = 0;

	assert_int_equal(cpu_kallsyms_lookup(k, g->addr, 1, text, sizeof(text)), 0);
	text[strcspn(text, " ")] = 0;
	for (size_t i = 0; i < g->n; i++)
		matched += strcmp(text, g->names[i]) == 0;
	assert_true(matched > 0);
}

static void this_kernels_functions_have_their_names(void **state)
{
	_cleanup_(cpu_kallsyms_freep) struct cpu_kallsyms *k = NULL;
	_cleanup_fclose_ FILE *f = fopen("/proc/kallsyms", "re");
	struct group g = {0};
	char line[1024], name[600], *rest, type;
	size_t n = 0, before = heap_bytes();
	uint64_t addr;

	(void)state;
	if (!f)
		skip();
	assert_int_equal(cpu_kallsyms_new("/proc/kallsyms", &k, NULL), 0);
	while (fgets(line, sizeof(line), f)) {
		addr = strtoull(line, &rest, 16);
		if (sscanf(rest, " %c %599s", &type, name) != 2 || !strchr("tTwW", type))
			continue;
		/* BPF programs come and go between the two readings. */
		if (strstr(rest, "[bpf]"))
			continue;
		if (addr == 0)
			skip();
		if (addr != g.addr) {
			if (g.n && n++ % 5 == 0)
				check_group(k, &g);
			g.addr = addr;
			g.n = 0;
		}
		if (g.n < ARRAY_SIZE(g.names))
			(void)snprintf(g.names[g.n++], sizeof(name), "%s", name);
	}
	assert_true(n > 1000);
	assert_true(heap_bytes() - before < (size_t)4 << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_reach_to_the_next),
		cmocka_unit_test(of_aliases_that_which_people_look_for_is_taken),
		cmocka_unit_test(functions_of_modules_name_them),
		cmocka_unit_test(it_is_read_again_for_an_unknown_address_but_not_at_once),
		cmocka_unit_test(hidden_addresses_are_looked_for_again),
		cmocka_unit_test(a_check_tells_names_from_none_and_says_what_helps),
		cmocka_unit_test(a_missing_file_has_no_names),
		cmocka_unit_test(lines_that_make_no_sense_are_left_out),
		cmocka_unit_test(this_kernels_functions_have_their_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
