/* src/store/sqlite/hold.c: see hold.h. */
#include "store/sqlite/hold.h"

#include <errno.h>

#include "base/cleanup.h"

/* A first gap may be as long as a reader is ever delayed; a later one is like the one before. */
#define HOLD_MAX_GAP 1000U

/* The value stands at the times [begin, end). */
struct fill {
	uint32_t set;
	uint32_t begin;
	uint32_t end;
	double value;
};

void store_hold_release(struct store_hold *h)
{
	buf_release(&h->times);
	buf_release(&h->sets);
	buf_release(&h->fills);
	map_release(&h->index);
}

static const uint32_t *times_of(const struct store_hold *h, uint32_t *ret_n)
{
	*ret_n = (uint32_t)(h->times.len / sizeof(uint32_t));
	return (const void *)h->times.data;
}

/* The index of the first time from ms on. */
static uint32_t time_from(const struct store_hold *h, int64_t ms)
{
	uint32_t low = 0, high;
	const uint32_t *times = times_of(h, &high);

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (times[middle] < ms)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint32_t store_hold_times(const struct store_hold *h)
{
	return time_from(h, h->to_ms) - time_from(h, h->from_ms);
}

static int fill_add(struct store_hold *h, uint32_t set, uint32_t begin, uint32_t end, double value)
{
	const struct fill fill = {set, begin, end, value};

	return begin < end ? buf_append(&h->fills, &fill, sizeof(fill)) : 0;
}

static struct store_hold_set *set_at(const struct store_hold *h, uint64_t i)
{
	return (struct store_hold_set *)(void *)h->sets.data + i;
}

static int set_new(struct store_hold *h, const struct store_hold_set *set)
{
	int r = map_put(&h->index, set->labelset, h->sets.len / sizeof(*set));

	return r < 0 ? r : buf_append(&h->sets, set, sizeof(*set));
}

static bool is_regular(uint32_t gap, uint32_t before)
{
	return before ? gap <= 2 * before + 1 : gap <= HOLD_MAX_GAP;
}

/* One more reading of a known label set, at the time with this index. */
static int set_continue(struct store_hold *h, uint32_t i, uint32_t now, double value, bool inside)
{
	struct store_hold_set *set = set_at(h, i);
	uint32_t gap = now - set->last;
	int r = 0;

	if (gap == 0) {
		set->value += value;
		return 0;
	}
	if (is_regular(gap, set->gap)) {
		r = fill_add(h, i, set->last + 1, now, set->value);
		/* The one before the first lies before all that we see. */
		if (r == 0 && !set->gap && set->last < gap)
			r = fill_add(h, i, 0, set->last, set->value);
	}
	set->gap_before = set->gap;
	set->gap = gap;
	set->last = now;
	set->value = value;
	set->readings += inside;
	return r;
}

int store_hold_add(struct store_hold *h, uint32_t ms, uint32_t labelset, bool wanted, double value)
{
	bool inside = ms >= h->from_ms && ms < h->to_ms;
	uint32_t n;
	const uint32_t *times = times_of(h, &n);
	uint64_t i;

	if (n == 0 || times[n - 1] != ms) {
		int r = buf_append(&h->times, &ms, sizeof(ms));

		if (r < 0)
			return r;
		n++;
	}
	if (!wanted)
		return 0;
	if (map_get(&h->index, labelset, &i))
		return set_continue(h, (uint32_t)i, n - 1, value, inside);
	return set_new(h, &(struct store_hold_set){.labelset = labelset,
						   .readings = inside,
						   .last = n - 1,
						   .value = value});
}

/* The last readings stand as long as those before did: a busy machine is not regular. */
static int fill_ends(struct store_hold *h, uint32_t n_times)
{
	for (uint32_t i = 0; i < h->sets.len / sizeof(struct store_hold_set); i++) {
		const struct store_hold_set *set = set_at(h, i);
		uint64_t gap = MAX(set->gap, set->gap_before);
		uint32_t end = (uint32_t)MIN(set->last + gap, (uint64_t)n_times);
		int r = fill_add(h, i, set->last + 1, end, set->value);

		if (r < 0)
			return r;
	}
	return 0;
}

int store_hold_finish(struct store_hold *h, void (*fn)(void *ctx, int64_t ms, double value),
		      void *ctx)
{
	uint32_t n, first = time_from(h, h->from_ms), end = time_from(h, h->to_ms);
	const uint32_t *times = times_of(h, &n);
	const struct fill *fills;
	int r = fill_ends(h, n);

	if (r < 0)
		return r;
	fills = (const void *)h->fills.data;
	for (size_t i = 0; i < h->fills.len / sizeof(*fills); i++) {
		uint32_t from = MAX(fills[i].begin, first), to = MIN(fills[i].end, end);

		if (from >= to)
			continue;
		set_at(h, fills[i].set)->held += to - from;
		for (uint32_t k = from; fn && k < to; k++)
			fn(ctx, times[k], fills[i].value);
	}
	return 0;
}
