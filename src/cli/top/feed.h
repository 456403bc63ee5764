/*
 * src/cli/top/feed.h: keeps a model up to date: an agent that reads all processes, with sums in
 * memory instead of a store.
 *
 * It does so even if `sonde run` is active. Stored data is up to an interval old, may be readable
 * by its user only, and is missing when the disk is full or sonde was killed. Reading twice is
 * harmless, because reading changes nothing in a target.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/top/model.h"
#include "proc/id.h"

struct top_feed_config {
	uint64_t interval_ns;
	const struct proc_id *ids; /* only these; by pid, borrowed */
	size_t n_ids;		   /* 0: all */
	const char *service;	   /* only this one; NULL: all. Borrowed. */
	unsigned int cpu_hz;	   /* CPU samples per second per CPU; 0: none */
};

struct top_feed; /* opaque */

int top_feed_start(const struct top_feed_config *config, struct top_feed **ret_feed,
		   struct err *err);
void top_feed_stop(struct top_feed *feed); /* NULL is fine */
DEFINE_CLEANUP(struct top_feed, top_feed_stop)

/* Whether CPUs are sampled; if not, the reason is in the status, unless not wanted. */
bool top_feed_samples(const struct top_feed *feed);

/*
 * A descriptor that becomes readable once per interval, when its data is complete, until
 * top_feed_acknowledge().
 */
int top_feed_fd(const struct top_feed *feed);
void top_feed_acknowledge(struct top_feed *feed);
/* Starts a new interval and measures rates again; old ones stay until then. */
int top_feed_set_interval(struct top_feed *feed, uint64_t interval_ns, struct err *err);
void top_feed_freeze(struct top_feed *feed, bool frozen);

#define TOP_MAX_REASONS 8

/* The overall status. */
struct top_status {
	struct top_sums sums;
	uint64_t interval_ns;
	uint64_t intervals;	  /* that have ended */
	uint64_t age_ns;	  /* since collection started */
	bool looked;		  /* at all processes present at the start */
	bool ended;		  /* all of config->ids */
	bool measuring;		  /* no process has a rate yet */
	bool samples;		  /* the CPUs; if not: */
	struct err no_samples;	  /* the reason and the fix; no text if not wanted */
	bool sampled;		  /* the first samples have arrived */
	size_t cpus;		  /* of the machine */
	uint64_t cpu_collections; /* by the sampler */
	uint64_t cpu_lost;	  /* samples lost, */
	uint64_t cpu_samples;	  /* of this many */
	struct {
		enum err_cause cause;
		char reason[256];
		size_t processes;
	} refused[TOP_MAX_REASONS]; /* reasons why processes are not profiled, most frequent first
				     */
	size_t n_refused;
	size_t not_profiled; /* all of them, except processes that are not Go */
	size_t not_go;
	size_t profiled;
	size_t slow;
	uint64_t lost_records;
	uint64_t failures;
	double cpu_share; /* sonde's own share of one CPU; NAN at first */
	char trouble[256];
};
/* Also drops processes that have exited. */
int top_feed_status(struct top_feed *feed, struct top_status *ret_status, struct err *err);
int top_feed_table(struct top_feed *feed, const struct top_view *view, struct top_table *ret_table,
		   struct err *err);
int top_feed_take_deltas(struct top_feed *feed, struct top_process_delta **ret_deltas,
			 size_t *ret_len, struct err *err);
