/*
 * src/agent/reader.h: the seam between the loop and what can be read of a process.
 *
 * A reader is asked once per target whether it can read it; the answer, yes or the reason why not,
 * is shown to people. Then it collects once an interval.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "proc/info.h"
#include "profile/profile.h"

/* One process as the agent knows it. */
struct target {
	struct proc_info info;
	char runtime[32]; /* "go1.27.3", "java", "native", ... */
};

struct reader_answer {
	bool yes;
	char reason[256]; /* why not */
	char remedy[256]; /* what would help; "" when nothing does */
};

/* What one collection gave. */
struct reading {
	struct profile *profile; /* owned by whoever got it; NULL for a baseline */
	uint32_t snapshot_types; /* as in store_entry */
	int64_t time_ns;
	int64_t duration_ns;
	uint64_t lost; /* records that could not be read */
};

struct reader_ops {
	const char *name;   /* "go-heap" */
	const char *family; /* of the streams: "go_heap" */
	int (*probe)(const struct target *target, struct reader_answer *ret_answer,
		     struct err *err);
	int (*open)(const struct target *target, void **ret_state, struct err *err);
	/* The first collection is a baseline: no deltas come of it. -ESRCH ends the target. */
	int (*collect)(void *state, struct reading *ret_reading, struct err *err);
	void (*close)(void *state);
};

/* All readers there are, ended by NULL. */
extern const struct reader_ops *const readers[];
