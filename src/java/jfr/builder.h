/*
 * src/java/jfr/builder.h: sums events into a profile: equal stacks of the same thread and class
 * become one sample.
 */
#pragma once

#include "base/buf.h"
#include "base/map.h"
#include "java/jfr/jfr.h"
#include "pipeline/registry/registry.h"
#include "profile/profile.h"

#define JFR_MAX_TYPES 2

struct jfr_builder_options {
	bool label_threads;
	bool label_classes; /* of what was allocated */
	bool fold_threads;  /* pool-1-thread-7 becomes pool-#-thread-# */
	size_t max_bytes;   /* of the profile before its samples; 0: as much as a profile can be */
};

struct jfr_sum {
	uint32_t stack;
	uint32_t thread; /* string ids, 0 for none */
	uint32_t class;
	int64_t values[JFR_MAX_TYPES];
};

struct jfr_sample {
	const struct jfr_value *stack;
	const struct jfr_value *thread;
	const struct jfr_value *class; /* of the object, for a label; or NULL */
	const struct jfr_value *lock;  /* its class is the leaf; or NULL */
	int64_t values[JFR_MAX_TYPES];
};

struct jfr_builder {
	struct jfr_builder_options options;
	struct profile *profile;
	struct map functions, locations, sums_by_key;
	struct map methods, stacks, threads, classes; /* of this chunk, by key */
	uint64_t epoch;
	struct buf sums; /* of struct jfr_sum */
	struct buf text;
	uint64_t no_stack, truncated;
	uint64_t lost; /* events beyond the limit of memory */
	bool is_full;
};

/* -ENOMEM. Zeroed may be released. */
int jfr_builder_init(struct jfr_builder *b, const struct jfr_builder_options *options);
void jfr_builder_release(struct jfr_builder *b);
/* ret_sum: where it went, or SIZE_MAX when it was lost. NULL when nobody asks. */
int jfr_builder_add(struct jfr_builder *b, const struct jfr *j, const struct jfr_event *e,
		    const struct jfr_sample *s, size_t *ret_sum);
struct jfr_sum *jfr_builder_sum(struct jfr_builder *b, size_t i);
size_t jfr_builder_n_sums(const struct jfr_builder *b);

struct jfr_builder_type {
	enum type_id type;
	size_t value; /* index in the sums */
};
/* Makes the profile of what was added; the builder is then as after init. */
int jfr_builder_finish(struct jfr_builder *b, const struct jfr_builder_type *types, size_t n_types,
		       struct profile **ret_profile, struct err *err);
