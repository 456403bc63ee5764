/*
 * src/query/covered.h: tells "did not run" from "was not watched" in series of CPU samples.
 *
 * A process that does not run has no samples, and so has every process while nobody samples. The
 * agent says of each interval whether the CPUs were sampled (sonde.covered): there, what is missing
 * is 0. Elsewhere it is a gap.
 */
#pragma once

#include <stdbool.h>

#include "store/store.h"

/* The CPU sampler's two, and whatever is read from processes, which may only be spread. */
enum { QUERY_COVERED_READINGS = 2, QUERY_COVERED_SOURCES };

struct query_covered {
	size_t n;
	/* Of each source n points, NAN where it did not sample; NULL if never. */
	double *covered[QUERY_COVERED_SOURCES];
	/* Time whose samples came late and are spread evenly over it; NAN for none. */
	double *spread[QUERY_COVERED_SOURCES];
};

/* For series of the window with these steps; with what is spread, too. */
int query_covered_read(struct store *store, int64_t from_ns, int64_t to_ns, int64_t step_ns,
		       size_t n, struct query_covered *ret_covered, struct err *err);
/* Only what is covered. */
int query_covered_read_times(struct store *store, int64_t from_ns, int64_t to_ns, int64_t step_ns,
			     size_t n, struct query_covered *ret_covered, struct err *err);
void query_covered_release(struct query_covered *covered);

/* Puts 0 for what is known to be none. Types that are not sampled stay as they are. */
void query_covered_fill(const struct query_covered *covered, const char *type, double *points);
/* For how much of it the type was sampled; 0: it was not. */
double query_covered_ns(const struct query_covered *covered, const char *type, size_t i);
/* Whether the point of a delta type, or a part of it, is spread. */
bool query_covered_is_spread(const struct query_covered *covered, const char *type, size_t i);
