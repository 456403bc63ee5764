/*
 * src/store/metrics/query.c: series of a window, one by one, with their points. Equal series of
 * several days meet by metric, attributes and labels.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "store/labels.h"
#include "store/metrics/define.h"
#include "store/metrics/scan.h"
#include "store/sqlite_impl.h"

#define MAX_POINTS ((size_t)1 << 20) /* of a series */
#define MAX_VALUES ((size_t)6 << 20) /* of an answer */
#define NOT_WANTED UINT32_MAX

/* A series on its way into the answer. */
struct found {
	struct store_series series;
	uint32_t *counts;  /* of an average: readings by step */
	int64_t *times_ns; /* of the last value: when, by step */
};

struct querying {
	const struct store_metric_query *query;
	struct store_metric_answer answer;
	struct buf found;    /* struct found */
	struct intern names; /* of series, as bytes */
	struct definition metric;
	bool has_metric;
	size_t n_values;
	struct buf name; /* of the series that is looked up */
	/* Of the day being read. */
	struct day *day;
	const struct dictionary *dictionary;
	struct intern labelsets; /* their bytes, by label set + 1 in ids */
	struct map kv;		 /* label set to the id of its bytes */
	struct map series;	 /* label set << 32 | column, to its place in found */
	struct buf steps;	 /* uint32_t: of the times of a block */
	uint64_t block;
	struct damage damage;
};

static void querying_release(struct querying *q)
{
	arena_release(&q->answer.memory);
	buf_release(&q->found);
	buf_release(&q->name);
	buf_release(&q->steps);
	intern_release(&q->names);
	intern_release(&q->labelsets);
	map_release(&q->kv);
	map_release(&q->series);
}

/* --- a series is met for the first time */

static const char *keep_text(struct querying *q, struct view text)
{
	char *copy = arena_alloc(&q->answer.memory, text.len + 1);

	if (copy && text.len)
		memcpy(copy, text.data, text.len);
	return copy;
}

struct keeping {
	struct querying *q;
	struct store_label labels[LABELS_MAX];
	size_t n;
};

static int keep_label(void *ctx, struct view key, struct view value)
{
	struct keeping *k = ctx;
	struct store_label label = {keep_text(k->q, key), keep_text(k->q, value)};

	if (!label.key || !label.value)
		return -ENOMEM;
	k->labels[k->n++] = label;
	return 0;
}

static const struct store_label *keep_labels(struct keeping *k)
{
	return arena_dup(&k->q->answer.memory, k->labels, k->n * sizeof(*k->labels));
}

static struct view labelset_bytes(const struct querying *q, uint32_t labelset)
{
	uint64_t id;

	/* Label set 0 stands for those that found no room. */
	return map_get(&q->kv, labelset, &id) ? intern_get(&q->labelsets, (uint32_t)id)
					      : view_of("", 1);
}

static int describe(struct querying *q, struct store_series *s, const struct define_column *c,
		    uint32_t labelset)
{
	struct keeping attributes = {.q = q}, labels = {.q = q};
	int r = labels_each(labelset_bytes(q, labelset), keep_label, &labels);

	for (size_t i = 0; r == 0 && i < c->metric->n_keys; i++) {
		struct view value;

		if (define_attribute(c->attributes, i, &value) && value.data)
			r = keep_label(&attributes, view_str(c->metric->keys[i]), value);
	}
	if (r < 0)
		return r;
	s->metric = keep_text(q, view_str(c->metric->name));
	s->unit = keep_text(q, view_str(c->metric->unit));
	s->kind = c->metric->kind;
	s->attributes = keep_labels(&attributes);
	s->n_attributes = attributes.n;
	s->labels = keep_labels(&labels);
	s->n_labels = labels.n;
	return s->metric && s->unit && s->attributes && s->labels ? 0 : -ENOMEM;
}

static double *new_row(struct querying *q, size_t n)
{
	double *row;

	q->n_values += n;
	if (q->n_values > MAX_VALUES)
		return NULL;
	row = arena_alloc(&q->answer.memory, n * sizeof(*row));
	for (size_t i = 0; row && i < n; i++)
		row[i] = NAN;
	return row;
}

