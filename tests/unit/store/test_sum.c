/* tests/unit/store/test_sum.c: what was written comes out again, against a plain model. */
#include "test_model.h"

#include <errno.h>
#include <math.h>

#define N_STACKS 60
#define N_ENTRIES 700

/* One value that was written; the model is a list of them. */
struct fact {
	int service;
	int pid;
	int64_t time_ns;
	unsigned int stack;
	int64_t value[2];
};

struct model {
	struct fact facts[N_ENTRIES * 12];
	size_t n;
	uint64_t seed;
};

static uint64_t draw(struct model *m, uint64_t below)
{
	m->seed = m->seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (m->seed >> 33) % below;
}

static const char *const services[] = {"svc", "api", "db/worker"};
static const char *const pids[] = {"11", "22", "33", "44"};

/* Random values of random stacks; some stacks twice, some values zero or negative. */
static void write_random(struct model *m, struct rig *rig, int service, int pid, int64_t time_ns)
{
	struct profile *p = make_profile();
	struct err err = {};
	size_t n = draw(m, 12);

	for (size_t i = 0; i < n; i++) {
		struct fact f = {service, pid, time_ns, (unsigned int)draw(m, N_STACKS), {0}};

		f.value[0] = (int64_t)draw(m, 5) * 16 * (draw(m, 20) ? 1 : -1);
		f.value[1] = (int64_t)draw(m, 1000000000) - 1000;
		add_stack(p, f.stack, f.value[0], f.value[1]);
		m->facts[m->n++] = f;
	}
	if (write_profile(rig, services[service], pids[pid], time_ns, p, &err) < 0)
		fail_msg("%s", err.text);
	profile_free(p);
}

static void check_window(const struct model *m, struct rig *rig, int service, int type, int pid,
			 int64_t from_ns, int64_t to_ns)
{
	const struct label filter = {"process.pid", pid >= 0 ? pids[pid] : ""};
	const struct store_window w = {
		.service = services[service],
		.type = type ? TYPE_INUSE : TYPE_ALLOC,
		.from_ns = from_ns,
		.to_ns = to_ns,
		.filters = &filter,
		.n_filters = pid >= 0,
	};
	int64_t want[N_STACKS] = {0};
	struct store_sum sum = {0};
	struct err err = {};

	for (size_t i = 0; i < m->n; i++) {
		const struct fact *f = &m->facts[i];

		if (f->service == service && (pid < 0 || f->pid == pid) && f->time_ns >= from_ns &&
		    f->time_ns < to_ns)
			want[f->stack] += f->value[type];
	}
	if (store_sum(rig->store, &w, &sum, &err) < 0)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < profile_n_samples(sum.profile); i++) {
		const struct profile_sample *s = profile_sample_at(sum.profile, i);
		uint32_t n;
		const uint32_t *locations = profile_stack_at(sum.profile, s->stack, &n);
		const struct profile_line *l =
			profile_location_at(sum.profile, locations[0])->lines;
		const struct profile_function *f = profile_function_at(sum.profile, l->function);
		unsigned int stack;

		assert_int_equal(n, 3);
		assert_int_equal(sscanf(profile_cstring(sum.profile, f->name), "work_%u", &stack),
				 1);
		assert_string_equal(profile_cstring(sum.profile, f->file), "work.go");
		assert_int_equal(l->line, stack);
		assert_int_equal(s->values[0], want[stack]);
		want[stack] = 0;
	}
	for (size_t i = 0; i < N_STACKS; i++)
		assert_int_equal(want[i], 0);
	profile_free(sum.profile);
}

static void check_windows(struct model *m, struct rig *rig)
{
	for (int i = 0; i < 60; i++) {
		int64_t from = DAY_0 + (int64_t)draw(m, 4 * 86400) * SEC_NS;
		int64_t to = from + (int64_t)draw(m, 2 * 86400) * SEC_NS;

		check_window(m, rig, (int)draw(m, 3), i % 2, (int)draw(m, 5) - 1, from, to);
	}
	for (int day = 0; day < 4; day++)
		check_window(m, rig, day % 3, day % 2, -1, DAY_0 + day * DAY_NS,
			     DAY_0 + (day + 1) * DAY_NS);
	check_window(m, rig, 0, 0, -1, 0, INT64_MAX);
	check_window(m, rig, 1, 1, 2, INT64_MIN, INT64_MAX);
}

