/*
 * src/agent/sources/java_programs.h: starts and stops recordings of Java processes.
 *
 * A JVM may respond within milliseconds, within minutes, or never. So no source talks to a JVM:
 * dedicated threads start the recordings, tend them once per interval, and end them; the sources
 * (java.c) only read the files. A hanging JVM blocks one of these threads, and no other
 * process.
 *
 * They also have JVMs write perf maps (java/perfmap/perfmap.h) for CPU profiles, recording or not.
 *
 * At the start, a thread removes what killed sondes have left in JVMs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "java/collect/collect.h"
#include "java/perfmap/perfmap.h"
#include "proc/id.h"

/* How many JVMs to talk to at a time. */
#define AGENT_JAVA_THREADS 16

struct agent_java;	   /* opaque */
struct agent_java_program; /* opaque: one of the JVMs */

/* Operations on a JVM; tests have their own. */
struct agent_java_ops {
	int (*restore)(const char *state_dir, struct err *err);
	int (*start)(const struct proc_id *id, const struct java_collect_options *options,
		     struct java_collect **ret_collect, struct err *err);
	int (*keep)(struct java_collect *c, struct err *err);
	int (*read)(struct java_collect *c, struct err *err);
	int (*stop)(struct java_collect *c, struct err *err);
	void (*free)(struct java_collect *c);
	/* Perf maps; NULL: none. free removes them. */
	int (*map_start)(const struct proc_id *id, const struct java_perfmap_options *options,
			 struct java_perfmap **ret_map, struct err *err);
	int (*map_keep)(struct java_perfmap *map, struct err *err);
	void (*map_free)(struct java_perfmap *map);
};
extern const struct agent_java_ops agent_java_ops_jvm;

struct agent_java_config {
	const char *state_dir; /* copied */
	uint64_t interval_ns;
	const char *async_library;	  /* copied; NULL: no async-profiler */
	bool no_maps;			  /* nothing is sampled, so no names are needed */
	const struct agent_java_ops *ops; /* borrowed */
};

int agent_java_start(const struct agent_java_config *config, struct agent_java **ret_java,
		     struct err *err);
/*
 * Ends all recordings, many at a time. False: some JVMs did not respond by until_ns. These stay
 * noted on disk for the next start, and nothing the threads use may be freed. May be called again.
 */
bool agent_java_stop(struct agent_java *java, uint64_t until_ns); /* NULL is fine */

/* Requests a recording of this JVM, without waiting. The caller owns the reference. */
int agent_java_program_open(struct agent_java *java, const struct proc_id *id,
			    struct agent_java_program **ret_program, struct err *err);
struct agent_java_program *agent_java_program_ref(struct agent_java_program *program);
/* The last one ends the recording, without waiting. NULL is fine. */
void agent_java_program_unref(struct agent_java_program *program);

/*
 * The recording, for reading; NULL if there is none yet. Valid until the unlock. It may have ended:
 * then read it one last time.
 */
struct java_collect *agent_java_program_lock(struct agent_java_program *program);
void agent_java_program_unlock(struct agent_java_program *program);
/* Whether it records; otherwise the reason. */
struct agent_java_program_state {
	bool records;
	int code;      /* -EAGAIN and -EBUSY: retried; 0: not tried yet */
	char why[256]; /* "" if all is well; also set if tending it fails */
	char remedy[256];
	enum err_cause cause;
	uint64_t began; /* number of recordings so far */
	/* Why CPU profiles lack names of its code, or of its newest; "" if they do not. */
	char map_why[256];
};
void agent_java_program_state(struct agent_java_program *program,
			      struct agent_java_program_state *ret_state);
