/*
 * src/profile/frames.h: the stack of a sample as names, the input of tables and trees.
 *
 * A frame has the name of its function, without what a compiler appended to it (suffix.h). Without
 * a name it is named after its mapping, "[libc.so.6]", or "<unknown>", as in `go tool pprof` when
 * grouping by function.
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
	uint32_t *mapping_names;  /* string ids, by mapping */
	uint32_t *function_names; /* the same, by function; 0: it has none, or is never used */
	uint32_t unknown;
	uint64_t walked;
	struct buf stack; /* of struct profile_frame */
};

/* Adds names of frames that no function has to the profile's strings. */
int profile_frames_init(struct profile_frames *f, struct profile *p, struct err *err);
void profile_frames_release(struct profile_frames *f);
/* The name of one frame of a location; 0 for the innermost, and for a location without lines. */
uint32_t profile_frames_name(const struct profile_frames *f, const struct profile_location *l,
			     uint32_t line);
/*
 * The frames of a sample from root to leaf, borrowed until the next call. -E2BIG after 250 million
 * frames in total: a small forged file can stand for any number of them.
 */
int profile_frames_of(struct profile_frames *f, const struct profile_sample *s,
		      const struct profile_frame **ret_frames, size_t *ret_len, struct err *err);
