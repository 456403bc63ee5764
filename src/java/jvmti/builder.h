/*
 * src/java/jvmti/builder.h: sums the records of our library in a JVM into profiles, in the same
 * form as a recording's (java/jfr/profiler.h): alloc_objects and alloc_space, contentions and
 * delay; the class is the leaf.
 *
 * An object is sampled with a probability that grows with its size: 1 - exp(-size / interval). A
 * sampled one stands for the others accordingly.
 */
#pragma once

#include "base/buf.h"
#include "base/intern.h"
#include "base/map.h"
#include "java/jfr/builder.h"
#include "java/jfr/profiler.h"
#include "java/jvmti/ring.h"
#include "profile/profile.h"

struct java_jvmti_part {
	struct profile *profile;
	struct map functions, locations, sums_by_key;
	struct buf sums;
	bool is_full;
};

struct java_jvmti_builder {
	struct java_jfr_builder_options options;
	struct intern names;	 /* of methods, as long as the library knows them */
	uint32_t *name_of_frame; /* + 1; 0: unknown */
	int32_t *line_of_frame;
	bool *is_idle_frame; /* java_jfr_names_is_idle() */
	struct buf text;
	struct java_jvmti_part parts[JAVA_JFR_PROFILE_N];
	uint64_t events[JAVA_JFR_PROFILE_N];
	uint64_t truncated, no_stack;
	uint64_t idle_waits; /* omitted */
	int64_t idle_ns;
	uint64_t lost; /* events over our memory limit */
};

/* -ENOMEM. A zeroed one may be released. */
int java_jvmti_builder_init(struct java_jvmti_builder *b,
			    const struct java_jfr_builder_options *options);
void java_jvmti_builder_release(struct java_jvmti_builder *b);
int java_jvmti_builder_add(struct java_jvmti_builder *b, const struct java_ring_record *record);
/*
 * The profile of what was added since the last take, possibly empty; there is no
 * JAVA_JFR_PROFILE_CPU.
 */
int java_jvmti_builder_take(struct java_jvmti_builder *b, enum java_jfr_profile_kind kind,
			    struct profile **ret_profile, struct err *err);

/* How many objects a sampled one of that size represents. */
double java_jvmti_weight(uint64_t size, uint64_t interval_bytes);
