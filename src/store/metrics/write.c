/* src/store/metrics/write.c: writes the points of one resource as one row of a day file. */
#include "store/metrics/write.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "pipeline/metrics.h"
#include "store/codec/labels.h"
#include "store/metrics/cells.h"
#include "store/metrics/define.h"
#include "store/sqlite/writer.h"

#define HOUR_NS (3600 * 1000000000LL)
#define TOTAL_MAX 9e18

void store_metrics_writer_release(struct store_metrics_writer *m)
{
	map_release(&m->metrics);
	store_ids_release(&m->columns);
	map_release(&m->n_columns);
	store_ids_release(&m->active);
	map_release(&m->n_active);
	*m = (struct store_metrics_writer){0};
}

size_t store_metrics_writer_memory(const struct store_metrics_writer *m)
{
	/* A slot of base/map takes 24 bytes. */
	return (m->metrics.cap + m->n_columns.cap + m->n_active.cap) * 24 +
	       ((size_t)m->columns.cap + m->active.cap) * sizeof(struct store_ids_place);
}

static uint64_t column_hash(uint32_t service, int64_t metric, enum store_define_part part,
			    struct view attributes)
{
	uint64_t hash = hash_bytes(attributes.data, attributes.len);

	hash = hash_mix(hash + ((uint64_t)service << 32 | (uint64_t)metric));
	return hash_mix(hash + part) | 1;
}

static int count_up(struct map *counts, uint32_t service, uint64_t at_least)
{
	uint64_t n = 0;

	(void)map_get(counts, service, &n);
	return map_put(counts, service, MAX(n + 1, at_least));
}

static int load_column(struct store_metrics_writer *m, sqlite3_stmt *stmt)
{
	int64_t k = sqlite3_column_int64(stmt, 0);
	uint32_t service = (uint32_t)(k >> 32), column = (uint32_t)k & STORE_METRICS_MAX_COLUMN;
	uint64_t hash = column_hash(service, sqlite3_column_int64(stmt, 1),
				    sqlite3_column_int(stmt, 2) ? STORE_PART_SUM : STORE_PART_VALUE,
				    store_day_blob(stmt, 3));

	return store_ids_put(&m->columns, hash, column) < 0 ||
			       count_up(&m->n_columns, service, column + 1) < 0
		       ? -ENOMEM
		       : 0;
}

static int load_metric(struct store_metrics_writer *m, sqlite3_stmt *stmt)
{
	int64_t id = sqlite3_column_int64(stmt, 0);
	struct view block = store_day_blob(stmt, 1);

	m->next_metric = MAX(m->next_metric, (uint32_t)id + 1);
	return map_put(&m->metrics, hash_bytes(block.data, block.len), (uint64_t)id);
}

static int load(struct store_writer *w, struct err *err)
{
	const int64_t all[] = {0, INT64_MAX};
	struct store_metrics_writer *m = &w->metrics;
	sqlite3_stmt *stmt = NULL;
	int r;

	if (m->loaded)
		return 0;
	m->next_metric = 1;
	r = store_day_query(&w->day, STORE_DAY_METRICS, NULL, 0, &stmt, err);
	while (r == 0 && (r = store_day_next(&w->day, stmt, err)) > 0)
		r = load_metric(m, stmt) < 0 ? err_oom(err) : 0;
	if (r == 0)
		r = store_day_query(&w->day, STORE_DAY_SERIES, all, 2, &stmt, err);
	while (r == 0 && (r = store_day_next(&w->day, stmt, err)) > 0)
		r = load_column(m, stmt) < 0 ? err_oom(err) : 0;
	m->loaded = r == 0;
	return r;
}

/* A point on its way into the file. */
struct placing {
	struct store_writer *w;
	struct store_writer_tools *t;
	uint32_t service;
	struct store_owner *owner;
	uint32_t labelset;
	int64_t ms; /* in the day */
	uint64_t refused;
	struct err *err;
};

static int find_metric(struct placing *p, const struct metric *metric, uint32_t *ret_id)
{
	struct store_metrics_writer *m = &p->w->metrics;
	struct buf *block = &p->t->block;
	uint64_t hash, known = m->next_metric;
	int r = store_define_encode(metric, block);

	if (r < 0)
		return r;
	hash = hash_bytes(block->data, block->len);
	if (!map_get(&m->metrics, hash, &known)) {
		r = store_day_put(&p->w->day, STORE_DAY_PUT_METRIC, (int64_t)known, buf_view(block),
				  p->err);
		if (r < 0)
			return r;
		if (map_put(&m->metrics, hash, known) < 0)
			return err_oom(p->err);
		m->next_metric++;
	}
	*ret_id = (uint32_t)known;
	return 0;
}

