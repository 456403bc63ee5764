/*
 * src/java/jfr/jfr.h: reads JFR recordings: finished files, bytes as they arrive, or the file a JVM
 * is writing.
 *
 *   file:   chunk*                        each for itself: ids and clocks are its own
 *   chunk:  header, event*                68 bytes, big-endian; then numbers of 1 to 9 bytes
 *   event:  size, type, fields            type 0: the metadata, 1: a checkpoint with constants
 *
 * The caller names the events and fields it wants; nothing else is extracted from a recording,
 * which may contain command lines, environments and other secrets. Events come in file order, which
 * is not order of time. Memory holds the constants of two chunks and one event, however long the
 * file is, within limits; the parser terminates on any input.
 *
 * A live chunk is followed without gaps: its header tells up to where events and constants are
 * complete, and java_jfr_next() returns those added since.
 */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"
#include "base/view.h"
#include "java/jfr/plan.h"
#include "java/jfr/pools.h"

/* A wanted event, by name, and its fields, whose values are returned in this order. */
struct java_jfr_query {
	const char *event; /* "jdk.ThreadPark" */
	const char *const *fields;
	size_t n_fields; /* at most JAVA_JFR_MAX_SLOTS */
};

struct java_jfr_options {
	const struct java_jfr_query *queries; /* borrowed for the life of the parser */
	size_t n_queries;
	/*
	 * The file is being written: what is incomplete now will be completed. Right after a
	 * rotation, a JVM's stacks may still refer to the previous chunk, which then applies.
	 */
	bool live;
	/*
	 * For follow.h: how long to wait for an unfinished file although there is a newer one; 0:
	 * half a minute.
	 */
	uint64_t patience_ns;
	size_t max_bytes; /* of constants, and of fed bytes; 0: JAVA_JFR_DEFAULT_MAX */
};

#define JAVA_JFR_DEFAULT_MAX ((size_t)256 << 20)

struct java_jfr_event {
	size_t query;			     /* index of its query */
	const struct java_jfr_value *values; /* one per field of the query */
	int64_t ticks_per_second;	     /* of this chunk; durations are in ticks */
	uint64_t epoch;			     /* differs for each chunk: keys change their meaning */
};

/* For one type of event, wanted or not. */
struct java_jfr_tally {
	struct view name;
	uint64_t count;
	uint64_t bytes;
};

struct java_jfr_stats {
	uint64_t chunks; /* opened */
	uint64_t bytes;	 /* of chunks, as far as read */
	uint64_t events; /* without metadata and checkpoints */
	uint64_t checkpoints;
	uint64_t cut_bytes;    /* at the end of the file, of an incomplete chunk */
	uint64_t unknown;      /* events of types missing in the metadata */
	uint64_t malformed;    /* wanted events whose fields exceed their size */
	int64_t start_ns;      /* since 1970, of the first chunk */
	int64_t duration_ns;   /* of all chunks */
	uint16_t major, minor; /* of the last chunk */
	bool unfinished;       /* the last chunk is still being written, or its JVM ended early */
};

struct java_jfr;

/* Takes fd, also on failure. name is for messages, and is copied. */
int java_jfr_open_take(int fd, const char *name, const struct java_jfr_options *options,
		       struct java_jfr **ret_jfr, struct err *err);
/* For bytes passed to java_jfr_feed(). A chunk must be complete before its events are returned. */
int java_jfr_open_feed(const char *name, const struct java_jfr_options *options,
		       struct java_jfr **ret_jfr, struct err *err);
int java_jfr_feed(struct java_jfr *j, struct view bytes, struct err *err);
void java_jfr_close(struct java_jfr *j);
DEFINE_CLEANUP(struct java_jfr, java_jfr_close)

/*
 * The next wanted event: 1, valid until the next call. 0: there is none; for a live file, or after
 * feeding more, there may be later. -EBADMSG, -ENOTSUP, -E2BIG; after an error only
 * java_jfr_close() may follow.
 */
int java_jfr_next(struct java_jfr *j, struct java_jfr_event *ret_event, struct err *err);
/*
 * For a live file, after java_jfr_next() returned 0: its writer has finished it, and continues in
 * another.
 */
bool java_jfr_finished(const struct java_jfr *j);
/* Continues with the next file of the same JVM. Takes fd, also on failure. */
int java_jfr_switch_take(struct java_jfr *j, int fd, const char *name, struct err *err);

/*
 * For the current event; all valid until the next java_jfr_next(). False for null and unknown
 * values.
 */
bool java_jfr_stack(const struct java_jfr *j, const struct java_jfr_value *v,
		    struct java_jfr_stack *ret_stack);
/* Names as the JVM has them: "java/lang/String", "toString". */
bool java_jfr_method_names(const struct java_jfr_stack *s, const struct java_jfr_frame *f,
			   struct view *ret_class, struct view *ret_method);
bool java_jfr_frame_type(const struct java_jfr_stack *s, const struct java_jfr_frame *f,
			 struct view *ret_type);
bool java_jfr_class_name(const struct java_jfr *j, const struct java_jfr_value *v,
			 struct view *ret_name);
bool java_jfr_thread(const struct java_jfr *j, const struct java_jfr_value *v,
		     struct java_jfr_thread *ret_thread);
bool java_jfr_text(const struct java_jfr *j, const struct java_jfr_value *v, struct view *ret_text);
/* Converts a tick count such as startTime to ns since 1970; or a duration. */
int64_t java_jfr_time_ns(const struct java_jfr *j, int64_t ticks);
int64_t java_jfr_duration_ns(const struct java_jfr *j, int64_t ticks);

/* What has been seen so far; valid until the next java_jfr_next(). In order of first appearance. */
const struct java_jfr_stats *java_jfr_stats(const struct java_jfr *j);
const struct java_jfr_tally *java_jfr_tallies(const struct java_jfr *j, size_t *ret_len);
