/* tests/unit/golang/test_contention.c: waits of a made-up program. */
#include "golang/contention/contention.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "golang/contention/state.h"
#include "mem_fake.h"
#include "test_fake.h"
#include "test_program.h"

/* Beside the program lie its variables and buckets: at WAITS_BASE. */
#define WAITS_BASE 0x7000000ULL
#define WAITS_BYTES 16384
#define AT_HEAD 0
#define AT_RATE 8
#define AT_TICKS 16 /* {lock, startTicks, startTime, val} */
#define AT_DEPTH 48
#define AT_BUCKETS 64

struct fixture {
	struct program program;
	uint8_t waits[WAITS_BYTES];
	size_t end;
	struct golang_process *process;
	struct golang_contention *c;
};

static void put(struct fixture *f, size_t at, const void *value, size_t len)
{
	assert_true(at + len <= WAITS_BYTES);
	memcpy(f->waits + at, value, len);
}

static void put64(struct fixture *f, size_t at, uint64_t value)
{
	put(f, at, &value, sizeof(value));
}

static void set_delay(struct fixture *f, size_t record, double count, int64_t cycles)
{
	put(f, record, &count, sizeof(count));
	put(f, record + 8, &cycles, sizeof(cycles));
}

/* Adds a bucket; returns where its record lies. */
static size_t add_bucket(struct fixture *f, const uint64_t *stack, size_t depth, double count,
			 int64_t cycles)
{
	struct golang_bucket_header h = {.typ = f->c->buckets.typ, .depth = depth};
	size_t at = f->end;

	memcpy(&h.allnext, f->waits + AT_HEAD, 8);
	h.hash = golang_bucket_hash((const uint8_t *)stack, depth, 0);
	put(f, at, &h, sizeof(h));
	put(f, at + sizeof(h), stack, 8 * depth);
	f->end = at + sizeof(h) + 8 * depth + GOLANG_BUCKET_DELAY_BYTES;
	set_delay(f, f->end - GOLANG_BUCKET_DELAY_BYTES, count, cycles);
	put64(f, AT_HEAD, WAITS_BASE + at);
	return f->end - GOLANG_BUCKET_DELAY_BYTES;
}

/* main.main, called by goexit; each time another line. */
static size_t add_wait(struct fixture *f, double count, int64_t cycles)
{
	const uint64_t stack[] = {program_address_of(6, 0x10 + f->end % 32),
				  program_address_of(7, 0x10)};

	return add_bucket(f, stack, ARRAY_SIZE(stack), count, cycles);
}

static void fixture_open(struct fixture *f, enum golang_contention_kind kind)
{
	struct proc_mem *mem = fake_of_amd64();
	struct err err;

	memset(f, 0, sizeof(*f));
	program_build(&f->program);
	f->end = AT_BUCKETS;
	put64(f, AT_RATE, 1);
	put64(f, AT_TICKS + 24, 2000000000);
	put64(f, AT_DEPTH, 128);
	assert_int_equal(proc_mem_fake_add(mem, PROGRAM_BASE, f->program.bytes, PROGRAM_BYTES), 0);
	assert_int_equal(proc_mem_fake_add(mem, WAITS_BASE, f->waits, WAITS_BYTES), 0);
	assert_int_equal(golang_process_open_take(mem, NULL, &f->process, &err), 0);
	f->c = calloc(1, sizeof(*f->c));
	assert_non_null(f->c);
	f->c->process = f->process;
	f->c->kind = kind;
	f->c->vars = (struct golang_contention_vars){
		.buckets = WAITS_BASE + AT_HEAD,
		.rate = WAITS_BASE + AT_RATE,
		.ticks = WAITS_BASE + AT_TICKS,
		.stack_depth = WAITS_BASE + AT_DEPTH,
	};
	golang_buckets_init_delays(&f->c->buckets, mem,
				   kind == GOLANG_BLOCK ? GOLANG_BUCKET_BLOCK
							: GOLANG_BUCKET_MUTEX);
}

