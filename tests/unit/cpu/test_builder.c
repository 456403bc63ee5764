/* tests/unit/cpu/test_builder.c: stacks of one process become a profile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cpu/builder.h"

static const struct proc_info info = {
	.id = {.pid = 42}, .comm = "victim", .exe = "/bin/victim", .service = "shop"};
static const struct cpu_process process = {.pid = 42, .generation = 1, .comm = "victim"};

struct fixture {
	struct cpu_symbolizer *names;
	struct cpu_builder builder;
	const char *kallsyms; /* to be removed */
};

static int setup_with(void **state, struct cpu_builder_options options)
{
	static struct fixture f;
	const struct cpu_symbolizer_options names = {.kallsyms = "/dev/null"};

	assert_int_equal(cpu_symbolizer_new(&names, &f.names, NULL), 0);
	assert_int_equal(cpu_builder_init(&f.builder, &options, &info, NULL), 0);
	*state = &f;
	return 0;
}

/* With names for the kernel's addresses. */
static int setup_with_kernel(void **state, struct cpu_builder_options options)
{
	static const char text[] = "ffffffff81000000 t bpf_prog_1234_on_switch\t[bpf]\n"
				   "ffffffff81001000 T bpf_trace_run4\n"
				   "ffffffff81002000 t __bpf_trace_sched_switch\n"
				   "ffffffff81003000 T __traceiter_sched_switch\n"
				   "ffffffff81004000 T __schedule\n"
				   "ffffffff81005000 T schedule\n";
	static char path[] = "/tmp/test-builder-XXXXXX";
	static struct fixture f;
	const struct cpu_symbolizer_options names = {.kallsyms = path};
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	(void)close(fd);
	assert_int_equal(cpu_symbolizer_new(&names, &f.names, NULL), 0);
	assert_int_equal(cpu_builder_init(&f.builder, &options, &info, NULL), 0);
	f.kallsyms = path;
	*state = &f;
	return 0;
}

static int setup(void **state)
{
	return setup_with(state, (struct cpu_builder_options){.hz = 100});
}

static int setup_labelled(void **state)
{
	return setup_with(state, (struct cpu_builder_options){.hz = 100,
							      .label_threads = true,
							      .label_process = true,
							      .root_process = true});
}

static int setup_offcpu(void **state)
{
	return setup_with(state, (struct cpu_builder_options){.offcpu = true});
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	cpu_builder_release(&f->builder);
	cpu_symbolizer_free(f->names);
	if (f->kallsyms)
		(void)unlink(f->kallsyms);
	return 0;
}

static int setup_kernel_offcpu(void **state)
{
	return setup_with_kernel(state, (struct cpu_builder_options){.offcpu = true});
}

static void add(struct fixture *f, const char *thread, uint64_t address, enum cpu_stack_end end)
{
	const struct cpu_frame frames[] = {{.address = address}, {.address = 0x2000}};
	struct cpu_stack s = {.process = &process,
			      .end = end,
			      .count = 3,
			      .value_ns = 30 * NS_PER_MS,
			      .n_user = 2,
			      .user = frames};

	memcpy(s.thread, thread, strnlen(thread, sizeof(s.thread)));
	assert_int_equal(cpu_builder_add(&f->builder, f->names, &s), 0);
}

static struct profile *finish(struct fixture *f)
{
	struct profile *p = NULL;

	assert_int_equal(cpu_builder_finish(&f->builder, &info, &p, NULL), 0);
	return p;
}

static const char *name_of(const struct profile *p, uint32_t location)
{
	const struct profile_location *l = profile_location_at(p, location);

	return profile_cstring(p, profile_function_at(p, l->lines[0].function)->name);
}

static const char *outermost(const struct profile *p, size_t sample)
{
	uint32_t n;
	const uint32_t *stack = profile_stack_at(p, profile_sample_at(p, sample)->stack, &n);

	return name_of(p, stack[n - 1]);
}

static void equal_stacks_become_one_sample(void **state)
{
	struct fixture *f = *state;
	struct profile *p;

	add(f, "a", 0x1000, CPU_STACK_ROOT);
	add(f, "b", 0x1000, CPU_STACK_ROOT);
	add(f, "a", 0x1001, CPU_STACK_ROOT);
	p = finish(f);
	assert_int_equal(profile_n_samples(p), 2);
	assert_int_equal(profile_sample_at(p, 0)->values[0], 6);
	assert_int_equal(profile_sample_at(p, 0)->values[1], 60 * NS_PER_MS);
	assert_int_equal(profile_sample_at(p, 1)->values[0], 3);
	assert_int_equal(profile_header(p)->period, 10 * NS_PER_MS);
	assert_int_equal(profile_find_type(p, "cpu"), 1);
	profile_free(p);
}

