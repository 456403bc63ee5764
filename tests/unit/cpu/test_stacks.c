/* tests/unit/cpu/test_stacks.c: records of stacks as BPF sends them. */
#include "cpu/sampler/stacks.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define KIND 1 /* any but none */
#define MARK (CPU_SAMPLER_FRAME_INTERP << CPU_SAMPLER_FRAME_FILE_SHIFT)

/* One kernel frame, then words; of a record that is as long as it says. */
static int add(struct cpu_stacks *stacks, const struct cpu_sampler_stack *s)
{
	return cpu_stacks_add(stacks, s, cpu_stacks_bytes(s), 0);
}

static void record_that_contradicts_itself_is_refused(void **state)
{
	static struct cpu_sampler_stack s;
	struct cpu_stacks stacks = {0};

	(void)state;
	s = (struct cpu_sampler_stack){.hash = 1, .n_kernel = 1, .n_user = 2};
	assert_int_equal(cpu_stacks_add(&stacks, &s, cpu_stacks_bytes(&s) - 1, 0), -EBADMSG);
	assert_int_equal(cpu_stacks_add(&stacks, &s, 8, 0), -EBADMSG);
	s.n_user = CPU_SAMPLER_FRAMES_MAX + 1;
	assert_int_equal(add(&stacks, &s), -EBADMSG);
	s.n_user = 2;
	/* Frames of no interpreter, or of one that there is not. */
	s.n_interp = 1;
	assert_int_equal(add(&stacks, &s), -EBADMSG);
	s.interp = INTERP_N;
	assert_int_equal(add(&stacks, &s), -EBADMSG);
	s.interp = KIND;
	s.n_interp = CPU_SAMPLER_FRAMES_MAX + 1;
	assert_int_equal(add(&stacks, &s), -EBADMSG);
	/* More of them in place of native frames than there are. */
	s.n_interp = 1;
	s.frames[1] = MARK | 0x10;
	s.frames[4] = MARK | 0x20;
	assert_int_equal(add(&stacks, &s), -EBADMSG);
	s.n_interp = 2;
	assert_int_equal(add(&stacks, &s), 0);
	assert_non_null(cpu_stacks_find(&stacks, 1));
	assert_null(cpu_stacks_find(&stacks, 2));
	cpu_stacks_clear(&stacks);
}

static void frames_beside_the_stack_come_after_all_native_ones(void **state)
{
	static struct cpu_sampler_stack s;
	struct interp_frame interp[CPU_SAMPLER_FRAMES_MAX];
	uint64_t user[CPU_SAMPLER_FRAMES_MAX];

	(void)state;
	s = (struct cpu_sampler_stack){.n_kernel = 1,
				       .n_user = 2,
				       .n_interp = 2,
				       .interp = KIND,
				       .frames = {9, 0x10, 0x20, 1, 11, 2, 12}};
	assert_int_equal(cpu_stacks_split(&s, user, interp), 0);
	assert_int_equal(user[0], 0x10);
	assert_int_equal(user[1], 0x20);
	assert_int_equal(interp[0].id, 1);
	assert_int_equal(interp[0].check, 11);
	assert_int_equal(interp[1].id, 2);
	assert_int_equal(interp[1].check, 12);
}

static void frames_on_the_stack_are_where_they_were_found(void **state)
{
	static struct cpu_sampler_stack s;
	struct interp_frame interp[CPU_SAMPLER_FRAMES_MAX];
	uint64_t user[CPU_SAMPLER_FRAMES_MAX];

	(void)state;
	s = (struct cpu_sampler_stack){.n_kernel = 1,
				       .n_user = 3,
				       .n_interp = 2,
				       .interp = KIND,
				       .frames = {9, MARK | 0x10, 1, 11, 0x20, MARK | 0x30, 2, 12}};
	assert_int_equal(cpu_stacks_split(&s, user, interp), 2);
	assert_true(cpu_stacks_is_interp(user[0]));
	assert_false(cpu_stacks_is_interp(user[1]));
	assert_int_equal(user[1], 0x20);
	assert_true(cpu_stacks_is_interp(user[2]));
	assert_int_equal(interp[0].check, 11);
	assert_int_equal(interp[1].check, 12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(record_that_contradicts_itself_is_refused),
		cmocka_unit_test(frames_beside_the_stack_come_after_all_native_ones),
		cmocka_unit_test(frames_on_the_stack_are_where_they_were_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
