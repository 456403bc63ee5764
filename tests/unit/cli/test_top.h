/* tests/unit/cli/test_top.h: readings of processes that do not exist. */
#pragma once

#include <stdio.h>
#include <string.h>

#include "cli/top/model.h"

/* One stack, from the root to the leaf, and its values. */
struct fake_sample {
	const char *stack[4];
	int64_t values[4]; /* alloc_objects, alloc_space, inuse_objects, inuse_space */
};

static inline void fake_fill(struct profile *p, const struct fake_sample *samples, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t locations[4], len = 0, stack;

		for (size_t k = 4; k-- > 0;) {
			struct profile_function f = {};
			struct profile_line line = {.line = 1};
			const char *name = samples[i].stack[k];

			if (!name)
				continue;
			assert_int_equal(profile_add_string(p, view_str(name), &f.name), 0);
			assert_int_equal(profile_add_function(p, &f, &line.function), 0);
			assert_int_equal(profile_add_location(p, 0, PROFILE_NO_MAPPING, &line, 1,
							      &locations[len++]),
					 0);
		}
		assert_int_equal(profile_add_stack(p, locations, len, &stack), 0);
		assert_int_equal(profile_add_sample(p, stack, samples[i].values, NULL, 0), 0);
	}
}

static inline struct profile *fake_profile(const struct fake_sample *samples, size_t n)
{
	static const char *const types[][2] = {{"alloc_objects", "count"},
					       {"alloc_space", "bytes"},
					       {"inuse_objects", "count"},
					       {"inuse_space", "bytes"}};
	struct profile *p = profile_new();

	for (size_t i = 0; i < 4; i++)
		assert_int_equal(profile_add_type(p, types[i][0], types[i][1]), 0);
	fake_fill(p, samples, n);
	return p;
}

static inline struct top_subject fake_process(pid_t pid, const char *service)
{
	return (struct top_subject){
		.id = {.pid = pid, .start_ticks = 7}, .service = service, .name = service};
}

static inline void fake_add(struct top_model *m, const struct top_subject *who, uint64_t now_s,
			    const struct fake_sample *samples, size_t n)
{
	struct profile *p = fake_profile(samples, n);

	assert_int_equal(top_model_add(m, who, p, now_s * 1000000000, NULL), 0);
	profile_free(p);
}

/* values: samples and nanoseconds, of a collection of two seconds. */
static inline void fake_add_cpu(struct top_model *m, const struct top_subject *who, int64_t stamp,
				const struct fake_sample *samples, size_t n)
{
	struct profile *p = profile_new();

	assert_int_equal(profile_add_type(p, "samples", "count"), 0);
	assert_int_equal(profile_add_type(p, "cpu", "nanoseconds"), 0);
	profile_header(p)->duration_ns = 2000000000;
	fake_fill(p, samples, n);
	assert_int_equal(top_model_add_cpu(m, who, p, stamp, NULL), 0);
	profile_free(p);
}
