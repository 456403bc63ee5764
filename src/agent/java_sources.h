/* src/agent/java_sources.h: what can be read of Java programs, and what is to be. */
#pragma once

#include <stdbool.h>

#include "pipeline/source.h"

struct agent_java; /* agent/java.h */

/* The config of all of them. */
struct java_source_config {
	bool on;		 /* Java programs may be told to record */
	bool async;		 /* by async-profiler */
	struct agent_java *java; /* NULL: they cannot */
};

extern const struct source_ops source_java_runtime;
extern const struct source_ops source_java_alloc;
extern const struct source_ops source_java_lock;
extern const struct source_ops source_java_cpu;
