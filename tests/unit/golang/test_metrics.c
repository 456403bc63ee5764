/* tests/unit/golang/test_metrics.c: the runtime's figures, made up in our own memory. */
#include "golang/metrics/metrics.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "golang/metrics/layout.h"

#define N_PS 4

/* A runtime as one release lays it out; what is read is what lies here. */
struct runtime {
	const struct golang_metrics_layout *layout;
	uint8_t memstats[16384];
	uint8_t controller[512];
	uint8_t sched[512];
	uint8_t ps[N_PS][4096];
	uint64_t p_pointers[N_PS];
	struct golang_metrics_slice allp;
	struct golang_metrics_slice allgs;
	struct golang_process process;
	struct golang_metrics_reader *reader;
};

static void put64(uint8_t *at, int off, uint64_t value)
{
	memcpy(at + off, &value, sizeof(value));
}

static void put32(uint8_t *at, int off, uint32_t value)
{
	memcpy(at + off, &value, sizeof(value));
}

static struct golang_metrics_gc *gc_of(struct runtime *r)
{
	return (struct golang_metrics_gc *)(void *)(r->memstats + r->layout->ms_gc);
}

static struct golang_metrics_vars vars_of(const struct runtime *r)
{
	return (struct golang_metrics_vars){
		.memstats = (uint64_t)(uintptr_t)r->memstats,
		.controller = (uint64_t)(uintptr_t)r->controller,
		.sched = (uint64_t)(uintptr_t)r->sched,
		.allp = (uint64_t)(uintptr_t)&r->allp,
		.allgs = (uint64_t)(uintptr_t)&r->allgs,
	};
}

static void runtime_fill(struct runtime *r)
{
	const struct golang_metrics_layout *l = r->layout;

	put32(r->controller, 0, 100);
	put64(r->controller, l->gc_heap_minimum, 4 << 20);
	put64(r->controller, l->gc_heap_goal, 8 << 20);
	put64(r->controller, l->gc_heap_live, 5 << 20);
	put64(r->controller, l->gc_heap_marked, 4 << 20);
	if (l->gc_memory_limit >= 0) {
		put64(r->controller, l->gc_memory_limit, INT64_MAX);
		put64(r->controller, l->gc_triggered, UINT64_MAX);
		put64(r->controller, l->gc_heap_in_use, 6 << 20);
		put64(r->controller, l->gc_heap_in_use + 8, 11);
		put64(r->controller, l->gc_heap_in_use + 16, 1 << 20);
		put64(r->controller, l->gc_heap_in_use + 24, 20 << 20);
		put64(r->controller, l->gc_heap_in_use + 32, 15 << 20);
		put64(r->controller, l->gc_heap_in_use + 40, 9 << 20);
	}
	put32(r->sched, l->sched_ngsys, 5);
	put32(r->sched, l->sched_gfree[0], 7);
	if (l->sched_gfree[1] >= 0)
		put32(r->sched, l->sched_gfree[1], 2);
	for (uint32_t i = 0; i < N_PS; i++) {
		put32(r->ps[i], 0, i);
		put32(r->ps[i], l->p_gfree, 3);
		r->p_pointers[i] = (uint64_t)(uintptr_t)r->ps[i];
	}
	r->allp = (struct golang_metrics_slice){(uint64_t)(uintptr_t)r->p_pointers, N_PS, N_PS};
	r->allgs = (struct golang_metrics_slice){(uint64_t)(uintptr_t)r->p_pointers, 100, 128};
}

static struct runtime *runtime_new(unsigned int minor)
{
	struct runtime *r = calloc(1, sizeof(*r));
	struct golang_metrics_vars vars;
	struct err err;

	assert_non_null(r);
	r->layout = golang_metrics_layout(minor);
	runtime_fill(r);
	assert_int_equal(proc_mem_open(getpid(), &r->process.mem, &err), 0);
	assert_int_equal(golang_layout_for(minor, &r->process.layout, &err), 0);
	vars = vars_of(r);
	assert_int_equal(golang_metrics_reader_new(&r->process, &vars, &r->reader, &err), 0);
	return r;
}

static void runtime_free(struct runtime *r)
{
	golang_metrics_free(r->reader);
	proc_mem_close(r->process.mem);
	free(r);
}

