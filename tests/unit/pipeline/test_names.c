/* tests/unit/pipeline/test_names.c: who goes by which service name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "pipeline/names.h"

static struct proc_info claim(const char *name, const char *owner, enum proc_rank rank)
{
	struct proc_info info = {.rank = rank};

	(void)snprintf(info.service, sizeof(info.service), "%s", name);
	(void)snprintf(info.owner, sizeof(info.owner), "%s", owner);
	return info;
}

static void expect(struct pipeline_names *names, struct proc_info info, const char *service)
{
	pipeline_names_settle(names, &info);
	assert_string_equal(info.service, service);
}

#define ROOT(name) claim(name, "uid 0", PROC_RANK_ROOT)
#define NOBODY(name) claim(name, "uid 65534", PROC_RANK_USER)
#define CONTAINER(name, id) claim(name, "container " id, PROC_RANK_CONTAINER)

static int set_up(void **state)
{
	return pipeline_names_new((struct pipeline_names **)state, NULL);
}

static int tear_down(void **state)
{
	pipeline_names_free(*state);
	return 0;
}

static void a_claim_never_joins_anothers_service(void **state)
{
	struct pipeline_names *names = *state;

	expect(names, ROOT("shop"), "shop");
	expect(names, NOBODY("shop"), "shop (uid 65534)");
	expect(names, CONTAINER("shop", "0123456789ab"), "shop (container 0123456789ab)");
	expect(names, claim("shop", "", PROC_RANK_USER), "shop (unknown)");
	expect(names, ROOT("shop"), "shop");
	expect(names, NOBODY("bakery"), "bakery");
	assert_int_equal(pipeline_names_turns(names), 0);
}

static void who_has_the_better_right_takes_the_name_at_once(void **state)
{
	static const char *const owners[] = {"uid 65534", "image 12", "unit a.service", "uid 0",
					     "unit shop.service"};
	struct pipeline_names *names = *state;

	for (int rank = PROC_RANK_USER; rank <= PROC_RANK_PROVEN; rank++) {
		expect(names, claim("shop", owners[rank], (enum proc_rank)rank), "shop");
		assert_int_equal(pipeline_names_turns(names), rank);
		for (int other = PROC_RANK_USER; other < rank; other++) {
			char marked[64];

			(void)snprintf(marked, sizeof(marked), "shop (%s)", owners[other]);
			expect(names, claim("shop", owners[other], (enum proc_rank)other), marked);
		}
	}
	/* Two managers may have one name for two things. */
	expect(names, claim("shop", "container shop", PROC_RANK_PROVEN), "shop (container shop)");
}

static void an_equal_has_the_name_only_when_its_owner_is_away(void **state)
{
	struct pipeline_names *names = *state;

	expect(names, CONTAINER("shop", "old"), "shop");
	for (int i = 0; i < 10; i++) {
		pipeline_names_tick(names, PIPELINE_NAMES_AWAY_NS);
		/* Whoever comes first after a tick. */
		expect(names, CONTAINER("shop", "new"), "shop (container new)");
		expect(names, CONTAINER("shop", "old"), "shop");
	}
	pipeline_names_tick(names, PIPELINE_NAMES_AWAY_NS);
	pipeline_names_tick(names, PIPELINE_NAMES_AWAY_NS - 1);
	expect(names, CONTAINER("shop", "new"), "shop (container new)");
	pipeline_names_tick(names, 1);
	expect(names, NOBODY("shop"), "shop (uid 65534)");
	expect(names, CONTAINER("shop", "new"), "shop");
	expect(names, CONTAINER("shop", "old"), "shop (container old)");
}

static void against_lesser_rights_a_name_is_kept_for_a_month(void **state)
{
	struct pipeline_names *names = *state;

	expect(names, ROOT("shop"), "shop");
	pipeline_names_tick(names, 0);
	pipeline_names_tick(names, PIPELINE_NAMES_LONG_AWAY_NS - 1);
	expect(names, NOBODY("shop"), "shop (uid 65534)");
	pipeline_names_tick(names, 1);
	expect(names, NOBODY("shop"), "shop");
}

static void a_restart_changes_nothing(void **state)
{
	_cleanup_(pipeline_names_freep) struct pipeline_names *again = NULL;
	_cleanup_(buf_release) struct buf text = {}, same = {};
	struct pipeline_names *names = *state;

	expect(names, ROOT("shop"), "shop");
	expect(names, CONTAINER("a name \xc3\xa4", "12"), "a name \xc3\xa4");
	assert_true(pipeline_names_changed(names));
	assert_false(pipeline_names_changed(names));
	assert_int_equal(pipeline_names_write(names, &text), 0);
	assert_int_equal(pipeline_names_new(&again, NULL), 0);
	pipeline_names_read(again, buf_view(&text));
	assert_int_equal(pipeline_names_write(again, &same), 0);
	assert_int_equal(same.len, text.len);
	/* Who comes first now does not matter. */
	expect(again, NOBODY("shop"), "shop (uid 65534)");
	expect(again, CONTAINER("a name \xc3\xa4", "13"), "a name \xc3\xa4 (container 13)");
	expect(again, CONTAINER("a name \xc3\xa4", "12"), "a name \xc3\xa4");
	expect(again, ROOT("shop"), "shop");
	assert_false(pipeline_names_changed(again));
}

static void short_intervals_count_as_well(void **state)
{
	struct pipeline_names *names = *state;

	expect(names, CONTAINER("shop", "old"), "shop");
	for (uint64_t ns = 0; ns <= PIPELINE_NAMES_AWAY_NS; ns += NS_PER_SEC / 10)
		pipeline_names_tick(names, NS_PER_SEC / 10);
	expect(names, CONTAINER("shop", "new"), "shop");
}

