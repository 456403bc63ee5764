/*
 * tests/fuzz/profile/fuzz_pprof.c: whatever bytes come, the decoder refuses them or gives a profile
 * that encodes and decodes to one of the same size, and that every view and operation can work on.
 */
#include <stdint.h>
#include <stdlib.h>

#include "profile/ops.h"
#include "profile/pprof.h"
#include "profile/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check_round_trip(const struct profile *p)
{
	_cleanup_(profile_freep) struct profile *q = NULL;
	_cleanup_(buf_release) struct buf packed = {0};
	struct err err;

	require(profile_encode_pprof(p, &packed, &err) == 0);
	require(profile_decode_pprof(buf_view(&packed), &q, &err) == 0);
	require(profile_n_types(p) == profile_n_types(q));
	require(profile_n_strings(p) == profile_n_strings(q));
	require(profile_n_mappings(p) == profile_n_mappings(q));
	require(profile_n_functions(p) == profile_n_functions(q));
	require(profile_n_locations(p) == profile_n_locations(q));
	require(profile_n_stacks(p) == profile_n_stacks(q));
	require(profile_n_samples(p) == profile_n_samples(q));
	require(profile_n_comments(p) == profile_n_comments(q));
}

static void check_views(struct profile *p)
{
	_cleanup_(profile_table_release) struct profile_table table = {0};
	_cleanup_(profile_tree_release) struct profile_tree tree = {0};
	_cleanup_(buf_release) struct buf collapsed = {0};
	struct err err;

	require(profile_table_build(p, 0, &table, &err) == 0);
	require(profile_tree_build(p, 0, &tree, &err) == 0);
	require(profile_collapse(p, 0, &collapsed, &err) == 0);
	require(tree.len > 0);
	require(collapsed.len == 0 || collapsed.data[collapsed.len - 1] == '\n');
}

static void check_operations(const struct profile *p)
{
	const struct profile_term twice[] = {{.profile = p, .factor = 1},
					     {.profile = p, .factor = 1}};
	_cleanup_(profile_freep) struct profile *sum = NULL;
	_cleanup_(profile_freep) struct profile *difference = NULL;
	struct err err;

	require(profile_merge(twice, ARRAY_SIZE(twice), &sum, &err) == 0);
	require(profile_n_samples(sum) <= profile_n_samples(p));
	require(profile_n_locations(sum) <= profile_n_locations(p));
	check_round_trip(sum);
	require(profile_diff(p, p, &difference, &err) == 0);
	require(profile_n_mappings(difference) <= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct err err;

	if (profile_decode_pprof(view_of(data, size), &p, &err) < 0)
		return 0;
	check_round_trip(p);
	if (profile_n_types(p) > 0)
		check_views(p);
	check_operations(p);
	return 0;
}
