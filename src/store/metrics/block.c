/* src/store/metrics/block.c: see block.h. */
#include "store/metrics/block.h"

#include <errno.h>
#include <math.h>

#include "base/cleanup.h"
#include "store/metrics/numbers.h"

#define ZSTD_LEVEL_HOUR 6

enum { PRESENT_ALWAYS, PRESENT_RANGE, PRESENT_BITS };

int store_metrics_encode_reading(const struct store_metrics_cell *cells, size_t n, struct buf *out)
{
	uint32_t before = 0;
	int r = store_codec_begin(out, STORE_CODEC_READING);

	if (r == 0)
		r = buf_append_varint(out, n);
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = buf_append_varint(out, cells[i].column - before);
		if (r == 0)
			r = buf_append_varint(out, cells[i].width);
		for (uint32_t k = 0; r == 0 && k < cells[i].width; k++)
			r = store_numbers_put(out, cells[i].values[k]);
		before = cells[i].column;
	}
	if (r == 0)
		store_codec_end(out);
	return r;
}

int store_metrics_open_reading(struct view block, struct store_metrics_reading *ret)
{
	struct store_cursor body;
	int r = store_codec_open(block, STORE_CODEC_READING, &body);

	if (r < 0)
		return r;
	ret->body = view_of(body.at, store_cursor_left(&body));
	ret->at = 0;
	ret->column = 0;
	return view_varint(ret->body, &ret->at, &ret->left) ? 0 : -EBADMSG;
}

/* Column and width, the start of both kinds of blocks. */
static bool get_head(struct view body, size_t *at, uint64_t *column, uint64_t *ret_width)
{
	uint64_t delta;

	if (!view_varint(body, at, &delta) || delta > STORE_METRICS_MAX_COLUMN ||
	    !view_varint(body, at, ret_width))
		return false;
	*column += delta;
	return *column <= STORE_METRICS_MAX_COLUMN && *ret_width > 0 &&
	       *ret_width <= STORE_METRICS_MAX_WIDTH;
}

int store_metrics_next_cell(struct store_metrics_reading *r, struct store_metrics_cell *ret_cell)
{
	uint64_t width;

	if (r->left == 0)
		return 0;
	r->left--;
	if (!get_head(r->body, &r->at, &r->column, &width))
		return -EBADMSG;
	for (uint64_t i = 0; i < width; i++)
		if (!store_numbers_get(r->body, &r->at, &r->values[i]))
			return -EBADMSG;
	*ret_cell = (struct store_metrics_cell){
		.column = (uint32_t)r->column, .width = (uint32_t)width, .values = r->values};
	return 1;
}

/* --- times */

static int put_differences(const uint32_t *times_ms, size_t n, struct buf *out)
{
	_cleanup_(buf_release) struct buf numbers = {0};
	double differences[STORE_METRICS_MAX_TIMES];
	int r;

	for (size_t i = 1; i < n; i++)
		differences[i - 1] = times_ms[i] - times_ms[i - 1];
	r = n > 1 ? store_numbers_encode(differences, n - 1, &numbers) : 0;
	if (r == 0)
		r = buf_append_varint(out, numbers.len);
	return r < 0 ? r : buf_append(out, numbers.data, numbers.len);
}

int store_metrics_encode_times(const uint32_t *times_ms, size_t n_times, const uint32_t *labelsets,
			       size_t n_labelsets, struct buf *out)
{
	uint32_t before = 0;
	int r = store_codec_begin(out, STORE_CODEC_TIMES);

	if (n_times == 0 || n_times > STORE_METRICS_MAX_TIMES)
		return -E2BIG;
	if (r == 0)
		r = buf_append_varint(out, n_times);
	if (r == 0)
		r = buf_append_varint(out, times_ms[0]);
	if (r == 0)
		r = put_differences(times_ms, n_times, out);
	if (r == 0)
		r = buf_append_varint(out, n_labelsets);
	for (size_t i = 0; r == 0 && i < n_labelsets; i++) {
		r = buf_append_varint(out, labelsets[i] - before);
		before = labelsets[i];
	}
	if (r == 0)
		store_codec_end(out);
	return r;
}

static bool get_differences(struct view numbers, struct store_metrics_times *t)
{
	double differences[STORE_METRICS_MAX_TIMES];
	double time = t->times_ms[0];

	if (t->n_times > 1 && !store_numbers_decode(numbers, differences, t->n_times - 1))
		return false;
	for (size_t i = 1; i < t->n_times; i++) {
		time += differences[i - 1];
		if (!(differences[i - 1] >= 0) || !(time < STORE_METRICS_HOUR_MS))
			return false;
		t->times_ms[i] = (uint32_t)time;
	}
	return true;
}

int store_metrics_decode_times(struct view block, struct store_metrics_times *t)
{
	uint64_t n_times, first, len;
	struct view body, numbers;
	struct store_cursor c;
	size_t at = 0;
	int r = store_codec_open(block, STORE_CODEC_TIMES, &c);

	if (r < 0)
		return r;
	body = view_of(c.at, store_cursor_left(&c));
	if (!view_varint(body, &at, &n_times) || n_times == 0 ||
	    n_times > STORE_METRICS_MAX_TIMES || !view_varint(body, &at, &first) ||
	    first >= STORE_METRICS_HOUR_MS || !view_varint(body, &at, &len) ||
	    !view_sub(body, at, len, &numbers))
		return -EBADMSG;
	t->n_times = n_times;
	t->times_ms[0] = (uint32_t)first;
	t->labelsets = body;
	t->at = at + len;
	t->labelset = 0;
	if (!get_differences(numbers, t) || !view_varint(body, &t->at, &t->n_labelsets))
		return -EBADMSG;
	return 0;
}

