/* src/query/top.c: the function table of one or two windows. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sum.h"
#include "query/origin.h"
#include "query/sums.h"

struct top_memory {
	struct intern names;
	struct query_origins origins;
};

struct top_build {
	struct top_memory *memory;
	struct query_row *rows; /* by name */
	size_t cap;
};

static void top_memory_free(struct top_memory *m)
{
	if (!m)
		return;
	intern_release(&m->names);
	query_origins_release(&m->origins);
	free(m);
}

static void top_build_release(struct top_build *b)
{
	top_memory_free(b->memory);
	free(b->rows);
}

static int top_row(struct top_build *b, struct view name, struct query_row **ret_row)
{
	uint32_t id;
	int r = intern_add(&b->memory->names, name, &id);

	if (r < 0)
		return r;
	if (!b->rows || id >= b->cap) {
		size_t cap = b->cap ? b->cap * 2 : 256;
		struct query_row *rows = realloc(b->rows, cap * sizeof(*rows));

		if (!rows)
			return -ENOMEM;
		memset(rows + b->cap, 0, (cap - b->cap) * sizeof(*rows));
		b->rows = rows;
		b->cap = cap;
	}
	*ret_row = &b->rows[id];
	return 0;
}

static int top_add_origins(struct top_build *b, struct profile *p, struct err *err)
{
	struct profile_frames frames;
	int r = profile_frames_init(&frames, p, err);

	if (r == 0 && query_origins_add(&b->memory->origins, &b->memory->names, &frames) < 0)
		r = err_oom(err);
	profile_frames_release(&frames);
	return r;
}

static int top_add_window(struct top_build *b, const struct store_sum *sum, bool before,
			  struct err *err)
{
	_cleanup_(profile_table_release) struct profile_table table = {0};
	uint64_t divisor = query_divisor(sum);
	int r = profile_table_build(sum->profile, 0, &table, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < table.len; i++) {
		const struct profile_row *from = &table.rows[i];
		struct query_row *row;

		r = top_row(b, profile_string(sum->profile, from->name), &row);
		if (r < 0)
			return err_oom(err);
		*(before ? &row->before_self : &row->self) = query_value(from->flat, divisor);
		*(before ? &row->before_total : &row->total) = query_value(from->cum, divisor);
	}
	return top_add_origins(b, sum->profile, err);
}

static int compare_falling(double a, double b)
{
	return (a < b) - (a > b);
}

static int compare_rows(const void *a, const void *b, void *arg)
{
	const struct query_row *x = a, *y = b;
	const bool *change = arg;
	int c;

	/* The columns of a missing window are 0. */
	c = compare_falling(fabs(x->self - x->before_self), fabs(y->self - y->before_self));
	if (c == 0 && *change)
		c = compare_falling(fabs(x->total - x->before_total),
				    fabs(y->total - y->before_total));
	if (c == 0)
		c = compare_falling(fabs(x->total), fabs(y->total));
	return c ? c : strcmp(x->name, y->name);
}

static void top_finish(struct top_build *b, struct query_top *top, bool change)
{
	top->len = b->rows ? b->memory->names.len : 0;
	for (uint32_t i = 0; i < top->len; i++) {
		b->rows[i].name = (const char *)intern_get(&b->memory->names, i).data;
		b->rows[i].file = (const char *)query_origins_file(&b->memory->origins, i).data;
		b->rows[i].variants =
			(const char *)query_origins_variants(&b->memory->origins, i).data;
	}
	if (top->len > 0)
		qsort_r(b->rows, top->len, sizeof(*b->rows), compare_rows, &change);
	top->rows = TAKE_PTR(b->rows);
	top->memory = TAKE_PTR(b->memory);
}

int query_top(struct store *store, const struct store_window *window,
	      const struct store_window *before, struct query_top *ret_top, struct err *err)
{
	_cleanup_(query_sums_release) struct query_sums sums = {0};
	_cleanup_(top_build_release) struct top_build b = {
		.memory = calloc(1, sizeof(struct top_memory))};
	struct query_top top = {0};
	int r;

	if (!b.memory)
		return err_oom(err);
	r = query_sums_read(store, window, before, &sums, err);
	for (size_t i = 0; r == 0 && i < sums.n; i++)
		r = top_add_window(&b, &sums.sum[i], i > 0, err);
	if (r < 0)
		return r;
	top.total = query_total(&sums.sum[0]);
	if (before)
		top.before_total = query_total(&sums.sum[1]);
	query_sums_describe(&sums, &top.about);
	top_finish(&b, &top, before != NULL);
	*ret_top = top;
	return 0;
}

void query_top_release(struct query_top *top)
{
	free(top->rows);
	top_memory_free(top->memory);
	*top = (struct query_top){0};
}
