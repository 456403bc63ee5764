/* src/store/metrics/gather.c: see gather.h. */
#include "store/metrics/gather.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/codec/labels.h"

/* A series on its way into the result. */
struct found {
	struct store_series series;
	uint32_t *counts;  /* for averages: readings per step */
	int64_t *times_ms; /* for last values: their times, per step */
};

void store_gather_release(struct store_gather *g)
{
	arena_release(&g->answer.memory);
	buf_release(&g->found);
	buf_release(&g->name);
	buf_release(&g->runs);
	intern_release(&g->names);
}

static const char *keep_text(struct store_gather *g, struct view text)
{
	char *copy = arena_alloc(&g->answer.memory, text.len + 1);

	if (copy && text.len)
		memcpy(copy, text.data, text.len);
	return copy;
}

struct keeping {
	struct store_gather *g;
	struct label labels[STORE_LABELS_MAX];
	size_t n;
};

static int keep_label(void *ctx, struct view key, struct view value)
{
	struct keeping *k = ctx;
	struct label label = {keep_text(k->g, key), keep_text(k->g, value)};

	if (!label.key || !label.value)
		return -ENOMEM;
	k->labels[k->n++] = label;
	return 0;
}

static const struct label *keep_labels(struct keeping *k)
{
	return arena_dup(&k->g->answer.memory, k->labels, k->n * sizeof(*k->labels));
}

static int describe(struct store_gather *g, struct store_series *s,
		    const struct store_define_column *c, struct view kv)
{
	struct keeping attributes = {.g = g}, labels = {.g = g};
	int r = store_labels_each(kv, keep_label, &labels);

	for (size_t i = 0; r == 0 && i < c->metric->n_keys; i++) {
		struct view value;

		if (store_define_attribute(c->attributes, i, &value) && value.data)
			r = keep_label(&attributes, view_str(c->metric->keys[i]), value);
	}
	if (r < 0)
		return r;
	s->metric = keep_text(g, view_str(c->metric->name));
	s->unit = keep_text(g, view_str(c->metric->unit));
	s->kind = c->metric->kind;
	s->attributes = keep_labels(&attributes);
	s->n_attributes = attributes.n;
	s->labels = keep_labels(&labels);
	s->n_labels = labels.n;
	return s->metric && s->unit && s->attributes && s->labels ? 0 : -ENOMEM;
}

static double *new_row(struct store_gather *g, size_t n)
{
	double *row;

	g->n_values += n;
	if (g->n_values > STORE_GATHER_MAX_VALUES)
		return NULL;
	row = arena_alloc(&g->answer.memory, n * sizeof(*row));
	for (size_t i = 0; row && i < n; i++)
		row[i] = NAN;
	return row;
}

static int new_points(struct store_gather *g, struct found *f)
{
	size_t n = g->query->n_points;
	struct arena *memory = &g->answer.memory;

	if (!g->query->metric)
		return 0;
	f->series.width = f->series.kind == METRIC_HISTOGRAM ? (uint32_t)g->metric.n_bounds + 1 : 1;
	f->series.points = new_row(g, n * f->series.width);
	if (!f->series.points)
		return -E2BIG;
	if (f->series.kind != METRIC_GAUGE)
		return 0;
	f->counts = arena_alloc(memory, (n + 1) * sizeof(*f->counts));
	if (g->query->aggregate == STORE_LAST)
		f->times_ms = arena_alloc(memory, (n + 1) * sizeof(*f->times_ms));
	return !f->counts || (g->query->aggregate == STORE_LAST && !f->times_ms) ? -ENOMEM : 0;
}

static int name_series(struct store_gather *g, const struct store_define_column *c, struct view kv)
{
	int r;

	buf_clear(&g->name);
	r = buf_append(&g->name, c->metric->name, strlen(c->metric->name) + 1);
	/*
	 * In listings, a changed definition is another metric; in queries for one metric, all
	 * agree.
	 */
	if (r == 0)
		r = buf_append(&g->name, c->metric->unit, strlen(c->metric->unit) + 1);
	if (r == 0)
		r = buf_append_byte(&g->name, (uint8_t)c->metric->kind);
	if (r == 0)
		r = buf_append_varint(&g->name, c->attributes.len);
	if (r == 0)
		r = buf_append(&g->name, c->attributes.data, c->attributes.len);
	return r < 0 ? r : buf_append(&g->name, kv.data, kv.len);
}

int store_gather_series(struct store_gather *g, const struct store_define_column *c,
			struct view labels, uint32_t *ret_id)
{
	struct found f = {0};
	int r = name_series(g, c, labels);

	if (r < 0)
		return -ENOMEM;
	if (intern_find(&g->names, buf_view(&g->name), ret_id))
		return 0;
	r = describe(g, &f.series, c, labels);
	if (r == 0)
		r = new_points(g, &f);
	if (r == 0)
		r = intern_add(&g->names, buf_view(&g->name), ret_id);
	return r < 0 ? r : buf_append(&g->found, &f, sizeof(f));
}

static struct found *found_at(struct store_gather *g, uint32_t id)
{
	return (struct found *)(void *)g->found.data + id;
}

void store_gather_span(struct store_gather *g, uint32_t id, int64_t first_ns, int64_t last_ns)
{
	struct store_series *s = &found_at(g, id)->series;

	if (s->first_ns == 0 || first_ns < s->first_ns)
		s->first_ns = first_ns;
	s->last_ns = MAX(s->last_ns, last_ns);
}

/* --- its numbers */

/* Consecutive times in one step. */
struct run {
	uint32_t step;
	uint32_t end; /* end of the run */
};

