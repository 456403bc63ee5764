/*
 * tests/fuzz/fuzz_block.c: any bytes as blocks of the store. The first byte chooses the decoder;
 * the seal is made right, so that the checksum does not keep the fuzzer out. What decodes is
 * encoded again and must come to the same sums.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/block.h"
#include "store/chunk.h"
#include "store/crc.h"
#include "store/labels.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_frame(void *ctx, uint32_t id, const struct chunk_frame *f)
{
	(void)ctx;
	assert(id < CHUNK_MAX_FRAMES);
	(void)crc32c(f->name);
	(void)crc32c(f->file);
	return 0;
}

static int on_stack(void *ctx, const struct chunk_stack *s, uint32_t shared)
{
	(void)ctx;
	assert(s->id <= BLOCK_MAX_STACK && shared <= s->n && s->n <= CHUNK_MAX_DEPTH);
	for (uint32_t i = 0; i < s->n; i++)
		assert(s->frames[i] < CHUNK_MAX_FRAMES);
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
static void feed_sums(struct codec *c, struct view block, struct block_sums *sums)
{
	_cleanup_(buf_release) struct buf values = {0}, tmp = {0}, again = {0}, twice = {0};
	size_t n;

	(void)block_sum_sums(c, block, sums);
	if (block_decode_sums(c, block, &values) < 0)
		return;
	n = values.len / sizeof(struct block_value);
	assert(buf_reserve(&tmp, values.len + 1) == 0);
	n = block_normalise((void *)values.data, n, (void *)tmp.data);
	assert(block_encode_sums(c, (void *)values.data, n, n, &again) == 0);
	assert(block_decode_sums(c, buf_view(&again), &twice) == 0);
	assert(twice.len == n * sizeof(struct block_value));
	for (size_t i = 0; i < n; i++) {
		const struct block_value *a = (const struct block_value *)(void *)values.data + i;
		const struct block_value *b = (const struct block_value *)(void *)twice.data + i;

		assert(a->stack == b->stack && a->value == b->value);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(codec_release) struct codec c = {0};
	_cleanup_free_ uint8_t *block = malloc(size + 8);
	_cleanup_free_ int64_t *values = calloc(BLOCK_MAX_STACK + 1, sizeof(*values));
	struct block_sums sums = {.values = values};
	struct view v;
	uint32_t crc;

	if (!block || !values || size < 1)
		return 0;
	(void)labels_each(view_of(data, size), on_label, NULL);
	block[0] = CODEC_VERSION;
	block[1] = (uint8_t)(1 + data[0] % 4);
	memcpy(block + 6, data + 1, size - 1);
	v = view_of(block, size + 5);
	crc = crc32c(view_of(block + 6, size - 1));
	memcpy(block + 2, &crc, sizeof(crc));
	switch (block[1]) {
	case CODEC_SUMS:
		feed_sums(&c, v, &sums);
		break;
	case CODEC_PACK:
		(void)block_sum_pack(&c, v, 0, BLOCK_HOUR_MS, &sums);
		(void)block_sum_pack(&c, v, 1000, 60000, &sums);
		break;
	case CODEC_STACKS:
	case CODEC_STACKS_1:
		(void)chunk_decode_stacks(&c, v, on_stack, NULL);
		break;
	default:
		(void)chunk_decode_frames(&c, v, on_frame, NULL);
		break;
	}
	assert(sums.n_stacks <= BLOCK_MAX_STACK + 1);
	return 0;
}
