/* src/store/metrics/cells.c: see cells.h. */
#include "store/metrics/cells.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

void store_cells_release(struct store_cells *c)
{
	buf_release(&c->items);
	buf_release(&c->values);
	buf_release(&c->out);
	buf_release(&c->columns);
}

void store_cells_clear(struct store_cells *c)
{
	buf_clear(&c->items);
	buf_clear(&c->values);
	c->len = 0;
}

int store_cells_add(struct store_cells *c, uint32_t column, uint32_t time, const double *values,
		    uint32_t width)
{
	struct store_cell cell = {column, time, width, (uint32_t)(c->values.len / sizeof(*values))};
	int r = buf_append(&c->values, values, width * sizeof(*values));

	if (r == 0)
		r = buf_append(&c->items, &cell, sizeof(cell));
	c->len += r == 0;
	return r;
}

int store_cells_add_reading(struct store_cells *c, struct view block, uint32_t time)
{
	size_t items = c->items.len, values = c->values.len, len = c->len;
	struct store_metrics_reading reading;
	struct store_metrics_cell cell;
	int r = store_metrics_open_reading(block, &reading);

	while (r == 0 && (r = store_metrics_next_cell(&reading, &cell)) > 0)
		r = store_cells_add(c, cell.column, time, cell.values, cell.width);
	if (r < 0) {
		c->items.len = items;
		c->values.len = values;
		c->len = len;
	}
	return r;
}

static int compare_cells(const void *va, const void *vb)
{
	const struct store_cell *a = va, *b = vb;

	if (a->column != b->column)
		return a->column < b->column ? -1 : 1;
	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->at < b->at ? -1 : a->at > b->at;
}

/* By column, then time; merges equal ones. */
static void merge(struct store_cells *c)
{
	struct store_cell *cells = (void *)c->items.data;
	double *values = (void *)c->values.data;
	size_t len = 0;

	if (c->len > 1)
		qsort(cells, c->len, sizeof(*cells), compare_cells);
	for (size_t i = 0; i < c->len; i++) {
		struct store_cell *last = len ? &cells[len - 1] : NULL;

		if (!last || last->column != cells[i].column || last->time != cells[i].time) {
			cells[len++] = cells[i];
			continue;
		}
		for (uint32_t k = 0; k < last->width && k < cells[i].width; k++) {
			double sum = values[last->at + k] + values[cells[i].at + k];

			if (isfinite(sum))
				values[last->at + k] = sum;
		}
	}
	c->len = len;
	c->items.len = len * sizeof(*cells);
}

int store_cells_encode_reading(struct store_cells *c, struct buf *out)
{
	const struct store_cell *cells;
	const double *values;
	struct store_metrics_cell *to;

	merge(c);
	buf_clear(&c->columns);
	if (buf_reserve(&c->columns, (c->len + 1) * sizeof(*to)) < 0)
		return -ENOMEM;
	cells = (const void *)c->items.data;
	values = (const void *)c->values.data;
	to = (void *)c->columns.data;
	for (size_t i = 0; i < c->len; i++)
		to[i] = (struct store_metrics_cell){cells[i].column, cells[i].width,
						    values + cells[i].at};
	return store_metrics_encode_reading(to, c->len, out);
}

/* Spreads the cells of one column over the times; gaps are NAN. */
static void spread(const struct store_cells *c, const struct store_cell *run, size_t n,
		   size_t n_times, double *to)
{
	const double *values = (const void *)c->values.data;

	for (size_t i = 0; i < n_times * run[0].width; i++)
		to[i] = NAN;
	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < run[0].width && run[i].width == run[0].width; k++)
			to[k * n_times + run[i].time] = values[run[i].at + k];
}

int store_cells_each_column(struct store_cells *c, size_t n_times,
			    int (*fn)(void *ctx, const struct store_metrics_column *column),
			    void *ctx)
{
	const struct store_cell *cells;
	size_t n;
	int r = 0;

	merge(c);
	cells = (const void *)c->items.data;
	for (size_t i = 0; r >= 0 && i < c->len; i += n) {
		struct store_metrics_column column = {
			.column = cells[i].column, .width = cells[i].width, .n_times = n_times};

		for (n = 1; i + n < c->len && cells[i + n].column == cells[i].column;)
			n++;
		buf_clear(&c->out);
		if (buf_reserve(&c->out, (n_times * cells[i].width + 1) * sizeof(double)) < 0)
			return -ENOMEM;
		spread(c, &cells[i], n, n_times, (void *)c->out.data);
		column.values = (const void *)c->out.data;
		r = fn(ctx, &column);
	}
	return r < 0 ? r : 0;
}
