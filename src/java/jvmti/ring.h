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
	uint64_t idle_ns;	 /* the agent ends after this long without a sign of life from us */
	uint64_t interval_bytes; /* initial interval between allocation samples */
	uint32_t wanted;	 /* JAVA_RING_ALLOCS, JAVA_RING_LOCKS */
	uint32_t depth;		 /* of stacks */
};

struct java_ring {
	int fd; /* owned */
	uint64_t data_bytes;
	uint64_t tail; /* position of bytes */
	uint64_t beat;
	struct buf bytes; /* complete records */
	size_t at;	  /* of the next one */
};

/* A record; views are valid until the next read. */
struct java_ring_record {
	uint16_t kind; /* JAVA_RING_NAME, JAVA_RING_ALLOC, JAVA_RING_LOCK */
	/* For a name. */
	uint32_t frame;
	int32_t line;
	struct view method;
	/* For an event. */
	uint64_t a, b;
	uint32_t flags;
	struct view frames; /* 32-bit ids */
	struct view thread;
	/* For both: a signature such as "Ljava/lang/String;". */
	struct view class;
};

/* Writes the header, and allocates all memory the file will ever need. Takes fd on success. */
int java_ring_create_take(struct java_ring *ring, int fd, const struct java_ring_options *options,
			  struct err *err);
void java_ring_release(struct java_ring *ring);

/*
 * Reads the available records; all must be consumed by java_ring_next() before the next call. Shows
 * a sign of life. -EBADMSG.
 */
int java_ring_read(struct java_ring *ring, struct err *err);
/* 1, or 0 after the last one; -EBADMSG. */
int java_ring_next(struct java_ring *ring, struct java_ring_record *ret_record);
/* Frees the space of the records read. */
int java_ring_done(struct java_ring *ring, struct err *err);

struct java_ring_counts {
	uint64_t events;
	uint64_t dropped;	 /* of these, for lack of room */
	uint64_t interval_bytes; /* between samples, currently */
	bool has_ended;		 /* by itself, without a sign of life from us; or as told */
	bool sees_parks;	 /* waits for locks of java.util.concurrent */
};
/* According to the agent. */
int java_ring_counts(const struct java_ring *ring, struct java_ring_counts *ret_counts);
