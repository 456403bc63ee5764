/* tests/unit/cli/test_top_model.c: readings of several processes become tables and rates. */
#include "cli/top/model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test_top.h"

static struct top_model *model_new(void)
{
	struct top_model *m = NULL;

	assert_int_equal(top_model_new(&m, NULL), 0);
	return m;
}

static struct top_table table_of(const struct top_model *m, struct top_view view)
{
	struct top_table t;

	assert_int_equal(top_model_table(m, &view, &t, NULL), 0);
	return t;
}

static const struct top_row *row_of(const struct top_table *t, const char *name)
{
	for (size_t i = 0; i < t->len; i++)
		if (strcmp(t->rows[i].name, name) == 0)
			return &t->rows[i];
	return NULL;
}

static struct top_sums sums_of(const struct top_model *m)
{
	struct top_sums sums;

	top_model_sums(m, &sums);
	return sums;
}

static const struct top_view live = {.kind = TOP_LIVE, .unit = TOP_BYTES};
static const struct top_view rate = {.kind = TOP_ALLOC, .unit = TOP_BYTES};

/* A process that allocated so much since its last reading. */
static void add_alloc(struct top_model *m, pid_t pid, uint64_t now_s, int64_t bytes)
{
	const struct top_subject info = fake_process(pid, "api");
	const struct fake_sample s = {{"main.main", "main.f"}, {bytes / 10, bytes, 1, 100}};

	fake_add(m, &info, now_s, &s, 1);
}

static void live_heap_is_there_after_one_reading_and_adds_up(void **state)
{
	static const struct fake_sample api[] = {{{"main.main", "main.leak"}, {0, 0, 2, 600}},
						 {{"main.main"}, {0, 0, 1, 100}}};
	static const struct fake_sample db[] = {{{"main.main", "main.leak"}, {0, 0, 5, 300}}};
	_cleanup_(top_model_freep) struct top_model *m = model_new();
	const struct top_subject a = fake_process(10, "api"), b = fake_process(5, "db");
	struct top_table t;

	(void)state;
	fake_add(m, &a, 1, api, 2);
	fake_add(m, &b, 1, db, 1);
	t = table_of(m, live);
	assert_int_equal(t.total, 1000);
	assert_int_equal(t.len, 2);
	assert_string_equal(t.rows[0].name, "main.leak");
	assert_int_equal(t.rows[0].flat, 900);
	assert_int_equal(t.rows[0].cum, 900);
	assert_int_equal(t.rows[0].processes, 2);
	assert_string_equal(t.rows[0].where, "2 processes");
	assert_string_equal(t.rows[0].service, "");
	assert_int_equal(t.rows[1].flat, 100);
	assert_int_equal(t.rows[1].cum, 1000);
	assert_int_equal(sums_of(m).services, 2);
	top_table_release(&t);
}

static void a_rate_comes_with_the_second_reading(void **state)
{
	_cleanup_(top_model_freep) struct top_model *m = model_new();
	struct top_table t;

	(void)state;
	add_alloc(m, 1, 10, 0);
	assert_int_equal(sums_of(m).measured, 0);
	add_alloc(m, 1, 14, 4000);
	assert_int_equal(sums_of(m).measured, 1);
	t = table_of(m, rate);
	assert_int_equal(row_of(&t, "main.f")->flat, 1000);
	assert_int_equal(row_of(&t, "main.main")->cum, 1000);
	top_table_release(&t);
}

static void what_a_baseline_brings_is_no_rate(void **state)
{
	_cleanup_(top_model_freep) struct top_model *m = model_new();

	(void)state;
	add_alloc(m, 1, 10, 5000);
	assert_true(sums_of(m).values[TOP_ALLOC][TOP_BYTES] == 0);
	add_alloc(m, 1, 12, 0);
	assert_true(sums_of(m).values[TOP_ALLOC][TOP_BYTES] == 0);
}

static double rate_of(const struct top_model *m)
{
	return sums_of(m).values[TOP_ALLOC][TOP_BYTES];
}

/* One sample in five seconds stands for 1000 bytes in each of them. */
static void few_samples_are_a_steady_rate_that_fades(void **state)
{
	_cleanup_(top_model_freep) struct top_model *m = model_new();
	double least = 1e9, most = 0;

	(void)state;
	for (uint64_t now = 0; now < 100; now++) {
		add_alloc(m, 1, now, now % 5 ? 0 : 5000);
		if (now < 50)
			continue;
		least = rate_of(m) < least ? rate_of(m) : least;
		most = rate_of(m) > most ? rate_of(m) : most;
	}
	assert_true(least > 500 && most < 2000);
	for (uint64_t now = 100; now < 200; now++)
		add_alloc(m, 1, now, 0);
	assert_true(rate_of(m) == 0);
}

