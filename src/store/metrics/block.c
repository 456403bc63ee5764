/* src/store/metrics/block.c: see block.h. */
#include "store/metrics/block.h"

#include <errno.h>
#include <math.h>

#include "store/metrics/numbers.h"

#define ZSTD_LEVEL_HOUR 6

enum { PRESENT_ALWAYS, PRESENT_RANGE, PRESENT_BITS };

int metrics_encode_reading(const struct metrics_cell *cells, size_t n, struct buf *out)
{
	uint32_t before = 0;
	int r = codec_begin(out, CODEC_READING);

	if (r == 0)
		r = buf_append_varint(out, n);
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = buf_append_varint(out, cells[i].column - before);
		if (r == 0)
			r = buf_append_varint(out, cells[i].width);
		for (uint32_t k = 0; r == 0 && k < cells[i].width; k++)
			r = numbers_put(out, cells[i].values[k]);
		before = cells[i].column;
	}
	if (r == 0)
		codec_end(out);
	return r;
}

int metrics_open_reading(struct view block, struct metrics_reading *ret)
{
	struct cursor body;
	int r = codec_open(block, CODEC_READING, &body);

	if (r < 0)
		return r;
	ret->body = view_of(body.at, cursor_left(&body));
	ret->at = 0;
	ret->column = 0;
	return view_varint(ret->body, &ret->at, &ret->left) ? 0 : -EBADMSG;
}

/* Column and width, as both kinds of blocks begin theirs. */
static bool get_head(struct view body, size_t *at, uint64_t *column, uint64_t *ret_width)
{
	uint64_t delta;

	if (!view_varint(body, at, &delta) || delta > METRICS_MAX_COLUMN ||
	    !view_varint(body, at, ret_width))
		return false;
	*column += delta;
	return *column <= METRICS_MAX_COLUMN && *ret_width > 0 && *ret_width <= METRICS_MAX_WIDTH;
}

int metrics_next_cell(struct metrics_reading *r, struct metrics_cell *ret_cell)
{
	uint64_t width;

	if (r->left == 0)
		return 0;
	r->left--;
	if (!get_head(r->body, &r->at, &r->column, &width))
		return -EBADMSG;
	for (uint64_t i = 0; i < width; i++)
		if (!numbers_get(r->body, &r->at, &r->values[i]))
			return -EBADMSG;
	*ret_cell = (struct metrics_cell){
		.column = (uint32_t)r->column, .width = (uint32_t)width, .values = r->values};
	return 1;
}

/* --- an hour */

static int put_times(struct codec *c, const struct metrics_hour *hour, struct buf *out)
{
	struct buf *column = &c->columns[0];
	uint32_t before = 0;
	int r = 0;

	buf_clear(column);
	for (size_t i = 0; r == 0 && i < hour->n_times; i++) {
		r = buf_append_varint(column, hour->times_ms[i] - before);
		before = hour->times_ms[i];
	}
	return r < 0 ? r : codec_put_column(c, out, buf_view(column), ZSTD_LEVEL_HOUR);
}

static int put_presence(struct buf *body, const double *values, size_t n, size_t n_present)
{
	uint8_t bits[METRICS_MAX_TIMES / 8] = {0};
	size_t first = 0, last = n;
	int r;

	if (n_present == n)
		return buf_append_varint(body, PRESENT_ALWAYS);
	while (first < n && isnan(values[first]))
		first++;
	while (last > first && isnan(values[last - 1]))
		last--;
	if (last - first == n_present) {
		r = buf_append_varint(body, PRESENT_RANGE);
		if (r == 0)
			r = buf_append_varint(body, first);
		return r < 0 ? r : buf_append_varint(body, n_present);
	}
	for (size_t i = 0; i < n; i++)
		bits[i / 8] |= (uint8_t)(!isnan(values[i]) << i % 8);
	r = buf_append_varint(body, PRESENT_BITS);
	return r < 0 ? r : buf_append(body, bits, (n + 7) / 8);
}

/* One of a column's numbers, without the gaps. */
static int put_numbers(struct buf *body, struct buf *scratch, const double *values, size_t n)
{
	double dense[METRICS_MAX_TIMES];
	size_t n_dense = 0;
	int r;

	for (size_t i = 0; i < n; i++)
		if (!isnan(values[i]))
			dense[n_dense++] = values[i];
	buf_clear(scratch);
	r = numbers_encode(dense, n_dense, scratch);
	if (r == 0)
		r = buf_append_varint(body, scratch->len);
	return r < 0 ? r : buf_append(body, scratch->data, scratch->len);
}

static int put_column(struct codec *c, const struct metrics_column *column, size_t n,
		      uint32_t before)
{
	struct buf *body = &c->columns[1], *scratch = &c->columns[2];
	size_t n_present = 0;
	int r = buf_append_varint(body, column->column - before);

	for (size_t i = 0; i < n; i++)
		n_present += !isnan(column->values[i]);
	if (r == 0)
		r = buf_append_varint(body, column->width);
	if (r == 0)
		r = put_presence(body, column->values, n, n_present);
	for (uint32_t i = 0; r == 0 && n_present > 0 && i < column->width; i++)
		r = put_numbers(body, scratch, column->values + i * n, n);
	return r;
}