static void sums_equal_a_plain_model_through_packs_and_rollups(void **state)
{
	struct model *m = calloc(1, sizeof(*m));
	struct rig rig;

	(void)state;
	assert_non_null(m);
	m->seed = 42;
	rig_init(&rig);
	for (int i = 0; i < N_ENTRIES; i++) {
		/* Four days, with some that are late by up to an hour and a half. */
		int64_t now = DAY_0 + (int64_t)i * (4 * DAY_NS / N_ENTRIES) / SEC_NS * SEC_NS;
		int64_t late = draw(m, 8) ? 0 : (int64_t)draw(m, 5400) * SEC_NS;

		rig.now_ns = now;
		write_random(m, &rig, (int)draw(m, 3), (int)draw(m, 4),
			     MAX(now - late, DAY_0 + SEC_NS));
		if (i % 3 == 0)
			assert_int_equal(store_commit(rig.store, NULL), 0);
		if (i % 50 == 49)
			assert_int_equal(store_maintain(rig.store, now, NULL), 0);
		if (i % 151 == 150) {
			assert_int_equal(store_commit(rig.store, NULL), 0);
			check_windows(m, &rig);
			rig_reopen(&rig);
		}
	}
	assert_int_equal(store_commit(rig.store, NULL), 0);
	check_windows(m, &rig);
	assert_int_equal(store_maintain(rig.store, DAY_0 + 5 * DAY_NS, NULL), 0);
	check_windows(m, &rig);
	rig_reopen(&rig);
	check_windows(m, &rig);
	rig_release(&rig);
	free(m);
}

