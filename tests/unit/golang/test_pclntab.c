/* tests/unit/golang/test_pclntab.c: made-up tables in all three formats, whole and damaged. */
#include "golang/binary/pclntab.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "mem_fake.h"
#include "test_tables.h"

/* One release of each format, and those whose module data differ. */
static const unsigned int minors[] = {17, 18, 20, 25, 26, 27};

struct program {
	struct tables tables;
	struct proc_mem *mem;
	struct golang_mem_cache cache;
	struct golang_module module;
};

static void program_map(struct program *p)
{
	struct err err;

	assert_int_equal(proc_mem_open_fake(&p->mem, &err), 0);
	assert_int_equal(proc_mem_fake_add(p->mem, TABLES_BASE, p->tables.bytes, TABLES_BYTES), 0);
	golang_mem_cache_init(&p->cache, p->mem, 8192, 16, 16);
}

static int program_load(struct program *p, struct err *err)
{
	return golang_module_load(&p->module, &p->cache, TABLES_BASE, p->tables.layout, err);
}

static struct program *program_start(unsigned int minor, unsigned int quantum)
{
	struct program *p = calloc(1, sizeof(*p));
	struct err err;

	assert_non_null(p);
	tables_build(&p->tables, minor, quantum);
	program_map(p);
	if (program_load(p, &err) < 0)
		fail_msg("Go 1.%u: %s", minor, err.text);
	return p;
}

static void program_end(struct program *p)
{
	golang_module_release(&p->module);
	golang_mem_cache_release(&p->cache);
	proc_mem_close(p->mem);
	free(p);
}

/* Forgets what is cached, after the tables were changed. */
static struct golang_pclntab *tables_of(struct program *p)
{
	golang_mem_cache_release(&p->cache);
	return &p->module.tables;
}

static void assert_view(struct view v, const char *expected)
{
	assert_int_equal(v.len, strlen(expected));
	assert_memory_equal(v.data, expected, v.len);
}

struct place {
	uint64_t pc; /* from the start of the text, on amd64 */
	const char *function;
	const char *innermost; /* NULL when nothing is inlined there */
	const char *file;
	int64_t line;
};

static const struct place places[] = {
	{0x00, "runtime.main", NULL, "proc.go", 5},
	{0x3f, "runtime.main", NULL, "proc.go", 5},
	{0x40, "main.main", NULL, "main.go", 10},
	{0x5f, "main.main", NULL, "main.go", 10},
	{0x60, "main.main", "main.inner", "inner.go", 20},
	{0x6f, "main.main", "main.inner", "inner.go", 20},
	{0x70, "main.main", "main.leaf", "inner.go", 30},
	{0x77, "main.main", "main.leaf", "inner.go", 30},
	{0x78, "main.main", "main.inner", "inner.go", 21},
	{0x80, "main.main", NULL, "main.go", 11},
	{0xff, "main.main", NULL, "main.go", 11},
	{0x100, "runtime.goexit", NULL, "proc.go", 7},
	{0x13f, "runtime.goexit", NULL, "proc.go", 7},
};

static void assert_place(struct golang_pclntab *t, const struct place *place, unsigned int quantum)
{
	uint64_t pc = TABLES_TEXT + place->pc * quantum;
	struct golang_inlined in;
	struct golang_func f;
	int64_t line, index;

	assert_true(golang_pclntab_func_at(t, pc, &f));
	assert_view(golang_pclntab_name(t, f.name), place->function);
	assert_view(golang_pclntab_file_line(t, &f, pc, &line), place->file);
	assert_int_equal(line, place->line);
	index = golang_pclntab_inline_at(t, &f, pc);
	assert_int_equal(golang_pclntab_inlined(t, &f, index, &in), place->innermost != NULL);
	if (place->innermost)
		assert_view(golang_pclntab_name(t, in.name), place->innermost);
}

static void every_address_has_its_function_file_line_and_inlined_call(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(minors); i++) {
		for (unsigned int quantum = 1; quantum <= 4; quantum += 3) {
			struct program *p = program_start(minors[i], quantum);

			for (size_t k = 0; k < ARRAY_SIZE(places); k++)
				assert_place(&p->module.tables, &places[k], quantum);
			program_end(p);
		}
	}
}

