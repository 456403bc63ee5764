/* src/store/sqlite/build.h: builds one profile from the sums of several days. */
#pragma once

#include "base/buf.h"
#include "profile/profile.h"
#include "store/codec/block.h"
#include "store/codec/codec.h"
#include "store/sqlite/day.h"
#include "store/sqlite/ids.h"

struct store_build_frame;
struct store_build_name;
struct store_build_stack;
struct store_build_value;

struct store_build {
	struct profile *profile;
	/* By hash, to the profile's ids. */
	struct store_ids functions;
	struct store_ids modules;   /* to mappings */
	struct store_ids locations; /* those of the first day only if there is another one */
	struct store_ids stacks;    /* the same */
	struct buf values;	    /* int64_t, by the profile's stack */
	/* Of the day being added. */
	struct store_build_name *names;	  /* by the day's id */
	struct store_build_frame *frames; /* by the same id */
	uint32_t n_frames;
	struct buf text;		 /* of the names */
	struct store_build_value *added; /* one per stack, ids are unique */
	uint32_t n_added;
	const struct store_block_sums *sums;
	uint8_t *wanted;   /* bits, by the day's stack */
	uint8_t *met;	   /* the same, of those that were read */
	uint32_t n_wanted; /* of them not met yet */
	bool repeated;	   /* an id came twice */
	/* Of the stack being read, from the root: how many of its frames are known, and their ...
	 */
	uint32_t n_located;
	uint32_t *path;	  /* locations; the root's is the last place */
	uint64_t *hashes; /* of the stack that ends with them; the root's is at 1 */
	/* Stacks read last, looked up once the CPU has prefetched their slots. */
	struct store_build_stack *waiting;
	uint32_t n_waiting;
	bool is_first; /* locations and stacks were not searched yet */
};

int store_build_init(struct store_build *b);
void store_build_release(struct store_build *b);
/*
 * Adds the day's sums of a service. Stacks and frames that are lost are called "(damaged)".
 * -EBADMSG: the day is malformed; nothing was added.
 */
int store_build_add_day(struct store_build *b, struct store_codec *c, struct store_day *day,
			uint32_t service, const struct store_block_sums *sums, struct err *err);
/* The profile with its samples; the caller frees it. */
int store_build_finish(struct store_build *b, struct profile **ret_profile, struct err *err);
