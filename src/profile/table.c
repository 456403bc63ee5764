/* src/profile/table.c: the function table of tree.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sum.h"
#include "profile/frames.h"
#include "profile/tree.h"

struct table_builder {
	struct profile_frames frames;
	struct profile_row *rows;
	uint32_t *last_sample; /* by row: the number of the last sample that had it, from 1 */
	uint32_t *row_of;      /* by string id: row + 1, or 0 */
	uint32_t len;
	uint32_t cap;
};

static void table_builder_release(struct table_builder *b)
{
	profile_frames_release(&b->frames);
	free(b->rows);
	free(b->last_sample);
	free(b->row_of);
}

/* Rows in order of first appearance; at most one per string. */
static int table_row(struct table_builder *b, uint32_t name, uint32_t *ret_row)
{
	if (b->row_of[name] == 0) {
		if (b->len == b->cap) {
			uint32_t cap = b->cap ? b->cap * 2 : 64;
			struct profile_row *rows = realloc(b->rows, cap * sizeof(*rows));
			uint32_t *last;

			if (!rows)
				return -ENOMEM;
			b->rows = rows;
			last = realloc(b->last_sample, cap * sizeof(*last));
			if (!last)
				return -ENOMEM;
			b->last_sample = last;
			b->cap = cap;
		}
		b->rows[b->len] = (struct profile_row){.name = name};
		b->last_sample[b->len] = 0;
		b->row_of[name] = ++b->len;
	}
	*ret_row = b->row_of[name] - 1;
	return 0;
}

static int table_add_sample(struct table_builder *b, const struct profile_sample *s,
			    uint32_t number, int64_t value, struct err *err)
{
	const struct profile_frame *frames;
	uint32_t row = 0;
	size_t n;
	int r = profile_frames_of(&b->frames, s, &frames, &n, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		if (table_row(b, frames[i].name, &row) < 0)
			return err_oom(err);
		if (b->last_sample[row] == number)
			continue;
		b->last_sample[row] = number;
		b->rows[row].cum = sum_add(b->rows[row].cum, value);
	}
	if (n > 0)
		b->rows[row].flat = sum_add(b->rows[row].flat, value);
	return 0;
}

static int table_collect(struct table_builder *b, struct profile *p, size_t type, struct err *err)
{
	int r = profile_frames_init(&b->frames, p, err);

	if (r < 0)
		return r;
	b->row_of = calloc(profile_n_strings(p), sizeof(*b->row_of));
	if (!b->row_of)
		return err_oom(err);
	for (size_t i = 0; i < profile_n_samples(p) && r == 0; i++) {
		const struct profile_sample *s = profile_sample_at(p, i);

		if (s->values[type] != 0)
			r = table_add_sample(b, s, (uint32_t)i + 1, s->values[type], err);
	}
	return r;
}

static int compare_rows(const void *a, const void *b, void *arg)
{
	const struct profile_row *x = a;
	const struct profile_row *y = b;
	int64_t fx = sum_abs(x->flat);
	int64_t fy = sum_abs(y->flat);
	struct view nx, ny;
	int c;

	if (fx != fy)
		return fx < fy ? 1 : -1;
	nx = profile_string(arg, x->name);
	ny = profile_string(arg, y->name);
	c = memcmp(nx.data, ny.data, MIN(nx.len, ny.len));
	return c ? c : (nx.len > ny.len) - (nx.len < ny.len);
}

static uint32_t table_drop_zeros(struct profile_row *rows, uint32_t len)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < len; i++)
		if (rows[i].flat != 0 || rows[i].cum != 0)
			rows[kept++] = rows[i];
	return kept;
}

int profile_table_build(struct profile *p, size_t type, struct profile_table *ret_table,
			struct err *err)
{
	_cleanup_(table_builder_release) struct table_builder b = {0};
	int r;

	if (type >= profile_n_types(p))
		return err_set(err, -EINVAL, "the profile has no sample type number %zu", type);
	r = table_collect(&b, p, type, err);
	if (r < 0)
		return r;
	b.len = table_drop_zeros(b.rows, b.len);
	if (b.len > 0)
		qsort_r(b.rows, b.len, sizeof(*b.rows), compare_rows, p);
	*ret_table = (struct profile_table){
		.rows = TAKE_PTR(b.rows), .len = b.len, .total = profile_total(p, type)};
	return 0;
}

void profile_table_release(struct profile_table *table)
{
	free(table->rows);
	*table = (struct profile_table){0};
}

static bool is_diff_base(const struct profile *p, const struct profile_sample *s)
{
	for (uint32_t i = 0; i < s->n_labels; i++)
		if (view_eq(profile_string(p, s->labels[i].key), view_str("pprof::base")) &&
		    view_eq(profile_string(p, s->labels[i].str), view_str("true")))
			return true;
	return false;
}

int64_t profile_total(const struct profile *p, size_t type)
{
	int64_t total = 0;
	int64_t base = 0;

	for (size_t i = 0; i < profile_n_samples(p); i++) {
		const struct profile_sample *s = profile_sample_at(p, i);
		int64_t value = sum_abs(s->values[type]);

		total = sum_add(total, value);
		if (is_diff_base(p, s))
			base = sum_add(base, value);
	}
	return base > 0 ? base : total;
}
