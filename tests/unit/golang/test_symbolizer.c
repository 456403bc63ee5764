/* tests/unit/golang/test_symbolizer.c: stacks of made-up programs become locations. */
#include "golang/symbols/symbolizer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "golang/buckets/bucket.h"
#include "golang/heap/state.h"
#include "mem_fake.h"
#include "test_tables.h"

struct program {
	struct tables tables;
	struct golang_process process;
	struct profile *profile;
	struct golang_symbolizer symbolizer;
	uint32_t locations[GOLANG_BUCKET_MAX_DEPTH + GOLANG_MAX_INLINE + 1];
};

static struct program *program_start(unsigned int minor)
{
	struct program *p = calloc(1, sizeof(*p));
	struct golang_process *process = &p->process;
	struct err err;

	assert_non_null(p);
	tables_build(&p->tables, minor, 1);
	assert_int_equal(proc_mem_open_fake(&process->mem, &err), 0);
	assert_int_equal(
		proc_mem_fake_add(process->mem, TABLES_BASE, p->tables.bytes, TABLES_BYTES), 0);
	process->layout = p->tables.layout;
	golang_mem_cache_init(&process->cache, process->mem, 8192, 16, 16);
	process->modules = calloc(1, sizeof(*process->modules));
	assert_non_null(process->modules);
	assert_int_equal(golang_module_load(process->modules, &process->cache, TABLES_BASE,
					    process->layout, &err),
			 0);
	process->n_modules = 1;
	p->profile = profile_new();
	assert_non_null(p->profile);
	golang_symbolizer_init(&p->symbolizer, process, p->profile);
	return p;
}

static void program_end(struct program *p)
{
	golang_symbolizer_release(&p->symbolizer);
	profile_free(p->profile);
	for (size_t i = 0; i < p->process.n_modules; i++)
		golang_module_release(&p->process.modules[i]);
	free(p->process.modules);
	golang_mem_cache_release(&p->process.cache);
	proc_mem_close(p->process.mem);
	free(p);
}

static int program_stack(struct program *p, const uint64_t *pcs, size_t n, struct err *err)
{
	err->text[0] = 0;
	return golang_symbolizer_stack(&p->symbolizer, pcs, n, p->locations, err);
}

static void assert_line(const struct program *p, int location, uint32_t i, const char *name,
			int64_t line)
{
	const struct profile_location *l = profile_location_at(p->profile, p->locations[location]);

	assert_true(i < l->n_lines);
	assert_string_equal(
		profile_cstring(p->profile,
				profile_function_at(p->profile, l->lines[i].function)->name),
		name);
	assert_int_equal(l->lines[i].line, line);
}

/* As the runtime records it: virtual return addresses for the callers of inlined calls. */
static const uint64_t inlined_stack[] = {TABLES_TEXT + 0x75, TABLES_TEXT + 0x69, TABLES_TEXT + 0x59,
					 TABLES_TEXT + 0x21, TABLES_TEXT + 0x121};

static void inlined_calls_share_a_location(void **state)
{
	static const unsigned int minors[] = {17, 18, 20, 27};
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(minors); i++) {
		struct program *p = program_start(minors[i]);

		/* goexit is left out. */
		assert_int_equal(program_stack(p, inlined_stack, 5, &err), 2);
		assert_line(p, 0, 0, "main.leaf", 30);
		assert_line(p, 0, 1, "main.inner", 20);
		assert_line(p, 0, 2, "main.main", 10);
		assert_line(p, 1, 0, "runtime.main", 5);
		/* The same again is the same. */
		assert_int_equal(program_stack(p, inlined_stack, 5, &err), 2);
		assert_int_equal(profile_n_locations(p->profile), 2);
		assert_int_equal(golang_symbolizer_finish(&p->symbolizer, &err), 0);
		assert_int_equal(p->symbolizer.unknown, 0);
		program_end(p);
	}
}

static void callers_that_the_depth_cut_off_are_put_back(void **state)
{
	struct program *p = program_start(27);
	struct err err;

	(void)state;
	assert_int_equal(program_stack(p, inlined_stack, 1, &err), 1);
	assert_line(p, 0, 0, "main.leaf", 30);
	assert_line(p, 0, 1, "main.inner", 20);
	assert_line(p, 0, 2, "main.main", 10);
	program_end(p);
}

static void callers_in_a_circle_end(void **state)
{
	struct program *p = program_start(27);
	struct err err;
	int n;

	(void)state;
	/* main.leaf claims to be inlined into itself. */
	tables_inlined(&p->tables, 1, "main.leaf", 0x34);
	n = program_stack(p, inlined_stack, 1, &err);
	assert_in_range(n, 1, GOLANG_MAX_INLINE);
	program_end(p);
}

