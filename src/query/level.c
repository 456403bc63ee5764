/* src/query/level.c: see level.h. */
#include "query/level.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/intern.h"

/* Readings this long before a window tell how often a process is read. */
#define LEVEL_MARGIN_NS (1800 * (int64_t)NS_PER_SEC)
/* Points of series that stand from before: more are left out. */
#define LEVEL_MAX_POINTS ((size_t)1 << 22)

struct span {
	int64_t begin_ns;
	int64_t end_ns;
};

/* What is known of a series, in the window and before it. */
struct life {
	struct span span; /* from its first reading until none has come although one was due */
	uint64_t readings;
	double standing; /* the last value before the window; NAN if it had none */
	int64_t standing_ns;
	double interval_ns; /* between two readings; INFINITY if there are no two */
};

/* --- which series is which */

static int append_labels(struct buf *name, const struct label *labels, size_t n)
{
	int r = buf_append_byte(name, (uint8_t)n);

	for (size_t i = 0; r == 0 && i < n; i++) {
		r = buf_append(name, labels[i].key, strlen(labels[i].key) + 1);
		if (r == 0)
			r = buf_append(name, labels[i].value, strlen(labels[i].value) + 1);
	}
	return r;
}

static int name_series(const struct store_series *s, struct buf *name)
{
	int r;

	buf_clear(name);
	r = append_labels(name, s->attributes, s->n_attributes);
	return r < 0 ? r : append_labels(name, s->labels, s->n_labels);
}

/* --- what was before */

static int read_before(struct store *store, const struct store_metric_query *q,
		       struct store_metric_answer *ret_before, struct err *err)
{
	struct store_metric_query before = *q;

	if (q->from_ns < LEVEL_MARGIN_NS)
		return 0;
	before.from_ns = q->from_ns - LEVEL_MARGIN_NS;
	before.to_ns = q->from_ns;
	before.step_ns = LEVEL_MARGIN_NS;
	before.n_points = 1;
	before.aggregate = STORE_LAST;
	before.damaged = NULL;
	return store_metrics(store, &before, ret_before, err);
}

/* A copy without points, which is filled by the value that stands. */
static int take_before(const struct store_series *from, size_t n_points, struct arena *memory,
		       struct store_series *to)
{
	double *points = arena_alloc(memory, (n_points + 1) * sizeof(*points));

	if (!points)
		return -ENOMEM;
	*to = *from;
	to->points = points;
	to->readings = NULL;
	for (size_t i = 0; i < n_points; i++)
		points[i] = NAN;
	return 0;
}

static void life_measure(struct life *life)
{
	life->interval_ns = life->readings > 1 ? (double)(life->span.end_ns - life->span.begin_ns) /
							 (double)(life->readings - 1)
					       : (double)INFINITY;
}

static struct life life_of(const struct store_series *s, size_t n)
{
	struct life life = {.span = {s->first_ns, s->last_ns}, .standing = NAN};

	for (size_t i = 0; i < n; i++)
		life.readings += s->readings[i];
	life_measure(&life);
	return life;
}

/* The same series before the window. */
static void life_begin_before(struct life *life, const struct store_series *before)
{
	life->span.begin_ns = before->first_ns;
	life->readings += before->readings[0];
	life->standing = before->points[0];
	life->standing_ns = before->last_ns;
	life_measure(life);
}

/* One that has not been read in the window, because it was not due. */
static bool stands_from_before(const struct life *life, int64_t from_ns)
{
	return !isinf(life->interval_ns) &&
	       (double)life->span.end_ns + life->interval_ns > (double)from_ns;
}

struct leveling {
	const struct store_metric_query *query;
	struct store_metric_answer *answer;
	struct life *lives; /* of each series */
	size_t n_added;	    /* points of those that stand from before */
};

static int add_standing(struct leveling *l, const struct store_series *before)
{
	struct store_metric_answer *a = l->answer;
	struct life life = life_of(before, 1);
	int r;

	if (!stands_from_before(&life, l->query->from_ns) ||
	    l->query->n_points > LEVEL_MAX_POINTS - l->n_added)
		return 0;
	l->n_added += l->query->n_points;
	life.standing = before->points[0];
	life.standing_ns = before->last_ns;
	r = take_before(before, l->query->n_points, &a->memory, &a->series[a->len]);
	if (r == 0)
		l->lives[a->len++] = life;
	return r;
}

/* Room for those that are added. */
static int make_room(struct leveling *l, size_t more)
{
	struct store_metric_answer *a = l->answer;
	struct store_series *series =
		arena_alloc(&a->memory, (a->len + more + 1) * sizeof(*series));

	l->lives = calloc(a->len + more + 1, sizeof(*l->lives));
	if (!series || !l->lives)
		return -ENOMEM;
	memcpy(series, a->series, a->len * sizeof(*series));
	a->series = series;
	return 0;
}

static int join_before(struct leveling *l, const struct store_metric_answer *before)
{
	_cleanup_(intern_release) struct intern names = {0};
	_cleanup_(buf_release) struct buf name = {0};
	size_t len = l->answer->len;
	int r = make_room(l, before->len);
	uint32_t id = 0;

	for (size_t i = 0; r == 0 && i < len; i++) {
		l->lives[i] = life_of(&l->answer->series[i], l->query->n_points);
		r = name_series(&l->answer->series[i], &name);
		if (r == 0)
			r = intern_add(&names, buf_view(&name), &id);
	}
	for (size_t i = 0; r == 0 && i < before->len; i++) {
		const struct store_series *s = &before->series[i];

		r = name_series(s, &name);
		if (r < 0 || !s->readings || !s->readings[0])
			continue;
		if (intern_find(&names, buf_view(&name), &id))
			life_begin_before(&l->lives[id], s);
		else
			r = add_standing(l, s);
	}
	return r;
}