static void inlined_calls_tell_their_callers(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(minors); i++) {
		struct program *p = program_start(minors[i], 1);
		struct golang_pclntab *t = &p->module.tables;
		bool lines = t->format == GOLANG_PCLN_120;
		struct golang_inlined in;
		struct golang_func f;

		assert_true(golang_pclntab_func_at(t, TABLES_TEXT + 0x74, &f));
		assert_int_equal(f.entry, TABLES_TEXT + 0x40);
		assert_int_equal(f.end, TABLES_TEXT + 0x100);
		assert_int_equal(f.start_line, lines ? TABLES_START_LINE : 0);
		assert_int_equal(golang_pclntab_inline_at(t, &f, TABLES_TEXT + 0x74), 1);
		assert_true(golang_pclntab_inlined(t, &f, 1, &in));
		assert_int_equal(in.parent_pc, 0x28);
		assert_int_equal(in.start_line, lines ? TABLES_START_LINE + 11 : 0);
		assert_int_equal(in.func_id, p->tables.layout->id_wrapper + 2);
		/* From the parent's address to the one that it was inlined into. */
		assert_int_equal(golang_pclntab_inline_at(t, &f, f.entry + 0x28), 0);
		assert_true(golang_pclntab_inlined(t, &f, 0, &in));
		assert_int_equal(golang_pclntab_inline_at(t, &f, f.entry + in.parent_pc), -1);
		program_end(p);
	}
}

static void addresses_outside_have_no_function(void **state)
{
	static const uint64_t outside[] = {
		0, 1, TABLES_TEXT - 1, TABLES_TEXT + 0x140, TABLES_TEXT + 0x1000, UINT64_MAX};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(minors); i++) {
		struct program *p = program_start(minors[i], 1);
		struct golang_func f;

		for (size_t k = 0; k < ARRAY_SIZE(outside); k++)
			assert_false(golang_pclntab_func_at(&p->module.tables, outside[k], &f));
		program_end(p);
	}
}

static void functions_are_found_by_name(void **state)
{
	static const char *const names[] = {"runtime.goexit", "main.none", "main.main",
					    "main.leaf",      "main.mai",  ""};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(minors); i++) {
		struct program *p = program_start(minors[i], 1);
		struct golang_func funcs[ARRAY_SIZE(names)];
		struct err err;

		assert_int_equal(golang_pclntab_find_named(&p->module.tables, names, funcs,
							   ARRAY_SIZE(names), &err),
				 0);
		assert_int_equal(funcs[0].entry, TABLES_TEXT + 0x100);
		assert_int_equal(funcs[0].end, TABLES_TEXT + 0x140);
		assert_int_equal(funcs[1].entry, 0);
		assert_int_equal(funcs[2].entry, TABLES_TEXT + 0x40);
		assert_int_equal(funcs[3].entry, 0); /* only ever inlined */
		assert_int_equal(funcs[4].entry, 0);
		program_end(p);
	}
}

static void text_in_two_sections_is_mapped(void **state)
{
	static const uint64_t sections[] = {0,	   0x100, TABLES_TEXT, /* vaddr, end, base */
					    0x100, 0x140, TABLES_TEXT + 0x800000};
	struct program *p = program_start(27, 1);
	struct golang_func f;
	struct err err;

	(void)state;
	golang_module_release(&p->module);
	memcpy(p->tables.bytes + TABLES_DATA, sections, sizeof(sections));
	tables_slice(&p->tables, p->tables.layout->md_textsectmap, TABLES_DATA, 2);
	tables_u64(&p->tables, 168, TABLES_TEXT + 0x800040);
	assert_int_equal(program_load(p, &err), 0);
	assert_int_equal(p->module.tables.n_textsects, 2);
	assert_true(golang_pclntab_func_at(tables_of(p), TABLES_TEXT + 0x800010, &f));
	assert_view(golang_pclntab_name(&p->module.tables, f.name), "runtime.goexit");
	assert_int_equal(f.end, TABLES_TEXT + 0x800040);
	assert_true(golang_pclntab_func_at(&p->module.tables, TABLES_TEXT + 0x10, &f));
	golang_module_release(&p->module);
	/* A forged number of them. */
	tables_slice(&p->tables, p->tables.layout->md_textsectmap, TABLES_DATA, 1ULL << 32);
	assert_int_equal(program_load(p, &err), -EBADMSG);
	program_end(p);
}

