/*
 * src/store/codec/block.c: the codec of values. Decoded values are added straight into an array
 * indexed by stack id: a day of one stream has more than a million values, and a hash map would
 * dominate the time.
 */
#include "store/codec/block.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/codec/column.h"

#define ZSTD_LEVEL_SUMS 1
/*
 * A collection is packed within the hour. Compressing a few hundred stacks would save a third of a
 * page that is soon reused, and took a quarter of the writing time.
 */
#define PLAIN_STACKS 4096

#define CLEAR_STEP 1024U

void store_block_sums_clear(struct store_block_sums *sums)
{
	sums->n_stacks = 0;
	sums->n_clear = 0;
	sums->samples = 0;
	sums->torn = false;
}

/* Zeroes entries up to this stack, and some beyond. */
void store_block_sums_reach(struct store_block_sums *sums, uint32_t stack)
{
	uint32_t n = MIN(stack + CLEAR_STEP, STORE_BLOCK_MAX_STACK + 1);

	memset(sums->values + sums->n_clear, 0, (n - sums->n_clear) * sizeof(*sums->values));
	sums->n_clear = n;
}

/* One pass of a radix sort by stack, over the digit at shift. */
static void sort_pass(const struct store_block_value *from, struct store_block_value *to, size_t n,
		      unsigned int shift)
{
	uint32_t starts[512] = {0};
	uint32_t at = 0;

	for (size_t i = 0; i < n; i++)
		starts[from[i].stack >> shift & 511]++;
	for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
		uint32_t count = starts[i];

		starts[i] = at;
		at += count;
	}
	for (size_t i = 0; i < n; i++)
		to[starts[from[i].stack >> shift & 511]++] = from[i];
}

void store_block_sort(struct store_block_value *values, size_t n, struct store_block_value *tmp)
{
	/* STORE_BLOCK_MAX_STACK has 18 bits. */
	sort_pass(values, tmp, n, 0);
	sort_pass(tmp, values, n, 9);
}

size_t store_block_add_up(struct store_block_value *values, size_t n)
{
	size_t len = 0;

	for (size_t i = 0; i < n;) {
		struct store_block_value sum = values[i++];

		for (; i < n && values[i].stack == sum.stack; i++)
			sum.value = store_block_add(sum.value, values[i].value);
		/* INT64_MIN has no magnitude in the same type. */
		if (sum.value == INT64_MIN)
			sum.value = -INT64_MAX;
		if (sum.value != 0)
			values[len++] = sum;
	}
	return len;
}

size_t store_block_normalise(struct store_block_value *values, size_t n,
			     struct store_block_value *tmp)
{
	store_block_sort(values, n, tmp);
	return store_block_add_up(values, n);
}

int store_block_encode_sums(struct store_codec *c, const struct store_block_value *values, size_t n,
			    uint64_t samples, struct buf *out)
{
	uint8_t *ids = store_column_begin(c, 0, n, 0);
	uint8_t *sums = store_column_begin(c, 1, n, 0);
	int level = n < PLAIN_STACKS ? STORE_CODEC_PLAIN : ZSTD_LEVEL_SUMS;
	uint32_t stack = 0;
	uint64_t divisor = 0;
	int r = store_codec_begin(out, STORE_CODEC_SUMS);

	if (!ids || !sums || r < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n && divisor != 1; i++)
		divisor = store_block_gcd(divisor, values[i].value);
	if (divisor == 0)
		divisor = 1;
	for (size_t i = 0; i < n; i++) {
		ids = store_put_varint(ids, values[i].stack - stack);
		sums = store_put_varint(
			sums, store_zigzag(store_block_divide(values[i].value, (int64_t)divisor)));
		stack = values[i].stack;
	}
	if (buf_append_varint(out, n) < 0 || buf_append_varint(out, samples) < 0 ||
	    buf_append_varint(out, divisor) < 0)
		return -ENOMEM;
	r = store_column_end(c, 0, ids, level, out);
	if (r < 0)
		return r;
	r = store_column_end(c, 1, sums, level, out);
	if (r < 0)
		return r;
	store_codec_end(out);
	return 0;
}

struct sums_reader {
	uint64_t n;
	uint64_t samples;
	uint64_t divisor;
	uint64_t stack;
	struct store_cursor ids;
	struct store_cursor values;
};

static int sums_open(struct store_codec *c, struct view block, struct sums_reader *ret)
{
	struct store_cursor body;
	int r = store_codec_open(block, STORE_CODEC_SUMS, &body);

	if (r < 0)
		return r;
	if (!store_cursor_varint(&body, &ret->n) || !store_cursor_varint(&body, &ret->samples) ||
	    !store_cursor_varint(&body, &ret->divisor))
		return -EBADMSG;
	r = store_codec_get_column(c, &body, 0, &ret->ids);
	if (r < 0)
		return r;
	r = store_codec_get_column(c, &body, 1, &ret->values);
	if (r < 0)
		return r;
	ret->stack = 0;
	return ret->divisor > INT64_MAX || ret->divisor == 0 ? -EBADMSG : 0;
}

/* Keep the reader's address private, so the compiler holds it in registers. */
static inline bool sums_next(struct sums_reader *s, struct store_block_value *ret)
{
	uint64_t delta, value;
	int64_t v;

	if (!store_cursor_varint(&s->ids, &delta) || !store_cursor_varint(&s->values, &value))
		return false;
	s->stack += delta;
	if (delta > STORE_BLOCK_MAX_STACK || s->stack > STORE_BLOCK_MAX_STACK ||
	    __builtin_mul_overflow(store_unzigzag(value), (int64_t)s->divisor, &v))
		return false;
	*ret = (struct store_block_value){.stack = (uint32_t)s->stack, .value = v};
	return true;
}

int store_block_decode_sums(struct store_codec *c, struct view block, struct buf *out)
{
	struct sums_reader opened, s;
	struct store_block_value *values;
	int r = sums_open(c, block, &opened);

	if (r < 0)
		return r;
	s = opened;
	if (s.n > store_cursor_left(&s.ids))
		return -EBADMSG;
	r = buf_reserve(out, s.n * sizeof(*values) + 1);
	if (r < 0)
		return r;
	values = (void *)(out->data + out->len);
	for (uint64_t i = 0; i < s.n; i++)
		if (!sums_next(&s, &values[i]))
			return -EBADMSG;
	out->len += s.n * sizeof(*values);
	return 0;
}

int store_block_sum_sums(struct store_codec *c, struct view block, struct store_block_sums *sums)
{
	struct sums_reader opened, s;
	struct store_block_value v = {0};
	int r = sums_open(c, block, &opened);

	if (r < 0)
		return r;
	s = opened;
	sums->torn = true;
	for (uint64_t i = 0; i < s.n; i++) {
		if (!sums_next(&s, &v))
			return -EBADMSG;
		store_block_sums_add(sums, v.stack, v.value);
	}
	if (s.n > 0 && v.stack >= sums->n_stacks)
		sums->n_stacks = v.stack + 1;
	sums->samples += s.samples;
	sums->torn = false;
	return 0;
}

int store_block_read_sums(struct store_codec *c, struct view block, const uint8_t *marks,
			  struct store_block_reading *reading)
{
	struct sums_reader opened, s;
	struct store_block_value v;
	int r = sums_open(c, block, &opened);

	if (r < 0)
		return r;
	s = opened;
	for (uint64_t i = 0; i < s.n; i++) {
		if (!sums_next(&s, &v))
			return -EBADMSG;
		store_block_reading_add(reading, marks[v.stack], v.value);
	}
	return 0;
}