static void threads_and_the_process_are_labels(void **state)
{
	struct fixture *f = *state;
	const struct profile_sample *s;
	struct profile *p;

	add(f, "worker", 0x1000, CPU_STACK_ROOT);
	add(f, "other", 0x1000, CPU_STACK_ROOT);
	p = finish(f);
	assert_int_equal(profile_n_samples(p), 2);
	s = profile_sample_at(p, 0);
	assert_int_equal(s->n_labels, 3);
	assert_string_equal(profile_cstring(p, s->labels[0].str), "shop");
	assert_int_equal(s->labels[1].num, 42);
	assert_string_equal(profile_cstring(p, s->labels[2].str), "worker");
	assert_string_equal(outermost(p, 0), "shop");
	profile_free(p);
}

static void thread_name_of_sixteen_bytes_needs_no_end(void **state)
{
	struct fixture *f = *state;
	struct profile *p;

	add(f, "0123456789abcdef", 0x1000, CPU_STACK_ROOT);
	p = finish(f);
	assert_string_equal(profile_cstring(p, profile_sample_at(p, 0)->labels[2].str),
			    "0123456789abcdef");
	profile_free(p);
}

static void stack_that_was_cut_says_why(void **state)
{
	struct fixture *f = *state;
	struct profile *p;

	add(f, "a", 0x1000, CPU_STACK_NO_RULE);
	add(f, "a", 0x1000, CPU_STACK_NOT_LOADED);
	add(f, "a", 0x1000, CPU_STACK_ROOT);
	p = finish(f);
	assert_int_equal(profile_n_samples(p), 3);
	assert_string_equal(outermost(p, 0), "[no unwind information]");
	assert_string_equal(outermost(p, 1), "[sampled before its code was known]");
	assert_string_equal(outermost(p, 2), "[anonymous]");
	profile_free(p);
}

static void frames_of_an_interpreter_take_the_place_of_native_ones(void **state)
{
	const enum interp_kind kind = INTERP_NONE + 1;
	const struct cpu_frame frames[] = {
		{.address = 0x1000}, {.address = 0x3000, .is_interp = true}, {.address = 0x2000}};
	const struct interp_frame interp = {.id = INTERP_ENTERED | 7, .check = 1};
	const struct cpu_stack s = {.process = &process,
				    .count = 1,
				    .n_user = 3,
				    .user = frames,
				    .interp_kind = kind,
				    .n_interp = 1,
				    .interp = &interp};
	struct fixture *f = *state;
	const uint32_t *stack;
	struct profile *p;
	uint32_t n;

	assert_int_equal(cpu_builder_add(&f->builder, f->names, &s), 0);
	p = finish(f);
	stack = profile_stack_at(p, profile_sample_at(p, 0)->stack, &n);
	assert_int_equal(n, 3);
	/* The process is not known to have an interpreter: its frames have no names then. */
	assert_string_equal(name_of(p, stack[0]), "[anonymous]");
	assert_string_equal(name_of(p, stack[1]), interp_ops(kind)->unnamed);
	assert_string_equal(name_of(p, stack[2]), "[anonymous]");
	profile_free(p);
}

static void stack_without_any_frame_is_one_of_the_kernel(void **state)
{
	struct fixture *f = *state;
	struct cpu_stack stack = {.process = &process, .count = 1, .end = CPU_STACK_ROOT};
	struct profile *p;

	assert_int_equal(cpu_builder_add(&f->builder, f->names, &stack), 0);
	p = finish(f);
	assert_int_equal(profile_n_samples(p), 1);
	assert_string_equal(outermost(p, 0), "[kernel]");
	profile_free(p);
}

static void the_program_is_the_first_mapping(void **state)
{
	struct fixture *f = *state;
	const struct cpu_file library = {.id = 1, .generation = 7, .fd = -1, .path = "/lib/a.so"};
	const struct cpu_file program = {
		.id = 2, .generation = 8, .fd = -1, .path = "/bin/victim", .build_id = "cafe"};
	const struct cpu_frame frames[] = {{.file = &library, .address = 0x10},
					   {.file = &program, .address = 0x20}};
	const struct cpu_stack s = {
		.process = &process, .count = 1, .value_ns = 1, .n_user = 2, .user = frames};
	struct profile *p;

	assert_int_equal(cpu_builder_add(&f->builder, f->names, &s), 0);
	p = finish(f);
	assert_int_equal(profile_n_mappings(p), 2);
	assert_string_equal(profile_cstring(p, profile_mapping_at(p, 0)->file), "/bin/victim");
	assert_string_equal(profile_cstring(p, profile_mapping_at(p, 0)->build_id), "cafe");
	assert_string_equal(profile_cstring(p, profile_mapping_at(p, 1)->file), "/lib/a.so");
	profile_free(p);
}

static void what_does_not_fit_is_counted(void **state)
{
	struct fixture *f = *state;
	struct profile *p;

	profile_limit(f->builder.profile, profile_memory(f->builder.profile) + 4096);
	for (uint64_t i = 0; i < 5000; i++)
		add(f, "a", 0x1000 + i, CPU_STACK_ROOT);
	assert_in_range(f->builder.lost, 3, 5000 * 3);
	assert_int_equal(f->builder.lost % 3, 0);
	profile_limit(f->builder.profile, PROFILE_MAX_BYTES);
	p = finish(f);
	assert_int_equal(f->builder.lost + 3 * profile_n_samples(p), 5000 * 3);
	profile_free(p);
}

