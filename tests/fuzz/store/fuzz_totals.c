/*
 * tests/fuzz/store/fuzz_totals.c: any bytes as a block of totals, or as what is known of a service.
 * The first byte chooses; the seal is made right, so that the checksum does not keep the fuzzer
 * out. What decodes is encoded again and must come to the same.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/totals/about.h"
#include "store/totals/block.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void feed_about(struct view block)
{
	_cleanup_(buf_release) struct buf out = {0};
	struct store_about a, again;

	if (store_about_decode(block, &a) < 0)
		return;
	assert(strlen(a.runtime) < sizeof(a.runtime) && strlen(a.parent) < sizeof(a.parent));
	assert(store_about_encode(&a, &out) == 0);
	assert(store_about_decode(buf_view(&out), &again) == 0);
	assert(again.lived == a.lived && strcmp(a.runtime, again.runtime) == 0 &&
	       strcmp(a.parent, again.parent) == 0);
}

/* Sums of what a block has; -EBADMSG. */
static int add_up(struct store_codec *c, struct view block, uint64_t *ret_sum, uint64_t *ret_times)
{
	_cleanup_(buf_release) struct buf lists = {0};
	struct store_totals_block b;
	struct store_totals_entry e;
	int r = store_totals_open(c, block, &lists, &b);

	while (r == 0 && (r = store_totals_next_type(&b)) > 0)
		while ((r = store_totals_next(&b, &e)) > 0) {
			const struct store_totals_times *t = &b.lists[e.times];

			assert(e.type < STORE_TOTALS_MAX_TYPES && e.service > 0);
			assert(e.times < b.n_lists && t->n > 0 && t->first_ms <= t->last_ms);
			assert(t->last_ms < (b.whole ? 60000 : 600000));
			*ret_sum += (uint64_t)e.sum;
			*ret_times += t->n;
		}
	return r;
}

static void feed_totals(struct view block)
{
	_cleanup_(store_codec_release) struct store_codec c = {0};
	_cleanup_(buf_release) struct buf out = {0};
	struct store_totals_minute m = {0};
	struct store_totals_slot s = {0};
	uint64_t sum = 0, times = 0, again = 0, times_again = 0;
	int r = add_up(&c, block, &sum, &times);

	if (store_totals_minute_decode(&c, block, &m) == 0) {
		assert(r == 0);
		assert(store_totals_minute_encode(&c, &m, &out) == 0);
		assert(add_up(&c, buf_view(&out), &again, &times_again) == 0);
		/* An entry that came twice, as no writer has it, is there once. */
		assert(times_again <= times && (times_again < times || again == sum));
	}
	if (store_totals_slot_add(&c, &s, block, 3) == 0 &&
	    store_totals_slot_encode(&c, &s, &out) == 0)
		(void)add_up(&c, buf_view(&out), &again, &times_again);
	store_totals_minute_release(&m);
	store_totals_slot_release(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(buf_release) struct buf block = {0};
	uint8_t kind = size > 0 && data[0] & 1 ? STORE_CODEC_ABOUT : STORE_CODEC_TOTALS;

	if (size < 1 || store_codec_begin(&block, kind) < 0 ||
	    buf_append(&block, data + 1, size - 1) < 0)
		return 0;
	store_codec_end(&block);
	if (kind == STORE_CODEC_ABOUT)
		feed_about(buf_view(&block));
	else
		feed_totals(buf_view(&block));
	return 0;
}
