/*
 * src/query/profile.c: a window as one profile: the sums, or for snapshots a copy with averages.
 * Averages are rounded such that their sum is the average of the sums.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/sum.h"
#include "query/sums.h"

static int copy_string(const struct profile *from, struct profile *to, uint32_t *string)
{
	return profile_add_string(to, profile_string(from, *string), string);
}

static int copy_functions(const struct profile *from, struct profile *to)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < profile_n_functions(from); i++) {
		struct profile_function f = *profile_function_at(from, i);
		uint32_t id;

		r = copy_string(from, to, &f.name);
		if (r == 0)
			r = copy_string(from, to, &f.system_name);
		if (r == 0)
			r = copy_string(from, to, &f.file);
		if (r == 0)
			r = profile_add_function(to, &f, &id);
	}
	return r;
}

/* Ids are dense and assigned in order, so the copy has the same ones. */
static int copy_locations(const struct profile *from, struct profile *to)
{
	uint32_t id;
	int r = 0;

	for (size_t i = 0; r == 0 && i < profile_n_mappings(from); i++) {
		struct profile_mapping m = *profile_mapping_at(from, i);

		r = copy_string(from, to, &m.file);
		if (r == 0)
			r = copy_string(from, to, &m.build_id);
		if (r == 0)
			r = profile_add_mapping(to, &m, &id);
	}
	for (size_t i = 0; r == 0 && i < profile_n_locations(from); i++) {
		const struct profile_location *l = profile_location_at(from, i);

		r = profile_add_location(to, l->address, l->mapping, l->lines, l->n_lines, &id);
	}
	return r;
}

static int64_t average(int64_t sum, uint64_t divisor)
{
	return (int64_t)llroundl((long double)sum / (long double)divisor);
}

static int copy_samples(const struct profile *from, struct profile *to, uint64_t divisor)
{
	int64_t run = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < profile_n_samples(from); i++) {
		const struct profile_sample *s = profile_sample_at(from, i);
		int64_t before = average(run, divisor), value;
		const uint32_t *locations;
		uint32_t n, stack;

		run = sum_add(run, s->values[0]);
		value = average(run, divisor) - before;
		if (value == 0)
			continue;
		locations = profile_stack_at(from, s->stack, &n);
		r = profile_add_stack(to, locations, n, &stack);
		if (r == 0)
			r = profile_add_sample(to, stack, &value, NULL, 0);
	}
	return r;
}

static int copy_average(const struct profile *from, uint64_t divisor, struct profile **ret_profile,
			struct err *err)
{
	_cleanup_(profile_freep) struct profile *to = profile_new();
	const struct profile_type *type = profile_type_at(from, 0);
	int r;

	if (!to)
		return err_oom(err);
	r = profile_add_type(to, profile_cstring(from, type->type),
			     profile_cstring(from, type->unit));
	if (r == 0)
		r = copy_functions(from, to);
	if (r == 0)
		r = copy_locations(from, to);
	if (r == 0)
		r = copy_samples(from, to, divisor);
	if (r == -E2BIG)
		return err_set(
			err, r,
			"the profile of this window exceeds %zu MB of memory; use a shorter window",
			PROFILE_MAX_BYTES >> 20);
	if (r < 0)
		return r == -ENOMEM ? err_oom(err)
				    : err_set(err, r, "the stored profile is malformed");
	*ret_profile = TAKE_PTR(to);
	return 0;
}

int query_profile(struct store *store, const struct store_window *window,
		  struct profile **ret_profile, struct store_sum *ret_about, struct err *err)
{
	_cleanup_(query_sums_release) struct query_sums sums = {0};
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct profile_header *header;
	int r = query_sums_read(store, window, NULL, &sums, err);

	if (r < 0)
		return r;
	if (query_divisor(&sums.sum[0]) > 1)
		r = copy_average(sums.sum[0].profile, query_divisor(&sums.sum[0]), &p, err);
	else
		p = TAKE_PTR(sums.sum[0].profile);
	if (r < 0)
		return r;
	header = profile_header(p);
	header->time_ns = window->from_ns;
	header->duration_ns = window->to_ns - window->from_ns;
	if (ret_about) {
		*ret_about = sums.sum[0];
		ret_about->profile = NULL;
	}
	*ret_profile = TAKE_PTR(p);
	return 0;
}
