/*
 * tests/fuzz/store/fuzz_block.c: any bytes as blocks of the store. The first byte chooses the
 * decoder; the seal is made right, so that the checksum does not keep the fuzzer out. What decodes
 * as sums is encoded again and must come to the same ones; a pack is also added up value by value.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/crc.h"
#include "store/codec/block.h"
#include "store/codec/chunk.h"
#include "store/codec/labels.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_frame(void *ctx, uint32_t id, const struct store_chunk_frame *f)
{
	(void)ctx;
	assert(id < STORE_CHUNK_MAX_FRAMES);
	(void)crc32c(f->name);
	(void)crc32c(f->file);
	(void)crc32c(f->module);
	return 0;
}

static int on_stack(void *ctx, const struct store_chunk_stack *s, uint32_t shared)
{
	(void)ctx;
	assert(s->id <= STORE_BLOCK_MAX_STACK && shared <= s->n && s->n <= STORE_CHUNK_MAX_DEPTH);
	for (uint32_t i = 0; i < s->n; i++)
		assert(s->frames[i] < STORE_CHUNK_MAX_FRAMES);
	return 0;
}

static int on_label(void *ctx, struct view key, struct view value)
{
	(void)ctx;
	(void)crc32c(key);
	(void)crc32c(value);
	return 0;
}

/* Sums of ids within the limit survive being written and read. */
static void feed_sums(struct store_codec *c, struct view block, struct store_block_sums *sums)
{
	_cleanup_(buf_release) struct buf values = {0}, tmp = {0}, again = {0}, twice = {0};
	size_t n;

	(void)store_block_sum_sums(c, block, sums);
	if (store_block_decode_sums(c, block, &values) < 0)
		return;
	n = values.len / sizeof(struct store_block_value);
	assert(buf_reserve(&tmp, values.len + 1) == 0);
	n = store_block_normalise((void *)values.data, n, (void *)tmp.data);
	assert(store_block_encode_sums(c, (void *)values.data, n, n, &again) == 0);
	assert(store_block_decode_sums(c, buf_view(&again), &twice) == 0);
	assert(twice.len == n * sizeof(struct store_block_value));
	for (size_t i = 0; i < n; i++) {
		const struct store_block_value *a =
			(const struct store_block_value *)(void *)values.data + i;
		const struct store_block_value *b =
			(const struct store_block_value *)(void *)twice.data + i;

		assert(a->stack == b->stack && a->value == b->value);
	}
}

/* A pack as its layout says, one value after another, without any of the decoder's short cuts. */
struct plain_pack {
	uint64_t header[5];
	struct store_cursor columns[5];
};

static bool plain_open(struct plain_pack *p, struct store_codec *c, struct view block)
{
	struct store_cursor body;

	if (store_codec_open(block, STORE_CODEC_PACK, &body) < 0)
		return false;
	for (unsigned int i = 0; i < 5; i++)
		if (!store_cursor_varint_long(&body, &p->header[i]))
			return false;
	for (unsigned int i = 0; i < 5; i++)
		if (store_codec_get_column(c, &body, i, &p->columns[i]) < 0)
			return false;
	return true;
}

/* Which indexes of times lie in the window: it begins with the first, and ends before the last. */
static void plain_window(const struct plain_pack *p, uint32_t from_ms, uint32_t to_ms,
			 uint64_t ret_range[2])
{
	struct store_cursor times = p->columns[0];
	uint64_t delta, time = 0;

	ret_range[0] = ret_range[1] = 0;
	for (uint64_t i = 0; i < p->header[0]; i++) {
		assert(store_cursor_varint_long(&times, &delta));
		time += delta;
		ret_range[0] += time < from_ms;
		ret_range[1] += time < to_ms;
	}
}

