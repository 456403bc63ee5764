/*
 * src/cli/top_feed.h: keeps a model up to date: an agent that reads all processes, and sums in
 * memory instead of a store.
 *
 * Also where `sonde run` is at work: what it has stored is up to an interval old, lies where only
 * its user may read it, and is missing exactly when its disk is full or it was killed. Reading
 * twice disturbs nobody, because reading changes nothing in a target.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/top_model.h"
#include "proc/id.h"

struct top_feed_config {
	uint64_t interval_ns;
	const struct proc_id *ids; /* only these; by pid, borrowed */
	size_t n_ids;		   /* 0: all */
	const char *service;	   /* only this one; NULL: all. Borrowed. */
	unsigned int cpu_hz;	   /* CPU samples per second and CPU; 0: none */
};

struct top_feed; /* opaque */

int top_feed_start(const struct top_feed_config *config, struct top_feed **ret_feed,
		   struct err *err);
void top_feed_stop(struct top_feed *feed); /* NULL is fine */
DEFINE_CLEANUP(struct top_feed, top_feed_stop)

/* CPU samples are taken; otherwise the reason is in the status, unless nobody wants them. */
bool top_feed_samples(const struct top_feed *feed);

/*
 * Readable once for each interval, when all that it brought is there, until
 * top_feed_acknowledge().
 */
int top_feed_fd(const struct top_feed *feed);
void top_feed_acknowledge(struct top_feed *feed);
/* Begins a new interval; rates are measured anew, and stay until then. */
int top_feed_set_interval(struct top_feed *feed, uint64_t interval_ns, struct err *err);
void top_feed_freeze(struct top_feed *feed, bool frozen);

#define TOP_MAX_REASONS 8

/* The state of the whole thing. */
struct top_status {
	struct top_sums sums;
	uint64_t interval_ns;
	uint64_t intervals;	  /* that have ended */
	uint64_t age_ns;	  /* since the readings began */
	bool looked;		  /* at all processes that there were then */
	bool ended;		  /* all of config->ids */
	bool measuring;		  /* no process has a rate yet */
	bool samples;		  /* the CPUs; if not: */
	struct err no_samples;	  /* why, and what helps; no text when nobody wants them */
	bool sampled;		  /* the first samples are there */
	size_t cpus;		  /* of the machine */
	uint64_t cpu_collections; /* how often the sampler has answered */
	uint64_t cpu_lost;	  /* samples that got lost, */
	uint64_t cpu_samples;	  /* of so many */
	struct {
		enum err_cause cause;
		char reason[256];
		size_t processes;
	} refused[TOP_MAX_REASONS]; /* why processes are not profiled; most of them first */
	size_t n_refused;
	size_t not_profiled; /* all of them, but those that are no Go programs */
	size_t not_go;
	size_t profiled;
	size_t slow;
	uint64_t lost_records;
	uint64_t failures;
	double cpu_share; /* what sonde itself takes of one CPU; NAN at first */
	char trouble[256];
};
/* Forgets processes that have ended on the way. */
int top_feed_status(struct top_feed *feed, struct top_status *ret_status, struct err *err);
int top_feed_table(struct top_feed *feed, const struct top_view *view, struct top_table *ret_table,
		   struct err *err);
int top_feed_take_deltas(struct top_feed *feed, struct top_process_delta **ret_deltas,
			 size_t *ret_len, struct err *err);