static int new_column(struct placing *p, uint32_t metric, enum store_define_part part,
		      uint64_t hash, uint32_t *ret_column)
{
	struct store_metrics_writer *m = &p->w->metrics;
	struct view attributes = buf_view(&p->t->attributes);
	sqlite3_stmt *stmt = NULL;
	uint64_t column = 0;
	int64_t args[] = {0, metric, part};
	int r, rc;

	(void)map_get(&m->n_columns, p->service, &column);
	args[0] = store_day_series_key(p->service, (uint32_t)column);
	r = store_day_query(&p->w->day, STORE_DAY_PUT_SERIES, args, 3, &stmt, p->err);
	if (r < 0)
		return r;
	rc = sqlite3_bind_blob64(stmt, 4, attributes.len ? attributes.data : (const void *)"",
				 attributes.len, SQLITE_STATIC);
	r = rc == SQLITE_OK ? store_day_next(&p->w->day, stmt, p->err)
			    : store_day_error(&p->w->day, rc, p->err);
	if (r < 0)
		return r;
	if (store_ids_put(&m->columns, hash, (uint32_t)column) < 0 ||
	    count_up(&m->n_columns, p->service, column + 1) < 0)
		return err_oom(p->err);
	*ret_column = (uint32_t)column;
	return 0;
}

/* Whether one more series is too many, or the service has no columns left. */
static bool is_full(const struct placing *p, bool is_new)
{
	const struct store_metrics_writer *m = &p->w->metrics;
	uint64_t active = 0, columns = 0;

	(void)map_get(&m->n_active, p->service, &active);
	(void)map_get(&m->n_columns, p->service, &columns);
	return active >= p->t->budget.series || p->owner->series >= p->t->budget.owner_series ||
	       m->n_active_in_all >= p->t->budget.series_in_all ||
	       (is_new && columns > STORE_METRICS_MAX_COLUMN);
}

static uint64_t series_hash(const struct placing *p, uint32_t column)
{
	uint64_t hash = hash_u64((uint64_t)p->service << 32 | p->labelset);

	return hash_mix(hash + column) | 1;
}

/* The column of a point; 1 if its series fits, 0 if refused. */
static int find_column(struct placing *p, const struct metric_point *point,
		       enum store_define_part part, uint32_t *ret_column)
{
	struct store_metrics_writer *m = &p->w->metrics;
	uint32_t metric, ignored;
	uint64_t hash;
	bool is_new;
	int r = find_metric(p, point->metric, &metric);

	if (r < 0)
		return r;
	buf_clear(&p->t->attributes);
	if (store_define_put_attributes(point->metric, point->attributes, &p->t->attributes) < 0)
		return err_oom(p->err);
	hash = column_hash(p->service, metric, part, buf_view(&p->t->attributes));
	is_new = !store_ids_get(&m->columns, hash, ret_column);
	if (!is_new && store_ids_get(&m->active, series_hash(p, *ret_column), &ignored))
		return 1;
	if (is_full(p, is_new)) {
		p->refused++;
		return 0;
	}
	if (is_new)
		r = new_column(p, metric, part, hash, ret_column);
	if (r < 0)
		return r;
	if (store_ids_put(&m->active, series_hash(p, *ret_column), 1) < 0 ||
	    count_up(&m->n_active, p->service, 0) < 0)
		return err_oom(p->err);
	p->owner->series++;
	m->n_active_in_all++;
	return 1;
}

static int add_cell(struct placing *p, const struct metric_point *point,
		    enum store_define_part part, const double *values, uint32_t width)
{
	uint32_t column;
	int r = find_column(p, point, part, &column);

	/* A metric that the store cannot describe. */
	if (r == -E2BIG) {
		p->refused++;
		return 0;
	}
	if (r <= 0)
		return r;
	p->w->metrics.points++;
	return store_cells_add(&p->t->cells, column, 0, values, width) < 0 ? err_oom(p->err) : 0;
}

static int add_histogram(struct placing *p, const struct metric_point *point)
{
	double values[STORE_METRICS_MAX_WIDTH];
	uint32_t width = (uint32_t)point->metric->n_bounds + 1;
	int r;

	if (!point->buckets)
		return 0;
	if (point->metric->n_bounds >= STORE_METRICS_MAX_WIDTH) {
		p->refused++;
		return 0;
	}
	for (uint32_t i = 0; i < width; i++)
		values[i] = (double)point->buckets[i];
	r = add_cell(p, point, STORE_PART_VALUE, values, width);
	return r < 0 || !isfinite(point->sum) ? r
					      : add_cell(p, point, STORE_PART_SUM, &point->sum, 1);
}