static void leading_runtime_frames_are_hidden(void **state)
{
	static const uint64_t pcs[] = {TABLES_TEXT + 0x10, TABLES_TEXT + 0x20, TABLES_TEXT + 0x90,
				       TABLES_TEXT + 0x10};
	struct program *p = program_start(27);

	(void)state;
	assert_int_equal(golang_symbolizer_hidden(&p->symbolizer, pcs, 4), 2);
	assert_int_equal(golang_symbolizer_hidden(&p->symbolizer, pcs + 2, 2), 0);
	/* None where nothing else is. */
	assert_int_equal(golang_symbolizer_hidden(&p->symbolizer, pcs, 2), 0);
	assert_int_equal(golang_symbolizer_hidden(&p->symbolizer, pcs, 0), 0);
	program_end(p);
}

static void unknown_addresses_are_counted(void **state)
{
	static const uint64_t pcs[] = {0, 1, TABLES_TEXT + 0x140, UINT64_MAX, TABLES_TEXT + 0x90};
	struct program *p = program_start(27);
	struct err err;

	(void)state;
	assert_int_equal(program_stack(p, pcs, 5, &err), 5);
	assert_int_equal(p->symbolizer.unknown, 4);
	assert_int_equal(profile_location_at(p->profile, p->locations[0])->n_lines, 0);
	assert_line(p, 4, 0, "main.main", 11);
	program_end(p);
}

static void stack_deeper_than_any_is_refused(void **state)
{
	static uint64_t pcs[GOLANG_BUCKET_MAX_DEPTH + 1];
	struct program *p = program_start(27);
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pcs); i++)
		pcs[i] = TABLES_TEXT + 0x81 + i % 64;
	assert_int_equal(program_stack(p, pcs, GOLANG_BUCKET_MAX_DEPTH, &err),
			 GOLANG_BUCKET_MAX_DEPTH);
	assert_int_equal(program_stack(p, pcs, ARRAY_SIZE(pcs), &err), -EBADMSG);
	assert_int_equal(program_stack(p, pcs, 0, &err), 0);
	program_end(p);
}

/* As of a program whose buckets are all empty: there is no memory for their frames. */
static void stack_without_frames_has_no_locations(void **state)
{
	struct program *p = program_start(27);
	struct err err = {};

	(void)state;
	assert_int_equal(golang_heap_locations(&p->symbolizer, NULL, 0, p->locations, &err), 0);
	program_end(p);
}

static void spent_work_is_an_error_and_not_a_wrong_name(void **state)
{
	struct program *p = program_start(27);
	struct err err;

	(void)state;
	p->process.cache.work_left = 100;
	assert_int_equal(program_stack(p, inlined_stack, 5, &err), -E2BIG);
	assert_non_null(strstr(err.text, "forged"));
	/* The next profile starts anew. */
	golang_symbolizer_release(&p->symbolizer);
	golang_symbolizer_init(&p->symbolizer, &p->process, p->profile);
	assert_int_equal(program_stack(p, inlined_stack, 5, &err), 2);
	program_end(p);
}

static void modules_in_a_circle_are_bounded(void **state)
{
	static const uint64_t nowhere[] = {0x1234};
	struct program *p = program_start(27);
	struct err err;

	(void)state;
	tables_u64(&p->tables, p->tables.layout->md_next, TABLES_BASE);
	assert_int_equal(program_stack(p, nowhere, 1, &err), 1);
	assert_int_equal(p->process.n_modules, GOLANG_MAX_MODULES);
	program_end(p);
}

static void profile_that_grows_too_large_is_an_error(void **state)
{
	struct program *p = program_start(27);
	struct err err;
	int r = 0;

	(void)state;
	profile_limit(p->profile, 16384);
	for (uint64_t pc = 1; r >= 0 && pc < 100000; pc++)
		r = program_stack(p, &pc, 1, &err);
	assert_int_equal(r, -E2BIG);
	assert_non_null(strstr(err.text, "it is too large"));
	program_end(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inlined_calls_share_a_location),
		cmocka_unit_test(callers_that_the_depth_cut_off_are_put_back),
		cmocka_unit_test(callers_in_a_circle_end),
		cmocka_unit_test(leading_runtime_frames_are_hidden),
		cmocka_unit_test(unknown_addresses_are_counted),
		cmocka_unit_test(stack_deeper_than_any_is_refused),
		cmocka_unit_test(stack_without_frames_has_no_locations),
		cmocka_unit_test(spent_work_is_an_error_and_not_a_wrong_name),
		cmocka_unit_test(modules_in_a_circle_are_bounded),
		cmocka_unit_test(profile_that_grows_too_large_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
