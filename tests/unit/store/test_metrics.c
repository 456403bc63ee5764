/* tests/unit/store/test_metrics.c: metrics are read as they were written, packed or not. */
#include "test_metrics.h"

#include <errno.h>

#define STEP (15 * SEC_NS)
#define DATE "2024-10-04"

static void gauges_are_averaged_and_counters_summed(void **state)
{
	_cleanup_(rig_release) struct rig rig;
	struct store_metric_answer a = {0};

	(void)state;
	rig_init(&rig);
	for (int i = 0; i < 4 * 60 * 3; i++)
		write_process(&rig, "1", DAY_0 + i * STEP, 1000 + i % 4, i == 0 ? NAN : 2);
	/* Both before and after the hours are packed. */
	for (int packed = 0; packed < 2; packed++) {
		if (packed)
			pack_all(&rig, DAY_0 + 2 * HOUR_NS + 1800 * SEC_NS);
		else
			assert_int_equal(store_commit(rig.store, NULL), 0);
		assert_int_equal(count_of(rig_day(&rig, DATE), "SELECT count(*) FROM hour"),
				 packed ? 4 : 0);
		assert_int_equal(count_of(rig_day(&rig, DATE), "SELECT count(*) FROM times"),
				 packed ? 2 : 0);
		read_metric(&rig, "go.heap.live", DAY_0, DAY_0 + 3 * HOUR_NS, 60 * SEC_NS,
			    STORE_AVERAGE, &a);
		assert_int_equal(a.len, 1);
		assert_int_equal(a.series[0].kind, METRIC_GAUGE);
		assert_string_equal(a.series[0].unit, "bytes");
		assert_int_equal(a.series[0].n_labels, 2);
		for (int i = 0; i < 180; i++)
			assert_true(a.series[0].points[i] == 1001.5);
		store_metric_answer_release(&a);
		read_metric(&rig, "go.gc.cycles", DAY_0, DAY_0 + 3 * HOUR_NS, HOUR_NS,
			    STORE_AVERAGE, &a);
		assert_int_equal(a.len, 1);
		/* The first reading has no increase. */
		assert_true(a.series[0].points[0] == 478);
		assert_true(a.series[0].points[1] == 480);
		assert_true(a.series[0].first_ns == DAY_0 + STEP);
		store_metric_answer_release(&a);
	}
	read_metric(&rig, "go.gc.cycles", DAY_0, DAY_0 + STEP, STEP, STORE_AVERAGE, &a);
	assert_int_equal(a.len, 0);
	store_metric_answer_release(&a);
}

static void smallest_largest_and_last_are_of_the_step(void **state)
{
	static const struct {
		enum store_aggregate aggregate;
		double want;
	} rows[] = {{STORE_MIN, 1}, {STORE_MAX, 9}, {STORE_LAST, 4}, {STORE_AVERAGE, 5.5}};
	static const double values[] = {8, 1, 9, 4};
	_cleanup_(rig_release) struct rig rig;

	(void)state;
	rig_init(&rig);
	for (int i = 0; i < 4; i++)
		write_process(&rig, "1", DAY_0 + i * STEP, values[i], NAN);
	for (int packed = 0; packed < 2; packed++) {
		pack_all(&rig, DAY_0 + packed * 2 * HOUR_NS);
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
			struct store_metric_answer a = {0};

			read_metric(&rig, "go.heap.live", DAY_0, DAY_0 + 60 * SEC_NS, 60 * SEC_NS,
				    rows[i].aggregate, &a);
			assert_true(a.series[0].points[0] == rows[i].want);
			store_metric_answer_release(&a);
		}
	}
}

static void what_is_missing_is_a_gap(void **state)
{
	_cleanup_(rig_release) struct rig rig;
	struct store_metric_answer a = {0};

	(void)state;
	rig_init(&rig);
	for (int i = 0; i < 240; i++)
		if (i % 10 != 3)
			write_process(&rig, "1", DAY_0 + i * STEP, i == 50 ? NAN : i, NAN);
	for (int packed = 0; packed < 2; packed++) {
		pack_all(&rig, DAY_0 + packed * 2 * HOUR_NS);
		read_metric(&rig, "go.heap.live", DAY_0, DAY_0 + HOUR_NS, STEP, STORE_AVERAGE, &a);
		assert_int_equal(a.len, 1);
		for (int i = 0; i < 240; i++)
			assert_true(i % 10 == 3 || i == 50 ? isnan(a.series[0].points[i])
							   : a.series[0].points[i] == i);
		store_metric_answer_release(&a);
	}
}