/* The steps of the batch's times, computed once for all that share them. */
static int find_steps(struct store_gather *g, const struct store_metrics_batch *b, int64_t day_ms)
{
	int64_t begin = day_ms + b->begin_ms;
	uint64_t from = (uint64_t)g->query->from_ns, step = (uint64_t)g->query->step_ns;
	struct run run = {0};

	if (g->times == b->times && g->times != 0)
		return 0;
	buf_clear(&g->runs);
	for (size_t i = 0; i < b->n; i++) {
		/* Unsigned: the window may start before 1970. */
		uint64_t ns = (uint64_t)(begin + b->times_ms[i]) * 1000000;
		uint32_t at = (uint32_t)MIN((ns - from) / step, (uint64_t)g->query->n_points);

		if (i > 0 && at != run.step && buf_append(&g->runs, &run, sizeof(run)) < 0)
			return -ENOMEM;
		run = (struct run){at, (uint32_t)i + 1};
	}
	g->times = b->times;
	return buf_append(&g->runs, &run, sizeof(run));
}

/* Aggregates the values of a run. */
struct total {
	double sum;
	double min;
	double max;
	double last;
	uint32_t last_at;
	uint32_t n;
};

static struct total add_up(const double *values, uint32_t begin, uint32_t end)
{
	struct total t = {.min = INFINITY, .max = -INFINITY};

	for (uint32_t i = begin; i < end; i++) {
		double v = values[i];

		if (isnan(v))
			continue;
		t.sum += v;
		t.min = MIN(t.min, v);
		t.max = MAX(t.max, v);
		t.last = v;
		t.last_at = i;
		t.n++;
	}
	return t;
}

static void add_gauge(const struct store_gather *g, struct found *f, uint32_t step,
		      const struct total *t, int64_t last_ms)
{
	double *point = &f->series.points[step];
	bool first = f->counts[step] == 0;

	f->counts[step] += t->n;
	switch (g->query->aggregate) {
	case STORE_AVERAGE:
		*point = first ? t->sum : *point + t->sum;
		break;
	case STORE_MIN:
		*point = first ? t->min : MIN(*point, t->min);
		break;
	case STORE_MAX:
		*point = first ? t->max : MAX(*point, t->max);
		break;
	default:
		if (first || last_ms >= f->times_ms[step]) {
			*point = t->last;
			f->times_ms[step] = last_ms;
		}
	}
}

static void add_gauges(const struct store_gather *g, struct found *f,
		       const struct store_metrics_batch *b, int64_t day_ms)
{
	const struct run *runs = (const void *)g->runs.data;
	uint32_t at = 0;

	for (size_t i = 0; i < g->runs.len / sizeof(*runs); at = runs[i++].end) {
		struct total t = add_up(b->values, at, runs[i].end);

		if (t.n > 0 && runs[i].step < g->query->n_points)
			add_gauge(g, f, runs[i].step, &t,
				  day_ms + b->begin_ms + b->times_ms[t.last_at]);
	}
}

/* Increases add up. */
static void add_increases(const struct store_gather *g, double *points,
			  const struct store_metrics_batch *b, uint32_t width)
{
	const struct run *runs = (const void *)g->runs.data;
	size_t n = g->query->n_points;

	for (uint32_t row = 0; row < width; row++) {
		uint32_t at = 0;

		for (size_t i = 0; i < g->runs.len / sizeof(*runs); at = runs[i++].end) {
			struct total t = add_up(b->values + row * b->stride, at, runs[i].end);
			double *to = &points[row * n + runs[i].step];

			if (t.n > 0 && runs[i].step < n)
				*to = isnan(*to) ? t.sum : *to + t.sum;
		}
	}
}

int store_gather_add(struct store_gather *g, uint32_t id, enum store_define_part part,
		     const struct store_metrics_batch *b, int64_t day_ms)
{
	struct found *f = found_at(g, id);
	int r = find_steps(g, b, day_ms);

	if (r < 0)
		return r;
	if (part == STORE_PART_SUM) {
		if (!f->series.sums)
			f->series.sums = new_row(g, g->query->n_points);
		if (!f->series.sums)
			return -E2BIG;
		add_increases(g, f->series.sums, b, 1);
	} else if (b->width != f->series.width) {
		return -EBADMSG;
	} else if (f->series.kind == METRIC_GAUGE) {
		add_gauges(g, f, b, day_ms);
	} else {
		add_increases(g, f->series.points, b, b->width);
	}
	return 0;
}

/* --- the result */

static int compare_label_lists(const struct label *a, size_t n_a, const struct label *b, size_t n_b)
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

int store_gather_finish(struct store_gather *g, struct store_metric_answer *ret_answer)
{
	const struct found *found = (const void *)g->found.data;
	struct store_metric_answer *a = &g->answer;
	size_t len = g->found.len / sizeof(*found);
	const char *unit = keep_text(g, view_str(g->metric.unit));
	double *bounds;

	a->series = arena_alloc(&a->memory, (len + 1) * sizeof(*a->series));
	bounds = arena_dup(&a->memory, g->metric.bounds, sizeof(g->metric.bounds));
	if (!a->series || !bounds || !unit)
		return -ENOMEM;
	for (size_t i = 0; i < len; i++) {
		a->series[i] = found[i].series;
		a->series[i].readings = found[i].counts;
		if (!found[i].counts || g->query->aggregate != STORE_AVERAGE)
			continue;
		for (size_t k = 0; k < g->query->n_points; k++)
			a->series[i].points[k] /= found[i].counts[k];
	}
	if (len > 0)
		qsort(a->series, len, sizeof(*a->series), compare_series);
	a->len = len;
	a->known = g->has_metric || len > 0;
	a->kind = g->metric.kind;
	a->unit = unit;
	a->bounds = bounds;
	a->n_bounds = g->metric.n_bounds;
	*ret_answer = *a;
	*a = (struct store_metric_answer){0};
	return 0;
}
