/*
 * src/cli/cmd_cpu_java.h: names of Java code for `sonde cpu --java`.
 *
 * JVMs write their perf maps (java/perfmap.h) before the first sample is taken, and again when they
 * have compiled something; a thread of its own speaks to them, for they may take their time.
 */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/report.h"
#include "proc/info.h"

struct cpu_java; /* opaque */

/*
 * Samples one process with names of its Java code, and reports it; for `sonde java PID cpu`. dir:
 * where is noted what is in the JVM meanwhile.
 */
int cpu_java_profile(pid_t pid, const char *dir, uint64_t duration_ns, const struct report *report,
		     struct err *err);

/*
 * The JVM of one process, or with NULL all there are. dir as above; NULL for the usual one. Those
 * that cannot are told of and sampled all the same, and so are programs that ask to be left alone.
 */
int cpu_java_start(const struct proc_info *target, const char *dir, struct cpu_java **ret_java,
		   struct err *err);
/* What was compiled until now is known when it returns. NULL is fine, here and below. */
void cpu_java_finish(struct cpu_java *java);
/* Nothing of ours is left; says what the JVMs did. */
void cpu_java_stop(struct cpu_java *java);
void cpu_java_free(struct cpu_java *java);
DEFINE_CLEANUP(struct cpu_java, cpu_java_free)

/* Why a JVM that was not asked has no names, for people; without touching it. */
void cpu_java_explain(const struct proc_info *target);
