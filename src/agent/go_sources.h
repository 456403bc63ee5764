/* src/agent/go_sources.h: what can be read of Go programs, and what is to be. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/source.h"

enum agent_go_heap { AGENT_GO_HEAP_ENABLED, AGENT_GO_HEAP_DISABLED, AGENT_GO_HEAP_FORCE };

struct agent_oom;	    /* agent/oom.h */
struct golang_rate_journal; /* golang/rate_journal.h */

/* The config of all of them. */
struct go_source_config {
	enum agent_go_heap heap;
	bool keep_rate;			   /* forced rates are not set back at the end */
	struct golang_rate_journal *rates; /* NULL: nothing is forced */
	struct agent_oom *oom;		   /* NULL: nobody waits for programs to be killed */
	uint64_t goroutine_interval_ns;	   /* 0: goroutines are not read */
	uint64_t goroutine_max;		   /* of more only some stacks are read */
};

extern const struct source_ops source_go_heap;
extern const struct source_ops source_go_runtime;
extern const struct source_ops source_go_goroutines;
extern const struct source_ops source_go_block;
extern const struct source_ops source_go_mutex;