static int new_points(struct querying *q, struct found *f)
{
	size_t n = q->query->n_points;
	struct arena *memory = &q->answer.memory;

	if (!q->query->metric)
		return 0;
	f->series.width = f->series.kind == METRIC_HISTOGRAM ? (uint32_t)q->metric.n_bounds + 1 : 1;
	f->series.points = new_row(q, n * f->series.width);
	if (!f->series.points)
		return -E2BIG;
	if (f->series.kind != METRIC_GAUGE)
		return 0;
	f->counts = arena_alloc(memory, (n + 1) * sizeof(*f->counts));
	if (q->query->aggregate == STORE_LAST)
		f->times_ns = arena_alloc(memory, (n + 1) * sizeof(*f->times_ns));
	return !f->counts || (q->query->aggregate == STORE_LAST && !f->times_ns) ? -ENOMEM : 0;
}

static int name_series(struct querying *q, const struct define_column *c, uint32_t labelset)
{
	struct view kv = labelset_bytes(q, labelset);
	int r;

	buf_clear(&q->name);
	r = buf_append(&q->name, c->metric->name, strlen(c->metric->name) + 1);
	/* What changed its definition is another one in listings; of one metric, all agree. */
	if (r == 0)
		r = buf_append(&q->name, c->metric->unit, strlen(c->metric->unit) + 1);
	if (r == 0)
		r = buf_append_byte(&q->name, (uint8_t)c->metric->kind);
	if (r == 0)
		r = buf_append_varint(&q->name, c->attributes.len);
	if (r == 0)
		r = buf_append(&q->name, c->attributes.data, c->attributes.len);
	return r < 0 ? r : buf_append(&q->name, kv.data, kv.len);
}

static const struct define_column *find_column(const struct dictionary *d, uint32_t column)
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

static int add_series(struct querying *q, const struct define_column *c, uint32_t labelset,
		      uint32_t *ret_id)
{
	struct found f = {0};
	int r = name_series(q, c, labelset);

	if (r < 0 || intern_add(&q->names, buf_view(&q->name), ret_id) < 0)
		return -ENOMEM;
	if (*ret_id < q->found.len / sizeof(f))
		return 0;
	r = describe(q, &f.series, c, labelset);
	if (r == 0)
		r = new_points(q, &f);
	return r < 0 ? r : buf_append(&q->found, &f, sizeof(f));
}

/* Its place in found; NOT_WANTED for one that the filters leave out. */
static int find_series(struct querying *q, const struct metrics_batch *b, uint32_t *ret_id)
{
	uint64_t key = (uint64_t)b->labelset << 32 | b->column, known;
	const struct define_column *c;
	int r = 0;

	if (map_get(&q->series, key, &known)) {
		*ret_id = (uint32_t)known;
		return 0;
	}
	c = find_column(q->dictionary, b->column);
	*ret_id = NOT_WANTED;
	if (c && (!q->query->metric || q->has_metric))
		r = add_series(q, c, b->labelset, ret_id);
	return r < 0 ? r : map_put(&q->series, key, *ret_id);
}

/* --- its numbers */

/* The steps of the block's times, once for all of its columns. */
static int find_steps(struct querying *q, const struct metrics_batch *b)
{
	int64_t begin = q->day->number * DAY_MS + b->begin_ms;
	uint64_t from = (uint64_t)q->query->from_ns, step = (uint64_t)q->query->step_ns;
	uint32_t *steps;

	if (q->block == b->block && q->block != 0)
		return 0;
	buf_clear(&q->steps);
	if (buf_reserve(&q->steps, b->n * sizeof(*steps)) < 0)
		return -ENOMEM;
	steps = (void *)q->steps.data;
	for (size_t i = 0; i < b->n; i++) {
		/* Unsigned: the window may begin before 1970. */
		uint64_t ns = (uint64_t)(begin + b->times_ms[i]) * 1000000;

		steps[i] = (uint32_t)MIN((ns - from) / step, (uint64_t)q->query->n_points);
	}
	q->block = b->block;
	return 0;
}

