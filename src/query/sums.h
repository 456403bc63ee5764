/* src/query/sums.h: sums of one or two windows from the store, and how they become values. */
#pragma once

#include "query/query.h"

struct query_sums {
	struct store_sum sum[2]; /* the window, and the other one */
	size_t n;		 /* how many of them */
};

/* before may be NULL. -EINVAL if the stored profile has more than one type. */
int query_sums_read(struct store *store, const struct store_window *window,
		    const struct store_window *before, struct query_sums *ret_sums,
		    struct err *err);
void query_sums_release(struct query_sums *sums);
void query_sums_describe(const struct query_sums *sums, struct query_about *ret_about);

/* The divisor: collections of a snapshot type, 1 for deltas. */
uint64_t query_divisor(const struct store_sum *sum);
/* The average, rounded to 1/64; such values add up without error. */
double query_value(int64_t sum, uint64_t divisor);
/* Of all samples. */
double query_total(const struct store_sum *sum);
