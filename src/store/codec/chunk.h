/*
 * src/store/codec/chunk.h: dictionaries on disk: frames and stacks of one service, in chunks.
 *
 *   frames  varints: first id, n
 *           columns: names (length, bytes); files (length, bytes); lines (zigzag); modules (length,
 *                    bytes), which older versions neither wrote nor read
 *   stacks  varints: n, bytes of a frame's id (2 or 4)
 *           columns: ids (zigzag deltas); frames shared with the previous stack, from the root;
 *                    how many further ones; their ids, little-endian
 *
 * Stacks are sorted by their frames from the root, so neighbours share long prefixes; that is why
 * their ids are a column. Frame ids are most of what a sum reads, and for most stacks it only skips
 * them: hence the fixed width. Format 1 has varints there.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/view.h"
#include "store/codec/codec.h"
#include "store/sqlite/day.h"

#define STORE_CHUNK_MAX_DEPTH 2048U	  /* frames of a stack */
#define STORE_CHUNK_MAX_FRAMES (1U << 18) /* frames of a service */

struct store_chunk_frame {
	struct view name;
	struct view file;
	struct view module; /* library or program, "libc.so.6"; "" if unknown, or of no use */
	int64_t line;
};

/* As of the frames of a profile; see profile.h. */
uint64_t store_chunk_frame_hash(const struct store_chunk_frame *f);

/* frames are root first. */
struct store_chunk_stack {
	uint32_t id;
	uint32_t n;
	const uint32_t *frames;
};

int store_chunk_encode_frames(struct store_codec *c, uint32_t first,
			      const struct store_chunk_frame *frames, size_t n, struct buf *out);
/* Sorts the stacks. */
int store_chunk_encode_stacks(struct store_codec *c, struct store_chunk_stack *stacks, size_t n,
			      struct buf *out);

/* Called for each; the arguments are borrowed for the call. A negative return stops reading. */
typedef int store_chunk_frame_fn(void *ctx, uint32_t id, const struct store_chunk_frame *frame);
typedef int store_chunk_stack_fn(void *ctx, const struct store_chunk_stack *stack, uint32_t shared);
int store_chunk_decode_frames(struct store_codec *c, struct view chunk, store_chunk_frame_fn *fn,
			      void *ctx);
int store_chunk_decode_stacks(struct store_codec *c, struct view chunk, store_chunk_stack_fn *fn,
			      void *ctx);

/*
 * Reads all frames of a service, then all its stacks. -EBADMSG, or the callback's error. A reader
 * goes on after a damaged chunk; the day notes it.
 */
struct store_chunk_visitor {
	store_chunk_frame_fn *frame;
	store_chunk_stack_fn *stack;
	void *ctx;
};
int store_chunk_visit(struct store_codec *c, struct store_day *day, uint32_t service,
		      const struct store_chunk_visitor *v, struct err *err);
