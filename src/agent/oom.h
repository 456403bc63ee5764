/*
 * src/agent/oom.h: the last picture of a program that is killed because memory ran out.
 *
 * The kernel says whom it kills (oom/victims.h) a little before the memory is gone. One thread,
 * with real-time priority where that is allowed, does nothing but wait for that and read; all it
 * needs is open already. Another one makes profiles of what was read. A third looks once a second
 * how near programs are to the limits of their control groups (oom/limit.h), and more often where
 * one grows fast: from there on they are read every second, so that there is a recent picture even
 * where the race at the kill is lost.
 *
 * Safe for several threads. Nothing is signalled, stopped or written to.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "pipeline/source.h"

struct agent_oom; /* opaque */

/* Who can be read: an open reader, counted, so that it stays while it is in use. */
struct oom_source_ops {
	/*
	 * Reads what memory shows now, and keeps what it had where that is gone. last: there will
	 * be no other chance, and no time; else it may leave it to whoever is reading already.
	 */
	int (*read)(void *state, bool last);
	/* What was read, with types inuse_objects and inuse_space. */
	int (*picture)(void *state, struct profile **ret_profile, struct err *err);
	/*
	 * Its goroutines, as a profile of the type goroutine: of a killed program what was read
	 * last, else as they are now. NULL: it has none.
	 */
	int (*goroutines)(void *state, bool killed, struct profile **ret_profile, struct err *err);
	void (*unref)(void *state);
};

struct agent_oom_config {
	unsigned int percent; /* of a limit, from which on it is near */
};

/* Where we may not hear of victims, there are still the limits: see the health. */
int agent_oom_start(const struct agent_oom_config *config, struct inbox *inbox,
		    struct agent_oom **ret_oom, struct err *err);
/* Takes over one reference to the state, unless it fails. */
int agent_oom_add(struct agent_oom *oom, const struct source_target *target,
		  const struct oom_source_ops *ops, void *state);
/* Gives that reference back, now or when it is no longer in use. */
void agent_oom_remove(struct agent_oom *oom, const void *state);

struct agent_oom_health {
	uint64_t kills;	    /* of programs that we know */
	uint64_t late;	    /* among them those of which only an earlier picture is left, */
	uint64_t lost;	    /* and those without any */
	uint64_t strangers; /* kills of others: not Go, or too young to be known */
	uint64_t near;	    /* pictures because a limit was near */
	bool hears;	    /* the kernel tells us of victims */
	char trouble[256];  /* why not */
	int deaf;	    /* a code, when it never did, */
	struct err why_deaf;
	int no_limits; /* or when control groups cannot be reached */
	struct err why_no_limits;
};
void agent_oom_health(struct agent_oom *oom, struct agent_oom_health *ret_health);

/* Ends the threads. False when one of them hangs in a reader: then all must stay. */
bool agent_oom_stop(struct agent_oom *oom);
/* After a stop that was true, and when nobody adds or removes any more. */
void agent_oom_free(struct agent_oom *oom); /* NULL is fine */

extern const struct source_ops source_oom;
