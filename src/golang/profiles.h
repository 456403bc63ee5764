/* src/golang/profiles.h: shared by the profiles of this room. */
#pragma once

#include "base/err.h"
#include "golang/symbols/stack_cache.h"
#include "golang/symbols/symbolizer.h"
#include "pipeline/registry/registry.h"

#define GOLANG_PROFILE_MAX_TYPES 4

struct golang_profile_kind {
	enum type_id types[GOLANG_PROFILE_MAX_TYPES];
	size_t n_types;
	const char *period[2];
};

/* Types, period and time, as runtime/pprof writes them. */
int golang_profile_header(struct profile *p, const struct golang_profile_kind *kind, int64_t period,
			  int64_t time_ns);

/* The locations of the caller's stack with that index: how many, or -errno. */
typedef int (*golang_locate_fn)(void *context, struct golang_symbolizer *s, size_t stack,
				uint32_t *locations, struct err *err);

/* Symbolizes those of n stacks that names does not have yet, and stores them. */
int golang_profile_names(struct golang_process *process, struct golang_stack_cache *names, size_t n,
			 golang_locate_fn locate, void *context, struct err *err);
