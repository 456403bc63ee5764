/* tests/unit/cpu/test_budget.c: what is new is limited, what is known is free. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cpu/budget.h"

#define NOBODY 65534
#define BEGIN_NS (1000 * NS_PER_SEC)

/* Of n new things with these hashes, how many were taken. */
static uint64_t take(struct cpu_budget *b, struct cpu_allowance *process, uint32_t uid,
		     uint64_t first, uint64_t n, uint64_t now_ns)
{
	const struct cpu_owner owner = {.process = process, .uid = uid};
	uint64_t taken = 0;

	for (uint64_t i = 0; i < n; i++)
		taken += cpu_budget_take(b, &owner, CPU_BUDGET_STACKS, first + i, now_ns);
	return taken;
}

static void process_that_makes_up_stacks_is_limited(void **state)
{
	_cleanup_(cpu_budget_freep) struct cpu_budget *b = cpu_budget_new();
	struct cpu_allowance process = {0};
	uint64_t burst;

	(void)state;
	assert_non_null(b);
	burst = take(b, &process, NOBODY, 1, 100000, BEGIN_NS);
	assert_in_range(burst, 10000, 20000);
	/* An hour later it has a little more. */
	assert_in_range(take(b, &process, NOBODY, 1000000, 100000, BEGIN_NS + 3600 * NS_PER_SEC),
			3599, 3601);
	/* But never more than at first. */
	assert_int_equal(
		take(b, &process, NOBODY, 2000000, 100000, BEGIN_NS + 1000000 * NS_PER_SEC), burst);
}

static void known_stacks_are_free(void **state)
{
	_cleanup_(cpu_budget_freep) struct cpu_budget *b = cpu_budget_new();
	struct cpu_allowance process = {0};

	(void)state;
	assert_int_equal(take(b, &process, NOBODY, 1, 1000, BEGIN_NS), 1000);
	assert_in_range(take(b, &process, NOBODY, 100000, 100000, BEGIN_NS), 9000, 20000);
	for (int i = 0; i < 100; i++)
		assert_int_equal(take(b, &process, NOBODY, 1, 1000, BEGIN_NS), 1000);
	/* Names have a budget of their own. */
	assert_true(cpu_budget_take(b, &(struct cpu_owner){.process = &process, .uid = NOBODY},
				    CPU_BUDGET_NAMES, 77, BEGIN_NS));
}

static void many_processes_of_a_user_share_its_budget(void **state)
{
	_cleanup_(cpu_budget_freep) struct cpu_budget *b = cpu_budget_new();
	struct cpu_allowance other = {0};
	uint64_t taken = 0;

	(void)state;
	for (uint64_t i = 0; i < 100; i++) {
		struct cpu_allowance process = {0};

		taken += take(b, &process, NOBODY, i << 32, 10000, BEGIN_NS);
	}
	assert_in_range(taken, 50000, 100000);
	/* Others, and root, are not affected: not even where the stacks are the same. */
	assert_int_equal(take(b, &other, 1000, 0, 10000, BEGIN_NS), 10000);
	other = (struct cpu_allowance){0};
	assert_int_equal(take(b, &other, 0, 0, 10000, BEGIN_NS), 10000);
}

/* Profiles of one interval begin at different times, and then take turns. */
static void a_time_that_goes_back_refills_nothing(void **state)
{
	_cleanup_(cpu_budget_freep) struct cpu_budget *b = cpu_budget_new();
	uint64_t taken = 0;

	(void)state;
	for (uint64_t i = 0; i < 100; i++) {
		struct cpu_allowance process = {0};

		taken += take(b, &process, NOBODY, i << 32, 5000, BEGIN_NS + 5 * NS_PER_SEC);
		taken += take(b, &process, NOBODY, (i << 32) + 5000, 5000, BEGIN_NS);
	}
	assert_in_range(taken, 50000, 100000);
}

static void more_users_than_can_be_told_apart_share_one_budget(void **state)
{
	_cleanup_(cpu_budget_freep) struct cpu_budget *b = cpu_budget_new();
	uint64_t taken = 0;

	(void)state;
	for (uint32_t uid = 1; uid < 300; uid++) {
		struct cpu_allowance process = {0};

		taken += take(b, &process, uid, 0, 10000, BEGIN_NS);
	}
	assert_in_range(taken, 250 * 10000, 270 * 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(process_that_makes_up_stacks_is_limited),
		cmocka_unit_test(known_stacks_are_free),
		cmocka_unit_test(many_processes_of_a_user_share_its_budget),
		cmocka_unit_test(a_time_that_goes_back_refills_nothing),
		cmocka_unit_test(more_users_than_can_be_told_apart_share_one_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
