/* tests/unit/store/test_metrics.h: metrics for the rig of test_store_model.h. */
#pragma once

#include "test_model.h"

#include <math.h>

#include <sqlite3.h>

#include "pipeline/event.h"
#include "pipeline/metrics.h"

static const double pause_bounds[] = {0.001, 0.01, 0.1};
static const struct metric test_live = {.name = "go.heap.live",
					.kind = METRIC_GAUGE,
					.unit = "bytes",
					.stream = "go_runtime:heap_live:bytes"};
static const struct metric test_cycles = {.name = "go.gc.cycles",
					  .kind = METRIC_COUNTER,
					  .unit = "count",
					  .stream = "go_runtime:gc_cycles:count"};
static const struct metric test_states = {
	.name = "go.goroutines", .kind = METRIC_GAUGE, .unit = "count", .attributes = {"state"}};
static const struct metric test_pauses = {.name = "go.gc.pauses",
					  .kind = METRIC_HISTOGRAM,
					  .unit = "seconds",
					  .bounds = pause_bounds,
					  .n_bounds = 3};

static inline int write_points(struct rig *rig, const char *service, const char *pid,
			       int64_t time_ns, struct metric_point *points, size_t n)
{
	const struct label labels[] = {{"process.pid", pid}, {"host.name", "here"}};
	const struct metrics metrics = {.points = points, .len = n};
	const struct store_metrics e = {
		.service = service,
		.uid = rig->uid,
		.labels = labels,
		.n_labels = 2,
		.time_ns = time_ns,
		.duration_ns = 15 * SEC_NS,
		.metrics = &metrics,
	};
	struct err err = {};

	return store_write_metrics(rig->store, &e, &err);
}

/* What one process has at one time: a gauge, and a counter whose first reading has no increase. */
static inline void write_process(struct rig *rig, const char *pid, int64_t time_ns, double live,
				 double increase)
{
	struct metric_point points[] = {
		{.metric = &test_live, .value = live, .increase = NAN},
		{.metric = &test_cycles, .value = 1000, .increase = increase},
	};

	assert_int_equal(write_points(rig, "svc", pid, time_ns, points, 2), 0);
}

static inline void read_metric(struct rig *rig, const char *metric, int64_t from_ns, int64_t to_ns,
			       int64_t step_ns, enum store_aggregate aggregate,
			       struct store_metric_answer *ret)
{
	const struct store_metric_query q = {
		.service = "svc",
		.metric = metric,
		.from_ns = from_ns,
		.to_ns = to_ns,
		.step_ns = step_ns,
		.n_points = metric ? (size_t)((to_ns - from_ns + step_ns - 1) / step_ns) : 0,
		.aggregate = aggregate,
		.damaged = &rig->damaged,
	};
	struct err err = {};

	if (store_metrics(rig->store, &q, ret, &err) < 0)
		fail_msg("%s", err.text);
}

static inline void pack_all(struct rig *rig, int64_t now_ns)
{
	assert_int_equal(store_commit(rig->store, NULL), 0);
	rig->now_ns = now_ns;
	assert_int_equal(store_maintain(rig->store, now_ns, NULL), 0);
}

static inline void run_sql(const char *path, const char *sql)
{
	sqlite3 *db;

	db = open_day(path);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	(void)sqlite3_close(db);
}

static inline int count_of(const char *path, const char *sql)
{
	sqlite3_stmt *stmt;
	sqlite3 *db;
	int n;

	db = open_day(path);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	n = sqlite3_column_int(stmt, 0);
	(void)sqlite3_finalize(stmt);
	(void)sqlite3_close(db);
	return n;
}