static void attributes_and_labels_make_series_and_filter_them(void **state)
{
	static const char *const names[] = {"waiting", "running", NULL};
	static const size_t wanted[] = {9, 3, 1}; /* by the number of filters */
	_cleanup_(rig_release) struct rig rig;
	struct label filters[] = {{"state", "running"}, {"process.pid", "2"}};
	struct store_metric_query q = {
		.service = "svc",
		.metric = "go.goroutines",
		.from_ns = DAY_0,
		.to_ns = DAY_0 + HOUR_NS,
		.step_ns = HOUR_NS,
		.n_points = 1,
		.filters = filters,
	};
	struct store_metric_answer a = {0};

	(void)state;
	rig_init(&rig);
	for (int pid = 1; pid < 4; pid++) {
		char text[8];

		(void)snprintf(text, sizeof(text), "%d", pid);
		for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
			struct metric_point p = {.metric = &test_states,
						 .attributes = {names[i]},
						 .value = pid * 10 + (double)i};

			/* Several records of one time are one reading. */
			assert_int_equal(write_points(&rig, "svc", text, DAY_0, &p, 1), 0);
		}
	}
	assert_int_equal(store_commit(rig.store, NULL), 0);
	assert_int_equal(count_of(rig_day(&rig, DATE), "SELECT count(*) FROM reading"), 3);
	assert_int_equal(count_of(rig_day(&rig, DATE), "SELECT count(*) FROM series"), 3);
	for (size_t n = 0; n <= 2; n++) {
		q.n_filters = n;
		assert_int_equal(store_metrics(rig.store, &q, &a, NULL), 0);
		assert_int_equal(a.len, wanted[n]);
		if (n == 2)
			assert_true(a.series[0].points[0] == 21);
		if (n > 0)
			assert_string_equal(a.series[0].attributes[0].value, "running");
		store_metric_answer_release(&a);
	}
	q.metric = NULL;
	q.n_filters = 0;
	assert_int_equal(store_metrics(rig.store, &q, &a, NULL), 0);
	assert_int_equal(a.len, 9);
	assert_int_equal(a.series[0].n_attributes, 0);
	assert_string_equal(a.series[3].attributes[0].value, "running");
	assert_null(a.series[0].points);
	store_metric_answer_release(&a);
}

static void equal_series_of_one_time_are_added_up(void **state)
{
	_cleanup_(rig_release) struct rig rig;
	struct store_metric_answer a = {0};

	(void)state;
	rig_init(&rig);
	write_process(&rig, "1", DAY_0, 5, 3);
	write_process(&rig, "1", DAY_0, 7, 4);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	read_metric(&rig, "go.heap.live", DAY_0, DAY_0 + STEP, STEP, STORE_AVERAGE, &a);
	assert_true(a.series[0].points[0] == 12);
	store_metric_answer_release(&a);
	read_metric(&rig, "go.gc.cycles", DAY_0, DAY_0 + STEP, STEP, STORE_AVERAGE, &a);
	assert_true(a.series[0].points[0] == 7);
	store_metric_answer_release(&a);
}

static void histograms_keep_their_buckets(void **state)
{
	_cleanup_(rig_release) struct rig rig;
	struct store_metric_answer a = {0};

	(void)state;
	rig_init(&rig);
	for (int i = 0; i < 240; i++) {
		const uint64_t buckets[] = {(uint64_t)i, 2, 0, 1};
		struct metric_point p = {
			.metric = &test_pauses, .buckets = buckets, .sum = i < 120 ? 0.25 : NAN};

		assert_int_equal(write_points(&rig, "svc", "1", DAY_0 + i * STEP, &p, 1), 0);
	}
	for (int packed = 0; packed < 2; packed++) {
		pack_all(&rig, DAY_0 + packed * 2 * HOUR_NS);
		read_metric(&rig, "go.gc.pauses", DAY_0, DAY_0 + HOUR_NS, HOUR_NS / 2,
			    STORE_AVERAGE, &a);
		assert_int_equal(a.len, 1);
		assert_int_equal(a.n_bounds, 3);
		assert_true(a.bounds[1] == 0.01);
		assert_int_equal(a.series[0].width, 4);
		assert_true(a.series[0].points[0] == 119 * 60 && a.series[0].points[2] == 240 &&
			    a.series[0].points[5] == 0 && a.series[0].points[7] == 120);
		assert_true(a.series[0].sums[0] == 30 && isnan(a.series[0].sums[1]));
		store_metric_answer_release(&a);
	}
}

