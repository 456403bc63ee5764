/* tests/unit/agent/test_oom.c: victims that are made up, and what becomes of them. */
#include "agent/sources/oom_state.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "oom/victims.h"

/* A reader that counts what is asked of it. */
struct source {
	atomic_int reads;
	atomic_int pictures;
	atomic_int unrefs;
	int read_result;
	int picture_result;
	pthread_mutex_t *hold; /* its picture waits for it */
};

static int source_read(void *state, bool last)
{
	struct source *s = state;

	assert_true(last);
	atomic_fetch_add(&s->reads, 1);
	return s->read_result;
}

static int source_picture(void *state, struct profile **ret_profile, struct err *err)
{
	struct source *s = state;

	if (s->hold) {
		(void)pthread_mutex_lock(s->hold);
		(void)pthread_mutex_unlock(s->hold);
	}
	atomic_fetch_add(&s->pictures, 1);
	if (s->picture_result < 0)
		return err_set(err, s->picture_result, "as the test wants");
	*ret_profile = profile_new();
	return 0;
}

static void source_unref(void *state)
{
	struct source *s = state;

	atomic_fetch_add(&s->unrefs, 1);
}

static const struct agent_oom_source_ops source_ops = {
	.read = source_read, .picture = source_picture, .unref = source_unref};

static void no_news(void *context)
{
	(void)context;
}

static struct inbox inbox;

static struct agent_oom *start(void)
{
	/* No group is that full: only kills count here. */
	const struct agent_oom_config config = {.percent = 100000};
	struct agent_oom *oom = NULL;
	struct err err;

	assert_int_equal(inbox_init(&inbox, no_news, NULL), 0);
	assert_int_equal(agent_oom_start(&config, &inbox, &oom, &err), 0);
	return oom;
}

static void stop(struct agent_oom *oom)
{
	assert_true(agent_oom_stop(oom));
	agent_oom_free(oom);
	inbox_release(&inbox);
}

/* This very process, so that its start time is right. */
static struct source_target myself(void)
{
	struct source_target t = {.info.service = "victim"};

	assert_int_equal(proc_id_of(getpid(), &t.info.id, NULL), 0);
	return t;
}

static void add(struct agent_oom *oom, struct source *s)
{
	struct source_target t = myself();

	assert_int_equal(agent_oom_add(oom, &t, &source_ops, s), 0);
}

static void kill_myself(struct agent_oom *oom)
{
	const struct oom_victim victim = {
		.pid = getpid(), .mono_ns = clock_mono_ns(), .rss_bytes = 12345};

	agent_oom_hear(oom, &victim);
}

/* All that came, up to now. */
static struct delivery *take(void)
{
	struct delivery_list list;

	delivery_list_init(&list);
	inbox_take(&inbox, &list);
	return list.first;
}

static struct delivery *wait_event(void)
{
	for (int i = 0; i < 36000; i++) {
		struct delivery *d = take();

		if (d) {
			assert_null(d->next);
			assert_int_equal(d->record->kind, RECORD_EVENT);
			return d;
		}
		clock_sleep_ns(5 * NS_PER_MS);
	}
	fail_msg("no picture came");
	return NULL;
}

static void victim_is_read_and_its_picture_says_what_happened(void **state)
{
	int64_t before = (int64_t)clock_unix_ns();
	struct agent_oom *oom = start();
	struct source s = {};
	struct delivery *d;

	(void)state;
	add(oom, &s);
	kill_myself(oom);
	d = wait_event();
	assert_true(d->urgent);
	assert_string_equal(d->info.service, "victim");
	assert_string_equal(d->record->event->kind->name, "oom_kill");
	assert_non_null(d->record->event->profile);
	assert_string_equal(event_attribute(d->record->event, "oom.rss"), "12345");
	assert_string_equal(event_attribute(d->record->event, "oom.picture"), "kill");
	assert_in_range(d->when.time_ns, before, clock_unix_ns());
	delivery_free(d);
	stop(oom);
	assert_int_equal(s.reads, 1);
	assert_int_equal(s.unrefs, 1);
}

static void what_was_read_before_is_the_picture_where_memory_is_gone(void **state)
{
	struct agent_oom *oom = start();
	struct source s = {.read_result = -ESRCH};
	struct agent_oom_health h;
	struct delivery *d;

	(void)state;
	add(oom, &s);
	kill_myself(oom);
	d = wait_event();
	assert_string_equal(event_attribute(d->record->event, "oom.picture"), "earlier");
	delivery_free(d);
	agent_oom_health(oom, &h);
	assert_int_equal(h.kills, 1);
	assert_int_equal(h.late, 1);
	assert_int_equal(h.lost, 0);
	stop(oom);
}

