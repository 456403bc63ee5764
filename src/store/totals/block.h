/*
 * src/store/totals/block.h: what all services had of each type in a minute, or in ten, as one
 * block on disk:
 *
 *   varints  1 if all times are listed (a minute), else 0; lists of times; entries
 *   columns  lists    n; the first time, in ms; the others as differences (ten minutes: the last)
 *            groups   of each type: its id, n entries, the divisor of its sums, then the
 *                     services, ascending, as differences
 *            counts   of each entry: its list of times, its number of points
 *            sums     of each entry: zigzag of its sum / divisor
 *
 * A list of times tells when the service was collected: most entries share one. By it a point that
 * comes later is known to be of another time or of the same, and snapshots are averaged.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/view.h"
#include "store/codec/codec.h"

#define STORE_TOTALS_MINUTE_MS 60000
#define STORE_TOTALS_SLOT_MINUTES 10
#define STORE_TOTALS_SLOT_MS 600000
#define STORE_TOTALS_MAX_TYPES 256U /* of a day */

/* What one service had of one type. */
struct store_totals_entry {
	uint32_t type;
	uint32_t service;
	uint32_t times; /* number of its list */
	uint32_t points;
	int64_t sum;
};

/* When it was collected: distinct times, since the block's begin. */
struct store_totals_times {
	uint32_t n;
	uint32_t first_ms;
	uint32_t last_ms;
};

/* A minute being added up. A zeroed one is empty. */
struct store_totals_minute {
	uint32_t number; /* in the day */
	bool changed;	 /* since it was written */
	struct buf entries;
	struct map index;    /* type << 32 | service, to its entry */
	struct intern lists; /* of uint16_t: ms in the minute, ascending */
	struct buf scratch;
	/* Most points add the same time to the same list. */
	uint32_t list_before;
	uint32_t list_after;
	uint16_t list_ms;
};
void store_totals_minute_release(struct store_totals_minute *m);
size_t store_totals_minute_memory(const struct store_totals_minute *m);
/* points: 0 where the process has a point at this time already. */
int store_totals_minute_add(struct store_totals_minute *m, const struct store_totals_entry *entry,
			    uint32_t ms);
/* Sorts the entries. */
int store_totals_minute_encode(struct store_codec *c, struct store_totals_minute *m,
			       struct buf *out);
/* Into an empty one; -EBADMSG. */
int store_totals_minute_decode(struct store_codec *c, struct view block,
			       struct store_totals_minute *m);

/* Ten minutes being added up from blocks of minutes. A zeroed one is empty. */
struct store_totals_slot {
	struct buf entries;
	struct buf spans; /* struct store_totals_times, by entry */
	struct map index;
};
void store_totals_slot_release(struct store_totals_slot *s);
/* -EBADMSG: the slot is unusable. */
int store_totals_slot_add(struct store_codec *c, struct store_totals_slot *s, struct view block,
			  uint32_t minute);
int store_totals_slot_encode(struct store_codec *c, struct store_totals_slot *s, struct buf *out);

/* A block being read. */
struct store_totals_block {
	bool whole; /* all times are listed */
	size_t n_lists;
	size_t n_left; /* entries not announced yet */
	const struct store_totals_times *lists;
	struct store_cursor all_lists;
	struct store_cursor groups;
	struct store_cursor counts;
	struct store_cursor sums;
	/* The group being read. */
	uint32_t type;
	uint32_t service; /* of the entry before */
	size_t n_entries; /* left */
	uint64_t divisor;
};
/* lists: memory for them. The block is valid until the codec's next use. */
int store_totals_open(struct store_codec *c, struct view block, struct buf *lists,
		      struct store_totals_block *ret);
/* The next type: 1, 0 at the end, or -EBADMSG. */
int store_totals_next_type(struct store_totals_block *b);
/* The next entry of the type: 1, 0, or -EBADMSG. */
int store_totals_next(struct store_totals_block *b, struct store_totals_entry *ret);
