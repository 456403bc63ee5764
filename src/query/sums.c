/* src/query/sums.c: see sums.h. */
#include "query/sums.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/sum.h"

#define VALUE_STEPS 64

static int sums_read_one(struct store *store, const struct store_window *window,
			 struct store_sum *ret_sum, struct err *err)
{
	struct store_sum sum = {0};
	int r = store_sum(store, window, &sum, err);

	if (r < 0)
		return r;
	if (!sum.profile || profile_n_types(sum.profile) != 1) {
		profile_free(sum.profile);
		return err_set(err, -EBADMSG, "the stored profile of %s has more than one type",
			       window->type);
	}
	*ret_sum = sum;
	return 0;
}

int query_sums_read(struct store *store, const struct store_window *window,
		    const struct store_window *before, struct query_sums *ret_sums, struct err *err)
{
	struct query_sums sums = {.n = before ? 2 : 1};
	int r = sums_read_one(store, window, &sums.sum[0], err);

	if (r == 0 && before)
		r = sums_read_one(store, before, &sums.sum[1], err);
	if (r < 0) {
		query_sums_release(&sums);
		return r;
	}
	*ret_sums = sums;
	return 0;
}

void query_sums_release(struct query_sums *sums)
{
	for (size_t i = 0; i < ARRAY_SIZE(sums->sum); i++)
		profile_free(sums->sum[i].profile);
	*sums = (struct query_sums){0};
}

void query_sums_describe(const struct query_sums *sums, struct query_about *ret_about)
{
	const struct store_sum *sum = &sums->sum[0];
	const struct profile *p = sum->profile;

	*ret_about = (struct query_about){
		/* A window without data has no mode; the other one may have it. */
		.snapshot = sum->snapshot || sums->sum[1].snapshot,
		.collections = sum->collections,
		.before_collections = sums->sum[1].collections,
		.other = query_value(sum->other, query_divisor(sum)),
	};
	(void)snprintf(ret_about->unit, sizeof(ret_about->unit), "%s",
		       profile_cstring(p, profile_type_at(p, 0)->unit));
}

uint64_t query_divisor(const struct store_sum *sum)
{
	return sum->snapshot && sum->collections > 1 ? sum->collections : 1;
}

double query_value(int64_t sum, uint64_t divisor)
{
	int64_t parts, d = (int64_t)divisor, rest;

	if (divisor <= 1)
		return (double)sum;
	if (divisor > INT64_MAX / 2 || __builtin_mul_overflow(sum, VALUE_STEPS, &parts))
		return (double)(nearbyintl((long double)sum * VALUE_STEPS / (long double)divisor) /
				VALUE_STEPS);
	/* To nearest; halves away from zero. */
	rest = parts % d;
	parts = parts / d + (rest >= d - rest) - (-rest >= d + rest);
	return (double)parts / VALUE_STEPS;
}

double query_total(const struct store_sum *sum)
{
	int64_t total = 0;

	for (size_t i = 0; i < profile_n_samples(sum->profile); i++)
		total = sum_add(total, profile_sample_at(sum->profile, i)->values[0]);
	return query_value(total, query_divisor(sum));
}