static void what_the_runtime_counts_is_shared_out_by_samples(void **state)
{
	static const struct fake_sample s[] = {{{"main.main", "main.f"}, {10, 300, 1, 1}},
					       {{"main.main", "main.g"}, {5, 100, 1, 1}}};
	_cleanup_(top_model_freep) struct top_model *m = model_new();
	const struct top_subject info = fake_process(1, "api");
	struct top_view view = rate;
	struct top_table t;

	(void)state;
	fake_add(m, &info, 0, s, 2);
	top_model_add_counted(m, &info.id, NAN, 1);
	fake_add(m, &info, 1, s, 2);
	top_model_add_counted(m, &info.id, 2000, 1 + 2000000000UL);
	assert_true(rate_of(m) == 1000);
	assert_true(fabs(sums_of(m).values[TOP_ALLOC][TOP_OBJECTS] - 37.5) < 1e-9);
	t = table_of(m, view);
	assert_int_equal(row_of(&t, "main.f")->flat, 750);
	assert_int_equal(row_of(&t, "main.g")->flat, 250);
	assert_int_equal(t.total, 1000);
	top_table_release(&t);
	/* Without a sample there is still the count, and after it nothing. */
	for (uint64_t now = 2; now < 100; now++)
		fake_add(m, &info, now, s, 0);
	view.group = TOP_PROCESSES;
	t = table_of(m, view);
	assert_int_equal(t.rows[0].flat, 1000);
	top_table_release(&t);
	top_model_add_counted(m, &info.id, 0, 1 + 3000000000UL);
	assert_true(rate_of(m) == 0);
}

static void counts_of_others_and_of_before_are_no_rate(void **state)
{
	_cleanup_(top_model_freep) struct top_model *m = model_new();
	const struct top_subject info = fake_process(1, "api");
	const struct proc_id other = {.pid = 1, .start_ticks = 8};

	(void)state;
	top_model_add_counted(m, &info.id, 500, 1);
	add_alloc(m, 1, 0, 0);
	top_model_add_counted(m, &other, 500, 1);
	top_model_add_counted(m, &info.id, 500, 1);
	assert_true(rate_of(m) == 0);
	top_model_add_counted(m, &info.id, 500, 1 + 1000000000UL);
	assert_true(rate_of(m) == 500);
	/* The time in between is not known. */
	top_model_rebase(m);
	top_model_add_counted(m, &info.id, 70000, 1 + 9000000000UL);
	assert_true(rate_of(m) == 500);
}

static void deltas_add_up_and_are_taken_once(void **state)
{
	_cleanup_(top_model_freep) struct top_model *m = model_new();
	struct top_process_delta *deltas;
	size_t len;

	(void)state;
	add_alloc(m, 3, 0, 0);
	add_alloc(m, 3, 2, 100);
	add_alloc(m, 3, 4, 50);
	assert_int_equal(top_model_take_deltas(m, &deltas, &len), 0);
	assert_int_equal(len, 1);
	assert_int_equal(deltas[0].id.pid, 3);
	assert_string_equal(deltas[0].service, "api");
	assert_int_equal(deltas[0].values[TOP_BYTES], 150);
	assert_int_equal(deltas[0].values[TOP_OBJECTS], 15);
	assert_int_equal(deltas[0].span_ns, 4000000000);
	free(deltas);
	assert_int_equal(top_model_take_deltas(m, &deltas, &len), 0);
	assert_int_equal(deltas[0].values[TOP_BYTES], 0);
	assert_int_equal(deltas[0].span_ns, 0);
	free(deltas);
}

static void recursion_counts_once(void **state)
{
	static const struct fake_sample s[] = {
		{{"main.main", "main.walk", "main.walk", "main.walk"}, {0, 0, 1, 80}}};
	_cleanup_(top_model_freep) struct top_model *m = model_new();
	const struct top_subject info = fake_process(1, "api");
	struct top_view view = live;
	struct top_table t;

	(void)state;
	fake_add(m, &info, 1, s, 1);
	t = table_of(m, live);
	assert_int_equal(row_of(&t, "main.walk")->cum, 80);
	top_table_release(&t);
	view.callers_of = "main.walk";
	t = table_of(m, view);
	assert_int_equal(t.len, 1);
	assert_string_equal(t.rows[0].name, "main.main");
	assert_int_equal(t.rows[0].cum, 80);
	assert_int_equal(t.rows[0].flat, 80);
	top_table_release(&t);
}