static void late_readings_and_restarts_are_taken(void **state)
{
	_cleanup_(rig_release) struct rig rig;
	struct store_metric_answer a = {0};
	struct store_status status;

	(void)state;
	rig_init(&rig);
	write_process(&rig, "1", DAY_0, 1, NAN);
	pack_all(&rig, DAY_0 + 2 * HOUR_NS);
	store_status(rig.store, &status);
	assert_true(status.oldest_ns == DAY_0);
	rig_reopen(&rig);
	write_process(&rig, "1", DAY_0 + STEP, 2, NAN);
	write_process(&rig, "2", DAY_0 + STEP, 3, NAN);
	pack_all(&rig, DAY_0 + 3 * HOUR_NS);
	assert_int_equal(count_of(rig_day(&rig, DATE), "SELECT count(*) FROM hour"), 3);
	assert_int_equal(count_of(rig_day(&rig, DATE), "SELECT count(*) FROM reading"), 0);
	assert_int_equal(count_of(rig_day(&rig, DATE), "SELECT count(*) FROM series"), 1);
	/* The next day is another file. */
	rig.now_ns = DAY_0 + DAY_NS;
	write_process(&rig, "1", DAY_0 + DAY_NS, 4, NAN);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	read_metric(&rig, "go.heap.live", DAY_0, DAY_0 + DAY_NS + STEP, STEP, STORE_AVERAGE, &a);
	assert_int_equal(a.len, 2);
	assert_true(a.series[0].points[0] == 1 && a.series[0].points[1] == 2);
	assert_true(a.series[0].points[5760] == 4);
	assert_true(isnan(a.series[1].points[0]) && a.series[1].points[1] == 3);
	store_metric_answer_release(&a);
	/* A past day is closed as it always was. */
	assert_int_equal(store_maintain(rig.store, DAY_0 + DAY_NS + HOUR_NS, NULL), 0);
	read_metric(&rig, "go.heap.live", DAY_0, DAY_0 + DAY_NS, DAY_NS, STORE_LAST, &a);
	assert_true(a.series[0].points[0] == 2);
	store_metric_answer_release(&a);
}

/* n series of one service at one time. */
static void write_many(struct rig *rig, const char *service, unsigned int n, int64_t time_ns)
{
	for (unsigned int i = 0; i < n; i++) {
		char state[16];
		struct metric_point p = {.metric = &test_states, .attributes = {state}, .value = i};

		(void)snprintf(state, sizeof(state), "%u", i);
		assert_int_equal(write_points(rig, service, "1", time_ns, &p, 1), 0);
	}
	assert_int_equal(store_commit(rig->store, NULL), 0);
}

static void series_past_the_limits_are_refused_and_counted(void **state)
{
	_cleanup_(rig_release) struct rig rig;
	struct store_status status;

	(void)state;
	rig_init(&rig);
	rig.config.max_series = 100;
	rig.config.max_series_in_all = 150;
	rig_reopen(&rig);
	write_many(&rig, "svc", 120, DAY_0);
	store_status(rig.store, &status);
	assert_int_equal(status.series, 100);
	assert_int_equal(status.points_written, 100);
	assert_int_equal(status.series_refused, 20);
	/* Those that are there go on. */
	write_many(&rig, "svc", 120, DAY_0 + STEP);
	write_many(&rig, "other", 120, DAY_0 + STEP);
	store_status(rig.store, &status);
	assert_int_equal(status.series, 150);
	assert_int_equal(status.points_written, 250);
	assert_int_equal(status.series_refused, 40 + 70);
	/* What is not written any more makes room. */
	write_many(&rig, "third", 120, DAY_0 + HOUR_NS);
	store_status(rig.store, &status);
	assert_int_equal(status.series, 100);
	assert_int_equal(status.points_lost, 0);
}

static void a_metric_that_cannot_be_kept_is_refused(void **state)
{
	_cleanup_(rig_release) struct rig rig;
	static double bounds[100];
	static uint64_t buckets[101];
	char name[300];
	const struct metric wide = {.name = "wide",
				    .kind = METRIC_HISTOGRAM,
				    .unit = "seconds",
				    .bounds = bounds,
				    .n_bounds = ARRAY_SIZE(bounds)};
	const struct metric long_name = {.name = name, .kind = METRIC_GAUGE, .unit = "count"};
	struct metric_point points[] = {{.metric = &wide, .buckets = buckets},
					{.metric = &long_name, .value = 1},
					{.metric = &test_live, .value = 2}};
	struct store_status status;

	(void)state;
	rig_init(&rig);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(write_points(&rig, "svc", "1", DAY_0, points, 3), 0);
	assert_int_equal(write_points(&rig, "", "1", DAY_0, points, 3), -E2BIG);
	assert_int_equal(write_points(&rig, "svc", "1", DAY_0 + 3 * DAY_NS, points, 3), -ERANGE);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	store_status(rig.store, &status);
	assert_int_equal(status.points_written, 1);
	assert_int_equal(status.series_refused, 2);
	assert_int_equal(status.points_lost, 6);
}