static void fixture_close(struct fixture *f)
{
	golang_contention_free(f->c);
	golang_process_close(f->process);
}

static struct profile *read_profile(struct fixture *f)
{
	struct profile *p = NULL;
	struct err err;

	assert_int_equal(golang_contention_read(f->c, &err), 0);
	assert_int_equal(golang_contention_profile(f->c, &p, &err), 0);
	return p;
}

struct totals {
	int64_t contentions;
	int64_t delay_ns;
	size_t samples;
};

static struct totals totals_of(const struct profile *p)
{
	struct totals t = {.samples = profile_n_samples(p)};

	for (size_t i = 0; i < t.samples; i++) {
		t.contentions += profile_sample_at(p, i)->values[0];
		t.delay_ns += profile_sample_at(p, i)->values[1];
	}
	return t;
}

static struct totals read_totals(struct fixture *f)
{
	_cleanup_(profile_freep) struct profile *p = read_profile(f);

	return totals_of(p);
}

static struct totals read_delta(struct fixture *f)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct err err;

	assert_int_equal(golang_contention_read(f->c, &err), 0);
	assert_int_equal(golang_contention_delta_profile(f->c, &p, &err), 0);
	return totals_of(p);
}

static void profile_is_that_of_runtime_pprof(void **state)
{
	static struct fixture f;
	_cleanup_(profile_freep) struct profile *p = NULL;
	const struct profile_header *h;
	uint32_t n;

	(void)state;
	fixture_open(&f, GOLANG_BLOCK);
	(void)add_wait(&f, 2.7, 1000000);
	(void)add_wait(&f, 5, 3000000);
	p = read_profile(&f);
	h = profile_header_const(p);
	assert_string_equal(profile_cstring(p, profile_type_at(p, 0)->type), "contentions");
	assert_string_equal(profile_cstring(p, profile_type_at(p, 1)->type), "delay");
	assert_string_equal(profile_cstring(p, profile_type_at(p, 1)->unit), "nanoseconds");
	assert_string_equal(profile_cstring(p, h->period_type.type), "contentions");
	assert_int_equal(h->period, 1);
	/* The longest first; two ticks are a nanosecond. */
	assert_int_equal(profile_n_samples(p), 2);
	assert_int_equal(profile_sample_at(p, 0)->values[0], 5);
	assert_int_equal(profile_sample_at(p, 0)->values[1], 1500000);
	assert_int_equal(profile_sample_at(p, 1)->values[0], 2);
	assert_int_equal(profile_sample_at(p, 1)->values[1], 500000);
	(void)profile_stack_at(p, profile_sample_at(p, 0)->stack, &n);
	assert_int_equal(n, 1); /* without goexit */
	assert_string_equal(profile_cstring(p, profile_function_at(p, 0)->name), "main.main");
	assert_string_equal(golang_contention_stats(f.c)->ticks_how, "the program's own");
	fixture_close(&f);
}

static void less_than_one_blocking_event_counts_as_one(void **state)
{
	static struct fixture f;

	(void)state;
	fixture_open(&f, GOLANG_BLOCK);
	(void)add_wait(&f, 0.4, 10);
	assert_int_equal(read_totals(&f).contentions, 1);
	fixture_close(&f);
	fixture_open(&f, GOLANG_MUTEX);
	(void)add_wait(&f, 0.4, 10);
	assert_int_equal(read_totals(&f).contentions, 0);
	fixture_close(&f);
}

static void old_mutex_profiles_are_multiplied_by_the_fraction(void **state)
{
	static struct fixture f;
	struct totals t;
	struct err err;

	(void)state;
	fixture_open(&f, GOLANG_MUTEX);
	(void)add_wait(&f, 3, 2000);
	put64(&f, AT_RATE, 10);
	assert_int_equal(read_totals(&f).contentions, 3);
	/* In 1.19 the clock's rate lies elsewhere, too. */
	assert_int_equal(golang_layout_for(19, &f.process->layout, &err), 0);
	put64(&f, AT_TICKS + 16, 1000000000);
	t = read_totals(&f);
	assert_int_equal(t.contentions, 30);
	assert_int_equal(t.delay_ns, 20000);
	fixture_close(&f);
}

