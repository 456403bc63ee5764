/*
 * tests/unit/store/test_events.c: events, and metrics that were profiles before: old and new data
 * are one stream.
 */
#include "test_metrics.h"

#include <errno.h>

#define STEP (15 * SEC_NS)
#define DATE "2024-10-04"
#define LIVE "go_runtime:heap_live:bytes"
#define CYCLES "go_runtime:gc_cycles:count"

static const struct event_kind kill_kind = {.name = "oom_kill", .family = "go_oom"};

static int write_event(struct rig *rig, const char *service, int64_t time_ns, const char *sentence,
		       struct profile *profile)
{
	const struct label labels[] = {{"process.pid", "1"}, {"host.name", "here"}};
	struct event event = {.kind = &kill_kind,
			      .attributes = {{"oom.rss", "4096"}, {"oom.picture", "kill"}},
			      .n_attributes = 2,
			      .profile = profile,
			      .snapshot_types = 3};
	const struct store_event e = {
		.service = service,
		.labels = labels,
		.n_labels = 2,
		.time_ns = time_ns,
		.event = &event,
	};
	struct err err = {};

	(void)snprintf(event.sentence, sizeof(event.sentence), "%s", sentence);
	return store_write_event(rig->store, &e, &err);
}

static void events_come_back_with_their_profile(void **state)
{
	_cleanup_(rig_release) struct rig rig;
	struct profile *p = make_profile();
	struct store_events_answer a = {0};
	struct store_status status;
	struct store_sum sum = {0};

	(void)state;
	rig_init(&rig);
	add_stack(p, 1, 100, 200);
	assert_int_equal(write_event(&rig, "svc", DAY_0 + SEC_NS, "first", p), 0);
	assert_int_equal(write_event(&rig, "svc", DAY_0 + SEC_NS, "second", NULL), 0);
	assert_int_equal(write_event(&rig, "other", DAY_0 + 5 * SEC_NS, "third", NULL), 0);
	assert_int_equal(write_event(&rig, "", DAY_0, "", NULL), -E2BIG);
	profile_free(p);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	rig_reopen(&rig);
	assert_int_equal(store_events(rig.store, NULL, DAY_0, DAY_0 + HOUR_NS, &a, NULL), 0);
	assert_int_equal(a.len, 3);
	assert_string_equal(a.events[0].sentence, "first");
	assert_string_equal(a.events[0].kind, "oom_kill");
	assert_string_equal(a.events[0].family, "go_oom");
	assert_string_equal(a.events[1].family, "");
	assert_true(a.events[0].time_ns == DAY_0 + SEC_NS);
	assert_int_equal(a.events[0].n_attributes, 2);
	assert_string_equal(a.events[0].attributes[1].value, "kill");
	assert_int_equal(a.events[2].n_labels, 2);
	assert_string_equal(a.events[2].labels[1].value, "1");
	assert_string_equal(a.events[2].service, "other");
	store_events_answer_release(&a);
	assert_int_equal(store_events(rig.store, "other", DAY_0, DAY_0 + HOUR_NS, &a, NULL), 0);
	assert_int_equal(a.len, 1);
	store_events_answer_release(&a);
	assert_int_equal(
		store_events(rig.store, NULL, DAY_0 + 2 * SEC_NS, DAY_0 + 5 * SEC_NS, &a, NULL), 0);
	assert_int_equal(a.len, 0);
	store_events_answer_release(&a);
	sum_of(&rig, "svc", "go_oom:inuse_space:bytes", DAY_0 + SEC_NS, DAY_0 + SEC_NS + 1000000,
	       &sum);
	assert_int_equal(total_of(sum.profile), 200);
	profile_free(sum.profile);
	/* They are no processes of their own. */
	{
		struct store_labelset *sets = NULL;
		size_t n = 0;

		assert_int_equal(
			store_labelsets(rig.store, "svc", DAY_0, DAY_0 + HOUR_NS, &sets, &n, NULL),
			0);
		assert_int_equal(n, 1);
		assert_int_equal(sets[0].n_labels, 2);
		free(sets);
	}
	store_status(rig.store, &status);
	assert_int_equal(status.events_written, 0);
	run_sql(rig_day(&rig, DATE),
		"UPDATE event SET data=x'00' WHERE k=(SELECT min(k) FROM event)");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(store_events(rig.store, NULL, 0, INT64_MAX, &a, NULL), 0);
		assert_int_equal(a.len, 2);
		store_events_answer_release(&a);
	}
	store_status(rig.store, &status);
	assert_int_equal(status.damaged_blocks, 1);
}

