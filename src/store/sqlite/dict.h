/*
 * src/store/sqlite/dict.h: the writer's dictionary of one service and day: hashes of frames and
 * stacks, and their ids on disk.
 *
 * Only hashes are kept, not the contents: 28,000 stacks take 800 kB. They differ in each process,
 * and are rebuilt from the chunks on disk after a restart. Stack 0 is "(other)": everything past
 * the limits.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "profile/profile.h"
#include "store/codec/codec.h"
#include "store/sqlite/day.h"
#include "store/sqlite/ids.h"
#include "store/sqlite/owners.h"
#include "store/totals/about.h"

#define STORE_DICT_OTHER 0U
#define STORE_DICT_OTHER_NAME "(other)"
#define STORE_DICT_MAX_FRAMES 200000U /* of a service and day */

struct store_dict {
	struct store_dict *next;
	uint32_t service;
	char name[256];
	struct store_owner *owner;
	uint64_t bytes; /* of names and stacks */
	uint64_t bytes_saved;
	uint32_t labelsets;
	struct store_about about;
	bool loaded;
	uint64_t used; /* when, in writes */
	struct store_ids frames;
	struct store_ids stacks;
	uint32_t next_frame;
	uint32_t next_stack;
	/* Not on disk yet. */
	uint32_t first_new_frame;
	struct buf new_frames; /* struct store_chunk_frame, into text */
	struct buf new_stacks; /* struct store_chunk_stack, with an offset into ids instead of
				  frames */
	struct buf new_ids;
	struct arena text;
};

/* Loads the service's dictionary from the day file. */
int store_dict_load(struct store_dict *d, struct store_day *day, struct store_codec *c,
		    struct err *err);
/*
 * Stores the id of each stack of the profile at ret_ids[profile's stack id] (profile_n_stacks()
 * entries); adds new ones within the budget. scratch is reused by the next call. Returns how many
 * were over it.
 */
int store_dict_resolve(struct store_dict *d, const struct profile *p,
		       const struct store_budget *budget, struct buf *scratch, uint32_t *ret_ids,
		       struct err *err);
/* Writes new entries to the day file. */
int store_dict_flush(struct store_dict *d, struct store_day *day, struct store_codec *c,
		     struct err *err);
/* Whether there is so much new that it should be written before the interval ends. */
bool store_dict_is_heavy(const struct store_dict *d);
size_t store_dict_memory(const struct store_dict *d);
/* Drops everything but the service, its owner and the link. */
void store_dict_unload(struct store_dict *d);
