/* tests/unit/store/test_curve.c: a function over time is what a sum for each step says. */
#include "test_model.h"

#include <errno.h>
#include <math.h>

#define MAX_STEPS 400
#define N_STACKS 40

static const char *const pids[] = {"11", "22", "33", "44"};
static const char *const names[] = {"main.main", "step_3", "work_5", "work_38", "nosuch"};

static uint64_t seed = 42;

static uint64_t draw(uint64_t below)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (seed >> 33) % below;
}

struct steps {
	double self[MAX_STEPS];
	double total[MAX_STEPS];
	uint8_t unread[MAX_STEPS];
	uint64_t damaged;
};

static void curve_of(struct rig *rig, struct store_window w, const char *name, int64_t step_ns,
		     struct steps *ret)
{
	const struct store_function function = {.name = name};
	const struct store_curve curve = {
		.step_ns = step_ns,
		.n = (size_t)((w.to_ns - w.from_ns + step_ns - 1) / step_ns),
		.self = ret->self,
		.total = ret->total,
		.unread = ret->unread,
	};
	struct err err = {};

	assert_true(curve.n <= MAX_STEPS);
	ret->damaged = 0;
	w.damaged = &ret->damaged;
	if (store_curve(rig->store, &w, &function, &curve, &err) < 0)
		fail_msg("%s", err.text);
}

static bool is_named(const struct profile *p, uint32_t location, const char *name)
{
	const struct profile_line *l = profile_location_at(p, location)->lines;

	return strcmp(profile_cstring(p, profile_function_at(p, l->function)->name), name) == 0;
}

/* The same from the sum of one step: values[0] is self, values[1] total. */
static void sum_step(struct rig *rig, const struct store_window *w, const char *name,
		     double *values)
{
	struct store_sum sum = {0};
	struct err err = {};

	values[0] = values[1] = 0;
	if (store_sum(rig->store, w, &sum, &err) < 0)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < profile_n_samples(sum.profile); i++) {
		const struct profile_sample *s = profile_sample_at(sum.profile, i);
		bool in = false;
		uint32_t n;
		const uint32_t *locations = profile_stack_at(sum.profile, s->stack, &n);

		for (uint32_t k = 0; k < n; k++)
			in |= is_named(sum.profile, locations[k], name);
		values[0] += is_named(sum.profile, locations[0], name) ? (double)s->values[0] : 0;
		values[1] += in ? (double)s->values[0] : 0;
	}
	for (size_t k = 0; k < 2 && sum.snapshot && sum.collections; k++)
		values[k] /= (double)sum.collections;
	profile_free(sum.profile);
}

static void check_curve(struct rig *rig, struct store_window w, const char *name, int64_t step_ns)
{
	static double points[MAX_STEPS];
	static struct steps steps;
	size_t n = (size_t)((w.to_ns - w.from_ns + step_ns - 1) / step_ns);

	curve_of(rig, w, name, step_ns, &steps);
	assert_int_equal(steps.damaged, 0);
	assert_int_equal(store_series(rig->store, &w, step_ns, points, n, NULL), 0);
	for (size_t i = 0; i < n; i++) {
		struct store_window step = w;
		double want[2];

		assert_false(steps.unread[i]);
		assert_int_equal(isnan(points[i]), isnan(steps.total[i]));
		assert_int_equal(isnan(points[i]), isnan(steps.self[i]));
		if (isnan(points[i]))
			continue;
		step.from_ns = w.from_ns + (int64_t)i * step_ns;
		step.to_ns = MIN(step.from_ns + step_ns, w.to_ns);
		sum_step(rig, &step, name, want);
		assert_true(steps.self[i] == want[0]);
		assert_true(steps.total[i] == want[1]);
	}
}

static void check_curves(struct rig *rig)
{
	for (int i = 0; i < 10; i++) {
		const struct label filter = {"process.pid", pids[draw(4)]};
		struct store_window w = {
			.service = "svc",
			.type = i % 2 ? TYPE_INUSE : TYPE_ALLOC,
			.from_ns = DAY_0 + (int64_t)draw(2 * 86400) * SEC_NS + (int64_t)draw(999),
			.filters = &filter,
			.n_filters = draw(2),
		};
		int64_t step = (int64_t)(600 + draw(7200)) * SEC_NS;

		w.to_ns = w.from_ns + (int64_t)(1 + draw(30)) * step - (int64_t)draw(step / 2);
		check_curve(rig, w, names[draw(ARRAY_SIZE(names))], step);
	}
}