static void marks_of_the_runtime_are_no_frames(void **state)
{
	static struct fixture f;
	_cleanup_(profile_freep) struct profile *p = NULL;
	const uint64_t stack[] = {UINT64_MAX, program_address_of(6, 0x10)};
	uint32_t n;

	(void)state;
	fixture_open(&f, GOLANG_MUTEX);
	(void)add_bucket(&f, stack, ARRAY_SIZE(stack), 1, 10);
	p = read_profile(&f);
	(void)profile_stack_at(p, profile_sample_at(p, 0)->stack, &n);
	assert_int_equal(n, 1);
	assert_int_equal(golang_contention_stats(f.c)->unknown_frames, 0);
	fixture_close(&f);
}

static void stacks_are_cut_where_the_program_cuts_them(void **state)
{
	static struct fixture f;
	_cleanup_(profile_freep) struct profile *p = NULL;
	const uint64_t stack[] = {program_address_of(6, 0x10), program_address_of(6, 0x14),
				  program_address_of(6, 0x18)};
	uint32_t n;

	(void)state;
	fixture_open(&f, GOLANG_BLOCK);
	put64(&f, AT_DEPTH, 2);
	(void)add_bucket(&f, stack, ARRAY_SIZE(stack), 1, 10);
	p = read_profile(&f);
	(void)profile_stack_at(p, profile_sample_at(p, 0)->stack, &n);
	assert_int_equal(n, 2);
	fixture_close(&f);
}

static void deltas_add_up(void **state)
{
	static struct fixture f;
	struct totals t;
	size_t first;

	(void)state;
	fixture_open(&f, GOLANG_BLOCK);
	first = add_wait(&f, 4, 4001);
	t = read_delta(&f);
	assert_int_equal(t.samples, 0);
	set_delay(&f, first, 5, 8004);
	t = read_delta(&f);
	assert_int_equal(t.contentions, 1);
	assert_int_equal(t.delay_ns, 4002 - 2000);
	/* New ones count in full, and what did not move is left out. */
	(void)add_wait(&f, 7, 100);
	t = read_delta(&f);
	assert_int_equal(t.samples, 1);
	assert_int_equal(t.contentions, 7);
	assert_int_equal(t.delay_ns, 50);
	assert_int_equal(read_delta(&f).samples, 0);
	assert_int_equal(read_totals(&f).contentions, 12);
	fixture_close(&f);
}

static void deltas_outlive_a_better_clock(void **state)
{
	static struct fixture f;
	size_t record;

	(void)state;
	fixture_open(&f, GOLANG_BLOCK);
	record = add_wait(&f, 1, 1000000000000);
	assert_int_equal(read_delta(&f).samples, 0);
	put64(&f, AT_TICKS + 24, 2000000100);
	assert_int_equal(read_delta(&f).samples, 0);
	set_delay(&f, record, 2, 1000000000000 + 2000000100);
	assert_in_range(read_delta(&f).delay_ns, 999999999, 1000000001);
	fixture_close(&f);
}

static void circles_are_noticed(void **state)
{
	static struct fixture f;
	struct err err;

	(void)state;
	fixture_open(&f, GOLANG_BLOCK);
	(void)add_wait(&f, 1, 1);
	put64(&f, AT_BUCKETS + 8, WAITS_BASE + AT_BUCKETS);
	assert_int_equal(golang_contention_read(f.c, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "block buckets"));
	fixture_close(&f);
}

