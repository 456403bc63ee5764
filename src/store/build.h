/* src/store/build.h: makes one profile of the sums of several days. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "profile/profile.h"
#include "store/block.h"
#include "store/codec.h"
#include "store/day.h"

struct build {
	struct profile *profile;
	struct map functions; /* string ids of name and file to the profile's function */
	struct map locations; /* hash of function and line to the profile's location */
	struct buf values;    /* int64_t, by the profile's stack */
	/* Of the day being added. */
	struct buf frames;   /* struct chunk_frame, by the day's id */
	struct arena text;   /* of the frames */
	struct buf by_frame; /* uint32_t: location + 1; 0: not needed yet */
	struct buf added;    /* struct build_value */
	const struct block_sums *sums;
	uint32_t *path;	    /* locations of the stack being read; the root is the last place */
	uint32_t n_located; /* how many of them are known, from the root */
};

int build_init(struct build *b);
void build_release(struct build *b);
/* Adds the day's sums of a service. -EBADMSG: the day is damaged, and nothing was added. */
int build_add_day(struct build *b, struct codec *c, struct day *day, uint32_t service,
		  const struct block_sums *sums, struct err *err);
/* The profile with its samples, the caller's to free. */
int build_finish(struct build *b, struct profile **ret_profile, struct err *err);
