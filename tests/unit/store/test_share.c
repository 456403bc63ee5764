/*
 * tests/unit/store/test_share.c: budgets of services and owners, and who has to give way where the
 * disk is full.
 */
#include "test_metrics.h"

#include <errno.h>

#include "store/sqlite/share.h"

static struct store_status status_of(const struct rig *rig)
{
	struct store_status status;

	store_status(rig->store, &status);
	return status;
}

/* --- who gives way */

static void rig_init_limited(struct rig *rig, uint64_t max_bytes)
{
	rig_init(rig);
	store_close(rig->store);
	rig->config.max_bytes = max_bytes;
	rig_open(rig);
}

static void the_owner_with_most_above_its_share_gives_way(void **state)
{
	struct store_share shares[] = {
		{.file = 0, .service = 1, .uid = 0, .name = 10, .bytes = 200},
		{.file = 1, .service = 1, .uid = 0, .name = 10, .bytes = 200},
		{.file = 1, .service = 2, .uid = 65534, .name = 20, .bytes = 700},
	};
	struct store_share_verdict v = store_share_judge(shares, 3, 1000);

	(void)state;
	assert_int_equal(v.uid, 65534);
	assert_int_equal(v.share, 500);
	assert_int_not_equal(v.kind, STORE_SHARE_DAY);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(store_share_concerns(&v, &shares[i]), shares[i].uid == 65534);
}

static void nobody_above_its_share_means_the_oldest_day(void **state)
{
	struct store_share shares[] = {
		{.file = 0, .service = 1, .uid = 0, .name = 10, .bytes = 480},
		{.file = 1, .service = 2, .uid = 1000, .name = 20, .bytes = 490},
	};

	(void)state;
	/* Files have more in them than rows. */
	assert_int_equal(store_share_judge(shares, 2, 1000).kind, STORE_SHARE_DAY);
	assert_int_equal(store_share_judge(shares, 0, 1000).kind, STORE_SHARE_DAY);
}

static void a_service_far_beyond_the_others_gives_way_alone(void **state)
{
	struct store_share shares[40];
	struct store_share_verdict v;

	(void)state;
	for (size_t i = 0; i < 40; i++)
		shares[i] = (struct store_share){.file = i / 20,
						 .service = 1 + (uint32_t)i % 20,
						 .name = 100 + i % 20,
						 .bytes = i % 20 == 7 ? 350 : 10};
	v = store_share_judge(shares, 40, 1000);
	assert_int_equal(v.kind, STORE_SHARE_SERVICE);
	assert_int_equal(v.name, 107);
	/* Among equals, a single owner's oldest day goes. */
	for (size_t i = 0; i < 40; i++)
		shares[i].bytes = 30;
	assert_int_equal(store_share_judge(shares, 40, 1000).kind, STORE_SHARE_DAY);
}

/* --- budgets */

/* n stacks of their own with long names, of one process. */
static void write_names(struct rig *rig, const char *service, unsigned int first, unsigned int n,
			int64_t time_ns)
{
	struct profile *p = make_profile();
	struct err err = {};

	for (unsigned int i = first; i < first + n; i++) {
		const int64_t values[] = {1, 1};
		uint32_t location, id;
		char name[512];

		memset(name, 'x', sizeof(name));
		(void)snprintf(name, sizeof(name), "%s %u ", service, i);
		name[strlen(name)] = 'y';
		name[sizeof(name) - 1] = '\0';
		location = add_location(p, name, "file.c", 1);
		assert_int_equal(profile_add_stack(p, &location, 1, &id), 0);
		assert_int_equal(profile_add_sample(p, id, values, NULL, 0), 0);
	}
	if (write_profile(rig, service, "1", time_ns, p, &err) < 0)
		fail_msg("%s", err.text);
	profile_free(p);
}

static int64_t other_of(struct rig *rig, const char *service)
{
	struct store_sum sum = {0};

	sum_of(rig, service, TYPE_ALLOC, 0, INT64_MAX, &sum);
	profile_free(sum.profile);
	return sum.other;
}