/* As gcMarkTermination does. */
static void collect(struct runtime *r, uint64_t pause_ns)
{
	struct golang_metrics_gc *gc = gc_of(r);

	gc->last_unix_ns = 1700000000000000000 + gc->n_gc * 1000000000ULL;
	gc->pauses_ns[gc->n_gc % 256] = pause_ns;
	gc->pause_ends[gc->n_gc % 256] = gc->last_unix_ns;
	gc->pause_total_ns += pause_ns;
	gc->n_gc++;
}

static struct golang_metrics read_metrics(struct runtime *r)
{
	struct golang_metrics m;
	struct err err;

	assert_int_equal(golang_metrics_read(r->reader, &m, &err), 0);
	return m;
}

static void figures_are_taken_from_every_release(void **state)
{
	(void)state;
	for (unsigned int minor = GOLANG_OLDEST_MINOR; minor <= GOLANG_NEWEST_MINOR; minor++) {
		struct runtime *r = runtime_new(minor);
		struct golang_metrics m;

		collect(r, 10);
		collect(r, 20);
		gc_of(r)->n_forced = 1;
		gc_of(r)->cpu_fraction = 0.25;
		m = read_metrics(r);
		assert_int_equal(m.gc_count, 2);
		assert_int_equal(m.gc_forced_count, 1);
		assert_int_equal(m.gc_pause_total_ns, 30);
		assert_int_equal(m.gc_last_pause_ns, 20);
		assert_int_equal(m.gc_last_end_unix_ns, 1700000001000000000);
		assert_null(m.no_gc);
		assert_null(m.no_heap);
		assert_null(m.no_sched);
		assert_true(m.gc_cpu_fraction == 0.25);
		assert_int_equal(m.heap_live_bytes, 5 << 20);
		assert_int_equal(m.heap_marked_bytes, 4 << 20);
		assert_int_equal(m.heap_goal_bytes, 8 << 20);
		assert_int_equal(m.gc_percent, 100);
		assert_int_equal(m.gomaxprocs, N_PS);
		assert_int_equal(m.goroutines, 100 - 5 - 7 - 3 * N_PS - (minor >= 25 ? 2 : 0));
		assert_int_equal(!!(m.has & GOLANG_HAS_LIMIT), minor >= 19);
		if (minor >= 19) {
			assert_int_equal(m.memory_limit_bytes, INT64_MAX);
			assert_int_equal(m.total_alloc_bytes, 20 << 20);
			assert_int_equal(m.total_free_bytes, 15 << 20);
			assert_int_equal(m.heap_inuse_bytes, 6 << 20);
			assert_int_equal(m.heap_released_bytes, 11);
			assert_int_equal(m.mapped_ready_bytes, 9 << 20);
		}
		runtime_free(r);
	}
}

static void a_reading_takes_two_system_calls(void **state)
{
	struct runtime *r = runtime_new(27);
	uint64_t before;

	(void)state;
	(void)read_metrics(r);
	before = proc_mem_stats(r->process.mem).syscalls;
	(void)read_metrics(r);
	assert_int_equal(proc_mem_stats(r->process.mem).syscalls - before, 2);
	runtime_free(r);
}

static void pauses_come_oldest_first_out_of_the_ring(void **state)
{
	struct runtime *r = runtime_new(26);
	struct golang_metrics m;

	(void)state;
	for (uint32_t i = 0; i < 300; i++)
		collect(r, i);
	m = read_metrics(r);
	assert_int_equal(m.n_pauses, 256);
	assert_int_equal(m.pauses_ns[0], 300 - 256);
	assert_int_equal(m.pauses_ns[255], 299);
	assert_int_equal(m.gc_last_pause_ns, 299);
	runtime_free(r);
}