int store_metrics_next_labelset(struct store_metrics_times *t, uint32_t *ret_labelset)
{
	uint64_t delta;

	if (t->n_labelsets == 0)
		return 0;
	t->n_labelsets--;
	if (!view_varint(t->labelsets, &t->at, &delta) || delta > STORE_METRICS_MAX_LABELSET ||
	    t->labelset + delta > STORE_METRICS_MAX_LABELSET)
		return -EBADMSG;
	t->labelset += delta;
	*ret_labelset = (uint32_t)t->labelset;
	return 1;
}

/* --- an hour of one series */

static int put_presence(struct buf *body, const double *values, size_t n, size_t n_present)
{
	uint8_t bits[STORE_METRICS_MAX_TIMES / 8] = {0};
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
	double dense[STORE_METRICS_MAX_TIMES];
	size_t n_dense = 0;
	int r;

	for (size_t i = 0; i < n; i++)
		if (!isnan(values[i]))
			dense[n_dense++] = values[i];
	buf_clear(scratch);
	r = store_numbers_encode(dense, n_dense, scratch);
	if (r == 0)
		r = buf_append_varint(body, scratch->len);
	return r < 0 ? r : buf_append(body, scratch->data, scratch->len);
}

int store_metrics_encode_hour(struct store_codec *c, uint32_t list,
			      const struct store_metrics_column *column, struct buf *out)
{
	struct buf *body = &c->columns[1], *scratch = &c->columns[2];
	size_t n = column->n_times, n_present = 0;
	int r = store_codec_begin(out, STORE_CODEC_HOUR);

	for (size_t i = 0; i < n; i++)
		n_present += !isnan(column->values[i]);
	buf_clear(body);
	if (r == 0)
		r = buf_append_varint(out, list);
	if (r == 0)
		r = buf_append_varint(out, column->width);
	if (r == 0)
		r = put_presence(body, column->values, n, n_present);
	for (uint32_t i = 0; r == 0 && n_present > 0 && i < column->width; i++)
		r = put_numbers(body, scratch, column->values + i * n, n);
	/* It is mostly noise by now; small savings are not worth the unpacking. */
	if (r == 0)
		r = store_codec_put_column_below(c, out, buf_view(body), ZSTD_LEVEL_HOUR,
						 body->len / 4 * 3);
	if (r == 0)
		store_codec_end(out);
	return r;
}

int store_metrics_open_hour(struct view block, struct store_metrics_hour *h)
{
	uint64_t width;
	int r = store_codec_open(block, STORE_CODEC_HOUR, &h->rest);

	if (r < 0)
		return r;
	if (!store_cursor_varint(&h->rest, &h->list) || !store_cursor_varint(&h->rest, &width) ||
	    width == 0 || width > STORE_METRICS_MAX_WIDTH)
		return -EBADMSG;
	h->width = (uint32_t)width;
	return 0;
}

static bool get_presence(struct store_metrics_hour *h, struct view body, size_t *at)
{
	uint64_t kind, first = 0, n = h->n_times;
	struct view bits;

	if (!view_varint(body, at, &kind) || kind > PRESENT_BITS)
		return false;
	h->n_present = 0;
	if (kind == PRESENT_BITS) {
		if (!view_sub(body, *at, (n + 7) / 8, &bits) || !bits.data)
			return false;
		*at += bits.len;
		for (size_t i = 0; i < n; i++) {
			h->present[i] = bits.data[i / 8] >> i % 8 & 1;
			h->n_present += h->present[i];
		}
		return true;
	}
	if (kind == PRESENT_RANGE &&
	    (!view_varint(body, at, &first) || !view_varint(body, at, &n) || first > h->n_times ||
	     n > h->n_times - first))
		return false;
	memset(h->present, 0, h->n_times);
	memset(h->present + first, 1, n);
	h->n_present = n;
	return true;
}

int store_metrics_read_hour(struct store_codec *c, struct store_metrics_hour *h, size_t n_times)
{
	struct store_cursor column;
	struct view body;
	size_t at = 0;
	uint64_t len;
	int r = store_codec_get_column(c, &h->rest, 1, &column);

	if (r < 0)
		return r;
	body = view_of(column.at, store_cursor_left(&column));
	h->n_times = n_times;
	if (!get_presence(h, body, &at))
		return -EBADMSG;
	for (uint32_t i = 0; h->n_present > 0 && i < h->width; i++) {
		if (!view_varint(body, &at, &len) || !view_sub(body, at, len, &h->numbers[i]))
			return -EBADMSG;
		at += len;
	}
	return 0;
}

int store_metrics_hour_values(struct store_metrics_hour *h, uint32_t i, double *values)
{
	size_t at = 0;

	if (h->n_present == h->n_times)
		return store_numbers_decode(h->numbers[i], values, h->n_times) ? 0 : -EBADMSG;
	if (h->n_present > 0 && !store_numbers_decode(h->numbers[i], h->dense, h->n_present))
		return -EBADMSG;
	for (size_t k = 0; k < h->n_times; k++)
		values[k] = h->present[k] ? h->dense[at++] : (double)NAN;
	return 0;
}
