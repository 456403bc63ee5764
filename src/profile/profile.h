/*
 * src/profile/profile.h: the profile model. Pure data, no I/O.
 *
 *   profile ── sample types            (alloc_objects/count, inuse_space/bytes, ...)
 *           ── mappings                (what was mapped where)
 *           ── functions ◄─ lines ◄─ locations ◄─ stacks ◄─ samples (one value per type, labels)
 *
 * It is pprof's model, with stacks shared: ids are dense indexes from 0, strings are interned
 * (id 0 is ""), lines of a location go from the innermost inlined function outwards, stacks from
 * the leaf to the root. Only strings, stacks and label sets are deduplicated when added; adding an
 * equal mapping, function or location twice gives two of them, as the wire format allows.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/view.h"

#define PROFILE_MAX_TYPES 16
#define PROFILE_MAX_BYTES                                                                          \
	((size_t)256 << 20) /* bytes of memory, unless profile_limit() lowers it */
#define PROFILE_NO_MAPPING UINT32_MAX

struct profile_type {
	uint32_t type; /* string ids */
	uint32_t unit;
};

struct profile_mapping {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	uint32_t file;	   /* string id */
	uint32_t build_id; /* string id */
	bool has_functions;
	bool has_filenames;
	bool has_line_numbers;
	bool has_inline_frames;
};

struct profile_function {
	uint32_t name; /* string ids */
	uint32_t system_name;
	uint32_t file;
	int64_t start_line;
};

struct profile_line {
	uint32_t function;
	uint32_t column; /* 0 if unknown, as always with Go */
	int64_t line;
};

struct profile_location {
	uint64_t address;
	uint32_t mapping; /* or PROFILE_NO_MAPPING */
	uint32_t n_lines;
	const struct profile_line *lines; /* in the profile's arena */
	uint64_t hash;			  /* of its frames, 0 if one has no name; see below */
	bool is_folded;
};

struct profile_label {
	uint32_t key; /* string ids */
	uint32_t str; /* 0 for a number */
	int64_t num;
	uint32_t num_unit;
};

struct profile_sample {
	uint32_t stack;
	uint32_t n_labels;
	const struct profile_label *labels; /* in the profile's arena, shared between samples */
	const int64_t *values;		    /* one per type, in the profile's arena */
};

struct profile; /* opaque; accessors below */

struct profile *profile_new(void); /* NULL if out of memory */
void profile_free(struct profile *p);
void profile_limit(struct profile *p, size_t max_bytes); /* at most PROFILE_MAX_BYTES */
DEFINE_CLEANUP(struct profile, profile_free)

/* Header fields; plain data. */
struct profile_header {
	int64_t time_ns; /* since 1970 */
	int64_t duration_ns;
	struct profile_type period_type;
	int64_t period;
	uint32_t default_type; /* string id, 0 when unset */
	uint32_t drop_frames;  /* string ids, 0 when unset */
	uint32_t keep_frames;
	uint32_t doc_url;
};
struct profile_header *profile_header(struct profile *p);
const struct profile_header *profile_header_const(const struct profile *p);

/* Building. All return 0 or -ENOMEM/-E2BIG (the memory limit); -EINVAL for ids out of range. */
int profile_add_string(struct profile *p, struct view s, uint32_t *ret_id);
/* Add types before samples; -EINVAL otherwise. */
int profile_add_type(struct profile *p, const char *type, const char *unit);
int profile_add_type_ids(struct profile *p, struct profile_type type);
int profile_add_mapping(struct profile *p, const struct profile_mapping *m, uint32_t *ret_id);
int profile_add_function(struct profile *p, const struct profile_function *f, uint32_t *ret_id);
int profile_add_location(struct profile *p, uint64_t address, uint32_t mapping,
			 const struct profile_line *lines, uint32_t n_lines, uint32_t *ret_id);