/* As the runtime's figures were stored before: one frame, a value for each. */
static void write_old(struct rig *rig, const char *pid, int64_t time_ns, int64_t live,
		      int64_t cycles)
{
	const struct label labels[] = {{"process.pid", pid}, {"host.name", "here"}};
	const int64_t values[] = {live, cycles};
	_cleanup_(profile_freep) struct profile *p = profile_new();
	const struct store_entry e = {
		.service = "svc",
		.family = "go_runtime",
		.labels = labels,
		.n_labels = 2,
		.time_ns = time_ns,
		.profile = p,
		.snapshot_types = 1,
	};
	uint32_t location, stack;

	assert_non_null(p);
	assert_int_equal(profile_add_type(p, "heap_live", "bytes"), 0);
	assert_int_equal(profile_add_type(p, "gc_cycles", "count"), 0);
	location = add_location(p, "[go runtime]", "", 0);
	assert_int_equal(profile_add_stack(p, &location, 1, &stack), 0);
	assert_int_equal(profile_add_sample(p, stack, values, NULL, 0), 0);
	assert_int_equal(store_write(rig->store, &e, NULL), 0);
}

static void series_of(struct rig *rig, const char *type, int64_t from_ns, int64_t step_ns,
		      double *points, size_t n)
{
	const struct store_window w = {.service = "svc",
				       .type = type,
				       .from_ns = from_ns,
				       .to_ns = from_ns + step_ns * (int64_t)n};

	assert_int_equal(store_series(rig->store, &w, step_ns, points, n, NULL), 0);
}

/* Two processes: profiles for the first hour and a half, metrics from then on. */
static void write_both(struct rig *rig)
{
	rig_init(rig);
	for (int i = 0; i < 480; i++)
		for (int pid = 1; pid <= 2; pid++) {
			const char *name = pid == 1 ? "1" : "2";

			if (i < 360)
				write_old(rig, name, DAY_0 + i * STEP, 1000 * pid + i % 4, 2);
			else
				write_process(rig, name, DAY_0 + i * STEP, 1000 * pid + i % 4, 2);
		}
	assert_int_equal(store_commit(rig->store, NULL), 0);
}

static void check_streams(struct rig *rig)
{
	struct store_stream *streams = NULL;
	size_t n = 0;

	assert_int_equal(store_streams(rig->store, DAY_0, DAY_0 + DAY_NS, &streams, &n, NULL), 0);
	assert_int_equal(n, 2);
	assert_string_equal(streams[0].type, CYCLES);
	assert_string_equal(streams[1].type, LIVE);
	assert_true(streams[1].snapshot && !streams[0].snapshot);
	for (size_t i = 0; i < n; i++) {
		assert_true(streams[i].first_ns == DAY_0);
		assert_true(streams[i].last_ns == DAY_0 + 479 * STEP);
	}
	free(streams);
	assert_int_equal(store_streams(rig->store, DAY_0 + 6500 * SEC_NS, DAY_0 + 6600 * SEC_NS,
				       &streams, &n, NULL),
			 0);
	assert_int_equal(n, 2);
	assert_true(streams[0].first_ns == DAY_0 + 6510 * SEC_NS);
	assert_true(streams[0].last_ns == DAY_0 + 6585 * SEC_NS);
	free(streams);
}

static void check_sums(struct rig *rig)
{
	struct store_sum sum = {0};

	/* Half an hour of each. */
	sum_of(rig, "svc", LIVE, DAY_0 + HOUR_NS, DAY_0 + 2 * HOUR_NS, &sum);
	assert_true(sum.snapshot);
	assert_int_equal(sum.collections, 240);
	assert_int_equal(total_of(sum.profile), 240 * 3003);
	for (size_t i = 0; i < profile_n_functions(sum.profile); i++)
		assert_string_equal(
			profile_cstring(sum.profile, profile_function_at(sum.profile, i)->name),
			"[go runtime]");
	profile_free(sum.profile);
	sum_of(rig, "svc", CYCLES, DAY_0, DAY_0 + 2 * HOUR_NS, &sum);
	assert_false(sum.snapshot);
	assert_int_equal(total_of(sum.profile), 480 * 4);
	profile_free(sum.profile);
}

