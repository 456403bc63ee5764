/*
 * src/java/jfr/jfr.h: reads JFR recordings: finished files, bytes as they come, or the file that a
 * JVM is writing.
 *
 *   file:   chunk*                        each for itself: ids and clocks are its own
 *   chunk:  header, event*                68 bytes, big-endian; then numbers of 1 to 9 bytes
 *   event:  size, type, fields            type 0: the metadata, 1: a checkpoint with constants
 *
 * The caller names the events and fields it wants; nothing else is read out of a recording, which
 * may hold command lines, environments and other secrets. Events come in the order of the file,
 * which is not that of time. Memory is that of the constants of two chunks and of one event,
 * however long the file is, within limits; whatever the bytes are, the parser ends.
 *
 * A live chunk is followed without a gap: its header says up to where events and constants are
 * complete, and java_jfr_next() gives those that came since.
 */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"
#include "base/view.h"
#include "java/jfr/plan.h"
#include "java/jfr/pools.h"

/* What is wanted: an event by its name, and fields of it, whose values come in this order. */
struct java_jfr_query {
	const char *event; /* "jdk.ThreadPark" */
	const char *const *fields;
	size_t n_fields; /* at most JAVA_JFR_MAX_SLOTS */
};

struct java_jfr_options {
	const struct java_jfr_query *queries; /* borrowed for the life of the parser */
	size_t n_queries;
	/* The file is being written: what is not complete yet will be. A JVM's stacks right after
	 * a rotation may be those of the chunk before, which then count. */
	bool live;
	/* Of follow.h: how long a file that is not finished is waited for although there is a
	 * newer one; 0: half a minute. */
	uint64_t patience_ns;
	size_t max_bytes; /* of constants, and of fed bytes; 0: JAVA_JFR_DEFAULT_MAX */
};

#define JAVA_JFR_DEFAULT_MAX ((size_t)256 << 20)

struct java_jfr_event {
	size_t query;			     /* which of them */
	const struct java_jfr_value *values; /* one per field of the query */
	int64_t ticks_per_second;	     /* of this chunk; durations are in ticks */
	uint64_t epoch; /* another one for each chunk: keys mean something else */
};

/* Of one type of event, wanted or not. */
struct java_jfr_tally {
	struct view name;
	uint64_t count;
	uint64_t bytes;
};

struct java_jfr_stats {
	uint64_t chunks; /* that were begun */
	uint64_t bytes;	 /* of chunks, up to where they were read */
	uint64_t events; /* without metadata and checkpoints */
	uint64_t checkpoints;
	uint64_t cut_bytes;    /* at the end of the file, of a chunk that is not complete */
	uint64_t unknown;      /* events of types that the metadata lacks */
	uint64_t malformed;    /* wanted events whose fields do not fit into their size */
	int64_t start_ns;      /* since 1970, of the first chunk */
	int64_t duration_ns;   /* of all chunks */
	uint16_t major, minor; /* of the last chunk */
	bool unfinished;       /* the last chunk is still being written, or its JVM ended early */
};

struct java_jfr;

/* Takes fd, also on failure. name is for sentences, and is copied. */
int java_jfr_open_take(int fd, const char *name, const struct java_jfr_options *options,
		       struct java_jfr **ret_jfr, struct err *err);
/*
 * For bytes that java_jfr_feed() brings. A chunk must be there as a whole before its events come.
 */
int java_jfr_open_feed(const char *name, const struct java_jfr_options *options,
		       struct java_jfr **ret_jfr, struct err *err);
int java_jfr_feed(struct java_jfr *j, struct view bytes, struct err *err);
void java_jfr_close(struct java_jfr *j);
DEFINE_CLEANUP(struct java_jfr, java_jfr_close)

/*
 * The next wanted event: 1, borrowed until the next call. 0: there is none; of a live file, or when
 * more was fed, there may be later. -EBADMSG, -ENOTSUP, -E2BIG; after an error only
 * java_jfr_close().
 */
int java_jfr_next(struct java_jfr *j, struct java_jfr_event *ret_event, struct err *err);
/*
 * Of a live file after java_jfr_next() said 0: its writer has finished it, and goes on in another.
 */
bool java_jfr_finished(const struct java_jfr *j);
/* Goes on with the next file of the same JVM. Takes fd, also on failure. */
int java_jfr_switch_take(struct java_jfr *j, int fd, const char *name, struct err *err);

/*
 * Of the current event; all borrowed until the next java_jfr_next(). False for null and the
 * unknown.
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
/* Of a tick count such as startTime, since 1970; of a duration. */
int64_t java_jfr_time_ns(const struct java_jfr *j, int64_t ticks);
int64_t java_jfr_duration_ns(const struct java_jfr *j, int64_t ticks);

/*
 * What has been seen so far; borrowed until the next java_jfr_next(). In order of first appearance.
 */
const struct java_jfr_stats *java_jfr_stats(const struct java_jfr *j);
const struct java_jfr_tally *java_jfr_tallies(const struct java_jfr *j, size_t *ret_len);