/* Equal stacks get equal ids. */
int profile_add_stack(struct profile *p, const uint32_t *locations, uint32_t n, uint32_t *ret_id);
/* For callers who know that the stack is new, and its profile_stack_hash(). */
int profile_append_stack(struct profile *p, const uint32_t *locations, uint32_t n, uint64_t hash,
			 uint32_t *ret_id);
/* Always adds a sample, even if another has the same stack and labels. */
int profile_add_sample(struct profile *p, uint32_t stack, const int64_t *values,
		       const struct profile_label *labels, uint32_t n_labels);
/* Adds n samples without labels: all, or none. The values of a sample are adjacent. */
int profile_add_samples(struct profile *p, const uint32_t *stacks, const int64_t *values, size_t n);
int profile_add_comment(struct profile *p, struct view comment);
/* These correct existing entries; the id must be valid. */
void profile_set_mapping(struct profile *p, uint32_t id, const struct profile_mapping *m);
void profile_set_folded(struct profile *p, uint32_t location);
void profile_set_value(struct profile *p, size_t sample, size_t type, int64_t value);

/* Reading. An index must be below its count. */
struct view profile_string(const struct profile *p, uint32_t id);
const char *profile_cstring(const struct profile *p, uint32_t id); /* never NULL */
size_t profile_n_strings(const struct profile *p);
size_t profile_n_types(const struct profile *p);
size_t profile_n_mappings(const struct profile *p);
size_t profile_n_functions(const struct profile *p);
size_t profile_n_locations(const struct profile *p);
size_t profile_n_stacks(const struct profile *p);
size_t profile_n_samples(const struct profile *p);
size_t profile_n_comments(const struct profile *p);
const struct profile_type *profile_type_at(const struct profile *p, size_t i);
const struct profile_mapping *profile_mapping_at(const struct profile *p, size_t i);
const struct profile_function *profile_function_at(const struct profile *p, size_t i);
const struct profile_location *profile_location_at(const struct profile *p, size_t i);
const struct profile_sample *profile_sample_at(const struct profile *p, size_t i);
uint32_t profile_comment_at(const struct profile *p, size_t i); /* string id */
/* Location ids, leaf first. */
const uint32_t *profile_stack_at(const struct profile *p, uint32_t stack, uint32_t *ret_len);
/* The index of the sample type with this name ("inuse_space"), or -ENOENT. */
int profile_find_type(const struct profile *p, const char *type);
/* The last part of a mapping's file, "libc.so.6": the library, or the program. "": unknown. */
struct view profile_module(const struct profile *p, uint32_t mapping);

/*
 * Hashes of visible contents: equal frames have equal hashes in all profiles of this process,
 * whatever their ids. A stack's hash is a polynomial of its frames from the root, so it does not
 * depend on which of them share a location. Functions without a file are told apart by their
 * module.
 */
#define PROFILE_HASH_FACTOR                                                                        \
	0xd6e8feb86659fd93ULL /* odd; otherwise frames far from the leaf would be lost */

/* In place of the file's. */
static inline uint64_t profile_hash_module(struct view module)
{
	return hash_mix(hash_bytes(module.data, module.len));
}

/* name and file: their hash_bytes(). */
static inline uint64_t profile_hash_frame(uint64_t name, uint64_t file, int64_t line)
{
	return hash_fold(name ^ hash_seed(), file + 0x9e3779b97f4a7c15ULL * (uint64_t)line) | 1;
}

static inline uint64_t profile_hash_push(uint64_t hash, uint64_t frame)
{
	return hash * PROFILE_HASH_FACTOR + frame;
}

static inline uint64_t profile_hash_end(uint64_t hash)
{
	return hash_mix(hash ^ hash_seed()) | 1;
}

uint64_t profile_string_hash(const struct profile *p, uint32_t id);
/* Start with 0, add all frames, finish with profile_hash_end(); 0 if a frame has no name. */
uint64_t profile_stack_hash(const struct profile *p, uint32_t stack);

/* Memory used by the profile, in bytes. */
size_t profile_memory(const struct profile *p);
