/*
 * src/golang/symbols/stack_cache.h: symbolized stacks, stored compactly.
 *
 *   stacks ──► location ids ──► lines ──► functions ──► names, files
 *
 * The stack of a bucket never changes, and neither do the tables that name its addresses: repeated
 * readers symbolize each stack once, and build profiles from this cache. Functions are identified
 * by name, as in runtime/pprof.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "profile/profile.h"

struct golang_stack_cache_location;
struct golang_stack_cache_line;
struct golang_stack_cache_function;
struct golang_stack_cache_stack;

/* An index of an array by contents: slots hold ids + 1, by hash. */
struct golang_stack_cache_index {
	uint32_t *slots;
	size_t cap; /* a power of two, or 0 */
};

/* A zeroed struct golang_stack_cache is empty. */
struct golang_stack_cache {
	struct buf text; /* of functions and files, each with its NUL */
	uint32_t *files; /* offsets in the text */
	size_t n_files;
	size_t files_cap;
	struct golang_stack_cache_function *functions;
	size_t n_functions;
	size_t functions_cap;
	struct golang_stack_cache_line *lines;
	size_t n_lines;
	size_t lines_cap;
	struct golang_stack_cache_location *locations;
	size_t n_locations;
	size_t locations_cap;
	uint32_t *ids; /* of the locations of all stacks */
	size_t n_ids;
	size_t ids_cap;
	struct golang_stack_cache_stack *stacks;
	size_t n_stacks;
	struct golang_stack_cache_index files_index;	 /* by their text */
	struct golang_stack_cache_index functions_index; /* by their name */
	struct golang_stack_cache_index locations_index; /* by their address */
	uint64_t unknown;				 /* addresses without any name */
};

/* Limits: a forged program must not make us store without bounds. */
#define GOLANG_STACK_CACHE_MAX_TEXT_BYTES ((size_t)16 << 20)
#define GOLANG_STACK_CACHE_MAX_LOCATIONS ((size_t)1 << 20)
#define GOLANG_STACK_CACHE_MAX_IDS ((size_t)16 << 20)

void golang_stack_cache_release(struct golang_stack_cache *n);

/* Imports stacks from a profile in which they were symbolized. */
struct golang_stack_cache_import {
	struct golang_stack_cache *names;
	const struct profile *profile; /* borrowed */
	size_t n_stacks;	       /* once all of them are imported */
	uint32_t *known;	       /* by location of the profile: ours + 1, or 0 */
	size_t known_cap;
};

/* Announces stacks from names->n_stacks up to n_stacks, in any order. */
int golang_stack_cache_import_init(struct golang_stack_cache_import *in,
				   struct golang_stack_cache *names, const struct profile *profile,
				   size_t n_stacks);
int golang_stack_cache_import_stack(struct golang_stack_cache_import *in, size_t stack,
				    const uint32_t *locations, size_t n);
/* Commits the import; without this call it has no effect. */
void golang_stack_cache_import_finish(struct golang_stack_cache_import *in);
void golang_stack_cache_import_release(struct golang_stack_cache_import *in);

/* Adds stacks to a profile, each location once. Locations have no mapping. */
struct golang_stack_cache_export {
	const struct golang_stack_cache *names;
	struct profile *profile; /* borrowed */
	uint32_t *locations;	 /* ours to the profile's + 1, or 0 */
	uint32_t *functions;
	uint32_t *files;
};

int golang_stack_cache_export_init(struct golang_stack_cache_export *ex,
				   const struct golang_stack_cache *names, struct profile *profile);
int golang_stack_cache_export_stack(struct golang_stack_cache_export *ex, size_t stack,
				    uint32_t *ret_stack);
void golang_stack_cache_export_release(struct golang_stack_cache_export *ex);