static void names_over_the_budget_are_other_counted_and_said(void **state)
{
	struct rig rig;

	(void)state;
	rig_init(&rig);
	store_close(rig.store);
	/* A sixteenth of it for the names of a service, an eighth for those of its owner. */
	rig.config.max_bytes = 16 << 20;
	rig.uid = 65534;
	rig_open(&rig);
	write_names(&rig, "flood", 0, 3000, DAY_0 + SEC_NS);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	assert_in_range(other_of(&rig, "flood"), 900, 1100);
	assert_int_equal(status_of(&rig).over_budget, other_of(&rig, "flood"));
	assert_non_null(strstr(status_of(&rig).budget, "flood (uid 65534)"));
	/* Not anew after a restart. */
	rig_reopen(&rig);
	write_names(&rig, "flood", 10000, 500, DAY_0 + 2 * SEC_NS);
	assert_int_equal(status_of(&rig).over_budget, 500);
	/* The owner has as much again for its other services, and then no more. */
	write_names(&rig, "flood2", 0, 1900, DAY_0 + 2 * SEC_NS);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	assert_int_equal(other_of(&rig, "flood2"), 0);
	write_names(&rig, "flood3", 0, 500, DAY_0 + 2 * SEC_NS);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	assert_in_range(other_of(&rig, "flood3"), 200, 500);
	/* Others have theirs. */
	rig.uid = 0;
	write_names(&rig, "mine", 0, 1000, DAY_0 + 2 * SEC_NS);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	assert_int_equal(other_of(&rig, "mine"), 0);
	rig_release(&rig);
}

