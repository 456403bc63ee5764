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
#define FAKE_PID_BYTES 16

struct fake_stack {
	/*
	 * "main;work;leaf", root first; "7|main;work" of the process 7; "work@12" at line 12 (else
	 * 7); "work@lib.so" of that file, without a source
	 */
	const char *frames;
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

/* "name" is of file.go; "name@libz.so.1" of a library, and "name@" of nothing known. */
static inline uint32_t fake_location(struct profile *p, struct view name)
{
	const uint8_t *at = memchr(name.data, '@', name.len);
	struct view word = view_of(name.data, at ? (size_t)(at - name.data) : name.len);
	bool has_line = at && at + 1 < name.data + name.len && at[1] >= '0' && at[1] <= '9';
	struct profile_mapping mapping = {0};
	struct profile_line line = {.line = has_line ? strtol((const char *)at + 1, NULL, 10) : 7};
	struct profile_function f = {.name = fake_string(p, word)};
	uint32_t id, m = PROFILE_NO_MAPPING;

	if (!at || has_line) {
		f.file = fake_string(p, view_str("file.go"));
	} else if (word.len + 1 < name.len) {
		mapping.file = fake_string(p, view_of(at + 1, name.len - word.len - 1));
		assert_int_equal(profile_add_mapping(p, &mapping, &m), 0);
	}
	assert_int_equal(profile_add_function(p, &f, &line.function), 0);
	assert_int_equal(profile_add_location(p, 0, m, &line, 1, &id), 0);
	return id;
}

/* The label "pid", and what comes after it. */
static inline struct view fake_pid(const struct fake_stack *s, const char **ret_frames)
{
	const char *bar = strchr(s->frames, '|');

	*ret_frames = bar ? bar + 1 : s->frames;
	return view_of(s->frames, bar ? (size_t)(bar - s->frames) : 0);
}

static inline void fake_add(struct profile *p, const struct fake_stack *s)
{
	uint32_t locations[2048], stack, n = 0;
	const char *frames, *end = s->frames + strlen(s->frames);

	(void)fake_pid(s, &frames);
	/* Leaf first. */
	while (end > frames) {
		const char *start = end;

		while (start > frames && start[-1] != ';')
			start--;
		assert_true(n < 2048);
		locations[n++] = fake_location(p, view_of(start, (size_t)(end - start)));
		end = start > frames ? start - 1 : start;
	}
	assert_int_equal(profile_add_stack(p, locations, n, &stack), 0);
	assert_int_equal(profile_add_sample(p, stack, &s->value, NULL, 0), 0);
}

static inline bool fake_passes(const struct fake_stack *s, const struct store_window *w)
{
	const char *frames;

	for (size_t i = 0; i < w->n_filters; i++)
		if (strcmp(w->filters[i].key, "pid") == 0 &&
		    !view_eq(fake_pid(s, &frames), view_str(w->filters[i].value)))
			return false;
	return true;
}

int store_label_totals(struct store *store, const struct store_window *window, const char *key,
		       struct store_label_total **ret_totals, size_t *ret_len, struct err *err)
{
	size_t i = window->from_ns == FAKE_BEFORE_NS, n = 0;
	size_t max = store->n_stacks[i] + 1;
	struct store_label_total *totals = calloc(max, sizeof(*totals) + FAKE_PID_BYTES);
	char *texts = (char *)(totals + max);

	(void)err;
	assert_non_null(totals);
	for (size_t k = 0; k < store->n_stacks[i]; k++) {
		const struct fake_stack *s = &store->stacks[i][k];
		const char *frames;
		struct view pid = fake_pid(s, &frames);
		size_t at = 0;

		if (pid.len == 0 || strcmp(key, "pid") != 0)
			continue;
		while (at < n && !view_eq(view_str(totals[at].value), pid))
			at++;
		n = at == n ? n + 1 : n;
		assert_true(pid.len < FAKE_PID_BYTES);
		totals[at].value = memcpy(texts + at * FAKE_PID_BYTES, pid.data, pid.len);
		totals[at].total += (double)s->value;
	}
	*ret_totals = totals;
	*ret_len = n;
	return 0;
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
		if (fake_passes(&store->stacks[i][k], window))
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
