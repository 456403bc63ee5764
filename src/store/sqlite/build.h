/* src/store/sqlite/build.h: builds one profile from the sums of several days. */
#pragma once

#include "base/buf.h"
#include "profile/profile.h"
#include "store/codec/block.h"
#include "store/codec/codec.h"
#include "store/sqlite/day.h"
#include "store/sqlite/ids.h"

struct build_frame;
struct build_name;
struct build_stack;
struct build_value;

struct build {
	struct profile *profile;
	/* By hash, to the profile's ids. */
	struct ids functions;
	struct ids locations; /* those of the first day only if there is another one */
	struct ids stacks;    /* the same */
	struct buf values;    /* int64_t, by the profile's stack */
	/* Of the day being added. */
	struct build_name *names;   /* by the day's id */
	struct build_frame *frames; /* by the same id */
	uint32_t n_frames;
	struct buf text;	   /* of the names */
	struct build_value *added; /* one per stack, ids are unique */
	uint32_t n_added;
	const struct block_sums *sums;
	uint8_t *wanted;   /* bits, by the day's stack */
	uint8_t *met;	   /* the same, of those that were read */
	uint32_t n_wanted; /* of them not met yet */
	/* Of the stack being read, from the root: how many of its frames are known, and their ...
	 */
	uint32_t n_located;
	uint32_t *path;	  /* locations; the root's is the last place */
	uint64_t *hashes; /* of the stack that ends with them; the root's is at 1 */
	/* Stacks read last, looked up once the CPU has prefetched their slots. */
	struct build_stack *waiting;
	uint32_t n_waiting;
	bool is_first; /* locations and stacks were not searched yet */
};

int build_init(struct build *b);
void build_release(struct build *b);
/* Adds the day's sums of a service. -EBADMSG: the day is damaged; nothing was added. */
int build_add_day(struct build *b, struct codec *c, struct day *day, uint32_t service,
		  const struct block_sums *sums, struct err *err);
/* The profile with its samples; the caller frees it. */
int build_finish(struct build *b, struct profile **ret_profile, struct err *err);