static void add_gauge(struct querying *q, struct found *f, const struct metrics_batch *b)
{
	const uint32_t *steps = (const void *)q->steps.data;
	size_t n = q->query->n_points;
	double *points = f->series.points;
	int64_t begin = q->day->number * DAY_MS + b->begin_ms;

	for (size_t i = 0; i < b->n; i++) {
		uint32_t k = steps[i];
		double v = b->values[i];
		bool first;

		if (isnan(v) || k >= n)
			continue;
		first = f->counts[k]++ == 0;
		switch (q->query->aggregate) {
		case STORE_AVERAGE:
			points[k] = first ? v : points[k] + v;
			break;
		case STORE_MIN:
			points[k] = first || v < points[k] ? v : points[k];
			break;
		case STORE_MAX:
			points[k] = first || v > points[k] ? v : points[k];
			break;
		default:
			if (first || begin + b->times_ms[i] >= f->times_ns[k]) {
				points[k] = v;
				f->times_ns[k] = begin + b->times_ms[i];
			}
		}
	}
}

/* Increases add up. */
static void add_increases(struct querying *q, double *points, const struct metrics_batch *b,
			  uint32_t width)
{
	const uint32_t *steps = (const void *)q->steps.data;
	size_t n = q->query->n_points;

	for (uint32_t row = 0; row < width; row++)
		for (size_t i = 0; i < b->n; i++) {
			double v = b->values[row * b->stride + i];
			double *to = &points[row * n + MIN(steps[i], n - 1)];

			if (!isnan(v) && steps[i] < n)
				*to = isnan(*to) ? v : *to + v;
		}
}

static int add_numbers(struct querying *q, uint32_t id, const struct metrics_batch *b)
{
	const struct define_column *c = find_column(q->dictionary, b->column);
	struct found *f = (struct found *)(void *)q->found.data + id;
	int r = find_steps(q, b);

	if (r < 0)
		return r;
	if (c->part == PART_SUM) {
		if (!f->series.sums)
			f->series.sums = new_row(q, q->query->n_points);
		if (!f->series.sums)
			return -E2BIG;
		add_increases(q, f->series.sums, b, 1);
	} else if (b->width != f->series.width) {
		return -EBADMSG;
	} else if (f->series.kind == METRIC_GAUGE) {
		add_gauge(q, f, b);
	} else {
		add_increases(q, f->series.points, b, b->width);
	}
	return 0;
}

static int query_batch(void *ctx, const struct metrics_batch *b)
{
	struct querying *q = ctx;
	int64_t begin = q->day->number * DAY_MS + b->begin_ms;
	size_t first = 0, last = b->n;
	struct store_series *s;
	uint32_t id = NOT_WANTED;
	int r;

	while (first < last && isnan(b->values[first]))
		first++;
	while (last > first && isnan(b->values[last - 1]))
		last--;
	if (first == last)
		return 0;
	r = find_series(q, b, &id);
	if (r < 0 || id == NOT_WANTED)
		return r;
	s = &((struct found *)(void *)q->found.data + id)->series;
	if (s->first_ns == 0 || (begin + b->times_ms[first]) * 1000000 < s->first_ns)
		s->first_ns = (begin + b->times_ms[first]) * 1000000;
	s->last_ns = MAX(s->last_ns, (begin + b->times_ms[last - 1]) * 1000000);
	return q->query->metric ? add_numbers(q, id, b) : 0;
}

/* --- a day */

static bool is_key(const struct definition *m, const char *key)
{
	for (size_t i = 0; i < m->n_keys; i++)
		if (strcmp(m->keys[i], key) == 0)
			return true;
	return false;
}

