/*
 * src/cli/cmd/cpu_java.h: names of Java code for `sonde cpu --java`.
 *
 * JVMs write their perf maps (java/perfmap/perfmap.h) before the first sample, and again after
 * compiling code. A separate thread talks to them, because they may be slow.
 */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/render/report.h"
#include "proc/info.h"

struct cmd_cpu_java; /* opaque */

/*
 * Samples one process with Java names, and reports it; for `sonde java PID cpu`. dir: where changes
 * to the JVM are tracked.
 */
int cmd_cpu_java_profile(pid_t pid, const char *dir, uint64_t duration_ns,
			 const struct report *report, struct err *err);

/*
 * The JVM of one process, or all of them with NULL. dir as above; NULL for the default. JVMs that
 * cannot write a perf map are reported and sampled anyway, as are those that opted out.
 */
int cmd_cpu_java_start(const struct proc_info *target, const char *dir,
		       struct cmd_cpu_java **ret_java, struct err *err);
/* On return, all code compiled so far has a name. NULL is fine, here and below. */
void cmd_cpu_java_finish(struct cmd_cpu_java *java);
/* Cleans up, and reports what the JVMs did. */
void cmd_cpu_java_stop(struct cmd_cpu_java *java);
void cmd_cpu_java_free(struct cmd_cpu_java *java);
DEFINE_CLEANUP(struct cmd_cpu_java, cmd_cpu_java_free)

/* Explains why a JVM has no names, without touching it. */
void cmd_cpu_java_explain(const struct proc_info *target);