/* Takes what was added to the sums away again; false where they may have met their limits. */
static bool plain_subtract(struct plain_pack p, const uint64_t range[2], int64_t *values)
{
	uint64_t word, n, stack = 0;

	for (uint64_t i = 0; i < p.header[1]; i++) {
		uint64_t index = 0;
		__int128 value = 0, sum = 0;

		assert(store_cursor_varint_long(&p.columns[1], &word));
		stack += word;
		assert(stack <= STORE_BLOCK_MAX_STACK &&
		       store_cursor_varint_long(&p.columns[2], &n));
		for (; n > 0; n--) {
			assert(store_cursor_varint_long(&p.columns[4], &word));
			value = p.header[4] ? value + store_unzigzag(word) : store_unzigzag(word);
			/* It was not looked at where all times are in the window. */
			if (store_cursor_varint_long(&p.columns[3], &word))
				index += word;
			if (range[1] - range[0] == p.header[0] ||
			    (index >= range[0] && index < range[1]))
				sum += value;
			if (value >> 40 != value >> 127 || sum >> 60 != sum >> 127)
				return false;
		}
		sum *= p.header[3];
		if (sum >> 60 != sum >> 127 || values[stack] >> 60 != values[stack] >> 63)
			return false;
		values[stack] -= (int64_t)sum;
	}
	return true;
}

static void feed_pack(struct store_codec *c, struct view block, uint32_t from_ms, uint32_t to_ms,
		      int64_t *values)
{
	_cleanup_(store_codec_release) struct store_codec other = {0};
	struct store_block_sums sums = {.values = values};
	struct plain_pack p;
	uint64_t range[2];

	memset(values, 0, (STORE_BLOCK_MAX_STACK + 1) * sizeof(*values));
	if (store_block_sum_pack(c, block, from_ms, to_ms, &sums) < 0 ||
	    !plain_open(&p, &other, block))
		return;
	assert(sums.n_stacks <= STORE_BLOCK_MAX_STACK + 1);
	plain_window(&p, from_ms, to_ms, range);
	if (range[0] == range[1] || !plain_subtract(p, range, values))
		return;
	for (uint32_t i = 0; i < sums.n_stacks; i++)
		assert(values[i] == 0);
}

/* Every third stack is a function's, every ninth its own. */
static void feed_readings(struct store_codec *c, struct view block)
{
	static uint8_t marks[STORE_BLOCK_MAX_STACK + 1];
	_cleanup_(buf_release) struct buf out = {0};
	struct store_block_reading one = {0};
	const struct store_block_reading *all;

	for (uint32_t i = 0; i <= STORE_BLOCK_MAX_STACK; i += 3)
		marks[i] = i % 9 ? STORE_BLOCK_TOTAL : STORE_BLOCK_SELF;
	(void)store_block_read_sums(c, block, marks, &one);
	if (store_block_read_pack(c, block, marks, &out) < 0)
		assert(out.len == 0);
	all = (const void *)out.data;
	for (size_t i = 0; i < out.len / sizeof(*all); i++)
		assert(all[i].ms < STORE_BLOCK_HOUR_MS && (i == 0 || all[i].ms >= all[i - 1].ms));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(store_codec_release) struct store_codec c = {0};
	_cleanup_free_ uint8_t *block = malloc(size + 8);
	/* So large that making it anew took most of the time. */
	static int64_t values[STORE_BLOCK_MAX_STACK + 1];
	struct store_block_sums sums = {.values = values};
	struct view v;
	uint32_t crc;

	if (!block || size < 1)
		return 0;
	(void)store_labels_each(view_of(data, size), on_label, NULL);
	block[0] = STORE_CODEC_VERSION;
	block[1] = data[0] < 0x80 ? (uint8_t)(1 + data[0] % 4) : STORE_CODEC_STACKS;
	memcpy(block + 6, data + 1, size - 1);
	v = view_of(block, size + 5);
	crc = crc32c(view_of(block + 6, size - 1));
	memcpy(block + 2, &crc, sizeof(crc));
	feed_readings(&c, v);
	switch (block[1]) {
	case STORE_CODEC_SUMS:
		feed_sums(&c, v, &sums);
		break;
	case STORE_CODEC_PACK:
		feed_pack(&c, v, 0, STORE_BLOCK_HOUR_MS, values);
		feed_pack(&c, v, 1000, 60000, values);
		break;
	case STORE_CODEC_STACKS:
	case STORE_CODEC_STACKS_1:
		(void)store_chunk_decode_stacks(&c, v, on_stack, NULL);
		break;
	default:
		(void)store_chunk_decode_frames(&c, v, on_frame, NULL);
		break;
	}
	assert(sums.n_stacks <= STORE_BLOCK_MAX_STACK + 1);
	return 0;
}
