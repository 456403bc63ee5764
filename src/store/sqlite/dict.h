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

#define DICT_OTHER 0U
#define DICT_OTHER_NAME "(other)"
#define DICT_MAX_FRAMES 200000U /* of a service and day */

struct dict {
	struct dict *next;
	uint32_t service;
	char name[256];
	bool loaded;
	uint64_t used; /* when, in writes */
	struct ids frames;
	struct ids stacks;
	uint32_t next_frame;
	uint32_t next_stack;
	/* Not on disk yet. */
	uint32_t first_new_frame;
	struct buf new_frames; /* struct chunk_frame, into text */
	struct buf new_stacks; /* struct chunk_stack, with an offset into ids instead of frames */
	struct buf new_ids;
	struct arena text;
};

/* Loads the service's dictionary from the day file. */
int dict_load(struct dict *d, struct day *day, struct codec *c, struct err *err);
/*
 * Stores the id of each stack of the profile at ret_ids[profile's stack id] (profile_n_stacks()
 * entries); adds new ones. scratch is reused by the next call.
 */
int dict_resolve(struct dict *d, const struct profile *p, uint32_t max_stacks, struct buf *scratch,
		 uint32_t *ret_ids, struct err *err);
/* Writes new entries to the day file. */
int dict_flush(struct dict *d, struct day *day, struct codec *c, struct err *err);
/* Whether there is so much new that it should be written before the interval ends. */
bool dict_is_heavy(const struct dict *d);
size_t dict_memory(const struct dict *d);
/* Drops everything but the service, its id and the link. */
void dict_unload(struct dict *d);
