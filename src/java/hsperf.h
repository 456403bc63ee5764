/*
 * src/java/hsperf.h: the counters a HotSpot JVM keeps in a file, read without contacting it.
 *
 * The JVM maps /tmp/hsperfdata_USER/PID and writes its counters there all the time. The file is
 * found through the JVM's mappings, not by name: that works in containers and after /tmp was
 * cleaned, and never finds another one. It is read by pread, never mapped: truncating it must not
 * kill us.
 *
 *   0   4  ca fe c0 c0
 *   4   1  byte order: 1 is little-endian
 *   5   2  version: 2, 0
 *   7   1  1 when the JVM has set it up
 *   8   4  bytes in use
 *  24   4  offset of the first entry
 *  28   4  number of entries
 *
 * and an entry:
 *
 *   0   4  length of the entry
 *   4   4  offset of its name in the entry
 *   8   4  0: one value; else the number of elements
 *  12   1  type: 'J' a 64-bit number, 'B' bytes
 *  13   1  flags
 *  14   1  unit
 *  15   1  1 constant, 2 only grows, 3 variable
 *  16   4  offset of the value in the entry
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/view.h"
#include "proc/id.h"
#include "proc/maps.h"

#define JAVA_HSPERF_MAX_BYTES ((size_t)1 << 20)
#define JAVA_HSPERF_MAX_ENTRIES 16384

struct java_hsperf; /* opaque */

/* One counter; views are valid until the next read. */
struct java_counter {
	struct view name;
	bool is_text;
	int64_t number;
	struct view text; /* without trailing zeros */
};

/* -ENOENT: the JVM has no such file (-XX:-UsePerfData, -XX:+PerfDisableSharedMem). */
int java_hsperf_open(const struct proc_id *id, const struct proc_maps *maps,
		     struct java_hsperf **ret_hsperf, struct err *err);
/* For any file; takes fd, also on failure. */
int java_hsperf_open_take(int fd, struct java_hsperf **ret_hsperf, struct err *err);
void java_hsperf_close(struct java_hsperf *hsperf); /* NULL is fine */
DEFINE_CLEANUP(struct java_hsperf, java_hsperf_close)

/* Reads all counters again. -EAGAIN: the JVM has not set them up yet. One system call. */
int java_hsperf_read(struct java_hsperf *hsperf, struct err *err);

/*
 * Iterates over the counters of the last read; *at starts at 0. 1, or 0 after the last one;
 * -EBADMSG for an invalid entry.
 */
int java_hsperf_next(const struct java_hsperf *hsperf, size_t *at, struct java_counter *ret);
/* Looks one up by name. Control characters in a text become '?'. */
bool java_hsperf_number(const struct java_hsperf *hsperf, const char *name, int64_t *ret);
bool java_hsperf_text(const struct java_hsperf *hsperf, const char *name, char *dst, size_t cap);