/* What lies at a wrong address: other counters, pointers, parts of other numbers. */
static void figures_that_contradict_each_other_are_left_out(void **state)
{
	static const struct golang_metrics_gc wrong[] = {
		/* The year 2261, and a number of collections that is a number of bytes. */
		{.n_gc = 266985472, .last_unix_ns = 9185000000000000000, .pause_total_ns = 1},
		{.n_gc = 1, .last_unix_ns = 12, .pause_ends = {12}},
		{.n_gc = 1, .last_unix_ns = 1700000000000000000},
		{.n_gc = 1,
		 .last_unix_ns = 1700000000000000000,
		 .pause_ends = {1700000000000000000},
		 .pause_total_ns = 5},
		{.n_gc = 1,
		 .last_unix_ns = 1700000000000000000,
		 .pause_ends = {1700000000000000000},
		 .n_forced = 2},
		{.pause_total_ns = 1},
		{.last_unix_ns = 1700000000000000000},
	};
	struct runtime *r = runtime_new(20);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct golang_metrics m;

		*gc_of(r) = wrong[i];
		m = read_metrics(r);
		assert_false(m.has & GOLANG_HAS_GC);
		assert_non_null(m.no_gc);
		/* The others do not suffer from it. */
		assert_true(m.has & GOLANG_HAS_HEAP && m.has & GOLANG_HAS_SCHED);
		assert_int_equal(m.gc_count, 0);
		assert_int_equal(m.n_pauses, 0);
	}
	runtime_free(r);
}

static void counts_only_grow_and_pauses_add_up_from_one_reading_to_the_next(void **state)
{
	struct runtime *r = runtime_new(27);
	struct golang_metrics_gc good;

	(void)state;
	for (uint32_t i = 0; i < 400; i++)
		collect(r, 7);
	good = *gc_of(r);
	assert_null(read_metrics(r).no_gc);
	gc_of(r)->n_gc--;
	assert_non_null(read_metrics(r).no_gc);
	*gc_of(r) = good;
	gc_of(r)->pause_total_ns--;
	assert_non_null(read_metrics(r).no_gc);
	*gc_of(r) = good;
	gc_of(r)->last_unix_ns++;
	gc_of(r)->pause_ends[(good.n_gc - 1) % 256]++;
	assert_non_null(read_metrics(r).no_gc);
	*gc_of(r) = good;
	collect(r, 7);
	gc_of(r)->pause_total_ns += 3;
	assert_non_null(read_metrics(r).no_gc);
	/* They make sense again, after more than the ring holds. */
	*gc_of(r) = good;
	for (uint32_t i = 0; i < 300; i++)
		collect(r, 9);
	assert_null(read_metrics(r).no_gc);
	assert_int_equal(read_metrics(r).gc_count, 700);
	runtime_free(r);
}

static void bytes_allocated_only_grow(void **state)
{
	struct runtime *r = runtime_new(22);
	int total = r->layout->gc_heap_in_use + 24;

	(void)state;
	assert_null(read_metrics(r).no_heap);
	put64(r->controller, total, 19 << 20);
	assert_non_null(read_metrics(r).no_heap);
	assert_false(read_metrics(r).has & GOLANG_HAS_HEAP);
	put64(r->controller, total, 21 << 20);
	assert_int_equal(read_metrics(r).total_alloc_bytes, 21 << 20);
	runtime_free(r);
}

static void forged_share_of_the_collector_is_no_share(void **state)
{
	static const double forged[] = {NAN, INFINITY, -0.5, 1e300};
	struct runtime *r = runtime_new(26);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(forged); i++) {
		gc_of(r)->cpu_fraction = forged[i];
		assert_true(read_metrics(r).gc_cpu_fraction == 0);
	}
	runtime_free(r);
}

static void processors_that_come_and_go_are_followed(void **state)
{
	struct runtime *r = runtime_new(24);

	(void)state;
	assert_int_equal(read_metrics(r).gomaxprocs, 4);
	r->allp.len = 2;
	assert_int_equal(read_metrics(r).gomaxprocs, 2);
	assert_int_equal(read_metrics(r).goroutines, 100 - 5 - 7 - 3 * 2);
	r->allp.len = 3;
	assert_int_equal(read_metrics(r).goroutines, 100 - 5 - 7 - 3 * 3);
	runtime_free(r);
}

static void variables_that_were_not_found_are_left_out(void **state)
{
	struct runtime *r = runtime_new(27);
	struct golang_metrics_vars vars = vars_of(r);
	struct golang_metrics m;
	struct err err;

	(void)state;
	golang_metrics_free(r->reader);
	vars.controller = vars.sched = 0;
	assert_int_equal(golang_metrics_reader_new(&r->process, &vars, &r->reader, &err), 0);
	m = read_metrics(r);
	assert_int_equal(m.has, GOLANG_HAS_GC);
	assert_non_null(m.no_heap);
	assert_non_null(m.no_sched);
	runtime_free(r);
}