static void callers_come_to_what_the_function_does(void **state)
{
	static const struct fake_sample s[] = {{{"main.a", "lib.f"}, {0, 0, 1, 10}},
					       {{"main.b", "lib.f", "lib.g"}, {0, 0, 1, 30}},
					       {{"lib.f"}, {0, 0, 1, 5}},
					       {{"main.a"}, {0, 0, 1, 1000}}};
	_cleanup_(top_model_freep) struct top_model *m = model_new();
	const struct top_subject info = fake_process(1, "api");
	struct top_view view = live;
	struct top_table t;

	(void)state;
	fake_add(m, &info, 1, s, 4);
	view.callers_of = "lib.f";
	t = table_of(m, view);
	assert_int_equal(t.len, 3);
	assert_string_equal(t.rows[0].name, "main.b");
	assert_int_equal(t.rows[0].cum, 30);
	assert_int_equal(t.rows[0].flat, 0);
	assert_int_equal(row_of(&t, "main.a")->flat, 10);
	assert_int_equal(row_of(&t, "(nobody)")->cum, 5);
	top_table_release(&t);
	view.callers_of = "no.such";
	t = table_of(m, view);
	assert_int_equal(t.len, 0);
	top_table_release(&t);
}

static void groups_filters_and_limits(void **state)
{
	static const struct fake_sample s[] = {{{"main.a"}, {0, 0, 1, 10}},
					       {{"lib.Encode"}, {0, 0, 1, 30}}};
	_cleanup_(top_model_freep) struct top_model *m = model_new();
	const struct top_subject infos[] = {fake_process(1, "api"), fake_process(2, "api"),
					    fake_process(3, "db")};
	struct top_view view = live;
	struct top_table t;

	(void)state;
	for (size_t i = 0; i < 3; i++)
		fake_add(m, &infos[i], 1, s, 2);
	view.filter = "ENC";
	t = table_of(m, view);
	assert_int_equal(t.len, 1);
	assert_int_equal(t.hidden, 1);
	assert_int_equal(t.total, 120);
	assert_int_equal(t.shown, 90);
	top_table_release(&t);
	view = (struct top_view){.kind = TOP_LIVE, .unit = TOP_BYTES, .group = TOP_SERVICES};
	t = table_of(m, view);
	assert_int_equal(t.len, 2);
	assert_string_equal(t.rows[0].name, "api");
	assert_int_equal(t.rows[0].flat, 80);
	assert_string_equal(t.rows[0].where, "2 processes");
	top_table_release(&t);
	view.group = TOP_PROCESSES;
	view.service = "db";
	t = table_of(m, view);
	assert_int_equal(t.len, 1);
	assert_string_equal(t.rows[0].name, "3 db");
	assert_int_equal(t.rows[0].pid, 3);
	assert_int_equal(t.total, 40);
	top_table_release(&t);
	view = live;
	view.pid = 2;
	t = table_of(m, view);
	assert_int_equal(t.total, 40);
	assert_string_equal(t.rows[0].where, "api");
	top_table_release(&t);
}

static void processes_that_end_are_forgotten(void **state)
{
	static const struct proc_id alive[] = {{.pid = 2, .start_ticks = 7},
					       {.pid = 3, .start_ticks = 8}};
	_cleanup_(top_model_freep) struct top_model *m = model_new();

	(void)state;
	add_alloc(m, 3, 0, 0);
	add_alloc(m, 1, 0, 0);
	add_alloc(m, 2, 0, 0);
	/* The third is another process of the same number. */
	top_model_retain(m, alive, 2);
	assert_int_equal(sums_of(m).processes, 1);
	assert_true(sums_of(m).values[TOP_LIVE][TOP_BYTES] == 100);
}

static void a_reused_pid_begins_anew(void **state)
{
	static const struct fake_sample s = {{"main.f"}, {1, 5000, 1, 1}};
	_cleanup_(top_model_freep) struct top_model *m = model_new();
	struct top_subject info = fake_process(1, "other");

	(void)state;
	add_alloc(m, 1, 0, 0);
	info.id.start_ticks = 99;
	fake_add(m, &info, 2, &s, 1);
	assert_int_equal(sums_of(m).processes, 1);
	assert_int_equal(sums_of(m).measured, 0);
	assert_true(sums_of(m).values[TOP_ALLOC][TOP_BYTES] == 0);
}

