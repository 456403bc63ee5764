/*
 * src/agent/java.h: the Java programs that are told to record, and the threads that tell them.
 *
 * A JVM answers within milliseconds, or within minutes, or never. So no reader speaks to one:
 * threads of their own start the recordings, look after them once an interval, and end them; the
 * sources (java_sources.c) only read the files. A JVM that hangs costs one of these threads, and
 * the figures of no other program.
 *
 * They also have the JVMs write down what their compiled code is called (java/perfmap.h), for the
 * CPU profiles; whether a JVM records or not.
 *
 * What sondes that were killed have left in JVMs is taken out at the start, by a thread as well.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "java/collect.h"
#include "java/perfmap.h"
#include "proc/id.h"

/* How many JVMs are spoken to at the same time. */
#define AGENT_JAVA_THREADS 16

struct agent_java;   /* opaque */
struct java_program; /* opaque: one of the JVMs */

/* What is done with a JVM; tests have their own. */
struct java_ops {
	int (*restore)(const char *state_dir, struct err *err);
	int (*start)(const struct proc_id *id, const struct java_collect_options *options,
		     struct java_collect **ret_collect, struct err *err);
	int (*keep)(struct java_collect *c, struct err *err);
	int (*read)(struct java_collect *c, struct err *err);
	int (*stop)(struct java_collect *c, struct err *err);
	void (*free)(struct java_collect *c);
	/* Of perf maps; NULL: there are none. free takes them out. */
	int (*map_start)(const struct proc_id *id, const struct java_perfmap_options *options,
			 struct java_perfmap **ret_map, struct err *err);
	int (*map_keep)(struct java_perfmap *map, struct err *err);
	void (*map_free)(struct java_perfmap *map);
};
extern const struct java_ops java_ops_jvm;

struct agent_java_config {
	const char *state_dir; /* copied */
	uint64_t interval_ns;
	const char *async_library;  /* copied; NULL: async-profiler is not used */
	bool no_maps;		    /* nothing is sampled, so that no names are needed */
	const struct java_ops *ops; /* borrowed */
};

int agent_java_start(const struct agent_java_config *config, struct agent_java **ret_java,
		     struct err *err);
/*
 * Ends all recordings, many at a time. Those of JVMs that do not answer until then stay noted on
 * disk for the next start; then it is false, and what these threads use must stay. It may be called
 * again.
 */
bool agent_java_stop(struct agent_java *java, uint64_t until_ns); /* NULL is fine */

/* Asks for a recording of that JVM, and does not wait for it. The reference is the caller's. */
int java_program_open(struct agent_java *java, const struct proc_id *id,
		      struct java_program **ret_program, struct err *err);
struct java_program *java_program_ref(struct java_program *program);
/* The last one ends the recording, and does not wait for it. NULL is fine. */
void java_program_unref(struct java_program *program);

/*
 * What is recorded, for reading; NULL when there is none yet. It stays until the unlock. It may
 * have ended: then it is to be read for a last time.
 */
struct java_collect *java_program_lock(struct java_program *program);
void java_program_unlock(struct java_program *program);
/* Whether it records; else why not, and what the JVM said. */
struct java_program_state {
	bool records;
	int code;      /* -EAGAIN and -EBUSY: it is tried again; 0: it has not been tried yet */
	char why[256]; /* "" when there is nothing to say; also where looking after it fails */
	char remedy[256];
	enum err_cause cause;
	uint64_t began; /* how many recordings there were */
	/* Why CPU profiles lack names of its code, or of its newest; "" when they do not. */
	char map_why[256];
};
void java_program_state(struct java_program *program, struct java_program_state *ret_state);
