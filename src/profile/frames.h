/*
 * src/profile/frames.h: the stack of a sample as names, which is what tables and trees are made of.
 *
 * The name of a frame is that of its function. A frame without one is named after its mapping,
 * "[libc.so.6]", or "<unknown>", as `go tool pprof` does when it groups by function.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "profile/profile.h"

struct frame {
	uint32_t name; /* string id of the profile */
	bool inlined;  /* into the frame before it */
};

/* Zeroed is empty, and may be released. */
struct frames {
	const struct profile *profile;
	uint32_t *mapping_names; /* string ids, by mapping */
	uint32_t unknown;
	uint64_t walked;
	struct buf stack; /* of struct frame */
};

/* Adds the names of nameless frames to the profile's strings. */
int frames_init(struct frames *f, struct profile *p, struct err *err);
void frames_release(struct frames *f);
/*
 * The frames of a sample from the root to the leaf, borrowed until the next call. -E2BIG after
 * a quarter of a billion frames in all: a small forged file can stand for any number of them.
 */
int frames_of(struct frames *f, const struct profile_sample *s, const struct frame **ret_frames,
	      size_t *ret_len, struct err *err);