static void forged_processors_are_refused(void **state)
{
	struct runtime *r = runtime_new(27);
	struct golang_metrics m = {.gc_count = 77};
	struct err err;

	(void)state;
	r->allp.len = r->allp.cap = UINT64_MAX / 4;
	assert_int_equal(golang_metrics_read(r->reader, &m, &err), -EBADMSG);
	r->allp = (struct golang_metrics_slice){0x1000, 4, 4};
	assert_int_equal(golang_metrics_read(r->reader, &m, &err), -EFAULT);
	assert_int_equal(m.gc_count, 77);
	runtime_free(r);
}

static void goroutines_are_never_less_than_the_one_that_runs(void **state)
{
	struct runtime *r = runtime_new(27);

	(void)state;
	r->allgs.len = 3;
	assert_int_equal(read_metrics(r).goroutines, 1);
	runtime_free(r);
}

/* Nothing but a heap of 30 MB, 20 of it marked. */
static struct golang_metrics_pacer pacer(unsigned int minor, uint64_t limit)
{
	return (struct golang_metrics_pacer){
		.minor = minor,
		.percent_goal = 40 << 20,
		.triggered = UINT64_MAX,
		.memory_limit = limit,
		.heap_marked = 20 << 20,
		.heap_alloc = 30 << 20,
		.heap_free = 1 << 20,
		.mapped_ready = 36 << 20, /* 5 MB are no heap */
	};
}

static void goal_is_that_of_the_percentage_without_a_limit(void **state)
{
	struct golang_metrics_pacer p = pacer(27, INT64_MAX);

	(void)state;
	assert_int_equal(golang_metrics_heap_goal(&p), 40 << 20);
	p.sweep_dist_min_trigger = 41 << 20;
	assert_int_equal(golang_metrics_heap_goal(&p), 41 << 20);
	p.triggered = 42 << 20;
	assert_int_equal(golang_metrics_heap_goal(&p), (42 << 20) + (64 << 10));
}

static void goal_stays_below_the_memory_limit(void **state)
{
	struct golang_metrics_pacer p = pacer(20, 42 << 20);

	(void)state;
	/* 42 less 5 that are no heap, less one of headroom; since 1.21 three percent, if more. */
	assert_int_equal(golang_metrics_heap_goal(&p), 36 << 20);
	p.minor = 21;
	assert_int_equal(golang_metrics_heap_goal(&p), (37 << 20) - (37 << 20) / 100 * 3);
	/* Over the limit the excess counts twice, and what is marked is the least. */
	p.memory_limit = 30 << 20;
	assert_int_equal(golang_metrics_heap_goal(&p), 20 << 20);
	p.memory_limit = 1 << 20;
	assert_int_equal(golang_metrics_heap_goal(&p), 20 << 20);
}

static void goal_of_figures_that_disagree_is_no_nonsense(void **state)
{
	struct golang_metrics_pacer p = pacer(27, INT64_MAX);

	(void)state;
	p.heap_alloc = 100 << 20;
	assert_int_equal(golang_metrics_heap_goal(&p), 40 << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_are_taken_from_every_release),
		cmocka_unit_test(a_reading_takes_two_system_calls),
		cmocka_unit_test(pauses_come_oldest_first_out_of_the_ring),
		cmocka_unit_test(figures_that_contradict_each_other_are_left_out),
		cmocka_unit_test(counts_only_grow_and_pauses_add_up_from_one_reading_to_the_next),
		cmocka_unit_test(bytes_allocated_only_grow),
		cmocka_unit_test(forged_share_of_the_collector_is_no_share),
		cmocka_unit_test(processors_that_come_and_go_are_followed),
		cmocka_unit_test(variables_that_were_not_found_are_left_out),
		cmocka_unit_test(forged_processors_are_refused),
		cmocka_unit_test(goroutines_are_never_less_than_the_one_that_runs),
		cmocka_unit_test(goal_is_that_of_the_percentage_without_a_limit),
		cmocka_unit_test(goal_stays_below_the_memory_limit),
		cmocka_unit_test(goal_of_figures_that_disagree_is_no_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
