/*
 * src/pipeline/source.h: where records come from.
 *
 * Some sources are asked about one process at a time, every collection interval or at their own.
 * Each is probed once per target; its answer, yes or a reason why not, is shown to users. Calls for
 * different targets may run concurrently, calls for one target never do.
 *
 * Others push: one of each serves the whole machine, with its own threads, and puts what it has
 * into an inbox (inbox.h).
 *
 * To add a source: a folder that implements struct source_ops, and a row in
 * agent/sources/sources.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "pipeline/inbox.h"
#include "pipeline/metrics.h"
#include "pipeline/record.h"
#include "proc/info.h"
#include "profile/profile.h"

/* One process, as sources see it. */
struct source_target {
	struct proc_info info;
	char runtime[32]; /* "go1.27.3", "java", "native", ... */
};

/*
 * Shared by the sources of one target, so that it is opened once. Each kind of program has its own
 * struct, zeroed at first.
 */
struct source_share_kind {
	size_t bytes;
	void (*release)(void *share); /* its contents, not the struct itself */
};

#define SOURCE_MAX_SHARES 4

struct source_shares {
	int denied; /* a code: its memory may not be read */
	struct {
		const struct source_share_kind *kind;
		void *share;
	} items[SOURCE_MAX_SHARES];
	size_t len;
};
void *source_share(struct source_shares *shares, const struct source_share_kind *kind,
		   struct err *err); /* NULL if out of memory */
void source_shares_clear(struct source_shares *shares);

struct source_answer {
	bool yes;
	bool may_change; /* a no that may become a yes: probed again from time to time */
	bool of_file;	 /* a no for every process that runs this file, whatever its environment */
	enum err_cause cause; /* the cause, for programs, */
	char reason[256];     /* the reason, for people, */
	char remedy[256];     /* the remedy; "" if there is none */
};

/* Turns it into a no; may_change and of_file stay. */
void source_answer_no(struct source_answer *answer, enum err_cause cause, const char *reason,
		      const char *remedy);
/* A no because of an error. */
void source_answer_refuse(struct source_answer *answer, int code, const struct err *err);

/* The result of one collection. */
struct source_reading {
	struct profile *profile; /* owned by the caller; NULL if none */
	struct metrics *metrics; /* the same */
	uint64_t lost;		 /* records that could not be read */
	/* There is nothing to read for now: the reason, and the remedy. NULL: there is. */
	const char *idle;
	const char *idle_remedy;
	enum err_cause idle_cause;
	char collector[16]; /* what collected it, if there are several: "jfr"; otherwise "" */
	char note[128];	    /* a remark for people, for example that it is a sample; "" if none */
};
void source_reading_release(struct source_reading *reading);

struct source_ops {
	const char *name;   /* "go-heap" */
	const char *family; /* of its profiles: "go_heap" */

	/* Sources that are asked. config: that of the row (struct source_row). */

	/* If open fails with -ENOTSUP, never probe again. */
	bool no_is_final;
	/*
	 * How often it collects, if less often than the loop's interval; all targets are then read
	 * in the same intervals. If it takes too much CPU, it is read even less often. NULL or 0:
	 * every interval.
	 */
	uint64_t (*interval_ns)(const void *config);
	/* A quick check; may set the target's runtime. Failure is an answer, too. */
	int (*probe)(const void *config, struct source_shares *shares, struct source_target *target,
		     struct source_answer *ret_answer, struct err *err);
	/* -ENOTSUP is a late no, with the reason in err. */
	int (*open)(const void *config, struct source_shares *shares,
		    const struct source_target *target, void **ret_state, struct err *err);
	/*
	 * The first collection is a baseline, without deltas. -ESRCH ends the target, or restarts
	 * it after an exec; -ENOTSUP closes it until it is probed again.
	 */
	int (*collect)(void *state, struct source_reading *ret_reading, struct err *err);
	void (*close)(void *state);

	/* Sources that push have these instead. */

	/* Whether the command line asks for it. NULL: always. */
	bool (*is_wanted)(const void *config);
	int (*start)(const void *config, struct inbox *inbox, void **ret_state, struct err *err);
	/*
	 * An interval has ended: deliver the collected data, with this time. NULL: it delivers by
	 * itself.
	 */
	void (*ask)(void *state, struct record_time when);
	/* Everything requested is in the inbox. NULL: always. */
	bool (*is_idle)(void *state);
	/* Puts nothing afterwards. False: a thread hangs, and nothing it may use can be freed. */
	bool (*stop)(void *state);
	/* After a stop that returned true, once nothing else uses it. NULL: nothing to free. */
	void (*free)(void *state);
};

/* A row of the table of sources. */
struct source_row {
	const struct source_ops *ops;
	const void *config; /* borrowed while it runs */
};