static void an_owner_that_came_back_is_there_after_a_restart(void **state)
{
	_cleanup_(pipeline_names_freep) struct pipeline_names *again = NULL;
	_cleanup_(buf_release) struct buf text = {};
	struct pipeline_names *names = *state;

	expect(names, CONTAINER("shop", "old"), "shop");
	pipeline_names_tick(names, NS_PER_SEC);
	pipeline_names_tick(names, 2 * 3600 * NS_PER_SEC);
	assert_true(pipeline_names_changed(names));
	/* What was written now says that it is away. */
	expect(names, CONTAINER("shop", "old"), "shop");
	pipeline_names_tick(names, NS_PER_SEC);
	assert_true(pipeline_names_changed(names));
	assert_int_equal(pipeline_names_write(names, &text), 0);
	assert_int_equal(pipeline_names_new(&again, NULL), 0);
	pipeline_names_read(again, buf_view(&text));
	expect(again, CONTAINER("shop", "new"), "shop (container new)");
}

static void nonsense_on_disk_is_left_out(void **state)
{
	static const char text[] = "sonde services 1\n"
				   "\n\t\t\t\n9\t0\tuid 1\tx\n0\t-1\tuid 1\ty\n"
				   "0\t99999999999\tuid 1\tz\n0\t0\tuid 1\t\n"
				   "3\t0\tuid 0\tshop\n0\t0\tuid 1\tshop\n0\t0\tuid 1\tcut";
	struct pipeline_names *names = *state;

	pipeline_names_read(names, view_str("sonde services 2\n3\t0\tuid 1\tother\n"));
	expect(names, NOBODY("other"), "other");
	pipeline_names_read(names, view_str(text));
	expect(names, ROOT("shop"), "shop");
	expect(names, NOBODY("x"), "x");
	expect(names, NOBODY("y"), "y");
	expect(names, NOBODY("z"), "z");
	expect(names, NOBODY("cut"), "cut");
}

static void nobody_can_look_like_another(void **state)
{
	struct pipeline_names *names = *state;
	char name[200], marked[200];

	expect(names, NOBODY("shop (uid 0)"), "shop [uid 0)");
	/* With blanks that look the same. */
	expect(names,
	       NOBODY("shop\xc2\xa0(uid\xc2\xa0"
		      "0)"),
	       "shop\xc2\xa0[uid\xc2\xa0"
	       "0)");
	expect(names, NOBODY("shop (images)"), "shop (images)");
	expect(names, NOBODY("a (unit b) (pod c)"), "a [unit b) [pod c)");
	expect(names, NOBODY("shop (test)"), "shop (test)");
	/* The owner of a long name is never cut off. */
	memset(name, 'x', sizeof(name));
	name[127] = 0;
	expect(names, ROOT(name), name);
	(void)snprintf(marked, sizeof(marked), "%.115s (uid 65534)", name);
	expect(names, NOBODY(name), marked);
}

static void made_up_names_have_a_limit(void **state)
{
	struct pipeline_names *names = *state;
	char name[32], marked[64];

	for (int i = 0; i <= PIPELINE_NAMES_MAX_OWNED; i++) {
		(void)snprintf(name, sizeof(name), "made-up-%d", i);
		(void)snprintf(marked, sizeof(marked), "%s (uid 65534)", name);
		expect(names, NOBODY(name), i < PIPELINE_NAMES_MAX_OWNED ? name : marked);
	}
	expect(names, ROOT("shop"), "shop");
	expect(names, claim("bakery", "uid 1000", PROC_RANK_USER), "bakery");
}

static void the_limit_counts_names_that_an_owner_has_now(void **state)
{
	struct pipeline_names *names = *state;
	char name[32];

	for (int i = 0; i < PIPELINE_NAMES_MAX_OWNED; i++) {
		(void)snprintf(name, sizeof(name), "made-up-%d", i);
		expect(names, NOBODY(name), name);
	}
	expect(names, NOBODY("shop"), "shop (uid 65534)");
	/* One is taken from it, */
	expect(names, ROOT("made-up-7"), "made-up-7");
	expect(names, NOBODY("shop"), "shop");
	expect(names, NOBODY("bakery"), "bakery (uid 65534)");
	/* and the others are forgotten. */
	pipeline_names_tick(names, 0);
	pipeline_names_tick(names, PIPELINE_NAMES_LONG_AWAY_NS);
	for (int i = 0; i < PIPELINE_NAMES_MAX_OWNED; i++) {
		(void)snprintf(name, sizeof(name), "new-%d", i);
		expect(names, NOBODY(name), name);
	}
	expect(names, NOBODY("bakery"), "bakery (uid 65534)");
}

#define NAMES_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		NAMES_TEST(a_claim_never_joins_anothers_service),
		NAMES_TEST(who_has_the_better_right_takes_the_name_at_once),
		NAMES_TEST(an_equal_has_the_name_only_when_its_owner_is_away),
		NAMES_TEST(against_lesser_rights_a_name_is_kept_for_a_month),
		NAMES_TEST(a_restart_changes_nothing),
		NAMES_TEST(short_intervals_count_as_well),
		NAMES_TEST(an_owner_that_came_back_is_there_after_a_restart),
		NAMES_TEST(nonsense_on_disk_is_left_out),
		NAMES_TEST(nobody_can_look_like_another),
		NAMES_TEST(made_up_names_have_a_limit),
		NAMES_TEST(the_limit_counts_names_that_an_owner_has_now),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