/* Whether the attributes pass the filters that are about them. */
static bool attributes_pass(const struct querying *q, const struct define_column *c)
{
	for (size_t i = 0; i < q->query->n_filters; i++) {
		const struct store_label *filter = &q->query->filters[i];

		for (size_t k = 0; k < c->metric->n_keys; k++) {
			struct view value = {0};

			if (strcmp(c->metric->keys[k], filter->key) != 0)
				continue;
			(void)define_attribute(c->attributes, k, &value);
			if (!value.data || !view_eq(value, view_str(filter->value)))
				return false;
		}
	}
	return true;
}

/* The columns that are wanted; the first definition of a metric is the one that counts. */
static bool choose_columns(struct querying *q, const struct dictionary *d, uint8_t *bits)
{
	bool any = false;

	memset(bits, 0, METRICS_COLUMN_BYTES);
	for (size_t i = 0; i < d->n_columns; i++) {
		const struct define_column *c = &d->columns[i];

		if (q->query->metric && strcmp(c->metric->name, q->query->metric) != 0)
			continue;
		if (q->query->metric && !q->has_metric) {
			q->metric = *c->metric;
			q->has_metric = true;
		}
		if ((q->query->metric && !define_agrees(&q->metric, c->metric)) ||
		    (!q->query->metric && c->part != PART_VALUE) || !attributes_pass(q, c))
			continue;
		bits[c->column / 8] |= (uint8_t)(1U << c->column % 8);
		any = true;
	}
	return any;
}

/* The labels of the service's label sets, and bits for those that pass the other filters. */
static int choose_labelsets(struct querying *q, uint32_t service, uint8_t **ret_bits,
			    struct err *err)
{
	struct store_label filters[LABELS_MAX];
	struct store_window window = {.filters = filters};
	sqlite3_stmt *stmt = NULL;
	int r;

	for (size_t i = 0; i < MIN(q->query->n_filters, ARRAY_SIZE(filters)); i++)
		if (!q->has_metric || !is_key(&q->metric, q->query->filters[i].key))
			filters[window.n_filters++] = q->query->filters[i];
	r = sqlite_filter(q->day, service, &window, ret_bits, err);
	if (r == 0)
		r = day_query(q->day, DAY_LABELSETS, NULL, 0, &stmt, err);
	while (r == 0 && (r = day_next(q->day, stmt, err)) > 0) {
		uint32_t id;

		r = 0;
		if (sqlite3_column_int64(stmt, 1) != service)
			continue;
		if (intern_add(&q->labelsets, day_blob(stmt, 2), &id) < 0 ||
		    map_put(&q->kv, (uint64_t)sqlite3_column_int64(stmt, 0), id) < 0)
			r = err_oom(err);
	}
	if (r < 0 && stmt)
		day_done(stmt);
	return r;
}

static int query_service(struct querying *q, uint32_t service, const struct dictionary *d,
			 struct err *err)
{
	_cleanup_free_ uint8_t *labelsets = NULL;
	uint8_t columns[METRICS_COLUMN_BYTES];
	struct metrics_scan scan = {
		.service = service,
		.columns = columns,
		.presence = !q->query->metric,
		.fn = query_batch,
		.ctx = q,
		.damage = &q->damage,
	};
	int r;

	if (!choose_columns(q, d, columns))
		return 0;
	r = choose_labelsets(q, service, &labelsets, err);
	if (r < 0)
		return r;
	scan.labelsets = labelsets;
	sqlite_day_window(q->day, q->query->from_ns, q->query->to_ns, &scan.from_ms, &scan.to_ms);
	q->dictionary = d;
	q->block = 0;
	r = metrics_scan(&scan, q->day, err);
	if (r == -E2BIG)
		return err_set(err, r,
			       "the answer would have more than %zu points: ask for a longer step, "
			       "a shorter window or fewer series",
			       MAX_VALUES);
	return r;
}

static int query_day(void *ctx, struct day *day, struct err *err)
{
	_cleanup_(dictionary_release) struct dictionary d = {0};
	struct querying *q = ctx;
	uint32_t service = 0;
	int r = day_has_metrics(day) ? sqlite_find_service(day, q->query->service, &service, err)
				     : 0;

	if (r <= 0)
		return r;
	map_release(&q->kv);
	map_release(&q->series);
	q->day = day;
	r = dictionary_load(&d, day, service, &q->damage, err);
	return r < 0 ? r : query_service(q, service, &d, err);
}

