/*
 * src/profile/frames.h: the stack of a sample as names, the input of tables and trees.
 *
 * A frame has the name of its function. Without one it is named after its mapping, "[libc.so.6]",
 * or "<unknown>", as in `go tool pprof` when grouping by function.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "profile/profile.h"

struct profile_frame {
	uint32_t name; /* string id of the profile */
	bool inlined;  /* into the frame before it */
};

/* Empty if zeroed; may be released. */
struct profile_frames {
	const struct profile *profile;
	uint32_t *mapping_names; /* string ids, by mapping */
	uint32_t unknown;
	uint64_t walked;
	struct buf stack; /* of struct profile_frame */
};

/* Adds names for nameless frames to the profile's strings. */
int profile_frames_init(struct profile_frames *f, struct profile *p, struct err *err);
void profile_frames_release(struct profile_frames *f);
/*
 * The frames of a sample from root to leaf, borrowed until the next call. -E2BIG after 250 million
 * frames in total: a small forged file can stand for any number of them.
 */
int profile_frames_of(struct profile_frames *f, const struct profile_sample *s,
		      const struct profile_frame **ret_frames, size_t *ret_len, struct err *err);
