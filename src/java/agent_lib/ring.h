/*
 * src/java/agent_lib/ring.h: the file that the agent in a JVM shares with sonde.
 *
 *      0  header                one page; sonde's words and the agent's on lines of their own
 *   4096  records               a ring; positions only grow, and are taken modulo its size
 *
 *   record:  position + 1, length, kind, frames     16 bytes; the position is written last
 *     name:  frame, line, lengths                   then the class and the method
 *     event: two numbers, lengths, flags            then frames, the class and the thread
 *
 * The agent maps it and never waits: events that do not fit are counted. sonde reads it like any
 * file of a target, with pread. A record is complete when it starts with its own position; records
 * are contiguous, so a padding record may fill the end of the ring.
 */
#pragma once

#include <stdint.h>

#define JAVA_RING_MAGIC 0x31676e6972766a73ULL /* "sjvring1" */
#define JAVA_RING_HEADER_BYTES 4096
#define JAVA_RING_DATA_MIN (64u << 10)
#define JAVA_RING_DATA_MAX (64u << 20)
#define JAVA_RING_ALIGN 16
#define JAVA_RING_MAX_DEPTH 256
#define JAVA_RING_MAX_FRAMES (1u << 17) /* ids of frames are below it; 0: none */
#define JAVA_RING_MAX_NAME 512		/* bytes of each name */

/* The library's name for the loader, which finds a library already loaded by it. */
#define JAVA_RING_SONAME "libsonde-jvmti-" SONDE_VERSION "-2.so"

enum {
	JAVA_RING_ALLOCS = 1, /* what to record */
	JAVA_RING_LOCKS = 2,
};

enum {
	JAVA_RING_FILL = 1,
	JAVA_RING_NAME,
	JAVA_RING_ALLOC, /* numbers: size of the object, interval its sample was drawn with */
	JAVA_RING_LOCK,	 /* numbers: nanoseconds, waits */
};

enum {
	JAVA_RING_TRUNCATED = 1, /* the stack is deeper */
};

struct java_ring_header {
	/* Set by sonde before the agent sees it. */
	uint64_t magic;
	uint64_t data_bytes; /* a power of two */
	uint64_t idle_ns;    /* the agent ends after this long without a beat */
	uint64_t interval_bytes;
	uint32_t wanted;
	uint32_t depth;
	uint8_t pad0[24];
	/* Written by the agent. */
	uint64_t head;
	uint64_t dropped; /* events, for lack of room */
	uint64_t interval_now;
	uint64_t events;
	uint64_t ended; /* 1: no more data will come */
	uint64_t parks; /* 1: waits for locks of java.util.concurrent are seen */
	uint8_t pad1[16];
	/* Written by sonde. */
	uint64_t tail;
	uint64_t beat; /* changes while sonde is alive */
	uint8_t pad2[48];
};

struct java_ring_record_header {
	uint64_t commit; /* its position + 1 */
	uint32_t len;	 /* including this; a multiple of JAVA_RING_ALIGN */
	uint16_t kind;
	uint16_t n_frames;
};

struct java_ring_name {
	struct java_ring_record_header record;
	uint32_t frame;
	int32_t line; /* 0 if unknown */
	uint16_t class_len;
	uint16_t method_len;
	uint32_t pad;
};

struct java_ring_event {
	struct java_ring_record_header record;
	uint64_t a, b;
	uint16_t class_len;
	uint16_t thread_len;
	uint32_t flags;
};

/* The agent's response to a command; JVMTI's error numbers are added to the last two. */
enum {
	JAVA_RING_OK = 0,
	JAVA_RING_ERR_COMMAND = 1,
	JAVA_RING_ERR_FILE = 2,
	JAVA_RING_ERR_MEMORY = 3,
	JAVA_RING_ERR_OLD = 4, /* no JVMTI of JDK 11 */
	JAVA_RING_ERR_BUSY = 5,
	JAVA_RING_ERR_CAPABILITY = 1000,
	JAVA_RING_ERR_EVENTS = 2000,
};