static void damaged_blocks_are_gaps_that_count_once(void **state)
{
	_cleanup_(rig_release) struct rig rig;
	struct store_metric_answer a = {0};
	struct store_status status;

	(void)state;
	rig_init(&rig);
	for (int i = 0; i < 4 * 60 * 3; i++)
		write_process(&rig, "1", DAY_0 + i * STEP, 1 + i, NAN);
	pack_all(&rig, DAY_0 + 2 * HOUR_NS + 1800 * SEC_NS);
	run_sql(rig_day(&rig, DATE),
		"UPDATE hour SET data=substr(data,1,length(data)-1)||x'77'"
		" WHERE k=(SELECT min(k) FROM hour);"
		"UPDATE reading SET data=x'00' WHERE k=(SELECT max(k) FROM reading)");
	for (int i = 0; i < 3; i++) {
		read_metric(&rig, "go.heap.live", DAY_0, DAY_0 + 3 * HOUR_NS, STEP, STORE_AVERAGE,
			    &a);
		assert_int_equal(a.len, 1);
		for (int k = 0; k < 4 * 60 * 3; k++)
			assert_true(k < 240 || k == 719 ? isnan(a.series[0].points[k])
							: a.series[0].points[k] == 1 + k);
		store_metric_answer_release(&a);
	}
	store_status(rig.store, &status);
	assert_int_equal(status.damaged_blocks, 2);
	assert_int_equal(status.damaged_files, 0);
	/* Packing goes on over them. */
	pack_all(&rig, DAY_0 + 4 * HOUR_NS);
	read_metric(&rig, "go.heap.live", DAY_0, DAY_0 + 3 * HOUR_NS, 3 * HOUR_NS, STORE_MAX, &a);
	assert_true(a.series[0].points[0] == 719);
	store_metric_answer_release(&a);
	store_status(rig.store, &status);
	assert_int_equal(status.damaged_blocks, 2);
}

static void damaged_dictionaries_are_gaps(void **state)
{
	_cleanup_(rig_release) struct rig rig;
	struct store_metric_answer a = {0};
	struct store_status status;

	(void)state;
	rig_init(&rig);
	write_process(&rig, "1", DAY_0, 1, 2);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	run_sql(rig_day(&rig, DATE), "UPDATE metric SET data=x'0102' WHERE id=1;"
				     "UPDATE series SET k=k+65536, metric=99 WHERE k & 1 = 1");
	read_metric(&rig, NULL, DAY_0, DAY_0 + HOUR_NS, 0, STORE_AVERAGE, &a);
	assert_int_equal(a.len, 0);
	store_metric_answer_release(&a);
	store_status(rig.store, &status);
	assert_int_equal(status.damaged_blocks, 3);
}

static void questions_have_limits(void **state)
{
	_cleanup_(rig_release) struct rig rig;
	struct store_metric_query q = {.service = "svc", .metric = "go.goroutines", .to_ns = DAY_0};
	struct store_metric_answer a = {0};
	struct err err = {};

	(void)state;
	rig_init(&rig);
	assert_int_equal(store_metrics(rig.store, &q, &a, &err), -EINVAL);
	q.step_ns = 1;
	assert_int_equal(store_metrics(rig.store, &q, &a, &err), -E2BIG);
	write_many(&rig, "svc", 50, DAY_0);
	q = (struct store_metric_query){.service = "svc",
					.metric = "go.goroutines",
					.from_ns = DAY_0,
					.to_ns = DAY_0 + HOUR_NS,
					.step_ns = 1,
					.n_points = 1 << 20};
	assert_int_equal(store_metrics(rig.store, &q, &a, &err), -E2BIG);
	assert_non_null(strstr(err.text, "larger step"));
	q.to_ns = q.from_ns - 1;
	assert_int_equal(store_metrics(rig.store, &q, &a, &err), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gauges_are_averaged_and_counters_summed),
		cmocka_unit_test(smallest_largest_and_last_are_of_the_step),
		cmocka_unit_test(what_is_missing_is_a_gap),
		cmocka_unit_test(attributes_and_labels_make_series_and_filter_them),
		cmocka_unit_test(equal_series_of_one_time_are_added_up),
		cmocka_unit_test(histograms_keep_their_buckets),
		cmocka_unit_test(late_readings_and_restarts_are_taken),
		cmocka_unit_test(series_past_the_limits_are_refused_and_counted),
		cmocka_unit_test(a_metric_that_cannot_be_kept_is_refused),
		cmocka_unit_test(damaged_blocks_are_gaps_that_count_once),
		cmocka_unit_test(damaged_dictionaries_are_gaps),
		cmocka_unit_test(questions_have_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
