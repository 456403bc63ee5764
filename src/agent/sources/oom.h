/*
 * src/agent/sources/oom.h: OOM snapshots of processes killed for lack of memory.
 *
 * The kernel reports its victim (oom/victims.h) shortly before the memory is gone. One thread, with
 * real-time priority if permitted, only waits for that and reads; everything it needs is already
 * open. Another thread builds the profiles. A third checks once a second how close processes are to
 * their cgroup limits (oom/limit.h), and more often if one grows fast. Near a limit they are read
 * every second, so there is a recent snapshot even if the race at the kill is lost.
 *
 * Thread-safe. No process is signalled, stopped or written to.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "pipeline/source.h"

struct agent_oom; /* opaque */

/* What can be read: an open source, reference-counted while in use. */
struct agent_oom_source_ops {
	/*
	 * Reads memory now; keeps the previous data if it is gone. last: there is no other chance
	 * and no time; otherwise it may leave this to a read in progress.
	 */
	int (*read)(void *state, bool last);
	/* The data read, with types inuse_objects and inuse_space. */
	int (*picture)(void *state, struct profile **ret_profile, struct err *err);
	/*
	 * Its goroutines, as a profile of the type goroutine: those read last if it was killed,
	 * otherwise as of now. NULL: none.
	 */
	int (*goroutines)(void *state, bool killed, struct profile **ret_profile, struct err *err);
	void (*unref)(void *state);
};

struct agent_oom_config {
	unsigned int percent; /* of a limit: from here on it is near */
};

/* Works without kill reports, too, by watching limits: see the health. */
int agent_oom_start(const struct agent_oom_config *config, struct inbox *inbox,
		    struct agent_oom **ret_oom, struct err *err);
/* Takes one reference to the state, unless it fails. */
int agent_oom_add(struct agent_oom *oom, const struct source_target *target,
		  const struct agent_oom_source_ops *ops, void *state);
/* Releases that reference, now or once it is no longer in use. */
void agent_oom_remove(struct agent_oom *oom, const void *state);

struct agent_oom_health {
	uint64_t kills;	    /* of known processes */
	uint64_t late;	    /* of these, those with only an earlier snapshot, */
	uint64_t lost;	    /* and those without any */
	uint64_t strangers; /* kills of others: not Go, or too new */
	uint64_t near;	    /* snapshots near a limit */
	bool hears;	    /* the kernel reports victims */
	char trouble[256];  /* the reason if not */
	int deaf;	    /* a code, if it never did, */
	struct err why_deaf;
	int no_limits; /* or if cgroups are not accessible */
	struct err why_no_limits;
};
void agent_oom_health(struct agent_oom *oom, struct agent_oom_health *ret_health);

/* Ends the threads. False: one hangs in a read, and nothing may be freed. */
bool agent_oom_stop(struct agent_oom *oom);
/* After a stop that returned true, once nobody adds or removes any more. */
void agent_oom_free(struct agent_oom *oom); /* NULL is fine */

extern const struct source_ops agent_source_oom;