static void damaged_header_is_refused(void **state)
{
	static const struct {
		size_t off;
		uint8_t value;
	} damages[] = {{0, 0x00}, {3, 0x7f}, {4, 1}, {6, 2}, {7, 4}, {11, 1}, {33, 1}, {49, 0}};
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(damages); i++) {
		struct program p = {0};

		tables_build(&p.tables, 27, 1);
		p.tables.bytes[TABLES_HEADER + damages[i].off] = damages[i].value;
		program_map(&p);
		assert_int_equal(program_load(&p, &err), -EBADMSG);
		assert_non_null(strstr(err.text, "no Go function table"));
		golang_mem_cache_release(&p.cache);
		proc_mem_close(p.mem);
	}
}

static void damaged_module_data_are_refused(void **state)
{
	struct program p = {0};
	uint64_t next = 4711;
	struct err err;

	(void)state;
	tables_build(&p.tables, 27, 1);
	program_map(&p);
	tables_u64(&p.tables, 0, TABLES_BASE + TABLES_BYTES - 8); /* the header is cut off */
	assert_int_equal(program_load(&p, &err), -EFAULT);
	tables_u64(&p.tables, 0, TABLES_BASE + TABLES_HEADER);
	tables_u64(&p.tables, 168, TABLES_TEXT); /* no text */
	assert_int_equal(program_load(&p, &err), -EBADMSG);
	assert_int_equal(golang_module_load(&p.module, &p.cache, TABLES_BASE + TABLES_BYTES - 8,
					    p.tables.layout, &err),
			 -EFAULT);
	assert_int_equal(p.module.tables.n_functions, 0);
	p.module.addr = TABLES_BASE;
	assert_int_equal(golang_module_next(&p.module, p.mem, p.tables.layout, &next), 0);
	assert_int_equal(next, 0);
	p.module.addr = TABLES_BASE + TABLES_BYTES;
	assert_true(golang_module_next(&p.module, p.mem, p.tables.layout, &next) < 0);
	golang_mem_cache_release(&p.cache);
	proc_mem_close(p.mem);
}

static void damaged_offsets_give_nothing_and_no_crash(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(minors); i++) {
		struct program *p = program_start(minors[i], 1);
		size_t pointer = p->tables.layout->pcln == GOLANG_PCLN_116 ? 8 : 4;
		size_t record = p->tables.record_at[1];
		struct golang_inlined in;
		struct golang_func f;
		int64_t line;

		/* The name, the files, the lines. */
		tables_u32(&p->tables, record + pointer, 0x7fffffff);
		tables_u32(&p->tables, record + pointer + 16, 0x7fffffff);
		assert_true(golang_pclntab_func_at(tables_of(p), TABLES_TEXT + 0x74, &f));
		assert_int_equal(golang_pclntab_name(&p->module.tables, f.name).len, 0);
		assert_view(
			golang_pclntab_file_line(&p->module.tables, &f, TABLES_TEXT + 0x74, &line),
			"?");
		assert_int_equal(line, 0);
		/* The inline tree leads nowhere. */
		f.inline_tree = UINT64_MAX - 8;
		assert_false(golang_pclntab_inlined(&p->module.tables, &f, 1, &in));
		assert_false(golang_pclntab_inlined(&p->module.tables, &f, -1, &in));
		assert_false(golang_pclntab_inlined(&p->module.tables, &f, INT64_MAX, &in));
		/* Too many pcdata tables, and a record outside of the table. */
		tables_u32(&p->tables, record + pointer + 24, 65);
		assert_false(golang_pclntab_func_at(tables_of(p), TABLES_TEXT + 0x74, &f));
		tables_u32(&p->tables, TABLES_FUNCTIONS + 3 * pointer, 0x7fffffff);
		assert_false(golang_pclntab_func_at(tables_of(p), TABLES_TEXT + 0x74, &f));
		program_end(p);
	}
}

