/*
 * src/agent/agent.h: the main loop: discover, probe, collect, write.
 *
 * It runs in its own thread; the snapshot functions are thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/sources/sources.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "features/features.h"
#include "pipeline/metrics.h"
#include "pipeline/pipeline.h"
#include "pipeline/sink.h"
#include "proc/id.h"

struct agent_config {
	uint64_t interval_ns;
	enum agent_go_heap go_heap;
	bool keep_rate;		/* do not restore forced rates at the end */
	unsigned int cpu_hz;	/* CPU samples per second per CPU; 0: none */
	bool cpu_lines;		/* source lines and inlined calls of native code */
	uint64_t offcpu_min_ns; /* profile waits of at least this length, too; 0: none */
	/*
	 * Keep an OOM snapshot ready from this share of a memory limit on; 0: no OOM snapshots at
	 * all.
	 */
	unsigned int oom_percent;
	uint64_t goroutine_interval_ns; /* 0: no goroutine profiles */
	uint64_t goroutine_max;		/* stacks per profile; 0: AGENT_GOROUTINE_MAX */
	bool java;			/* record Java processes */
	const char *java_async;		/* with this libasyncProfiler.so; NULL: Flight Recorder */
	/*
	 * Where forced rates and changes to JVMs are noted, so that they are undone if the agent is
	 * killed. NULL: neither is done. The caller restores the rates an earlier agent left
	 * (golang_rates_restore()).
	 */
	const char *state_dir;
	uint64_t spool_max_bytes; /* of each remote sink, in state_dir */
	/* Only these processes; none: all. Borrowed while it runs. */
	const struct proc_id *only;
	size_t n_only;
};

#define AGENT_GOROUTINE_MAX 100000
/* The service of our own metrics. */
#define AGENT_SELF "sonde"
/* And of those of the machine. */
#define AGENT_MACHINE "(machine)"

struct agent; /* opaque */

struct agent_parts {
	/* Only these of the sources that are asked, NULL-terminated; NULL: all. */
	const struct source_ops *const *asked;
	const struct sink_row *sinks; /* taken, also on failure */
	size_t n_sinks;
};
int agent_start(const struct agent_config *config, const struct agent_parts *parts,
		struct agent **ret_agent, struct err *err);
/* Finishes the current collection, flushes, restores rates, ends recordings. */
void agent_stop(struct agent *agent);
DEFINE_CLEANUP(struct agent, agent_stop)

/*
 * Writes which services go by which names into state_dir, if that has changed. Call regularly, in a
 * thread that may wait for the disk.
 */
int agent_save_names(struct agent *agent, struct err *err);

/* One process: what is profiled, and why the rest is not. */
struct agent_target {
	struct source_target target;
	struct agent_target_source {
		const char *source;
		const char *family; /* of its profiles */
		struct source_answer answer;
		uint64_t collections;
		uint64_t failures;
		int64_t last_ns;
		uint64_t last_cost_ns; /* CPU of the last collection */
		bool slow;	       /* not responding; retried later */
		char collector[16];    /* as in struct source_reading */
		char trouble[256];     /* including what was done to limit its cost */
	} sources[AGENT_SOURCES_MAX];  /* sources that are asked, and "cpu" */
	size_t n_sources;
	struct metrics
		*metrics; /* current values; counters since the agent discovered the process */
};

/* Sorted by pid, without kernel threads. */
struct agent_targets {
	struct agent_target *items;
	size_t len;
};
int agent_targets(struct agent *agent, struct agent_targets *ret_targets);
void agent_targets_release(struct agent_targets *targets);

/* Adds the current metrics of the machine itself. */
int agent_machine(struct agent *agent, struct metrics *to);

/* Largest source file that is read. */
#define AGENT_LISTING_MAX ((size_t)4 << 20)

/*
 * Appends the source file of this name, as running processes of the service see it, if everybody on
 * this machine may read it (proc/public.h). Waits a few seconds at most. The message says why not,
 * for everybody to read.
 */
int agent_listing(struct agent *agent, const char *service, const char *path, struct buf *text,
		  int64_t *ret_modified_ns, struct err *err);

struct agent_health {
	int64_t started_ns;
	uint64_t intervals;
	uint64_t cpu_ns; /* of the whole process and its aides */
	uint64_t rss_bytes;
	uint64_t targets;
	uint64_t profiled;
	uint64_t collections;
	uint64_t failures;
	uint64_t hung_reads;	   /* aides that hang now */
	uint64_t unanswered_reads; /* in time, or not tried because of that; ever */
	uint64_t lost_records;
	uint64_t write_failures;
	uint64_t records_dropped;  /* by sinks that could not keep up */
	uint64_t cpu_collections;  /* by the sampler; in these: */
	uint64_t cpu_samples;	   /* stacks sampled, */
	uint64_t cpu_samples_lost; /* lost among them, for any reason, */
	uint64_t cpu_stacks_cut;   /* and truncated */
	uint64_t oom_kills;	   /* of profiled processes, */
	uint64_t oom_late;	   /* those with only an earlier snapshot, */
	uint64_t oom_lost;	   /* and those without any */
	char oom_trouble[256];	   /* why we do not hear of kills; "" if we do, or need not */
	int64_t lag_ns;		   /* delay of the last interval, or of this one if it is late */
	char trouble[256];	   /* for people; "" if all is well */
};
void agent_health(struct agent *agent, struct agent_health *ret_health);

/* How each sink keeps up. */
struct agent_sinks_status {
	struct outbox_status items[PIPELINE_MAX_SINKS];
	size_t len;
};
void agent_sinks_status(struct agent *agent, struct agent_sinks_status *ret_sinks);

/* Whether CPUs are sampled, or the reason why not. */
void agent_samples(const struct agent *agent, struct source_answer *ret_answer);

/* What works on this machine. The store is reported as on: the agent cannot judge it. */
void agent_features(struct agent *agent, struct features *ret_features);
