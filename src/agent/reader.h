/*
 * src/agent/reader.h: the seam between the loop and what can be read of a process.
 *
 * A reader is asked once per target whether it can read it; the answer, yes or the reason why not,
 * is shown to people. Then it collects once an interval, or at an interval of its own. Calls for
 * different targets come from several threads at the same time; those for one target never do.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "java/detect.h"
#include "pipeline/metrics.h"
#include "proc/info.h"
#include "profile/profile.h"

enum agent_go_heap { AGENT_GO_HEAP_ENABLED, AGENT_GO_HEAP_DISABLED, AGENT_GO_HEAP_FORCE };

struct golang_rate_journal; /* golang/rate_journal.h */
struct agent_oom;	    /* agent/oom.h */
struct agent_java;	    /* agent/java.h */
struct java_program;

/* What readers are told by the command line. */
struct reader_context {
	enum agent_go_heap go_heap;
	bool keep_rate;
	struct golang_rate_journal *rates; /* NULL: nothing is forced */
	struct agent_oom *oom;		   /* NULL: nobody waits for programs to be killed */
	uint64_t goroutine_interval_ns;	   /* 0: goroutines are not read */
	uint64_t goroutine_max;		   /* of more only some stacks are read */
	bool java_on;			   /* Java programs may be told to record */
	bool java_async;		   /* by async-profiler */
	struct agent_java *java;	   /* NULL: they cannot */
};

struct go_program; /* agent/go_program.h */

/* What the readers of one target have in common, so that it is opened once. */
struct reader_share {
	int denied; /* a code: its memory may not be read */
	bool asked; /* whether it is a Go program */
	bool is_go;
	struct go_program *go; /* NULL: not open */
	bool java_asked;       /* whether it is a Java program */
	bool is_java;
	struct java_vm vm;	   /* then */
	struct java_program *java; /* NULL: it is not told to record */
};
void reader_share_clear(struct reader_share *share);

/* One process as the agent knows it. */
struct target {
	struct proc_info info;
	char runtime[32]; /* "go1.27.3", "java", "native", ... */
};

struct reader_answer {
	bool yes;
	bool may_change;      /* a no that may become a yes: it is asked again now and then */
	bool of_file;	      /* a no to whatever runs this file, also with another environment */
	enum err_cause cause; /* why not, for programs, */
	char reason[256];     /* and for people */
	char remedy[256];     /* what would help; "" when nothing does */
};

/* Turns it into a no; what it says of whether that may change stays. */
void reader_answer_no(struct reader_answer *answer, enum err_cause cause, const char *reason,
		      const char *remedy);
/* A no by what went wrong. */
void reader_answer_refuse(struct reader_answer *answer, int code, const struct err *err);

/* What one collection gave. */
struct reading {
	struct profile *profile; /* owned by whoever got it; NULL when there is none */
	struct metrics *metrics; /* the same */
	uint64_t lost;		 /* records that could not be read */
	/* There is nothing to read for now, and why; what helps. NULL: there is. */
	const char *idle;
	const char *idle_remedy;
	enum err_cause idle_cause;
	char way[16];	/* by what it was had, where there are several: "jfr"; else "" */
	char note[128]; /* what people should know of it: that it is a sample; "" when nothing */
};
void reading_release(struct reading *reading);

struct reader_ops {
	const char *name;   /* "go-heap" */
	const char *family; /* of the streams: "go_heap" */
	/* What open refuses with -ENOTSUP stays so: it is not asked again. */
	bool no_is_final;
	/*
	 * How often it collects, where that is less often than the loop's interval; all targets are
	 * then read in the same ones. Where it takes too much CPU it is read less often still. NULL
	 * or 0: in every interval.
	 */
	uint64_t (*interval_ns)(const struct reader_context *context);
	/* A quick look; may set the target's runtime. Failing is an answer, too. */
	int (*probe)(const struct reader_context *context, struct reader_share *share,
		     struct target *target, struct reader_answer *ret_answer, struct err *err);
	/* -ENOTSUP is a late no; the error says why. */
	int (*open)(const struct reader_context *context, struct reader_share *share,
		    const struct target *target, void **ret_state, struct err *err);
	/*
	 * The first collection is a baseline: no deltas come of it. -ESRCH ends the target, or
	 * begins it anew after an exec; -ENOTSUP closes it until it is asked again.
	 */
	int (*collect)(void *state, struct reading *ret_reading, struct err *err);
	void (*close)(void *state);
};

/* How many readers there can be. */
#define READERS_MAX 10

/* All readers there are, ended by NULL. */
extern const struct reader_ops *const readers[];
extern const struct reader_ops reader_go_heap;
extern const struct reader_ops reader_go_runtime;
extern const struct reader_ops reader_go_goroutines;
extern const struct reader_ops reader_go_block;
extern const struct reader_ops reader_go_mutex;
extern const struct reader_ops reader_java_runtime;
extern const struct reader_ops reader_java_alloc;
extern const struct reader_ops reader_java_lock;
extern const struct reader_ops reader_java_cpu;
