/* src/store/totals/build.c: see build.h. */
#include "store/totals/build.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/metrics/define.h"
#include "store/metrics/scan.h"

struct building {
	struct store_totals_hour *hour;
	struct store_day *day;
	int64_t from_ms;
	int64_t to_ms;
	const struct store_dictionary *columns; /* of the service */
	uint32_t service;
};

void store_totals_hour_release(struct store_totals_hour *h)
{
	for (size_t i = 0; i < ARRAY_SIZE(h->minutes); i++)
		store_totals_minute_release(&h->minutes[i]);
	intern_release(&h->types);
}

/* The number of a type; -E2BIG: there are too many. */
static int type_number(struct building *b, struct view name, bool snapshot, uint32_t *ret)
{
	char text[160];
	int len = snprintf(text, sizeof(text), "%c%.*s", snapshot ? 's' : 'd',
			   (int)MIN(name.len, 150U), (const char *)name.data);
	int r = intern_add(&b->hour->types, view_of(text, (size_t)len), ret);

	return r == 0 && *ret >= STORE_TOTALS_MAX_TYPES ? -E2BIG : r;
}

static int build_point(struct building *b, uint32_t type, int64_t ms, int64_t value)
{
	const struct store_totals_entry e = {
		.type = type, .service = b->service, .points = 1, .sum = value};
	int64_t minute = ms / STORE_TOTALS_MINUTE_MS;

	return store_totals_minute_add(&b->hour->minutes[minute % 60], &e,
				       (uint32_t)(ms % STORE_TOTALS_MINUTE_MS));
}

static int build_stream(struct building *b, uint32_t stream, uint32_t type, struct err *err)
{
	const int64_t range[] = {store_day_key(stream, b->from_ms, 0),
				 store_day_key(stream, b->to_ms, 0)};
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(b->day, STORE_DAY_POINTS, range, 2, &stmt, err);

	while (r == 0 && (r = store_day_next(b->day, stmt, err)) > 0)
		r = build_point(b, type, store_day_key_ms(sqlite3_column_int64(stmt, 0)),
				sqlite3_column_int64(stmt, 1));
	if (r == -ENOMEM)
		store_day_done(stmt);
	return r;
}

static int build_profiles(struct building *b, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(b->day, STORE_DAY_STREAMS, NULL, 0, &stmt, err);

	while (r == 0 && (r = store_day_next(b->day, stmt, err)) > 0) {
		int64_t id = sqlite3_column_int64(stmt, 0);
		int64_t service = sqlite3_column_int64(stmt, 1);
		uint32_t type = 0;

		r = 0;
		if (id < 0 || id > STORE_DAY_MAX_STREAMS || service <= 0 ||
		    service > STORE_DAY_MAX_STREAMS) {
			store_day_damaged(b->day, STORE_DAY_STREAMS, id);
			continue;
		}
		b->service = (uint32_t)service;
		r = type_number(b, store_day_blob(stmt, 2), sqlite3_column_int(stmt, 3) != 0,
				&type);
		if (r == 0)
			r = build_stream(b, (uint32_t)id, type, err);
		if (r == -E2BIG)
			r = 0;
	}
	if (r < 0 && stmt)
		store_day_done(stmt);
	return r;
}

/* The definition of a column, if it has a stream. */
static const struct store_definition *stream_of(const struct store_dictionary *d, uint32_t column)
{
	for (size_t i = 0; i < d->n_columns; i++)
		if (d->columns[i].column == column)
			return d->columns[i].part == STORE_PART_VALUE &&
					       d->columns[i].metric->kind != METRIC_HISTOGRAM &&
					       d->columns[i].metric->stream[0]
				       ? d->columns[i].metric
				       : NULL;
	return NULL;
}

static int build_batch(void *ctx, const struct store_metrics_batch *batch)
{
	struct building *b = ctx;
	const struct store_definition *metric = stream_of(b->columns, batch->column);
	uint32_t type = 0;
	int r;

	if (!metric || batch->width != 1)
		return 0;
	r = type_number(b, view_str(metric->stream), metric->kind == METRIC_GAUGE, &type);
	for (size_t i = 0; r == 0 && i < batch->n; i++)
		if (!isnan(batch->values[i]))
			r = build_point(b, type, batch->begin_ms + batch->times_ms[i],
					llround(MIN(MAX(batch->values[i], -9e18), 9e18)));
	return r == -E2BIG ? 0 : r;
}

static int build_service(struct building *b, struct err *err)
{
	_cleanup_(store_dictionary_release) struct store_dictionary d = {0};
	struct store_metrics_scan scan = {.service = b->service,
					  .from_ms = b->from_ms,
					  .to_ms = b->to_ms,
					  .fn = build_batch,
					  .ctx = b};
	uint8_t columns[STORE_METRICS_COLUMN_BYTES] = {0};
	bool any = false;
	int r = store_dictionary_load(&d, b->day, b->service, err);

	for (size_t i = 0; i < d.n_columns; i++)
		if (stream_of(&d, d.columns[i].column)) {
			columns[d.columns[i].column / 8] |=
				(uint8_t)(1U << d.columns[i].column % 8);
			any = true;
		}
	b->columns = &d;
	scan.columns = columns;
	if (r == 0 && any)
		r = store_metrics_scan(&scan, b->day, err);
	b->columns = NULL;
	return r;
}

static int build_metrics(struct building *b, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(b->day, STORE_DAY_SERVICES, NULL, 0, &stmt, err);

	while (r == 0 && (r = store_day_next(b->day, stmt, err)) > 0) {
		int64_t id = sqlite3_column_int64(stmt, 0);

		r = 0;
		if (id <= 0 || id > STORE_DAY_MAX_STREAMS)
			continue;
		b->service = (uint32_t)id;
		r = build_service(b, err);
	}
	if (r < 0 && stmt)
		store_day_done(stmt);
	return r;
}

int store_totals_build(struct store_totals_hour *h, struct store_day *day, int64_t from_ms,
		       int64_t to_ms, struct err *err)
{
	struct building b = {.hour = h, .day = day, .from_ms = from_ms, .to_ms = to_ms};
	int r = build_profiles(&b, err);

	if (r == 0 && store_day_has_metrics(day))
		r = build_metrics(&b, err);
	return r == -ENOMEM ? err_oom(err) : r;
}