static void victim_that_is_named_again_and_again_is_taken_once(void **state)
{
	struct agent_oom *oom = start();
	struct source s = {};
	struct agent_oom_health h;

	(void)state;
	add(oom, &s);
	for (int i = 0; i < 10000; i++)
		kill_myself(oom);
	delivery_free(wait_event());
	agent_oom_health(oom, &h);
	assert_int_equal(h.kills, 1);
	stop(oom);
	assert_int_equal(s.reads, 1);
	assert_int_equal(s.pictures, 1);
}

static void strangers_are_counted_and_left_alone(void **state)
{
	struct agent_oom *oom = start();
	struct source s = {};
	struct agent_oom_health h;

	(void)state;
	add(oom, &s);
	for (int i = 0; i < 1000; i++)
		agent_oom_hear(oom, &(struct oom_victim){.pid = -1 - i});
	agent_oom_health(oom, &h);
	assert_true(h.strangers >= 1000);
	assert_int_equal(h.kills, 0);
	assert_null(take());
	stop(oom);
	assert_int_equal(s.reads, 0);
}

static void number_that_was_given_to_another_process_is_not_taken_for_the_first(void **state)
{
	struct source_target t = myself();
	struct agent_oom *oom = start();
	struct source old = {}, new = {};
	struct agent_oom_health h;

	(void)state;
	t.info.id.start_ticks--;
	assert_int_equal(agent_oom_add(oom, &t, &source_ops, &old), 0);
	kill_myself(oom);
	agent_oom_health(oom, &h);
	assert_int_equal(h.kills, 0);
	assert_int_equal(h.strangers, 1);
	/* The one that has it now is found, though the old one is still known. */
	add(oom, &new);
	kill_myself(oom);
	delivery_free(wait_event());
	stop(oom);
	assert_int_equal(new.pictures, 1);
	assert_int_equal(old.pictures, 0);
	assert_int_equal(old.unrefs, 1);
}

static void source_that_is_removed_stays_until_its_picture_is_made(void **state)
{
	pthread_mutex_t hold = PTHREAD_MUTEX_INITIALIZER;
	struct source s = {.hold = &hold};
	struct agent_oom *oom = start();

	(void)state;
	add(oom, &s);
	(void)pthread_mutex_lock(&hold);
	kill_myself(oom);
	agent_oom_remove(oom, &s);
	assert_int_equal(s.unrefs, 0);
	(void)pthread_mutex_unlock(&hold);
	delivery_free(wait_event());
	stop(oom);
	assert_int_equal(s.unrefs, 1);
	assert_int_equal(s.pictures, 1);
}

static void picture_that_cannot_be_made_is_counted_as_lost(void **state)
{
	struct agent_oom *oom = start();
	struct source s = {.picture_result = -ENOMEM}, other = {};
	struct agent_oom_health h;

	(void)state;
	add(oom, &s);
	kill_myself(oom);
	agent_oom_remove(oom, &s);
	/* They come one after the other: with this one the first is done. */
	add(oom, &other);
	kill_myself(oom);
	delivery_free(wait_event());
	agent_oom_health(oom, &h);
	assert_int_equal(h.kills, 2);
	assert_int_equal(h.lost, 1);
	stop(oom);
	assert_int_equal(s.unrefs, 1);
}

static void what_is_left_at_the_end_is_given_back(void **state)
{
	struct agent_oom *oom = start();
	struct source sources[40] = {};

	(void)state;
	for (size_t i = 0; i < 40; i++)
		add(oom, &sources[i]);
	agent_oom_remove(oom, &sources[7]);
	agent_oom_remove(oom, &sources[7]);
	kill_myself(oom);
	stop(oom);
	for (size_t i = 0; i < 40; i++)
		assert_int_equal(sources[i].unrefs, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(victim_is_read_and_its_picture_says_what_happened),
		cmocka_unit_test(what_was_read_before_is_the_picture_where_memory_is_gone),
		cmocka_unit_test(victim_that_is_named_again_and_again_is_taken_once),
		cmocka_unit_test(strangers_are_counted_and_left_alone),
		cmocka_unit_test(
			number_that_was_given_to_another_process_is_not_taken_for_the_first),
		cmocka_unit_test(source_that_is_removed_stays_until_its_picture_is_made),
		cmocka_unit_test(picture_that_cannot_be_made_is_counted_as_lost),
		cmocka_unit_test(what_is_left_at_the_end_is_given_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
