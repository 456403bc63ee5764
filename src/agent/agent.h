/*
 * src/agent/agent.h: the loop that is always on: discover, probe, collect, write.
 *
 * It runs in a thread of its own; the snapshot functions are safe from others.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/sources.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "features/features.h"
#include "pipeline/metrics.h"
#include "pipeline/sink.h"
#include "proc/id.h"

struct agent_config {
	uint64_t interval_ns;
	enum agent_go_heap go_heap;
	bool keep_rate;		/* do not set forced rates back at the end */
	unsigned int cpu_hz;	/* CPU samples per second and CPU; 0: none */
	bool cpu_lines;		/* source lines and inlined calls of native code */
	uint64_t offcpu_min_ns; /* waits at least this long are profiled, too; 0: none */
	/* From which share of a limit on a last picture is kept ready; 0: none, nor at a kill. */
	unsigned int oom_percent;
	uint64_t goroutine_interval_ns; /* 0: no goroutine profiles */
	uint64_t goroutine_max;		/* stacks in one of them; 0: AGENT_GOROUTINE_MAX */
	bool java;			/* Java programs are told to record */
	const char *java_async;		/* by this libasyncProfiler.so; NULL: by themselves */
	/*
	 * Where is noted which rates were forced and what was put into JVMs, so that it is undone
	 * where an agent was killed. NULL: neither is done. What an earlier one left in programs is
	 * the caller's to set back (golang_rates_restore()).
	 */
	const char *state_dir;
	/* The only processes that it is about; none: all there are. Borrowed as long as it runs. */
	const struct proc_id *only;
	size_t n_only;
};

#define AGENT_GOROUTINE_MAX 100000

struct agent; /* opaque */

struct agent_parts {
	/* Of the sources that are asked only these, ended by NULL; NULL: all there are. */
	const struct source_ops *const *asked;
	const struct sink_row *sinks; /* taken over, also when it fails */
	size_t n_sinks;
};
int agent_start(const struct agent_config *config, const struct agent_parts *parts,
		struct agent **ret_agent, struct err *err);
/* Finishes the collection at hand, flushes, sets rates back, ends recordings. */
void agent_stop(struct agent *agent);
DEFINE_CLEANUP(struct agent, agent_stop)

/* One line per process for "what is profiled, and what not and why". */
struct agent_target {
	struct source_target target;
	struct agent_target_source {
		const char *source;
		struct source_answer answer;
		uint64_t collections;
		uint64_t failures;
		int64_t last_ns;
		uint64_t last_cost_ns; /* CPU of the last collection */
		bool slow;	       /* did not answer in time; it is tried again later */
		char way[16];	       /* as in struct source_reading */
		char trouble[256];     /* also what was done to bear its cost */
	} sources[SOURCES_MAX];	       /* those that are asked, and "cpu" */
	size_t n_sources;
	struct metrics *metrics; /* as they are now; counters since the agent knows the process */
};

/* Sorted by pid, without kernel threads. */
struct agent_targets {
	struct agent_target *items;
	size_t len;
};
int agent_targets(struct agent *agent, struct agent_targets *ret_targets);
void agent_targets_release(struct agent_targets *targets);

struct agent_health {
	int64_t started_ns;
	uint64_t intervals;
	uint64_t cpu_ns; /* of the whole process */
	uint64_t rss_bytes;
	uint64_t targets;
	uint64_t profiled;
	uint64_t collections;
	uint64_t failures;
	uint64_t lost_records;
	uint64_t write_failures;
	uint64_t records_dropped;  /* that a sink did not keep up with */
	uint64_t cpu_collections;  /* how often the sampler has answered; in these */
	uint64_t cpu_samples;	   /* stacks that were sampled, */
	uint64_t cpu_samples_lost; /* and those among them that got lost, for whatever reason */
	uint64_t cpu_stacks_cut;   /* and that do not reach the root */
	uint64_t oom_kills;	   /* of programs that were profiled, */
	uint64_t oom_late;	   /* those of which only an earlier picture is left, */
	uint64_t oom_lost;	   /* and those without any */
	char oom_trouble[256];	   /* why we do not hear of kills; "" when we do, or need not */
	int64_t lag_ns;		   /* how late the last interval ended */
	char trouble[256];	   /* what people should know; "" when all is well */
};
void agent_health(struct agent *agent, struct agent_health *ret_health);

/* Whether CPUs are sampled, or why not. */
void agent_samples(const struct agent *agent, struct source_answer *ret_answer);

/* What works on this machine. The store is not the agent's to judge: it is on. */
void agent_features(struct agent *agent, struct features *ret_features);
