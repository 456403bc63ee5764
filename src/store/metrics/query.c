/* src/store/metrics/query.c: finds the series of a query, day by day. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "store/codec/labels.h"
#include "store/metrics/gather.h"
#include "store/sqlite/state.h"

#define MAX_POINTS ((size_t)1 << 20) /* of a series */

struct querying {
	struct store_gather gather;
	/* Of the day being read. */
	struct store_day *day;
	const struct store_dictionary *dictionary;
	struct intern labelsets; /* bytes of label sets */
	struct map kv;		 /* label set to the id of its bytes */
	struct map series;	 /* label set << 32 | column, to the series */
};

static void querying_release(struct querying *q)
{
	store_gather_release(&q->gather);
	intern_release(&q->labelsets);
	map_release(&q->kv);
	map_release(&q->series);
}

/* False if it is lost. Label set 0 stands for those over the limit. */
static bool labelset_bytes(const struct querying *q, uint32_t labelset, struct view *ret_kv)
{
	uint64_t id;

	*ret_kv = view_of("", 1);
	if (labelset == 0)
		return true;
	if (!map_get(&q->kv, labelset, &id))
		return false;
	*ret_kv = intern_get(&q->labelsets, (uint32_t)id);
	return true;
}

static const struct store_define_column *find_column(const struct store_dictionary *d,
						     uint32_t column)
{
	size_t low = 0, high = d->n_columns;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (d->columns[middle].column == column)
			return &d->columns[middle];
		if (d->columns[middle].column < column)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static int find_series(struct querying *q, const struct store_define_column *c, uint32_t labelset,
		       uint32_t *ret_id)
{
	uint64_t key = (uint64_t)labelset << 32 | c->column, known;
	struct view kv;
	int r;

	if (map_get(&q->series, key, &known)) {
		*ret_id = (uint32_t)known;
		return 0;
	}
	if (!labelset_bytes(q, labelset, &kv))
		return -EBADMSG;
	r = store_gather_series(&q->gather, c, kv, ret_id);
	return r < 0 ? r : map_put(&q->series, key, *ret_id);
}

static int query_batch(void *ctx, const struct store_metrics_batch *b)
{
	struct querying *q = ctx;
	int64_t day_ms = q->day->number * STORE_DAY_MS, begin = day_ms + b->begin_ms;
	const struct store_define_column *c;
	size_t first = 0, last = b->n;
	uint32_t id;
	int r;

	while (first < last && isnan(b->values[first]))
		first++;
	while (last > first && isnan(b->values[last - 1]))
		last--;
	if (first == last)
		return 0;
	c = find_column(q->dictionary, b->column);
	r = c ? find_series(q, c, b->labelset, &id) : -EBADMSG;
	if (r < 0)
		return r;
	store_gather_span(&q->gather, id, (begin + b->times_ms[first]) * 1000000,
			  (begin + b->times_ms[last - 1]) * 1000000);
	return q->gather.query->metric ? store_gather_add(&q->gather, id, c->part, b, day_ms) : 0;
}

static bool is_key(const struct store_definition *m, const char *key)
{
	for (size_t i = 0; i < m->n_keys; i++)
		if (strcmp(m->keys[i], key) == 0)
			return true;
	return false;
}

/* Whether the attributes match their filters. */
static bool attributes_pass(const struct querying *q, const struct store_define_column *c)
{
	for (size_t i = 0; i < q->gather.query->n_filters; i++) {
		const struct label *filter = &q->gather.query->filters[i];

		for (size_t k = 0; k < c->metric->n_keys; k++) {
			struct view value = {0};

			if (strcmp(c->metric->keys[k], filter->key) != 0)
				continue;
			(void)store_define_attribute(c->attributes, k, &value);
			if (!value.data || !view_eq(value, view_str(filter->value)))
				return false;
		}
	}
	return true;
}

/* The wanted columns; the first definition of a metric counts. */
static bool choose_columns(struct querying *q, const struct store_dictionary *d, uint8_t *bits)
{
	bool any = false;

	memset(bits, 0, STORE_METRICS_COLUMN_BYTES);
	for (size_t i = 0; i < d->n_columns; i++) {
		const struct store_define_column *c = &d->columns[i];

		if (q->gather.query->metric &&
		    strcmp(c->metric->name, q->gather.query->metric) != 0)
			continue;
		if (q->gather.query->metric && !q->gather.has_metric) {
			q->gather.metric = *c->metric;
			q->gather.has_metric = true;
		}
		if ((q->gather.query->metric &&
		     !store_define_agrees(&q->gather.metric, c->metric)) ||
		    (!q->gather.query->metric && c->part != STORE_PART_VALUE) ||
		    !attributes_pass(q, c))
			continue;
		bits[c->column / 8] |= (uint8_t)(1U << c->column % 8);
		any = true;
	}
	return any;
}

/* The labels of the service's label sets, and bits for those that match the other filters. */
static int choose_labelsets(struct querying *q, uint32_t service, uint8_t **ret_bits,
			    struct err *err)
{
	struct label filters[STORE_LABELS_MAX];
	struct store_window window = {.filters = filters};
	sqlite3_stmt *stmt = NULL;
	int r;

	for (size_t i = 0; i < MIN(q->gather.query->n_filters, ARRAY_SIZE(filters)); i++)
		if (!q->gather.has_metric ||
		    !is_key(&q->gather.metric, q->gather.query->filters[i].key))
			filters[window.n_filters++] = q->gather.query->filters[i];
	r = store_sqlite_filter(q->day, service, &window, ret_bits, err);
	if (r == 0)
		r = store_day_query(q->day, STORE_DAY_LABELSETS, NULL, 0, &stmt, err);
	while (r == 0 && (r = store_day_next(q->day, stmt, err)) > 0) {
		uint32_t id;

		r = 0;
		if (sqlite3_column_int64(stmt, 1) != service)
			continue;
		if (intern_add(&q->labelsets, store_day_blob(stmt, 2), &id) < 0 ||
		    map_put(&q->kv, (uint64_t)sqlite3_column_int64(stmt, 0), id) < 0)
			r = err_oom(err);
	}
	if (r < 0 && stmt)
		store_day_done(stmt);
	return r;
}

static int query_service(struct querying *q, uint32_t service, const struct store_dictionary *d,
			 struct err *err)
{
	_cleanup_free_ uint8_t *labelsets = NULL;
	uint8_t columns[STORE_METRICS_COLUMN_BYTES];
	struct store_metrics_scan scan = {
		.service = service,
		.columns = columns,
		.presence = !q->gather.query->metric,
		.fn = query_batch,
		.ctx = q,
	};
	int r;

	if (!choose_columns(q, d, columns))
		return 0;
	r = choose_labelsets(q, service, &labelsets, err);
	if (r < 0)
		return r;
	scan.labelsets = labelsets;
	store_sqlite_day_window(q->day, q->gather.query->from_ns, q->gather.query->to_ns,
				&scan.from_ms, &scan.to_ms);
	q->dictionary = d;
	q->gather.times = 0;
	r = store_metrics_scan(&scan, q->day, err);
	if (r == -E2BIG)
		return err_set(err, r,
			       "the result would have more than %zu points; use a larger step, a "
			       "shorter window or fewer series",
			       STORE_GATHER_MAX_VALUES);
	return r;
}

static int query_day(void *ctx, struct store_day *day, struct err *err)
{
	_cleanup_(store_dictionary_release) struct store_dictionary d = {0};
	struct querying *q = ctx;
	uint32_t service = 0;
	int r = store_day_has_metrics(day)
			? store_sqlite_find_service(day, q->gather.query->service, &service, err)
			: 0;

	if (r <= 0)
		return r;
	map_release(&q->kv);
	map_release(&q->series);
	q->day = day;
	r = store_dictionary_load(&d, day, service, err);
	return r < 0 ? r : query_service(q, service, &d, err);
}

/* The definition of the metric, or whether there is one, from the dictionaries only. */
static int describe_day(void *ctx, struct store_day *day, struct err *err)
{
	_cleanup_(store_dictionary_release) struct store_dictionary d = {0};
	struct querying *q = ctx;
	uint32_t service = 0;
	int r = 0;

	if (store_day_has_metrics(day))
		r = store_sqlite_find_service(day, q->gather.query->service, &service, err);
	if (r <= 0)
		return r;
	r = store_dictionary_load(&d, day, service, err);
	for (size_t i = 0; r == 0 && i < d.n_columns; i++)
		if (!q->gather.query->metric ||
		    strcmp(d.columns[i].metric->name, q->gather.query->metric) == 0) {
			q->gather.metric = *d.columns[i].metric;
			q->gather.has_metric = true;
		}
	return r;
}

int store_sqlite_metrics(struct store *store, const struct store_metric_query *query,
			 struct store_metric_answer *ret_answer, struct err *err)
{
	_cleanup_(querying_release) struct querying q = {.gather = {.query = query}};
	const struct store_sqlite_span span = {query->from_ns, query->to_ns, query->damaged};
	const struct store_sqlite_span always = {0, INT64_MAX, NULL};
	struct store_sqlite *s = store_sqlite(store);
	int r;

	if (query->metric && (query->n_points == 0 || query->n_points > MAX_POINTS))
		return err_set(err, -E2BIG, "a series must have 1 to %zu points, not %zu",
			       MAX_POINTS, query->n_points);
	r = store_sqlite_each_day(s, &span, query_day, &q, err);
	if (r == 0 && !q.gather.has_metric && q.gather.found.len == 0)
		r = store_sqlite_each_day(s, &always, describe_day, &q, err);
	if (r < 0)
		return r;
	return store_gather_finish(&q.gather, ret_answer) < 0 ? err_oom(err) : 0;
}
