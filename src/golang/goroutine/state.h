/* src/golang/goroutine/state.h: shared by the parts of the goroutine reader. */
#pragma once

#include "golang/goroutine/goroutines.h"
#include "golang/goroutine/labels.h"
#include "golang/goroutine/layout.h"
#include "golang/goroutine/unwind.h"
#include "golang/goroutine/vars.h"
#include "golang/process_state.h"
#include "golang/symbols/symbolizer.h"

#define GOLANG_GOROUTINE_MAX_REASONS 64
#define GOLANG_GOROUTINE_REASON_BYTES 64

/* A g to read: again if it changed, and with more of its stack if that was too short. */
struct golang_goroutine_item {
	uint64_t g;
	uint32_t stack_bytes;
	uint16_t tries;
	bool unsampled; /* only counted: decided when first seen, and final */
};

/* Where a goroutine is, as shown in profiles; compared as bytes. */
struct golang_goroutine_place {
	uint32_t stack;
	uint32_t unverified;
	uint64_t start_pc; /* if there is no stack */
};

struct golang_goroutine_batch;

struct golang_goroutines {
	struct golang_process *process; /* borrowed */
	struct golang_goroutines_options options;
	const struct golang_g_layout *layout;
	struct golang_g_vars vars;
	struct golang_unwind unwind;
	struct golang_labels labels;
	struct golang_goroutines_stats stats;

	char reasons[GOLANG_GOROUTINE_MAX_REASONS][GOLANG_GOROUTINE_REASON_BYTES];
	struct map systems; /* start pc -> enum goroutine_system */

	uint64_t now_ns;    /* by the runtime's clock */
	unsigned int depth; /* of stacks in profiles: what is beyond is cut, as in runtime/pprof */
	bool finalizer_runs;
	uint64_t stride;	  /* read the stack of every n-th live goroutine */
	uint64_t live;		  /* live goroutines seen so far */
	uint64_t faults;	  /* unreadable ranges */
	uint64_t deep_bytes_left; /* left to read for deep stacks */

	struct golang_goroutine_item *todo;
	size_t n_todo, todo_cap;
	struct golang_goroutine_item *again;
	size_t n_again, again_cap;
	struct golang_goroutine_batch *batch;

	struct golang_goroutine *items;
	size_t len, cap;
};

/*
 * Reads the first n of items (as many as fit) and takes the verified ones; the others are queued
 * again. Returns how many were handled.
 */
ssize_t golang_goroutine_batch_read(struct golang_goroutines *gs,
				    const struct golang_goroutine_item *items, size_t n,
				    struct err *err);
struct golang_goroutine_batch *golang_goroutine_batch_new(void);
void golang_goroutine_batch_free(struct golang_goroutine_batch *batch);

struct golang_goroutine_place golang_goroutine_place_of(const struct golang_goroutine *g);
/* Whether its stack is deeper than a profile shows. */
bool golang_goroutine_is_cut(struct golang_goroutines *gs,
			     const struct golang_goroutine_place *place);
/* Fills locations with those shown for a place; returns their number or -errno. */
int golang_goroutine_locations(struct golang_goroutines *gs, struct golang_symbolizer *s,
			       const struct golang_goroutine_place *place, uint32_t *locations,
			       struct err *err);
/* A frame that says what is missing. */
int golang_goroutine_marker(struct profile *p, const char *name, uint32_t *ret_location);