/* What the metric is, or whether there is any, by the dictionaries alone. */
static int describe_day(void *ctx, struct day *day, struct err *err)
{
	_cleanup_(dictionary_release) struct dictionary d = {0};
	struct querying *q = ctx;
	uint32_t service = 0;
	int r = 0;

	if (day_has_metrics(day))
		r = sqlite_find_service(day, q->query->service, &service, err);
	if (r <= 0)
		return r;
	r = dictionary_load(&d, day, service, &q->damage, err);
	for (size_t i = 0; r == 0 && i < d.n_columns; i++)
		if (!q->query->metric || strcmp(d.columns[i].metric->name, q->query->metric) == 0) {
			q->metric = *d.columns[i].metric;
			q->has_metric = true;
		}
	return r;
}

/* --- the answer */

static int compare_label_lists(const struct store_label *a, size_t n_a, const struct store_label *b,
			       size_t n_b)
{
	for (size_t i = 0; i < n_a && i < n_b; i++) {
		int c = strcmp(a[i].key, b[i].key);

		if (c == 0)
			c = strcmp(a[i].value, b[i].value);
		if (c != 0)
			return c;
	}
	return n_a < n_b ? -1 : n_a > n_b;
}

static int compare_series(const void *va, const void *vb)
{
	const struct store_series *a = va, *b = vb;
	int c = strcmp(a->metric, b->metric);

	if (c == 0)
		c = compare_label_lists(a->attributes, a->n_attributes, b->attributes,
					b->n_attributes);
	return c ? c : compare_label_lists(a->labels, a->n_labels, b->labels, b->n_labels);
}

static int finish(struct querying *q)
{
	const struct found *found = (const void *)q->found.data;
	struct store_metric_answer *a = &q->answer;
	size_t len = q->found.len / sizeof(*found);
	const char *unit = keep_text(q, view_str(q->metric.unit));
	double *bounds;

	a->series = arena_alloc(&a->memory, (len + 1) * sizeof(*a->series));
	bounds = arena_dup(&a->memory, q->metric.bounds, sizeof(q->metric.bounds));
	if (!a->series || !bounds || !unit)
		return -ENOMEM;
	for (size_t i = 0; i < len; i++) {
		a->series[i] = found[i].series;
		if (!found[i].counts || q->query->aggregate != STORE_AVERAGE)
			continue;
		for (size_t k = 0; k < q->query->n_points; k++)
			a->series[i].points[k] /= found[i].counts[k];
	}
	if (len > 0)
		qsort(a->series, len, sizeof(*a->series), compare_series);
	a->len = len;
	a->known = q->has_metric || len > 0;
	a->kind = q->metric.kind;
	a->unit = unit;
	a->bounds = bounds;
	a->n_bounds = q->metric.n_bounds;
	return 0;
}

int sqlite_metrics(struct store *store, const struct store_metric_query *query,
		   struct store_metric_answer *ret_answer, struct err *err)
{
	_cleanup_(querying_release) struct querying q = {.query = query};
	struct store_sqlite *s = store_sqlite(store);
	int r;

	if (query->metric && (query->n_points == 0 || query->n_points > MAX_POINTS))
		return err_set(err, -E2BIG, "a series has 1 to %zu points, not %zu", MAX_POINTS,
			       query->n_points);
	r = sqlite_each_day(s, query->from_ns, query->to_ns, query_day, &q, err);
	if (r == 0 && !q.has_metric && q.found.len == 0)
		r = sqlite_each_day(s, 0, INT64_MAX, describe_day, &q, err);
	sqlite_count_damage(s, &q.damage);
	if (r == 0 && finish(&q) < 0)
		r = err_oom(err);
	if (r < 0)
		return r;
	*ret_answer = q.answer;
	q.answer = (struct store_metric_answer){0};
	return 0;
}
