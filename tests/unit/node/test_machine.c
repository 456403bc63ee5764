/* tests/unit/node/test_machine.c: CPU time and memory of machines, as their kernels wrote them. */
#include "node/machine.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* Of a machine with two CPUs, and Linux 6.1. */
static const char stat_text[] =
	"cpu  101 202 303 404 505 606 707 808 909 1010\n"
	"cpu0 50 101 151 202 252 303 353 404 454 505\n"
	"cpu1 51 101 152 202 253 303 354 404 455 505\n"
	"intr 33217 9 9 0 0\n"
	"ctxt 85734\nbtime 1794976000\nprocesses 9023\nprocs_running 3\nprocs_blocked 0\n"
	"softirq 20415 0 5163 2\n";

static const char meminfo_text[] = "MemTotal:       24684100 kB\n"
				   "MemFree:        19385360 kB\n"
				   "MemAvailable:   23167520 kB\n"
				   "Buffers:           35788 kB\n"
				   "Cached:          3846740 kB\n"
				   "SwapCached:            7 kB\n"
				   "Active:           915484 kB\n"
				   "SReclaimable:     224536 kB\n"
				   "HugePages_Total:       0\n";

static void cpu_time_is_counted_by_mode(void **state)
{
	const uint64_t tick_ns = NS_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
	const uint64_t ticks[NODE_CPU_MODES] = {101, 202, 303, 404, 505, 606 + 707, 808};
	struct node_cpu cpu;

	(void)state;
	assert_int_equal(node_cpu_parse(view_str(stat_text), &cpu), 0);
	assert_int_equal(cpu.cpus, 2);
	for (int i = 0; i < NODE_CPU_MODES; i++)
		assert_int_equal(cpu.ns[i], ticks[i] * tick_ns);
	/* Guests are in user and nice already. */
	assert_int_equal(node_cpu_busy_ns(&cpu), (101 + 202 + 303 + 606 + 707 + 808) * tick_ns);
}

static void memory_is_counted_in_bytes(void **state)
{
	struct node_memory m;

	(void)state;
	assert_int_equal(node_memory_parse(view_str(meminfo_text), &m), 0);
	assert_int_equal(m.total, UINT64_C(24684100) << 10);
	assert_int_equal(m.free, UINT64_C(19385360) << 10);
	assert_int_equal(m.available, UINT64_C(23167520) << 10);
	assert_int_equal(m.buffers, UINT64_C(35788) << 10);
	assert_int_equal(m.cached, (uint64_t)(3846740 + 224536) << 10);
}

static void what_is_incomplete_is_no_reading(void **state)
{
	static const char *const stats[] = {
		"",
		"cpu",
		"cpu\n",
		"cpu  1 2 3 4 5 6 7\ncpu0 1\n",
		"cpu  1 2 3 4 5 6 7 x\ncpu0 1\n",
		"cpu  1 2 3 4 5 6 7 8\n",
		"cpu0 1 2 3 4 5 6 7 8\n",
		"intr 1\ncpu  1 2 3 4 5 6 7 8\ncpu0 1\n",
		"cpu  99999999999999999999 2 3 4 5 6 7 8\ncpu0 1\n",
		"cpu  18446744073709551615 2 3 4 5 6 7 8\ncpu0 1\n",
	};
	struct node_memory m = {.total = 7};
	struct node_cpu cpu = {.cpus = 7};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(stats); i++)
		assert_int_equal(node_cpu_parse(view_str(stats[i]), &cpu), -EBADMSG);
	/* Every line counts; the last of those that are wanted lies before the last but one. */
	for (size_t n = 0; n + 26 < sizeof(meminfo_text); n++)
		assert_int_equal(node_memory_parse(view_of(meminfo_text, n), &m), -EBADMSG);
	assert_int_equal(node_memory_parse(view_str("MemTotal: 99999999999999999999 kB\n"), &m),
			 -EBADMSG);
	assert_int_equal(m.total, 7);
	assert_int_equal(cpu.cpus, 7);
}

static void this_machine_has_both(void **state)
{
	struct node_machine machine = {};

	(void)state;
	node_machine_read(&machine);
	assert_true(machine.has_cpu && machine.has_memory);
	assert_int_equal(machine.cpu.cpus, sysconf(_SC_NPROCESSORS_ONLN));
	assert_int_equal(machine.memory.total,
			 (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
	assert_true(node_cpu_busy_ns(&machine.cpu) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpu_time_is_counted_by_mode),
		cmocka_unit_test(memory_is_counted_in_bytes),
		cmocka_unit_test(what_is_incomplete_is_no_reading),
		cmocka_unit_test(this_machine_has_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