static void old_profiles_and_new_metrics_are_one_stream(void **state)
{
	const struct label filter = {"process.pid", "2"};
	const struct store_window w = {.service = "svc",
				       .type = LIVE,
				       .from_ns = DAY_0,
				       .to_ns = DAY_0 + 2 * HOUR_NS,
				       .filters = &filter,
				       .n_filters = 1};
	_cleanup_(rig_release) struct rig rig;
	double points[120];

	(void)state;
	write_both(&rig);
	for (int packed = 0; packed < 2; packed++) {
		if (packed)
			pack_all(&rig, DAY_0 + 3 * HOUR_NS);
		series_of(&rig, LIVE, DAY_0, 60 * SEC_NS, points, 120);
		for (size_t i = 0; i < 120; i++)
			assert_true(points[i] == 3003);
		series_of(&rig, CYCLES, DAY_0, 60 * SEC_NS, points, 120);
		for (size_t i = 0; i < 120; i++)
			assert_true(points[i] == 16);
		/* One step with both, and one of one process. */
		series_of(&rig, LIVE, DAY_0, 2 * HOUR_NS, points, 1);
		assert_true(points[0] == 3003);
		assert_int_equal(store_series(rig.store, &w, 2 * HOUR_NS, points, 1, NULL), 0);
		assert_true(points[0] == 2001.5);
		series_of(&rig, LIVE, DAY_0 + 2 * HOUR_NS, HOUR_NS, points, 1);
		assert_true(isnan(points[0]));
		check_streams(&rig);
		check_sums(&rig);
	}
}

static void label_sets_of_metrics_are_those_of_the_service(void **state)
{
	_cleanup_(rig_release) struct rig rig;
	struct store_labelset *sets = NULL;
	size_t n = 0;

	(void)state;
	rig_init(&rig);
	write_process(&rig, "1", DAY_0, 1, NAN);
	write_process(&rig, "1", DAY_0 + STEP, 1, NAN);
	pack_all(&rig, DAY_0 + 2 * HOUR_NS);
	write_process(&rig, "2", DAY_0 + 2 * HOUR_NS, 1, NAN);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	assert_int_equal(store_labelsets(rig.store, "svc", DAY_0, DAY_0 + DAY_NS, &sets, &n, NULL),
			 0);
	assert_int_equal(n, 2);
	assert_true(sets[0].first_ns == DAY_0 && sets[0].last_ns == DAY_0 + STEP);
	assert_true(sets[1].last_ns == DAY_0 + 2 * HOUR_NS);
	free(sets);
	assert_int_equal(
		store_labelsets(rig.store, "svc", DAY_0 + HOUR_NS, DAY_0 + DAY_NS, &sets, &n, NULL),
		0);
	assert_int_equal(n, 1);
	free(sets);
}

static void an_older_file_is_read_and_gets_its_tables_when_written(void **state)
{
	_cleanup_(rig_release) struct rig rig;
	struct store_metric_answer a = {0};
	struct store_events_answer events = {0};
	double point;

	(void)state;
	rig_init(&rig);
	write_old(&rig, "1", DAY_0, 77, 1);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	store_close(rig.store);
	run_sql(rig_day(&rig, DATE),
		"DROP TABLE metric; DROP TABLE series; DROP TABLE reading; DROP TABLE hour;"
		"DROP TABLE times;"
		"DROP TABLE event");
	make_old(rig_day(&rig, DATE), 2);
	rig_open(&rig);
	series_of(&rig, LIVE, DAY_0, STEP, &point, 1);
	assert_true(point == 77);
	read_metric(&rig, "go.heap.live", DAY_0, DAY_0 + STEP, STEP, STORE_AVERAGE, &a);
	assert_int_equal(a.len, 0);
	store_metric_answer_release(&a);
	assert_int_equal(store_events(rig.store, NULL, 0, INT64_MAX, &events, NULL), 0);
	assert_int_equal(events.len, 0);
	store_events_answer_release(&events);
	assert_int_equal(count_of(rig_day(&rig, DATE), "PRAGMA user_version"), 2);
	write_process(&rig, "1", DAY_0 + STEP, 78, NAN);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	assert_int_equal(count_of(rig_day(&rig, DATE), "PRAGMA user_version"), 3);
	series_of(&rig, LIVE, DAY_0, 2 * STEP, &point, 1);
	assert_true(point == 77.5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_come_back_with_their_profile),
		cmocka_unit_test(old_profiles_and_new_metrics_are_one_stream),
		cmocka_unit_test(label_sets_of_metrics_are_those_of_the_service),
		cmocka_unit_test(an_older_file_is_read_and_gets_its_tables_when_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
