/*
 * src/store/dict.h: the writer's dictionary of one service and day: hashes of frames and stacks,
 * and the ids they have on disk.
 *
 * Only hashes are kept, not what was hashed: 28,000 stacks take 800 kB. They are other ones in each
 * process, and made anew from the chunks on disk after a restart. Stack 0 is "(other)": it stands
 * for what comes after the limits are reached.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "profile/profile.h"
#include "store/codec.h"
#include "store/day.h"
#include "store/ids.h"

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
	struct buf new_stacks; /* struct chunk_stack, the place in ids instead of frames */
	struct buf new_ids;
	struct arena text;
};

/* Reads what the day file holds of the service. */
int dict_load(struct dict *d, struct day *day, struct codec *c, struct err *err);
/*
 * The id of each stack of the profile, at the profile's stack id in ret_ids (of
 * profile_n_stacks()); new ones are added. scratch is for reuse by the next call.
 */
int dict_resolve(struct dict *d, const struct profile *p, uint32_t max_stacks, struct buf *scratch,
		 uint32_t *ret_ids, struct err *err);
/* Writes what is new into the day file. */
int dict_flush(struct dict *d, struct day *day, struct codec *c, struct err *err);
/* Whether so much is new that it should be written before the interval ends. */
bool dict_is_heavy(const struct dict *d);
size_t dict_memory(const struct dict *d);
/* Forgets all but the service, its id and the link. */
void dict_unload(struct dict *d);