/* Random values of random stacks; some values zero or negative. */
static void write_random(struct rig *rig, int64_t time_ns)
{
	struct profile *p = make_profile();
	struct err err = {};

	for (size_t i = draw(12); i > 0; i--)
		add_stack(p, (unsigned int)draw(N_STACKS),
			  (int64_t)draw(5) * 16 * (draw(20) ? 1 : -1),
			  (int64_t)draw(1000000) - 1000);
	if (write_profile(rig, "svc", pids[draw(4)], time_ns, p, &err) < 0)
		fail_msg("%s", err.text);
	profile_free(p);
}

static void curves_equal_the_sums_of_their_steps(void **state)
{
	struct rig rig;

	(void)state;
	rig_init(&rig);
	for (int i = 0; i < 500; i++) {
		int64_t late = draw(8) ? 0 : (int64_t)draw(5400) * SEC_NS;

		rig.now_ns = DAY_0 + (int64_t)i * (2 * DAY_NS / 500) / SEC_NS * SEC_NS;
		write_random(&rig, MAX(rig.now_ns - late, DAY_0 + SEC_NS));
		if (i % 50 == 49)
			assert_int_equal(store_maintain(rig.store, rig.now_ns, NULL), 0);
		if (i % 200 == 199) {
			assert_int_equal(store_commit(rig.store, NULL), 0);
			check_curves(&rig);
		}
	}
	assert_int_equal(store_commit(rig.store, NULL), 0);
	check_curves(&rig);
	/* Packed and rolled up. */
	assert_int_equal(store_maintain(rig.store, DAY_0 + 5 * DAY_NS, NULL), 0);
	check_curves(&rig);
	rig_reopen(&rig);
	check_curves(&rig);
	rig_release(&rig);
}

static struct store_window hours(const char *type, int n)
{
	return (struct store_window){.service = "svc",
				     .type = type,
				     .from_ns = DAY_0,
				     .to_ns = DAY_0 + n * HOUR_NS,
				     .stands = true};
}

static void a_function_in_all_stacks_has_the_curve_of_the_type(void **state)
{
	struct store_window w = hours(TYPE_INUSE, 2);
	struct steps steps;
	double points[40];
	struct rig rig;

	(void)state;
	rig_init(&rig);
	for (int i = 0; i < 40; i++) {
		int64_t time_ns = DAY_0 + i * 180 * SEC_NS + SEC_NS;

		assert_int_equal(write_one(&rig, "0", time_ns, 3, 1), 0);
		if (i % 3 == 1)
			assert_int_equal(write_one(&rig, "2", time_ns, 2, 90 + i), 0);
	}
	assert_int_equal(store_commit(rig.store, NULL), 0);
	for (int packed = 0; packed < 2; packed++) {
		assert_int_equal(store_series(rig.store, &w, 180 * SEC_NS, points, 40, NULL), 0);
		curve_of(&rig, w, "main.main", 180 * SEC_NS, &steps);
		for (int i = 0; i < 40; i++) {
			assert_true(points[i] > 90 && steps.total[i] == points[i]);
			assert_true(steps.self[i] == 0);
		}
		/* It stands where its process was not read. */
		curve_of(&rig, w, "work_2", 180 * SEC_NS, &steps);
		for (int i = 0; i < 40; i++)
			assert_true(steps.self[i] == points[i] - 1);
		rig.now_ns = DAY_0 + 5 * HOUR_NS;
		assert_int_equal(store_maintain(rig.store, rig.now_ns, NULL), 0);
	}
	rig_release(&rig);
}