/* Totals are whole numbers. */
static int add_total(struct placing *p, const struct metric *metric, double value)
{
	const struct store_totals_point point = {
		.service = p->service,
		.type = metric->stream,
		.snapshot = metric->kind == METRIC_GAUGE,
		.ms = p->ms,
		.value = llround(MIN(MAX(value, -TOTAL_MAX), TOTAL_MAX)),
	};

	return metric->stream ? store_totals_write(p->w, p->t, &point, p->err) : 0;
}

static int add_point(struct placing *p, const struct metric_point *point)
{
	uint64_t stored;
	double value;
	int r;

	if (point->metric->kind == METRIC_HISTOGRAM)
		return add_histogram(p, point);
	/* A first reading has no known increase: it is a gap, as is NAN. */
	value = point->metric->kind == METRIC_COUNTER ? point->increase : point->value;
	if (!isfinite(value))
		return 0;
	stored = p->w->metrics.points;
	r = add_cell(p, point, STORE_PART_VALUE, &value, 1);
	return r < 0 || p->w->metrics.points == stored ? r : add_total(p, point->metric, value);
}

/* This resource has a reading at this time already: merges both. */
static int add_to_reading(struct placing *p, int64_t key)
{
	const int64_t range[] = {key, key + 1};
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(&p->w->day, STORE_DAY_READINGS, range, 2, &stmt, p->err);

	if (r == 0)
		r = store_day_next(&p->w->day, stmt, p->err);
	if (r <= 0)
		return r;
	r = store_cells_add_reading(&p->t->cells, store_day_blob(stmt, 1), 0);
	store_day_done(stmt);
	/* A damaged one is replaced. */
	if (r == 0 || r == -EBADMSG)
		r = store_cells_encode_reading(&p->t->cells, &p->t->block);
	if (r < 0)
		return err_set(p->err, r, "%s: cannot extend a reading", p->w->day.path);
	return store_day_put(&p->w->day, STORE_DAY_SET_READING, key, buf_view(&p->t->block),
			     p->err);
}

static int put_reading(struct placing *p)
{
	int64_t key = store_day_key(p->service, p->ms, p->labelset);
	int r = store_cells_encode_reading(&p->t->cells, &p->t->block);

	if (r < 0)
		return err_set(p->err, r, "%s: a reading is too large to store", p->w->day.path);
	r = store_day_put(&p->w->day, STORE_DAY_PUT_READING, key, buf_view(&p->t->block), p->err);
	if (r < 0 || sqlite3_changes(p->w->day.db) > 0)
		return r;
	return add_to_reading(p, key);
}

static void begin_hour(struct store_writer *w, int64_t hour)
{
	struct store_metrics_writer *m = &w->metrics;

	if (hour <= m->hour)
		return;
	store_owners_begin_hour(&w->owners);
	store_ids_release(&m->active);
	map_release(&m->n_active);
	m->n_active_in_all = 0;
	m->hour = hour;
}

int store_metrics_write(struct store_writer *w, struct store_writer_tools *t,
			const struct store_metrics *e, uint64_t *ret_refused, struct err *err)
{
	struct placing p = {.w = w,
			    .t = t,
			    .ms = e->time_ns / 1000000 - w->day.number * STORE_DAY_MS,
			    .err = err};
	struct store_dict *d = NULL;
	int r = store_writer_begin_entry(w, t, e->service, e->labels, e->n_labels, err);

	if (r == 0)
		r = load(w, err);
	if (r == 0)
		r = store_writer_service(w, t, e->service, e->uid, &d, err);
	if (r == 0)
		r = store_writer_labelset(w, t, d, &p.labelset, err);
	if (r == 0 && d)
		r = store_about_see(w, d, p.labelset, p.ms, err);
	if (r < 0 || !d)
		return r;
	if (d->service > STORE_DAY_MAX_STREAMS)
		return err_set(err, -E2BIG, "%s has %u services, the maximum", w->day.path,
			       STORE_DAY_MAX_STREAMS);
	p.service = d->service;
	p.owner = d->owner;
	begin_hour(w, e->time_ns / HOUR_NS);
	store_cells_clear(&t->cells);
	for (size_t i = 0; r == 0 && i < e->metrics->len; i++)
		r = add_point(&p, &e->metrics->points[i]);
	*ret_refused = p.refused;
	store_writer_over(t, d->name, d->owner->uid, p.refused);
	return r < 0 || t->cells.len == 0 ? r : put_reading(&p);
}