static void same_time_and_process_add_up(void **state)
{
	struct rig rig;

	(void)state;
	rig_init(&rig);
	assert_int_equal(write_one(&rig, "1", DAY_0 + SEC_NS, 3, 10), 0);
	assert_int_equal(write_one(&rig, "1", DAY_0 + SEC_NS, 3, 5), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	assert_int_equal(write_one(&rig, "1", DAY_0 + SEC_NS, 4, 7), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	assert_int_equal(total_all(&rig), 22);
	rig_release(&rig);
}

static void a_late_collection_after_the_rollup_counts(void **state)
{
	struct rig rig;
	struct store_sum sum = {0};

	(void)state;
	rig_init(&rig);
	rig.now_ns = DAY_0 + HOUR_NS;
	assert_int_equal(write_one(&rig, "1", DAY_0 + HOUR_NS, 1, 100), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	rig.now_ns = DAY_0 + DAY_NS + HOUR_NS / 2;
	assert_int_equal(store_maintain(rig.store, rig.now_ns, NULL), 0);
	assert_int_equal(total_all(&rig), 100);
	assert_int_equal(write_one(&rig, "1", DAY_0 + DAY_NS - 60 * SEC_NS, 2, 11), 0);
	assert_int_equal(write_one(&rig, "1", DAY_0 + HOUR_NS, 1, 1000),
			 0); /* before: 23.5 h ago */
	assert_int_equal(store_commit(rig.store, NULL), 0);
	assert_int_equal(total_all(&rig), 1111);
	assert_int_equal(store_maintain(rig.store, rig.now_ns, NULL), 0);
	assert_int_equal(total_all(&rig), 1111);
	sum_of(&rig, "svc", TYPE_INUSE, DAY_0, DAY_0 + DAY_NS, &sum);
	assert_true(sum.snapshot);
	assert_int_equal(sum.collections, 2);
	assert_int_equal(sum.samples, 3);
	profile_free(sum.profile);
	rig_release(&rig);
}

static void stacks_past_the_limit_are_other_and_reported(void **state)
{
	struct rig rig;
	struct store_sum sum = {0};

	(void)state;
	rig_init(&rig);
	store_close(rig.store);
	rig.config.max_stacks = 5;
	rig_open(&rig);
	for (unsigned int i = 0; i < 8; i++)
		assert_int_equal(write_one(&rig, "1", DAY_0 + SEC_NS, i, 1 << i), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	rig_reopen(&rig);
	assert_int_equal(write_one(&rig, "1", DAY_0 + SEC_NS, 7, 1 << 8), 0);
	assert_int_equal(write_one(&rig, "1", DAY_0 + SEC_NS, 0, 1 << 9), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	sum_of(&rig, "svc", TYPE_ALLOC, 0, INT64_MAX, &sum);
	assert_int_equal(sum.other, (1 << 5) + (1 << 6) + (1 << 7) + (1 << 8));
	assert_int_equal(total_of(sum.profile), (1 << 10) - 1);
	assert_int_equal(profile_n_samples(sum.profile), 6);
	profile_free(sum.profile);
	rig_release(&rig);
}

static void label_sets_past_the_limit_still_add_up(void **state)
{
	struct rig rig;
	char pid[16];
	struct store_labelset *sets;
	size_t n;

	(void)state;
	rig_init(&rig);
	store_close(rig.store);
	rig.config.max_labelsets = 3;
	rig_open(&rig);
	for (int i = 0; i < 10; i++) {
		(void)snprintf(pid, sizeof(pid), "%d", i);
		assert_int_equal(write_one(&rig, pid, DAY_0 + SEC_NS, 1, 1), 0);
	}
	assert_int_equal(store_commit(rig.store, NULL), 0);
	assert_int_equal(total_all(&rig), 10);
	assert_int_equal(store_labelsets(rig.store, "svc", 0, INT64_MAX, &sets, &n, NULL), 0);
	assert_int_equal(n, 4);
	assert_int_equal(sets[3].n_labels, 0);
	assert_string_equal(sets[1].labels[1].key, "process.pid");
	assert_string_equal(sets[1].labels[1].value, "1");
	free(sets);
	rig_release(&rig);
}

static void series_sum_deltas_and_average_snapshots(void **state)
{
	const struct label filter = {"process.pid", "2"};
	struct store_window w = {.service = "svc",
				 .type = TYPE_ALLOC,
				 .from_ns = DAY_0,
				 .to_ns = DAY_0 + 180 * SEC_NS};
	double points[3];
	struct rig rig;

	(void)state;
	rig_init(&rig);
	assert_int_equal(write_one(&rig, "1", DAY_0 + 15 * SEC_NS, 1, 10), 0);
	assert_int_equal(write_one(&rig, "2", DAY_0 + 15 * SEC_NS, 1, 20), 0);
	assert_int_equal(write_one(&rig, "1", DAY_0 + 30 * SEC_NS, 2, 40), 0);
	assert_int_equal(write_one(&rig, "1", DAY_0 + 120 * SEC_NS, 2, 7), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	assert_int_equal(store_series(rig.store, &w, 60 * SEC_NS, points, 3, NULL), 0);
	assert_true(points[0] == 70 && isnan(points[1]) && points[2] == 7);
	w.type = TYPE_INUSE;
	assert_int_equal(store_series(rig.store, &w, 60 * SEC_NS, points, 3, NULL), 0);
	assert_true(points[0] == 35 && isnan(points[1]) && points[2] == 7);
	w.filters = &filter;
	w.n_filters = 1;
	assert_int_equal(store_series(rig.store, &w, 60 * SEC_NS, points, 3, NULL), 0);
	assert_true(points[0] == 10 && isnan(points[1]) && isnan(points[2]));
	assert_int_equal(store_series(rig.store, &w, 0, points, 3, NULL), -EINVAL);
	assert_int_equal(store_series(rig.store, &w, 1, points, SIZE_MAX, NULL), -E2BIG);
	rig_release(&rig);
}

/* Of 1 there are 5 everywhere until it ends, of 2 there are 90, but only every third time. */
static void write_stretched(struct rig *rig)
{
	for (int i = 0; i < 24; i++) {
		int64_t time_ns = DAY_0 + HOUR_NS + i * 60 * SEC_NS;

		if (i < 12)
			assert_int_equal(write_one(rig, "1", time_ns, 1, 5), 0);
		assert_int_equal(write_one(rig, "0", time_ns, 3, 1), 0);
		if (i % 3 == 1)
			assert_int_equal(write_one(rig, "2", time_ns, 2, 90), 0);
	}
	assert_int_equal(store_commit(rig->store, NULL), 0);
}

static int64_t sum_standing(struct rig *rig, int64_t from_ns, int64_t to_ns)
{
	const struct store_window w = {.service = "svc",
				       .type = TYPE_INUSE,
				       .from_ns = from_ns,
				       .to_ns = to_ns,
				       .stands = true};
	struct store_sum sum = {0};
	int64_t total;

	assert_int_equal(store_sum(rig->store, &w, &sum, NULL), 0);
	total = total_of(sum.profile) / (int64_t)sum.collections;
	profile_free(sum.profile);
	return total;
}

static void who_is_read_less_often_counts_in_between(void **state)
{
	struct store_window w = {.service = "svc",
				 .type = TYPE_INUSE,
				 .from_ns = DAY_0 + HOUR_NS,
				 .to_ns = DAY_0 + HOUR_NS + 24 * 60 * SEC_NS,
				 .stands = true};
	double points[24];
	struct rig rig;

	(void)state;
	rig_init(&rig);
	rig.now_ns = DAY_0 + 2 * HOUR_NS;
	write_stretched(&rig);
	assert_int_equal(store_series(rig.store, &w, 60 * SEC_NS, points, 24, NULL), 0);
	for (int i = 0; i < 24; i++)
		assert_true(points[i] == 91 + (i < 12 ? 5 : 0));
	/* Also in steps and windows that are shorter than the time between two of its readings. */
	w.from_ns += 2 * 60 * SEC_NS;
	w.to_ns = w.from_ns + 2 * 60 * SEC_NS;
	assert_int_equal(store_series(rig.store, &w, 60 * SEC_NS, points, 2, NULL), 0);
	assert_true(points[0] == 96 && points[1] == 96);
	/* Only what was read, for those who ask for it. */
	w.stands = false;
	assert_int_equal(store_series(rig.store, &w, 60 * SEC_NS, points, 2, NULL), 0);
	assert_true(points[0] == 6 && points[1] == 6);
	for (int packed = 0; packed < 3; packed++) {
		int64_t begin = DAY_0 + HOUR_NS;

		assert_int_equal(sum_standing(&rig, begin, begin + 24 * 60 * SEC_NS), 93);
		assert_int_equal(sum_standing(&rig, begin, begin + 12 * 60 * SEC_NS), 96);
		assert_int_equal(sum_standing(&rig, begin + 12 * 60 * SEC_NS, begin + HOUR_NS), 91);
		assert_int_equal(sum_standing(&rig, DAY_0, DAY_0 + DAY_NS), 93);
		rig.now_ns = DAY_0 + (packed ? 3 * DAY_NS : 5 * HOUR_NS);
		assert_int_equal(store_maintain(rig.store, rig.now_ns, NULL), 0);
	}
	rig_release(&rig);
}

/* Read at 1, 4, 5 of 0 to 7: the last value stands as long as the one before it did. */
static void who_is_read_irregularly_counts_to_the_end(void **state)
{
	struct rig rig;

	(void)state;
	rig_init(&rig);
	for (int i = 0; i < 8; i++) {
		int64_t time_ns = DAY_0 + i * 60 * SEC_NS;

		assert_int_equal(write_one(&rig, "0", time_ns, 3, 1), 0);
		if (i == 1 || i == 4 || i == 5)
			assert_int_equal(write_one(&rig, "2", time_ns, 2, 90), 0);
	}
	assert_int_equal(store_commit(rig.store, NULL), 0);
	assert_int_equal(sum_standing(&rig, DAY_0, DAY_0 + HOUR_NS), 91);
	rig_release(&rig);
}

/* --- what a sum costs */

static uint64_t rows_read;

static int on_row(unsigned int kind, void *ctx, void *stmt, void *unused)
{
	(void)kind, (void)ctx, (void)stmt, (void)unused;
	rows_read++;
	return 0;
}

static int count_rows(sqlite3 *db, char **message, const struct sqlite3_api_routines *api)
{
	(void)message, (void)api;
	return sqlite3_trace_v2(db, SQLITE_TRACE_ROW, on_row, NULL);
}

/* How many rows a sum reads of so many processes, each of which is read at every other time. */
static uint64_t rows_of_standing(unsigned int processes, bool packed)
{
	struct rig rig;

	rig_init(&rig);
	for (int i = 0; i < 20; i++) {
		for (unsigned int k = 0; k < processes; k++) {
			char pid[16];

			(void)snprintf(pid, sizeof(pid), "%u", k);
			if (i % 2 == (int)(k % 2))
				assert_int_equal(
					write_one(&rig, pid, DAY_0 + i * 60 * SEC_NS, k, 10), 0);
		}
	}
	assert_int_equal(store_commit(rig.store, NULL), 0);
	rig.now_ns = DAY_0 + 2 * HOUR_NS;
	if (packed)
		assert_int_equal(store_maintain(rig.store, rig.now_ns, NULL), 0);
	rows_read = 0;
	assert_int_equal(sum_standing(&rig, DAY_0, DAY_0 + HOUR_NS), processes * 10);
	rig_release(&rig);
	return rows_read;
}

static void what_stands_is_read_twice_at_most(void **state)
{
	(void)state;
	assert_int_equal(sqlite3_auto_extension((void (*)(void))(uintptr_t)count_rows), SQLITE_OK);
	for (int packed = 0; packed < 2; packed++) {
		uint64_t few = rows_of_standing(10, packed), many = rows_of_standing(40, packed);

		if (many > few * 6)
			fail_msg("%llu rows of 10 processes, %llu of 40", (unsigned long long)few,
				 (unsigned long long)many);
	}
	sqlite3_reset_auto_extension();
}

/* One native function without a file, of this library. */
static void write_native(struct rig *rig, int64_t time_ns, const char *library, int64_t value)
{
	struct profile *p = make_profile();
	const int64_t values[] = {value, 0};
	struct profile_mapping m = {0};
	struct profile_function f = {0};
	struct profile_line line = {0};
	uint32_t mapping, location, stack;

	assert_int_equal(profile_add_string(p, view_str(library), &m.file), 0);
	assert_int_equal(profile_add_mapping(p, &m, &mapping), 0);
	assert_int_equal(profile_add_string(p, view_str("init"), &f.name), 0);
	assert_int_equal(profile_add_function(p, &f, &line.function), 0);
	assert_int_equal(profile_add_location(p, 0x10, mapping, &line, 1, &location), 0);
	assert_int_equal(profile_add_stack(p, &location, 1, &stack), 0);
	assert_int_equal(profile_add_sample(p, stack, values, NULL, 0), 0);
	assert_int_equal(write_profile(rig, "svc", "1", time_ns, p, NULL), 0);
	profile_free(p);
}

static int64_t value_of_module(const struct profile *p, const char *module)
{
	int64_t value = 0;

	for (size_t i = 0; i < profile_n_samples(p); i++) {
		const struct profile_sample *s = profile_sample_at(p, i);
		uint32_t n;
		const uint32_t *locations = profile_stack_at(p, s->stack, &n);

		assert_int_equal(n, 1);
		if (view_eq(profile_module(p, profile_location_at(p, locations[0])->mapping),
			    view_str(module)))
			value += s->values[0];
	}
	return value;
}

/* Over two days, a restart between them, and merged dictionaries. */
static void libraries_come_back_and_tell_functions_apart(void **state)
{
	struct store_sum sum = {0};
	struct rig rig;

	(void)state;
	rig_init(&rig);
	for (int day = 0; day < 2; day++) {
		rig.now_ns = DAY_0 + day * DAY_NS;
		write_native(&rig, rig.now_ns + 15 * SEC_NS, "/usr/lib/libc.so.6", 1);
		assert_int_equal(store_commit(rig.store, NULL), 0);
		rig_reopen(&rig);
		write_native(&rig, rig.now_ns + 30 * SEC_NS, "/opt/x/libz.so.1", 10);
		write_native(&rig, rig.now_ns + 45 * SEC_NS, "/usr/lib/libc.so.6", 100);
		assert_int_equal(store_commit(rig.store, NULL), 0);
	}
	for (int round = 0; round < 2; round++) {
		sum_of(&rig, "svc", TYPE_ALLOC, 0, INT64_MAX, &sum);
		assert_int_equal(profile_n_samples(sum.profile), 2);
		assert_int_equal(profile_n_mappings(sum.profile), 2);
		assert_int_equal(value_of_module(sum.profile, "libc.so.6"), 202);
		assert_int_equal(value_of_module(sum.profile, "libz.so.1"), 20);
		profile_free(sum.profile);
		/* Packed, and rolled up. */
		rig.now_ns = DAY_0 + 3 * DAY_NS;
		assert_int_equal(store_maintain(rig.store, rig.now_ns, NULL), 0);
	}
	rig_release(&rig);
}

static double total_of_value(const struct store_label_total *totals, size_t n, const char *value)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(totals[i].value, value) == 0)
			return totals[i].total;
	return NAN;
}

static void labels_have_the_totals_of_their_sums(void **state)
{
	const struct label filter = {"process.pid", "22"};
	struct store_window w = {
		.service = "svc", .type = TYPE_ALLOC, .from_ns = DAY_0, .to_ns = DAY_0 + HOUR_NS};
	struct store_label_total *totals;
	struct rig rig;
	size_t n;

	(void)state;
	rig_init(&rig);
	assert_int_equal(write_one(&rig, "11", DAY_0 + 15 * SEC_NS, 1, 5), 0);
	assert_int_equal(write_one(&rig, "22", DAY_0 + 15 * SEC_NS, 1, 70), 0);
	assert_int_equal(write_one(&rig, "11", DAY_0 + 30 * SEC_NS, 2, 8), 0);
	assert_int_equal(write_one(&rig, "11", DAY_0 + 2 * HOUR_NS, 2, 1000), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	assert_int_equal(store_label_totals(rig.store, &w, "process.pid", &totals, &n, NULL), 0);
	assert_int_equal(n, 2);
	assert_true(total_of_value(totals, n, "11") == 13);
	assert_true(total_of_value(totals, n, "22") == 70);
	free(totals);
	assert_int_equal(store_label_totals(rig.store, &w, "no.such", &totals, &n, NULL), 0);
	assert_int_equal(n, 0);
	free(totals);
	w.filters = &filter;
	w.n_filters = 1;
	assert_int_equal(store_label_totals(rig.store, &w, "host.name", &totals, &n, NULL), 0);
	assert_int_equal(n, 1);
	assert_true(total_of_value(totals, n, "here") == 70);
	free(totals);
	rig_release(&rig);
}

static void streams_are_listed_with_their_times(void **state)
{
	struct store_stream *streams;
	struct rig rig;
	size_t n;

	(void)state;
	rig_init(&rig);
	assert_int_equal(write_one(&rig, "1", DAY_0 + 15 * SEC_NS, 1, 10), 0);
	rig.now_ns += DAY_NS;
	assert_int_equal(write_one(&rig, "1", DAY_0 + DAY_NS, 1, 10), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	assert_int_equal(store_streams(rig.store, 0, INT64_MAX, &streams, &n, NULL), 0);
	assert_int_equal(n, 2);
	assert_string_equal(streams[0].type, TYPE_ALLOC);
	assert_string_equal(streams[1].type, TYPE_INUSE);
	assert_true(!streams[0].snapshot && streams[1].snapshot);
	assert_int_equal(streams[0].first_ns, DAY_0 + 15 * SEC_NS);
	assert_int_equal(streams[0].last_ns, DAY_0 + DAY_NS);
	free(streams);
	assert_int_equal(store_streams(rig.store, 0, DAY_0, &streams, &n, NULL), 0);
	assert_int_equal(n, 0);
	free(streams);
	rig_release(&rig);
}

static void an_empty_store_gives_empty_answers(void **state)
{
	struct store_status status;
	struct store_sum sum = {0};
	struct store_stream *streams;
	struct rig rig;
	double point;
	size_t n;

	(void)state;
	rig_init(&rig);
	sum_of(&rig, "svc", TYPE_ALLOC, 0, INT64_MAX, &sum);
	assert_int_equal(profile_n_samples(sum.profile), 0);
	assert_int_equal(profile_find_type(sum.profile, "alloc_space"), 0);
	profile_free(sum.profile);
	assert_int_equal(store_streams(rig.store, 0, INT64_MAX, &streams, &n, NULL), 0);
	assert_int_equal(n, 0);
	free(streams);
	assert_int_equal(
		store_series(rig.store,
			     &(struct store_window){.service = "x", .type = "y", .to_ns = 9}, 9,
			     &point, 1, NULL),
		0);
	assert_true(isnan(point));
	assert_int_equal(store_commit(rig.store, NULL), 0);
	assert_int_equal(store_maintain(rig.store, DAY_0, NULL), 0);
	store_status(rig.store, &status);
	assert_true(status.writing && status.days == 0 && status.trouble[0] == 0);
	rig_release(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_equal_a_plain_model_through_packs_and_rollups),
		cmocka_unit_test(same_time_and_process_add_up),
		cmocka_unit_test(a_late_collection_after_the_rollup_counts),
		cmocka_unit_test(stacks_past_the_limit_are_other_and_reported),
		cmocka_unit_test(label_sets_past_the_limit_still_add_up),
		cmocka_unit_test(series_sum_deltas_and_average_snapshots),
		cmocka_unit_test(who_is_read_less_often_counts_in_between),
		cmocka_unit_test(who_is_read_irregularly_counts_to_the_end),
		cmocka_unit_test(what_stands_is_read_twice_at_most),
		cmocka_unit_test(libraries_come_back_and_tell_functions_apart),
		cmocka_unit_test(labels_have_the_totals_of_their_sums),
		cmocka_unit_test(streams_are_listed_with_their_times),
		cmocka_unit_test(an_empty_store_gives_empty_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
