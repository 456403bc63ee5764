/* src/agent/sources/go.h: the sources of Go processes, and their settings. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/source.h"

enum agent_go_heap { AGENT_GO_HEAP_ENABLED, AGENT_GO_HEAP_DISABLED, AGENT_GO_HEAP_FORCE };

struct agent_oom;	    /* agent/sources/oom.h */
struct golang_rate_journal; /* golang/rates/journal.h */

/* Shared by all of them. */
struct agent_go_source_config {
	enum agent_go_heap heap;
	bool keep_rate;			   /* do not restore forced rates at the end */
	struct golang_rate_journal *rates; /* NULL: never force */
	struct agent_oom *oom;		   /* NULL: no OOM snapshots */
	uint64_t goroutine_interval_ns;	   /* 0: no goroutine profiles */
	uint64_t goroutine_max;		   /* if there are more, only some stacks are read */
};

extern const struct source_ops agent_source_go_heap;
extern const struct source_ops agent_source_go_runtime;
extern const struct source_ops agent_source_go_goroutines;
extern const struct source_ops agent_source_go_block;
extern const struct source_ops agent_source_go_mutex;
