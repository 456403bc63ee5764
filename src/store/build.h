/* src/store/build.h: makes one profile of the sums of several days. */
#pragma once

#include "base/buf.h"
#include "base/map.h"
#include "profile/profile.h"
#include "store/block.h"
#include "store/codec.h"
#include "store/day.h"

struct build {
	struct profile *profile;
	struct map functions; /* hash of name and file to the profile's function */
	struct map locations; /* hash of name, file and line to the profile's location */
	struct buf values;    /* int64_t, by the profile's stack */
	uint32_t *by_frame;   /* location + 1 of each frame of the day; UINT32_MAX: to be named */
	struct buf stacks;    /* the day's wanted stacks: value, depth, frame ids */
	struct buf scratch;
	const struct block_sums *sums;
	uint32_t n_wanted;
};

int build_init(struct build *b);
void build_release(struct build *b);
/* Adds the day's sums of a service. -EBADMSG: the day is damaged, and nothing was added. */
int build_add_day(struct build *b, struct codec *c, struct day *day, uint32_t service,
		  const struct block_sums *sums, struct err *err);
/* The profile with its samples, the caller's to free. */
int build_finish(struct build *b, struct profile **ret_profile, struct err *err);