static void buckets_of_another_kind_end_the_list(void **state)
{
	static struct fixture f;

	(void)state;
	fixture_open(&f, GOLANG_BLOCK);
	(void)add_wait(&f, 1, 1);
	(void)add_wait(&f, 1, 1);
	put64(&f, AT_BUCKETS + 16, GOLANG_BUCKET_MUTEX);
	assert_int_equal(read_totals(&f).samples, 1);
	assert_true(golang_contention_stats(f.c)->incomplete);
	assert_int_equal(golang_contention_stats(f.c)->bad_buckets, 1);
	fixture_close(&f);
}

static void forged_figures_are_no_values(void **state)
{
	static const double counts[] = {NAN, INFINITY, -INFINITY, 1e300};
	static struct fixture f;
	size_t record;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		fixture_open(&f, GOLANG_MUTEX);
		(void)add_wait(&f, counts[i], INT64_MIN);
		assert_int_equal(read_totals(&f).contentions, 0);
		fixture_close(&f);
	}
	fixture_open(&f, GOLANG_BLOCK);
	record = add_wait(&f, -9e18, INT64_MIN);
	assert_int_equal(read_delta(&f).samples, 0);
	set_delay(&f, record, 8e18, INT64_MAX);
	assert_int_equal(read_delta(&f).contentions, (int64_t)8e18 - 1);
	fixture_close(&f);
	fixture_open(&f, GOLANG_BLOCK);
	put64(&f, AT_DEPTH, UINT32_MAX);
	put64(&f, AT_TICKS + 24, UINT64_MAX);
	(void)add_wait(&f, 1, INT64_MAX);
	assert_int_equal(read_totals(&f).samples, 1);
	fixture_close(&f);
}

static void clocks_that_are_not_known_are_measured(void **state)
{
	static struct fixture f;

	(void)state;
	fixture_open(&f, GOLANG_BLOCK);
	put64(&f, AT_TICKS + 24, 0);
	assert_int_equal(read_totals(&f).samples, 0);
	/* Nothing to measure for. */
	assert_true(golang_contention_stats(f.c)->ticks_per_second == 0);
	(void)add_wait(&f, 1, 1);
	assert_int_equal(read_totals(&f).samples, 1);
	assert_true(golang_contention_stats(f.c)->ticks_per_second > 1e8);
	fixture_close(&f);
}

static void rates_are_reckoned_as_the_runtime_does(void **state)
{
	static struct fixture f;
	struct err err;
	int64_t rate;

	(void)state;
	fixture_open(&f, GOLANG_BLOCK);
	assert_int_equal(golang_contention_block_rate(f.c, 1, &rate, &err), 0);
	assert_int_equal(rate, 1);
	assert_int_equal(golang_contention_block_rate(f.c, 10000, &rate, &err), 0);
	assert_int_equal(rate, 20000);
	assert_int_equal(golang_contention_block_rate(f.c, UINT64_MAX, &rate, &err), -EINVAL);
	fixture_close(&f);
}

static void programs_without_the_variables_are_refused(void **state)
{
	static struct fixture f;
	struct golang_contention *c = NULL;
	struct err err;

	(void)state;
	fixture_open(&f, GOLANG_BLOCK);
	assert_int_equal(golang_contention_new(f.process, GOLANG_MUTEX, &c, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "mutex"));
	assert_null(c);
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(profile_is_that_of_runtime_pprof),
		cmocka_unit_test(less_than_one_blocking_event_counts_as_one),
		cmocka_unit_test(old_mutex_profiles_are_multiplied_by_the_fraction),
		cmocka_unit_test(marks_of_the_runtime_are_no_frames),
		cmocka_unit_test(stacks_are_cut_where_the_program_cuts_them),
		cmocka_unit_test(deltas_add_up),
		cmocka_unit_test(deltas_outlive_a_better_clock),
		cmocka_unit_test(circles_are_noticed),
		cmocka_unit_test(buckets_of_another_kind_end_the_list),
		cmocka_unit_test(forged_figures_are_no_values),
		cmocka_unit_test(clocks_that_are_not_known_are_measured),
		cmocka_unit_test(rates_are_reckoned_as_the_runtime_does),
		cmocka_unit_test(programs_without_the_variables_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