static void services_over_the_budget_of_their_owner_are_one(void **state)
{
	struct store_stream *streams = NULL;
	struct rig rig;
	size_t n = 0, mine = 0;
	char name[32];

	(void)state;
	rig_init(&rig);
	rig.uid = 65534;
	for (int i = 0; i < 4100; i++) {
		struct metric_point point = {.metric = &test_live, .value = 1};

		(void)snprintf(name, sizeof(name), "made-up-%d", i);
		assert_int_equal(write_points(&rig, name, "1", DAY_0, &point, 1), 0);
	}
	rig.uid = 0;
	assert_int_equal(write_one(&rig, "1", DAY_0, 1, 5), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	assert_int_equal(total_all(&rig), 5);
	assert_true(status_of(&rig).over_budget >= 100);
	assert_int_equal(store_streams(rig.store, 0, INT64_MAX, &streams, &n, NULL), 0);
	for (size_t i = 0; i < n; i++)
		mine += strcmp(streams[i].service, "(other) (uid 65534)") == 0;
	assert_int_equal(mine, 1);
	free(streams);
	rig_release(&rig);
}

static void label_sets_of_one_service_do_not_use_up_those_of_others(void **state)
{
	struct store_labelset *sets = NULL;
	struct rig rig;
	struct err err = {};
	struct profile *p = make_profile();
	char pid[16];
	size_t n = 0;

	(void)state;
	rig_init(&rig);
	store_close(rig.store);
	rig.config.max_labelsets = 50;
	rig_open(&rig);
	for (int i = 0; i < 100; i++) {
		(void)snprintf(pid, sizeof(pid), "%d", i);
		assert_int_equal(write_one(&rig, pid, DAY_0, 1, 1), 0);
	}
	add_stack(p, 1, 1, 1);
	for (int i = 0; i < 40; i++) {
		(void)snprintf(pid, sizeof(pid), "%d", i);
		assert_int_equal(write_profile(&rig, "quiet", pid, DAY_0, p, &err), 0);
	}
	profile_free(p);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	assert_int_equal(store_labelsets(rig.store, "quiet", 0, INT64_MAX, &sets, &n, NULL), 0);
	assert_int_equal(n, 40);
	free(sets);
	assert_int_equal(status_of(&rig).over_budget, 50);
	assert_int_equal(total_all(&rig), 100);
	rig_release(&rig);
}

/* --- the disk is full */

static int64_t total_of_service(struct rig *rig, const char *service, int64_t from_ns,
				int64_t to_ns)
{
	struct store_sum sum = {0};
	int64_t total;

	sum_of(rig, service, TYPE_ALLOC, from_ns, to_ns, &sum);
	total = total_of(sum.profile);
	profile_free(sum.profile);
	return total;
}

/* Values that do not compress: about 40 kB of disk for each call. */
static int write_bulk(struct rig *rig, const char *service, int64_t time_ns, uint32_t *seed)
{
	struct profile *p = make_profile();
	struct err err = {};
	int r;

	for (unsigned int i = 0; i < 1500; i++) {
		*seed = *seed * 1664525 + 1013904223;
		add_stack(p, i, 1 + (*seed >> 4), 1 + (*seed * 7 >> 5));
	}
	r = write_profile(rig, service, "1", time_ns, p, &err);
	profile_free(p);
	return r;
}

static void a_flood_of_one_owner_erases_nobody_elses_history(void **state)
{
	struct store_status status;
	struct rig rig;
	uint32_t seed = 1;

	(void)state;
	rig_init_limited(&rig, 6 << 20);
	/* Three days of root's. */
	for (int day = 0; day < 3; day++) {
		rig.now_ns = DAY_0 + day * DAY_NS + HOUR_NS;
		for (int i = 0; i < 10; i++)
			assert_int_equal(write_one(&rig, "1", rig.now_ns + i * SEC_NS, 1, 1), 0);
		assert_int_equal(store_commit(rig.store, NULL), 0);
		assert_int_equal(store_maintain(rig.store, rig.now_ns, NULL), 0);
	}
	/* Then somebody else writes far more than there is room for, all day long. */
	for (int i = 0; i < 22 * 60; i += 2) {
		rig.now_ns = DAY_0 + 2 * DAY_NS + HOUR_NS + i * 60 * SEC_NS;
		rig.uid = 65534;
		(void)write_bulk(&rig, "flood", rig.now_ns, &seed);
		rig.uid = 0;
		if (i % 60 == 0)
			assert_int_equal(write_one(&rig, "1", rig.now_ns + SEC_NS, 1, 1), 0);
		assert_int_equal(store_commit(rig.store, NULL), 0);
		if (i % 60 == 0)
			assert_int_equal(store_maintain(rig.store, rig.now_ns, NULL), 0);
	}
	store_status(rig.store, &status);
	assert_int_equal(status.days, 3);
	assert_int_equal(total_of_service(&rig, "svc", 0, INT64_MAX), 30 + 22);
	assert_true(status.bytes_on_disk <= rig.config.max_bytes + (2 << 20));
	assert_non_null(strstr(status.budget, "uid 65534"));
	/* Its newest is there, its oldest is not. */
	assert_int_equal(total_of_service(&rig, "flood", 0, DAY_0 + 2 * DAY_NS + 2 * HOUR_NS), 0);
	assert_true(total_of_service(&rig, "flood", rig.now_ns - HOUR_NS, INT64_MAX) > 0);
	rig_release(&rig);
}

static void an_owner_too_large_by_the_current_hour_is_refused_alone(void **state)
{
	struct store_status status;
	struct rig rig;
	uint32_t seed = 1;
	int refused = 0;

	(void)state;
	rig_init_limited(&rig, 3 << 20);
	for (int i = 0; i < 300; i++) {
		rig.now_ns = DAY_0 + HOUR_NS + i * SEC_NS;
		rig.uid = 65534;
		refused += write_bulk(&rig, "flood", rig.now_ns, &seed) == -ENOSPC;
		rig.uid = 0;
		assert_int_equal(write_one(&rig, "1", rig.now_ns, 1, 1), 0);
		assert_int_equal(store_commit(rig.store, NULL), 0);
	}
	store_status(rig.store, &status);
	assert_true(refused > 0 && status.writing);
	assert_non_null(strstr(status.trouble, "uid 65534"));
	assert_non_null(strstr(status.trouble, "--max-disk"));
	assert_int_equal(status.profiles_lost, refused);
	assert_int_equal(total_all(&rig), 300);
	/* An hour later there is room again. */
	rig.now_ns += HOUR_NS;
	assert_int_equal(store_maintain(rig.store, rig.now_ns, NULL), 0);
	rig.uid = 65534;
	assert_int_equal(write_bulk(&rig, "flood", rig.now_ns, &seed), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	assert_string_equal(status_of(&rig).trouble, "");
	rig_release(&rig);
}

/* Each of them is above its share by what it writes in one hour. */
static void several_owners_too_large_by_the_current_hour_stay_within_the_disk(void **state)
{
	struct store_status status;
	struct rig rig;
	uint32_t seed = 1;

	(void)state;
	rig_init_limited(&rig, 4 << 20);
	for (int i = 0; i < 300; i++) {
		rig.now_ns = DAY_0 + HOUR_NS + i * SEC_NS;
		for (rig.uid = 1; rig.uid <= 3; rig.uid++) {
			char service[16];

			(void)snprintf(service, sizeof(service), "flood%u", rig.uid);
			(void)write_bulk(&rig, service, rig.now_ns, &seed);
		}
		rig.uid = 0;
		assert_int_equal(write_one(&rig, "1", rig.now_ns, 1, 1), 0);
		assert_int_equal(store_commit(rig.store, NULL), 0);
		if (i % 10 == 0)
			assert_int_equal(store_maintain(rig.store, rig.now_ns, NULL), 0);
	}
	store_status(rig.store, &status);
	assert_true(status.bytes_on_disk <= rig.config.max_bytes + (2 << 20));
	assert_true(status.writing);
	assert_int_equal(total_all(&rig), 300);
	rig_release(&rig);
}

static void what_was_set_aside_goes_before_the_rest_of_its_day(void **state)
{
	struct rig rig;
	uint32_t seed = 1;
	char from[160], to[192];

	(void)state;
	rig_init(&rig);
	rig.now_ns = DAY_0;
	for (int i = 0; i < 60; i++)
		assert_int_equal(write_bulk(&rig, "svc", rig.now_ns + i * SEC_NS, &seed), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	store_close(rig.store);
	(void)snprintf(from, sizeof(from), "%s", rig_day(&rig, "2024-10-04"));
	(void)snprintf(to, sizeof(to), "%s.damaged-1", from);
	assert_int_equal(rename(from, to), 0);
	rig.config.max_bytes = 2 << 20;
	rig_open(&rig);
	for (int i = 0; i < 80; i++) {
		rig.now_ns = DAY_0 + (i / 20 + 1) * HOUR_NS + i * SEC_NS;
		assert_int_equal(write_bulk(&rig, "svc", rig.now_ns, &seed), 0);
		assert_int_equal(store_commit(rig.store, NULL), 0);
	}
	assert_int_equal(access(to, F_OK), -1);
	assert_true(total_of_service(&rig, "svc", DAY_0 + HOUR_NS, DAY_0 + 2 * HOUR_NS) > 0);
	assert_string_equal(status_of(&rig).trouble, "");
	rig_release(&rig);
}

static void a_flood_erases_nobody_elses_part_of_what_was_set_aside(void **state)
{
	struct rig rig;
	uint32_t seed = 1;
	char from[160], to[192];

	(void)state;
	rig_init(&rig);
	rig.now_ns = DAY_0;
	assert_int_equal(write_one(&rig, "1", rig.now_ns, 1, 1), 0);
	rig.uid = 65534;
	assert_int_equal(write_bulk(&rig, "flood", rig.now_ns, &seed), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	store_close(rig.store);
	(void)snprintf(from, sizeof(from), "%s", rig_day(&rig, "2024-10-04"));
	(void)snprintf(to, sizeof(to), "%s.damaged-1", from);
	assert_int_equal(rename(from, to), 0);
	rig.config.max_bytes = 2 << 20;
	rig_open(&rig);
	for (int i = 0; i < 200; i++) {
		rig.now_ns = DAY_0 + DAY_NS + i * 5 * 60 * SEC_NS;
		assert_int_equal(write_bulk(&rig, "flood", rig.now_ns, &seed), 0);
		assert_int_equal(store_commit(rig.store, NULL), 0);
	}
	assert_non_null(strstr(status_of(&rig).budget, "uid 65534"));
	assert_int_equal(total_all(&rig), 1);
	rig_release(&rig);
}

static void the_log_of_today_pushes_out_no_day(void **state)
{
	struct rig rig;
	uint32_t seed = 1;

	(void)state;
	rig_init_limited(&rig, 2 << 20);
	assert_int_equal(write_one(&rig, "1", DAY_0, 1, 1), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	for (int i = 0; i < 60; i++) {
		rig.now_ns = DAY_0 + DAY_NS + i * SEC_NS;
		assert_int_equal(write_bulk(&rig, "bulk", rig.now_ns, &seed), 0);
		assert_int_equal(store_commit(rig.store, NULL), 0);
	}
	assert_int_equal(total_all(&rig), 1);
	rig_release(&rig);
}

/* SQLite rolls a transaction back by itself if the disk is full. */
static void an_interval_after_making_room_failed_is_still_one_transaction(void **state)
{
	struct rig rig;
	uint32_t seed = 1;
	sqlite3 *db;
	int r = 0;

	(void)state;
	rig_init_limited(&rig, 3 << 20);
	rig.now_ns = DAY_0 + HOUR_NS;
	assert_int_equal(write_one(&rig, "1", rig.now_ns, 1, 1), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	db = open_day(rig_day(&rig, "2024-10-04"));
	assert_int_equal(sqlite3_exec(db,
				      "CREATE TRIGGER fails BEFORE DELETE ON point BEGIN"
				      " SELECT RAISE(ROLLBACK, 'no space'); END",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	rig.now_ns += HOUR_NS;
	for (int i = 0; r == 0 && i < 200; i++) {
		rig.now_ns += 2 * 60 * SEC_NS;
		assert_int_equal(write_bulk(&rig, "svc", rig.now_ns, &seed), 0);
		r = store_commit(rig.store, NULL);
	}
	assert_true(r < 0);
	assert_int_equal(sqlite3_exec(db, "DROP TRIGGER fails", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	assert_int_equal(total_of_service(&rig, "after", 0, INT64_MAX), 0);
	assert_int_equal(write_bulk(&rig, "after", rig.now_ns, &seed), 0);
	/* Nobody sees it before it is whole. */
	assert_int_equal(total_of_service(&rig, "after", 0, INT64_MAX), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	assert_true(total_of_service(&rig, "after", 0, INT64_MAX) > 0);
	rig_release(&rig);
}

/* A clock that was ahead for a while has left a later day. */
static void a_day_of_the_future_does_not_make_today_the_oldest(void **state)
{
	struct rig rig;
	uint32_t seed = 1;

	(void)state;
	rig_init_limited(&rig, 3 << 20);
	rig.now_ns = DAY_0 + 30 * DAY_NS;
	assert_int_equal(write_one(&rig, "1", rig.now_ns, 1, 1), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	for (int i = 0; i < 220; i++) {
		rig.now_ns = DAY_0 + HOUR_NS + i * SEC_NS;
		(void)write_bulk(&rig, "svc", rig.now_ns, &seed);
		(void)store_commit(rig.store, NULL);
		assert_int_equal(store_maintain(rig.store, rig.now_ns, NULL), 0);
	}
	/* What was written first this hour is there; the later day had to go. */
	assert_true(total_of_service(&rig, "svc", 0, DAY_0 + HOUR_NS + 2 * SEC_NS) > 0);
	assert_int_equal(total_of_service(&rig, "svc", DAY_0 + DAY_NS, INT64_MAX), 0);
	rig_release(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_owner_with_most_above_its_share_gives_way),
		cmocka_unit_test(nobody_above_its_share_means_the_oldest_day),
		cmocka_unit_test(a_service_far_beyond_the_others_gives_way_alone),
		cmocka_unit_test(names_over_the_budget_are_other_counted_and_said),
		cmocka_unit_test(services_over_the_budget_of_their_owner_are_one),
		cmocka_unit_test(label_sets_of_one_service_do_not_use_up_those_of_others),
		cmocka_unit_test(a_flood_of_one_owner_erases_nobody_elses_history),
		cmocka_unit_test(a_day_of_the_future_does_not_make_today_the_oldest),
		cmocka_unit_test(an_owner_too_large_by_the_current_hour_is_refused_alone),
		cmocka_unit_test(several_owners_too_large_by_the_current_hour_stay_within_the_disk),
		cmocka_unit_test(what_was_set_aside_goes_before_the_rest_of_its_day),
		cmocka_unit_test(a_flood_erases_nobody_elses_part_of_what_was_set_aside),
		cmocka_unit_test(the_log_of_today_pushes_out_no_day),
		cmocka_unit_test(an_interval_after_making_room_failed_is_still_one_transaction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
