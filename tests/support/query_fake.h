/*
 * tests/support/query_fake.h: a store that gives what the test says: two profiles, told apart by
 * where their window begins, one series, streams and label sets.
 */
#pragma once

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"

#define FAKE_BEFORE_NS ((int64_t)1000 * 1000000000)
#define FAKE_SECOND ((int64_t)1000000000)

struct fake_stack {
	const char *frames; /* "main;work@12;leaf", root first; line 7 unless it says so */
	int64_t value;
};

struct store {
	const struct fake_stack *stacks[2]; /* of a later window, and of one from FAKE_BEFORE_NS */
	size_t n_stacks[2];
	bool snapshot;
	uint64_t collections[2];
	int64_t other;
	int error;	    /* what every question fails with */
	atomic_bool hold;   /* sums wait until this is false */
	atomic_uint inside; /* how many sums are being asked for */
	atomic_uint most_inside;
};

static inline void fake_wait(struct store *store)
{
	unsigned int inside = atomic_fetch_add(&store->inside, 1) + 1;
	unsigned int most = atomic_load(&store->most_inside);

	while (most < inside && !atomic_compare_exchange_weak(&store->most_inside, &most, inside))
		;
	while (atomic_load(&store->hold))
		usleep(1000);
	atomic_fetch_sub(&store->inside, 1);
}

static inline uint32_t fake_string(struct profile *p, struct view s)
{
	uint32_t id;

	assert_int_equal(profile_add_string(p, s, &id), 0);
	return id;
}

static inline uint32_t fake_location(struct profile *p, struct view name)
{
	const uint8_t *at = memchr(name.data, '@', name.len);
	struct profile_line line = {.line = at ? strtol((const char *)at + 1, NULL, 10) : 7};
	struct profile_function f = {
		.name = fake_string(p, at ? view_of(name.data, (size_t)(at - name.data)) : name),
		.file = fake_string(p, view_str("file.go"))};
	uint32_t id;

	assert_int_equal(profile_add_function(p, &f, &line.function), 0);
	assert_int_equal(profile_add_location(p, 0, PROFILE_NO_MAPPING, &line, 1, &id), 0);
	return id;
}

static inline void fake_add(struct profile *p, const struct fake_stack *s)
{
	uint32_t locations[2048], stack, n = 0;
	const char *end = s->frames + strlen(s->frames);

	/* Leaf first. */
	while (end > s->frames) {
		const char *start = end;

		while (start > s->frames && start[-1] != ';')
			start--;
		assert_true(n < 2048);
		locations[n++] = fake_location(p, view_of(start, (size_t)(end - start)));
		end = start > s->frames ? start - 1 : start;
	}
	assert_int_equal(profile_add_stack(p, locations, n, &stack), 0);
	assert_int_equal(profile_add_sample(p, stack, &s->value, NULL, 0), 0);
}

int store_sum(struct store *store, const struct store_window *window, struct store_sum *ret_sum,
	      struct err *err)
{
	size_t i = window->from_ns == FAKE_BEFORE_NS;
	struct profile *p;

	fake_wait(store);
	if (store->error)
		return err_set(err, store->error, "the store does not like this");
	p = profile_new();
	assert_non_null(p);
	assert_int_equal(profile_add_type(p, "inuse_space", "bytes"), 0);
	for (size_t k = 0; k < store->n_stacks[i]; k++)
		fake_add(p, &store->stacks[i][k]);
	*ret_sum = (struct store_sum){
		.profile = p,
		.snapshot = store->snapshot,
		.collections = store->collections[i],
		.samples = store->n_stacks[i],
		.other = store->other,
	};
	return 0;
}