static void frozen_shows_what_was_and_goes_on_right(void **state)
{
	_cleanup_(top_model_freep) struct top_model *m = model_new();

	(void)state;
	add_alloc(m, 1, 0, 0);
	add_alloc(m, 1, 2, 200);
	top_model_freeze(m, true);
	top_model_retain(m, NULL, 0);
	add_alloc(m, 1, 4, 800);
	assert_true(sums_of(m).values[TOP_ALLOC][TOP_BYTES] == 100);
	top_model_freeze(m, false);
	add_alloc(m, 1, 6, 600);
	assert_true(sums_of(m).values[TOP_ALLOC][TOP_BYTES] == 300);
}

static void after_a_rebase_rates_stay_until_they_are_measured_anew(void **state)
{
	_cleanup_(top_model_freep) struct top_model *m = model_new();

	(void)state;
	add_alloc(m, 1, 0, 0);
	add_alloc(m, 1, 2, 200);
	top_model_rebase(m);
	add_alloc(m, 1, 3, 0);
	assert_true(sums_of(m).values[TOP_ALLOC][TOP_BYTES] == 100);
	add_alloc(m, 1, 8, 5000);
	assert_true(sums_of(m).values[TOP_ALLOC][TOP_BYTES] == 1000);
}

static void names_are_cleaned(void **state)
{
	static const struct fake_sample s[] = {{{"main.\033[2Jf"}, {0, 0, 1, 10}}};
	_cleanup_(top_model_freep) struct top_model *m = model_new();
	const struct top_subject info = fake_process(1, "a\nb");
	struct top_table t;

	(void)state;
	fake_add(m, &info, 1, s, 1);
	t = table_of(m, live);
	assert_string_equal(t.rows[0].name, "main.?[2Jf");
	assert_string_equal(t.rows[0].where, "a?b");
	top_table_release(&t);
}

/* More names than there is memory for, as a hostile program may have. */
static const struct top_view cpu = {.kind = TOP_CPU, .unit = TOP_BYTES};
static const struct fake_sample burn[] = {{{"main", "burn"}, {100, 1000000000}},
					  {{"main"}, {50, 500000000}}};

static void cpu_time_is_by_second_and_over_all_processes(void **state)
{
	_cleanup_(top_model_freep) struct top_model *m = model_new();
	const struct top_subject a = fake_process(10, "api"), b = fake_process(5, "db");
	struct top_table t;

	(void)state;
	fake_add_cpu(m, &a, 1, burn, 2);
	fake_add_cpu(m, &b, 1, burn, 1);
	t = table_of(m, cpu);
	assert_int_equal(t.total, 1250000000);
	assert_int_equal(row_of(&t, "burn")->flat, 1000000000);
	assert_int_equal(row_of(&t, "burn")->processes, 2);
	assert_int_equal(row_of(&t, "main")->flat, 250000000);
	assert_int_equal(row_of(&t, "main")->cum, 1250000000);
	assert_int_equal(sums_of(m).running, 2);
	top_table_release(&t);
}

static void who_is_not_in_the_last_collection_does_not_run(void **state)
{
	_cleanup_(top_model_freep) struct top_model *m = model_new();
	const struct top_subject a = fake_process(10, "api"), b = fake_process(5, "db");
	struct top_view processes = cpu;
	struct top_table t;

	(void)state;
	processes.group = TOP_PROCESSES;
	fake_add_cpu(m, &a, 1, burn, 2);
	fake_add_cpu(m, &b, 1, burn, 1);
	fake_add_cpu(m, &b, 2, burn, 1);
	t = table_of(m, processes);
	assert_int_equal(t.len, 1);
	assert_string_equal(t.rows[0].name, "5 db");
	assert_int_equal(t.total, 500000000);
	top_table_release(&t);
	/* One without any of them. */
	top_model_begin_cpu(m, 3);
	t = table_of(m, cpu);
	assert_int_equal(t.len, 0);
	assert_int_equal(sums_of(m).running, 0);
	top_table_release(&t);
}