int metrics_encode_hour(struct codec *c, const struct metrics_hour *hour, struct buf *out)
{
	uint32_t before = 0;
	int r = codec_begin(out, CODEC_HOUR);

	if (hour->n_times > METRICS_MAX_TIMES)
		return -E2BIG;
	if (r == 0)
		r = buf_append_varint(out, hour->n_times);
	if (r == 0)
		r = buf_append_varint(out, hour->n_columns);
	if (r == 0)
		r = put_times(c, hour, out);
	buf_clear(&c->columns[1]);
	for (size_t i = 0; r == 0 && i < hour->n_columns; i++) {
		r = put_column(c, &hour->columns[i], hour->n_times, before);
		before = hour->columns[i].column;
	}
	if (r == 0)
		r = codec_put_column(c, out, buf_view(&c->columns[1]), ZSTD_LEVEL_HOUR);
	if (r == 0)
		codec_end(out);
	return r;
}

static bool get_times(struct cursor times, struct metrics_hour_reader *h)
{
	uint64_t delta, time = 0;

	for (size_t i = 0; i < h->n_times; i++) {
		if (!cursor_varint(&times, &delta) || delta >= METRICS_HOUR_MS)
			return false;
		time += delta;
		if (time >= METRICS_HOUR_MS)
			return false;
		h->times_ms[i] = (uint32_t)time;
	}
	return true;
}

int metrics_open_hour(struct codec *c, struct view block, struct metrics_hour_reader *h,
		      struct cursor *ret_rest)
{
	struct cursor body, times;
	uint64_t n_times;
	int r = codec_open(block, CODEC_HOUR, &body);

	if (r < 0)
		return r;
	if (!cursor_varint(&body, &n_times) || n_times > METRICS_MAX_TIMES ||
	    !cursor_varint(&body, &h->n_columns) || h->n_columns > METRICS_MAX_COLUMN + 1)
		return -EBADMSG;
	h->n_times = n_times;
	r = codec_get_column(c, &body, 0, &times);
	if (r < 0)
		return r;
	*ret_rest = body;
	return get_times(times, h) ? 0 : -EBADMSG;
}

int metrics_hour_columns(struct codec *c, struct cursor *rest, struct metrics_hour_reader *h)
{
	struct cursor body;
	int r = codec_get_column(c, rest, 1, &body);

	if (r < 0)
		return r;
	h->body = view_of(body.at, cursor_left(&body));
	h->at = 0;
	h->column = 0;
	return 0;
}

static bool get_presence(struct metrics_hour_reader *h)
{
	uint64_t kind, first = 0, n = h->n_times;
	struct view bits;

	if (!view_varint(h->body, &h->at, &kind) || kind > PRESENT_BITS)
		return false;
	h->n_present = 0;
	if (kind == PRESENT_BITS) {
		if (!view_sub(h->body, h->at, (n + 7) / 8, &bits))
			return false;
		h->at += bits.len;
		for (size_t i = 0; i < n; i++) {
			h->present[i] = bits.data[i / 8] >> i % 8 & 1;
			h->n_present += h->present[i];
		}
		return true;
	}
	if (kind == PRESENT_RANGE &&
	    (!view_varint(h->body, &h->at, &first) || !view_varint(h->body, &h->at, &n) ||
	     first > h->n_times || n > h->n_times - first))
		return false;
	memset(h->present, 0, h->n_times);
	memset(h->present + first, 1, n);
	h->n_present = n;
	return true;
}

int metrics_next_column(struct metrics_hour_reader *h)
{
	uint64_t column = h->column, width, len;

	if (h->n_columns == 0)
		return 0;
	h->n_columns--;
	if (!get_head(h->body, &h->at, &column, &width) || !get_presence(h))
		return -EBADMSG;
	h->column = (uint32_t)column;
	h->width = (uint32_t)width;
	for (uint32_t i = 0; h->n_present > 0 && i < h->width; i++) {
		if (!view_varint(h->body, &h->at, &len) ||
		    !view_sub(h->body, h->at, len, &h->numbers[i]))
			return -EBADMSG;
		h->at += len;
	}
	return 1;
}

int metrics_column_values(struct metrics_hour_reader *h, uint32_t i, double *values)
{
	size_t at = 0;

	if (h->n_present == h->n_times && h->n_times > 0)
		return numbers_decode(h->numbers[i], values, h->n_times) ? 0 : -EBADMSG;
	if (h->n_present > 0 && !numbers_decode(h->numbers[i], h->dense, h->n_present))
		return -EBADMSG;
	for (size_t k = 0; k < h->n_times; k++)
		values[k] = h->present[k] ? h->dense[at++] : (double)NAN;
	return 0;
}
