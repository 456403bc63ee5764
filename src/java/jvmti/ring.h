/*
 * src/java/jvmti/ring.h: sonde's end of the ring that our library in a JVM writes to.
 *
 * The file is in the target's file system, and the target can write anything to it at any time. So
 * it is read by pread into our own memory, where it no longer changes, and every length is checked
 * there; invalid data ends the reading for good.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/view.h"
#include "java/agent_lib/ring.h"

#define JAVA_RING_BYTES ((uint64_t)4 << 20)

struct java_ring_options {
	uint64_t data_bytes;	 /* a power of two */
	uint64_t idle_ns;	 /* the agent ends without a sign of life from us for so long */
	uint64_t interval_bytes; /* between samples of allocations, at first */
	uint32_t wanted;	 /* JAVA_RING_ALLOCS, JAVA_RING_LOCKS */
	uint32_t depth;		 /* of stacks */
};

struct java_ring {
	int fd; /* owned */
	uint64_t data_bytes;
	uint64_t tail; /* position of bytes */
	uint64_t beat;
	struct buf bytes; /* of whole records */
	size_t at;	  /* of the next one */
};

/* A record; views are borrowed until the next reading. */
struct java_ring_record {
	uint16_t kind; /* JAVA_RING_NAME, JAVA_RING_ALLOC, JAVA_RING_LOCK */
	/* Of a name. */
	uint32_t frame;
	int32_t line;
	struct view method;
	/* Of an event. */
	uint64_t a, b;
	uint32_t flags;
	struct view frames; /* ids of 32 bits */
	struct view thread;
	/* Of both: a signature such as "Ljava/lang/String;". */
	struct view class;
};

/* Writes the header, and takes all the memory that the file will ever need. Takes fd if it works.
 */
int java_ring_create_take(struct java_ring *ring, int fd, const struct java_ring_options *options,
			  struct err *err);
void java_ring_release(struct java_ring *ring);

/*
 * Reads what is there; all of it must be gone through by java_ring_next() before the next time.
 * Gives a sign of life. -EBADMSG.
 */
int java_ring_read(struct java_ring *ring, struct err *err);
/* 1, or 0 behind the last one; -EBADMSG. */
int java_ring_next(struct java_ring *ring, struct java_ring_record *ret_record);
/* Makes room for more. */
int java_ring_done(struct java_ring *ring, struct err *err);

struct java_ring_counts {
	uint64_t events;
	uint64_t dropped;	 /* of these, for want of room */
	uint64_t interval_bytes; /* between samples, as it is now */
	bool has_ended;		 /* of itself, for we gave no sign of life; or as it was told */
};
/* As the agent has them. */
int java_ring_counts(const struct java_ring *ring, struct java_ring_counts *ret_counts);