static void function_that_ends_before_it_starts_holds_nothing(void **state)
{
	struct program *p = program_start(27, 1);
	struct golang_func f;

	(void)state;
	/* The last ends before it starts. */
	tables_u32(&p->tables, TABLES_FUNCTIONS + 24, 0x10);
	assert_false(golang_pclntab_func_at(tables_of(p), TABLES_TEXT + 0x110, &f));
	assert_true(golang_pclntab_func_at(tables_of(p), TABLES_TEXT + 0x50, &f));
	program_end(p);
}

/* Tables that go on and on: values change, and the address never does. */
static void endless_pc_values_are_bounded(void **state)
{
	const size_t len = (size_t)8 << 20;
	_cleanup_free_ uint8_t *endless = malloc(len);
	struct program *p = program_start(27, 1);
	struct golang_func f;
	struct err err;
	int64_t line;
	static const char *const names[] = {"main.main"};

	(void)state;
	assert_non_null(endless);
	for (size_t i = 0; i < len; i += 2)
		memcpy(endless + i, i == 0 ? "\2\0" : "\1\0", 2);
	assert_int_equal(proc_mem_fake_add(p->mem, 0x1000000, endless, len), 0);
	p->module.tables.pctab = (struct golang_span){.addr = 0x1000000, .len = 1ULL << 40};
	assert_true(golang_pclntab_func_at(&p->module.tables, TABLES_TEXT + 0x74, &f));
	f.pcfile = f.pcln = 2;
	p->cache.work_left = 1 << 20;
	assert_view(golang_pclntab_file_line(&p->module.tables, &f, TABLES_TEXT + 0x74, &line),
		    "?");
	assert_true(golang_mem_cache_spent(&p->cache));
	/* Whoever asks on is told, not given a wrong answer. */
	assert_false(golang_pclntab_func_at(&p->module.tables, TABLES_TEXT + 0x74, &f));
	assert_int_equal(golang_pclntab_find_named(&p->module.tables, names, &f, 1, &err), -E2BIG);
	/* With all the work that is allowed it ends where the memory does. */
	golang_mem_cache_refill(&p->cache);
	f.pcfile = f.pcln = 2;
	(void)golang_pclntab_file_line(&p->module.tables, &f, TABLES_TEXT + 0x74, &line);
	assert_false(golang_mem_cache_spent(&p->cache));
	program_end(p);
}

static void value_that_overflows_wraps(void **state)
{
	struct program *p = program_start(27, 1);
	uint8_t *pctab = p->tables.bytes + TABLES_PCTAB;
	struct golang_func f;
	int64_t line;

	(void)state;
	/* Three times +2^30 from -1. */
	for (int i = 0; i < 3; i++)
		memcpy(pctab + 1 + 6 * i, "\x80\x80\x80\x80\x08\x00", 6);
	memcpy(pctab + 1 + 18, "\x02\x7f", 2);
	assert_true(golang_pclntab_func_at(tables_of(p), TABLES_TEXT + 0x74, &f));
	f.pcfile = f.pcln = 1;
	(void)golang_pclntab_file_line(&p->module.tables, &f, TABLES_TEXT + 0x74, &line);
	assert_int_equal(line, 0);
	program_end(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_address_has_its_function_file_line_and_inlined_call),
		cmocka_unit_test(inlined_calls_tell_their_callers),
		cmocka_unit_test(addresses_outside_have_no_function),
		cmocka_unit_test(functions_are_found_by_name),
		cmocka_unit_test(text_in_two_sections_is_mapped),
		cmocka_unit_test(damaged_header_is_refused),
		cmocka_unit_test(damaged_module_data_are_refused),
		cmocka_unit_test(damaged_offsets_give_nothing_and_no_crash),
		cmocka_unit_test(function_that_ends_before_it_starts_holds_nothing),
		cmocka_unit_test(endless_pc_values_are_bounded),
		cmocka_unit_test(value_that_overflows_wraps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