/* --- values that stand */

static int compare_sizes(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return (x > y) - (x < y);
}

/* The usual number of steps between two points; 0 if there are fewer. */
static size_t usual_gap(const double *points, size_t n, size_t *gaps)
{
	size_t len = 0, last = n;

	for (size_t i = 0; i < n; i++) {
		if (isnan(points[i]))
			continue;
		if (last < i)
			gaps[len++] = i - last;
		last = i;
	}
	if (len)
		qsort(gaps, len, sizeof(*gaps), compare_sizes);
	return len ? gaps[(len - 1) / 2] : 0;
}

/*
 * A process that is read at longer intervals has its last value until the next one is due, which
 * may be late.
 */
static void hold_row(double *points, const struct store_metric_query *q, const struct life *life,
		     size_t *gaps)
{
	size_t gap = usual_gap(points, q->n_points, gaps);
	double value = life->standing, since = INFINITY;

	if (gap == 0 && !isinf(life->interval_ns))
		gap = (size_t)ceil(life->interval_ns / (double)q->step_ns);
	if (!isnan(value))
		since = ceil((double)(q->from_ns - life->standing_ns) / (double)q->step_ns);
	for (size_t i = 0; gap > 1 && i < q->n_points; i++, since++) {
		if (!isnan(points[i])) {
			value = points[i];
			since = 0;
		} else if (since <= 1.5 * (double)gap) {
			points[i] = value;
		}
	}
}

/* --- the time of a life */

static int compare_spans(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

/* Ends each life when its next reading would have been due; nothing was due after the last one. */
static void end_lives(struct leveling *l, size_t n)
{
	double least = INFINITY;
	int64_t end = INT64_MIN;

	for (size_t i = 0; i < n; i++)
		least = MIN(least, l->lives[i].interval_ns);
	if (isinf(least) || least < 1)
		least = (double)l->query->step_ns;
	for (size_t i = 0; i < n; i++)
		end = MAX(end, l->lives[i].span.end_ns + (int64_t)least);
	for (size_t i = 0; i < n; i++) {
		struct life *life = &l->lives[i];
		double interval = isinf(life->interval_ns) ? least : life->interval_ns;

		/* Of those that are read rarely, the next reading may be late. */
		if (interval > 1.5 * least)
			interval *= 1.5;
		life->span.end_ns = MIN(life->span.end_ns + (int64_t)MAX(interval, 1), end);
	}
}

/* The times at which anything lived. */
static size_t merge_lives(const struct life *lives, size_t n, struct span *spans)
{
	size_t len = 0;

	for (size_t i = 0; i < n; i++)
		spans[i] = lives[i].span;
	if (n)
		qsort(spans, n, sizeof(*spans), compare_spans);
	for (size_t i = 0; i < n; i++) {
		if (len && spans[i].begin_ns <= spans[len - 1].end_ns)
			spans[len - 1].end_ns = MAX(spans[len - 1].end_ns, spans[i].end_ns);
		else
			spans[len++] = spans[i];
	}
	return len;
}

static double overlap(const struct span *a, const struct span *b)
{
	int64_t begin = MAX(a->begin_ns, b->begin_ns), end = MIN(a->end_ns, b->end_ns);

	return end > begin ? (double)(end - begin) : 0;
}

/* One that lived for a part of the step counts for that part of what others lived of it. */
static void weigh_rows(struct leveling *l, size_t n, const struct span *spans, size_t n_spans)
{
	const struct store_metric_query *q = l->query;

	for (size_t k = 0; k < q->n_points; k++) {
		struct span step = {q->from_ns + (int64_t)k * q->step_ns,
				    q->from_ns + (int64_t)(k + 1) * q->step_ns};
		double whole = 0;

		for (size_t i = 0; i < n_spans; i++)
			whole += overlap(&spans[i], &step);
		for (size_t i = 0; i < n; i++) {
			double part = overlap(&l->lives[i].span, &step);

			l->answer->series[i].points[k] *= part > 0 ? MIN(part / whole, 1.0) : NAN;
		}
	}
}

/* The ones added from before may stand nowhere in the window. */
static void drop_empty(struct store_metric_answer *a, size_t first, size_t n_points)
{
	size_t len = first;

	for (size_t i = first; i < a->len; i++) {
		bool any = false;

		for (size_t k = 0; k < n_points; k++)
			any |= !isnan(a->series[i].points[k]);
		if (any)
			a->series[len++] = a->series[i];
	}
	a->len = len;
}

static int level(struct leveling *l, const struct store_metric_answer *before)
{
	size_t known = l->answer->len;
	_cleanup_free_ size_t *gaps = calloc(l->query->n_points + 1, sizeof(*gaps));
	_cleanup_free_ struct span *spans = calloc(known + before->len + 1, sizeof(*spans));
	int r = gaps && spans ? join_before(l, before) : -ENOMEM;
	size_t n = l->answer->len;

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		hold_row(l->answer->series[i].points, l->query, &l->lives[i], gaps);
	if (l->query->aggregate == STORE_AVERAGE) {
		end_lives(l, n);
		weigh_rows(l, n, spans, merge_lives(l->lives, n, spans));
	}
	drop_empty(l->answer, known, l->query->n_points);
	return 0;
}

int query_level(struct store *store, const struct store_metric_query *query,
		struct store_metric_answer *answer, struct store_metric_answer *ret_before,
		struct err *err)
{
	struct leveling l = {.query = query, .answer = answer};
	int r = read_before(store, query, ret_before, err);

	if (r < 0)
		return r;
	r = level(&l, ret_before);
	free(l.lives);
	return r < 0 ? err_oom(err) : 0;
}
