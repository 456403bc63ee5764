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

#define JAVA_JFR_MAX_TYPES 2

struct java_jfr_builder_options {
	bool label_threads;
	bool label_classes; /* of allocated objects */
	bool fold_threads;  /* pool-1-thread-7 becomes pool-#-thread-# */
	size_t max_bytes;   /* of the profile before its samples; 0: the maximum of a profile */
};

struct java_jfr_sum {
	uint32_t stack;
	uint32_t thread; /* string ids, 0 for none */
	uint32_t class;
	int64_t values[JAVA_JFR_MAX_TYPES];
};

struct java_jfr_sample {
	const struct java_jfr_value *stack;
	const struct java_jfr_value *thread;
	const struct java_jfr_value *class; /* of the object, for a label; or NULL */
	const struct java_jfr_value *leaf;  /* the class of the object or lock; or NULL */
	const char *remark;		    /* instead of a stack; or NULL */
	int64_t values[JAVA_JFR_MAX_TYPES];
};

struct java_jfr_builder {
	struct java_jfr_builder_options options;
	struct profile *profile;
	struct map functions, locations, sums_by_key;
	struct map methods, stacks, threads, classes; /* of this chunk, by key */
	uint64_t epoch;
	struct buf sums; /* of struct java_jfr_sum */
	struct buf text;
	uint64_t no_stack, truncated;
	uint64_t lost; /* events over the memory limit */
	bool is_full;
};

/* -ENOMEM. A zeroed one may be released. */
int java_jfr_builder_init(struct java_jfr_builder *b,
			  const struct java_jfr_builder_options *options);
void java_jfr_builder_release(struct java_jfr_builder *b);
/* ret_sum: its index, or SIZE_MAX if it was lost. May be NULL. */
int java_jfr_builder_add(struct java_jfr_builder *b, const struct java_jfr *j,
			 const struct java_jfr_event *e, const struct java_jfr_sample *s,
			 size_t *ret_sum);
struct java_jfr_sum *java_jfr_builder_sum(struct java_jfr_builder *b, size_t i);
size_t java_jfr_builder_n_sums(const struct java_jfr_builder *b);

struct java_jfr_builder_type {
	enum type_id type;
	size_t value; /* index in the sums */
};
/* Builds the profile of what was added, and resets the builder to its state after init. */
int java_jfr_builder_finish(struct java_jfr_builder *b, const struct java_jfr_builder_type *types,
			    size_t n_types, struct profile **ret_profile, struct err *err);
