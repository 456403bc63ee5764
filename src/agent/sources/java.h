/* src/agent/sources/java.h: the sources of Java processes, and their settings. */
#pragma once

#include <stdbool.h>

#include "pipeline/source.h"

struct agent_java; /* agent/sources/java_programs.h */

/* Shared by all of them. */
struct agent_java_source_config {
	bool on;		 /* Java processes may be recorded */
	bool async;		 /* with async-profiler */
	struct agent_java *java; /* NULL: not possible */
};

extern const struct source_ops agent_source_java_runtime;
extern const struct source_ops agent_source_java_alloc;
extern const struct source_ops agent_source_java_lock;
extern const struct source_ops agent_source_java_cpu;
