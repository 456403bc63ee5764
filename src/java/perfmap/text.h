/*
 * src/java/perfmap/text.h: makes the names in HotSpot's perf maps readable.
 *
 *   0x00007f5938ec7600 0x00000000000000b8 long Spin.compute(long, java.lang.String)
 *   0x00007f5931400520 0x0000000000000130 Interpreter
 *
 * A method becomes "Spin.compute", its name in recordings; other code keeps its name.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/view.h"

/* Appends the name; -ENOMEM, -E2BIG. */
int java_perfmap_name(struct buf *out, struct view name);

struct java_perfmap_copied {
	uint64_t functions;
	bool is_cut;
};

/*
 * Copies from one file to another, which is empty, up to max bytes. Skips invalid lines. -errno of
 * reading and writing.
 */
int java_perfmap_copy(int from, int to, uint64_t max, struct java_perfmap_copied *ret_copied);