static void user_time_of_a_32_bit_program_is_not_the_kernels(void **state)
{
	struct fixture *f = *state;
	const struct cpu_stack stack = {.process = &process, .count = 1, .end = CPU_STACK_32BIT};
	struct profile *p;

	assert_int_equal(cpu_builder_add(&f->builder, f->names, &stack), 0);
	p = finish(f);
	assert_string_equal(outermost(p, 0), "[unsupported: 32-bit]");
	profile_free(p);
}

/* However many of them a kernel has. */
static void waits_begin_in_the_scheduler(void **state)
{
	const uint64_t kernel[] = {0xffffffff81000010, 0xffffffff81001010, 0xffffffff81002010,
				   0xffffffff81003010, 0xffffffff81004010, 0xffffffff81005010};
	struct fixture *f = *state;
	struct profile *p;

	for (uint16_t skip = 0; skip <= 4; skip++) {
		const struct cpu_stack stack = {.process = &process,
						.offcpu = true,
						.count = 1,
						.n_kernel = 6 - skip,
						.kernel = kernel + skip};

		assert_int_equal(cpu_builder_add(&f->builder, f->names, &stack), 0);
	}
	p = finish(f);
	for (size_t i = 0; i < profile_n_samples(p); i++) {
		uint32_t n;
		const uint32_t *stack = profile_stack_at(p, profile_sample_at(p, i)->stack, &n);

		assert_int_equal(n, 2);
		assert_string_equal(name_of(p, stack[0]), "__schedule");
		assert_string_equal(name_of(p, stack[1]), "schedule");
	}
	profile_free(p);
}

static void stacks_over_budget_become_one(void **state)
{
	_cleanup_(cpu_budget_freep) struct cpu_budget *budget = cpu_budget_new();
	struct cpu_allowance allowance = {0};
	const struct cpu_owner owner = {.process = &allowance, .uid = 65534};
	struct fixture *f = *state;
	uint64_t total = 0;
	struct profile *p;

	assert_non_null(budget);
	f->builder.options.budget = budget;
	f->builder.options.owner = owner;
	f->builder.options.now_ns = NS_PER_SEC;
	/* Everything is spent before: on others that nobody will see again. */
	add(f, "a", 0x1000, CPU_STACK_ROOT);
	for (uint64_t i = 0; i < 100000; i++)
		(void)cpu_budget_take(budget, &owner, CPU_BUDGET_STACKS, i, NS_PER_SEC);
	add(f, "a", 0x1000, CPU_STACK_ROOT);
	add(f, "a", 0x1000, CPU_STACK_NO_RULE);
	add(f, "a", 0x1000, CPU_STACK_UNREADABLE);
	assert_int_equal(f->builder.other, 6);
	p = finish(f);
	assert_int_equal(profile_n_samples(p), 2);
	assert_string_equal(outermost(p, 0), "[anonymous]");
	assert_string_equal(outermost(p, 1), "(other)");
	for (size_t i = 0; i < profile_n_samples(p); i++)
		total += (uint64_t)profile_sample_at(p, i)->values[0];
	assert_int_equal(total, 4 * 3);
	profile_free(p);
}

static void waits_have_their_own_types(void **state)
{
	struct fixture *f = *state;
	struct profile *p;

	add(f, "a", 0x1000, CPU_STACK_ROOT);
	p = finish(f);
	assert_int_equal(profile_find_type(p, "waits"), 0);
	assert_int_equal(profile_find_type(p, "time"), 1);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(equal_stacks_become_one_sample, setup, teardown),
		cmocka_unit_test_setup_teardown(threads_and_the_process_are_labels, setup_labelled,
						teardown),
		cmocka_unit_test_setup_teardown(thread_name_of_sixteen_bytes_needs_no_end,
						setup_labelled, teardown),
		cmocka_unit_test_setup_teardown(stack_that_was_cut_says_why, setup, teardown),
		cmocka_unit_test_setup_teardown(
			frames_of_an_interpreter_take_the_place_of_native_ones, setup, teardown),
		cmocka_unit_test_setup_teardown(stack_without_any_frame_is_one_of_the_kernel, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_program_is_the_first_mapping, setup, teardown),
		cmocka_unit_test_setup_teardown(what_does_not_fit_is_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(waits_have_their_own_types, setup_offcpu, teardown),
		cmocka_unit_test_setup_teardown(user_time_of_a_32_bit_program_is_not_the_kernels,
						setup, teardown),
		cmocka_unit_test_setup_teardown(waits_begin_in_the_scheduler, setup_kernel_offcpu,
						teardown),
		cmocka_unit_test_setup_teardown(stacks_over_budget_become_one, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