static void who_only_runs_has_no_heap(void **state)
{
	_cleanup_(top_model_freep) struct top_model *m = model_new();
	const struct top_subject native = fake_process(5, "db");
	struct top_process_delta *deltas;
	struct top_table t;
	size_t n;

	(void)state;
	add_alloc(m, 1, 10, 0);
	fake_add_cpu(m, &native, 1, burn, 2);
	for (enum top_group group = 0; group < TOP_GROUPS; group++) {
		t = table_of(m, (struct top_view){.kind = TOP_LIVE, .group = group});
		assert_null(row_of(&t, "5 db"));
		assert_null(row_of(&t, "db"));
		assert_null(row_of(&t, "burn"));
		top_table_release(&t);
	}
	assert_int_equal(sums_of(m).processes, 1);
	assert_int_equal(sums_of(m).services, 1);
	assert_int_equal(top_model_take_deltas(m, &deltas, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(deltas[0].id.pid, 1);
	free(deltas);
}

static void who_ended_has_burnt_its_share_until_the_next_collection(void **state)
{
	_cleanup_(top_model_freep) struct top_model *m = model_new();
	const struct top_subject a = fake_process(1, "api"), b = fake_process(5, "db");

	(void)state;
	add_alloc(m, 1, 10, 0);
	fake_add_cpu(m, &a, 1, burn, 2);
	top_model_retain(m, NULL, 0);
	assert_int_equal(sums_of(m).running, 1);
	assert_int_equal(sums_of(m).processes, 0);
	assert_true(sums_of(m).values[TOP_LIVE][TOP_BYTES] == 0);
	assert_true(sums_of(m).values[TOP_CPU][TOP_BYTES] == 750000000);
	fake_add_cpu(m, &b, 2, burn, 1);
	top_model_retain(m, &b.id, 1);
	assert_int_equal(sums_of(m).running, 1);
	assert_true(sums_of(m).values[TOP_CPU][TOP_BYTES] == 500000000);
}

static void frozen_cpu_time_stays(void **state)
{
	_cleanup_(top_model_freep) struct top_model *m = model_new();
	const struct top_subject a = fake_process(1, "api");

	(void)state;
	fake_add_cpu(m, &a, 1, burn, 2);
	top_model_freeze(m, true);
	fake_add_cpu(m, &a, 2, burn, 1);
	top_model_begin_cpu(m, 3);
	assert_true(sums_of(m).values[TOP_CPU][TOP_BYTES] == 750000000);
	top_model_freeze(m, false);
	fake_add_cpu(m, &a, 4, burn, 1);
	assert_true(sums_of(m).values[TOP_CPU][TOP_BYTES] == 500000000);
}

static void past_the_limit_everything_is_forgotten_and_comes_back(void **state)
{
	static struct fake_sample samples[1000];
	static char names[1000][1000];
	_cleanup_(top_model_freep) struct top_model *m = model_new();
	struct top_subject info = fake_process(2, "many");
	int r = 0;

	(void)state;
	add_alloc(m, 1, 1, 0);
	for (int i = 0; i < 100 && r == 0; i++) {
		struct profile *p;

		for (size_t k = 0; k < 1000; k++) {
			memset(names[k], 'x', sizeof(names[k]) - 1);
			(void)snprintf(names[k], 24, "main.f%d.%zu", i, k);
			names[k][strlen(names[k])] = '.';
			samples[k] = (struct fake_sample){{names[k]}, {0, 0, 1, 1}};
		}
		p = fake_profile(samples, 1000);
		r = top_model_add(m, &info, p, 1000, NULL);
		profile_free(p);
	}
	assert_int_equal(r, -E2BIG);
	assert_int_equal(sums_of(m).processes, 0);
	add_alloc(m, 1, 3, 0);
	assert_int_equal(sums_of(m).processes, 1);
	assert_true(sums_of(m).values[TOP_LIVE][TOP_BYTES] == 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(live_heap_is_there_after_one_reading_and_adds_up),
		cmocka_unit_test(a_rate_comes_with_the_second_reading),
		cmocka_unit_test(what_a_baseline_brings_is_no_rate),
		cmocka_unit_test(few_samples_are_a_steady_rate_that_fades),
		cmocka_unit_test(what_the_runtime_counts_is_shared_out_by_samples),
		cmocka_unit_test(counts_of_others_and_of_before_are_no_rate),
		cmocka_unit_test(deltas_add_up_and_are_taken_once),
		cmocka_unit_test(recursion_counts_once),
		cmocka_unit_test(callers_come_to_what_the_function_does),
		cmocka_unit_test(groups_filters_and_limits),
		cmocka_unit_test(processes_that_end_are_forgotten),
		cmocka_unit_test(a_reused_pid_begins_anew),
		cmocka_unit_test(frozen_shows_what_was_and_goes_on_right),
		cmocka_unit_test(after_a_rebase_rates_stay_until_they_are_measured_anew),
		cmocka_unit_test(names_are_cleaned),
		cmocka_unit_test(cpu_time_is_by_second_and_over_all_processes),
		cmocka_unit_test(who_is_not_in_the_last_collection_does_not_run),
		cmocka_unit_test(who_only_runs_has_no_heap),
		cmocka_unit_test(who_ended_has_burnt_its_share_until_the_next_collection),
		cmocka_unit_test(frozen_cpu_time_stays),
		cmocka_unit_test(past_the_limit_everything_is_forgotten_and_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