static void a_recursive_function_counts_once(void **state)
{
	const struct store_function by_file = {.name = "walk", .file = "b.go"};
	struct steps steps;
	const struct store_curve curve = {.step_ns = HOUR_NS,
					  .n = 1,
					  .self = steps.self,
					  .total = steps.total,
					  .unread = steps.unread};
	const int64_t values[] = {10, 10};
	struct profile *p = make_profile();
	struct store_window w = hours(TYPE_ALLOC, 1);
	uint32_t locations[3], id;
	struct rig rig;

	(void)state;
	rig_init(&rig);
	locations[0] = add_location(p, "walk", "a.go", 5);
	locations[1] = add_location(p, "visit", "a.go", 9);
	locations[2] = add_location(p, "walk", "b.go", 6);
	assert_int_equal(profile_add_stack(p, locations, 3, &id), 0);
	assert_int_equal(profile_add_sample(p, id, values, NULL, 0), 0);
	assert_int_equal(write_profile(&rig, "svc", "1", DAY_0 + SEC_NS, p, NULL), 0);
	profile_free(p);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	curve_of(&rig, w, "walk", HOUR_NS, &steps);
	assert_true(steps.self[0] == 10 && steps.total[0] == 10);
	/* Of two functions of this name, one. */
	assert_int_equal(store_curve(rig.store, &w, &by_file, &curve, NULL), 0);
	assert_true(steps.self[0] == 0 && steps.total[0] == 10);
	rig_release(&rig);
}

static void what_is_past_the_limit_has_a_curve_of_its_own(void **state)
{
	struct store_window w = hours(TYPE_ALLOC, 1);
	struct steps steps;
	struct rig rig;

	(void)state;
	rig_init(&rig);
	store_close(rig.store);
	rig.config.max_stacks = 2;
	rig_open(&rig);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(write_one(&rig, "1", DAY_0 + SEC_NS, i, 1 << i), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	curve_of(&rig, w, "(other)", HOUR_NS, &steps);
	assert_true(steps.self[0] == 12 && steps.total[0] == 12);
	rig_release(&rig);
}

static void a_damaged_hour_is_a_gap_and_not_less(void **state)
{
	struct store_window w = hours(TYPE_ALLOC, 3);
	struct steps steps;
	struct rig rig;
	sqlite3 *db;

	(void)state;
	rig_init(&rig);
	for (int hour = 0; hour < 3; hour++) {
		int64_t time_ns = DAY_0 + hour * HOUR_NS + SEC_NS;

		rig.now_ns = time_ns;
		assert_int_equal(write_one(&rig, "1", time_ns, 1, 10), 0);
		assert_int_equal(write_one(&rig, "2", time_ns, 1, 5), 0);
	}
	assert_int_equal(store_commit(rig.store, NULL), 0);
	rig.now_ns = DAY_0 + 30 * HOUR_NS;
	assert_int_equal(store_maintain(rig.store, rig.now_ns, NULL), 0);
	curve_of(&rig, w, "work_1", HOUR_NS, &steps);
	for (int i = 0; i < 3; i++)
		assert_true(steps.self[i] == 15);
	store_close(rig.store);
	db = open_day(rig_day(&rig, "2024-10-04"));
	/* One process of the second hour. */
	assert_int_equal(sqlite3_exec(db,
				      "UPDATE pack SET data=zeroblob(20) WHERE k IN (SELECT k FROM "
				      "pack WHERE (k>>28)&31=1 AND k>>33=(SELECT id FROM stream "
				      "WHERE type='" TYPE_ALLOC "') LIMIT 1)",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_changes(db), 1);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	rig_open(&rig);
	curve_of(&rig, w, "work_1", HOUR_NS, &steps);
	assert_true(steps.self[0] == 15 && steps.self[2] == 15);
	assert_true(isnan(steps.self[1]) && isnan(steps.total[1]));
	assert_true(!steps.unread[0] && steps.unread[1] && !steps.unread[2]);
	assert_int_equal(steps.damaged, 1);
	rig_release(&rig);
}

static void a_curve_without_steps_is_refused(void **state)
{
	const struct store_function function = {.name = "f"};
	const struct store_window w = hours(TYPE_ALLOC, 1);
	struct store_curve curve = {.n = 1};
	struct err err = {};
	struct rig rig;

	(void)state;
	rig_init(&rig);
	assert_int_equal(store_curve(rig.store, &w, &function, &curve, &err), -EINVAL);
	rig_release(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(curves_equal_the_sums_of_their_steps),
		cmocka_unit_test(a_function_in_all_stacks_has_the_curve_of_the_type),
		cmocka_unit_test(a_recursive_function_counts_once),
		cmocka_unit_test(what_is_past_the_limit_has_a_curve_of_its_own),
		cmocka_unit_test(a_damaged_hour_is_a_gap_and_not_less),
		cmocka_unit_test(a_curve_without_steps_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
