/* tests/unit/cli/test_top_batch.c: when `sonde top` has something to show, with a made-up feed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/top/live.h"

#define MANY_LOOKS 5

struct top_feed {
	int fd;
	size_t looks;
	size_t tables;
	/* What it says at the n-th look. */
	void (*script)(struct top_status *s, size_t look);
};

int top_feed_status(struct top_feed *feed, struct top_status *ret_status, struct err *err)
{
	(void)err;
	*ret_status = (struct top_status){.interval_ns = NS_PER_SEC, .samples = true, .cpus = 2};
	feed->script(ret_status, feed->looks++);
	return 0;
}

int top_feed_table(struct top_feed *feed, const struct top_view *view, struct top_table *ret_table,
		   struct err *err)
{
	(void)view;
	(void)err;
	feed->tables++;
	*ret_table = (struct top_table){0};
	return 0;
}

int top_feed_take_deltas(struct top_feed *feed, struct top_process_delta **ret_deltas,
			 size_t *ret_len, struct err *err)
{
	(void)feed;
	(void)err;
	*ret_deltas = NULL;
	*ret_len = 0;
	return 0;
}

int top_feed_fd(const struct top_feed *feed)
{
	return feed->fd;
}

void top_feed_acknowledge(struct top_feed *feed)
{
	(void)feed;
}

/* For the screen, which is not under test here. */
int top_feed_set_interval(struct top_feed *feed, uint64_t interval_ns, struct err *err)
{
	(void)feed;
	(void)interval_ns;
	return err_set(err, -ENOSYS, "not here");
}

void top_feed_freeze(struct top_feed *feed, bool frozen)
{
	(void)feed;
	(void)frozen;
}

bool top_feed_samples(const struct top_feed *feed)
{
	(void)feed;
	return true;
}

static int run_once(struct top_feed *feed, enum top_kind kind, struct err *err)
{
	const struct top_batch batch = {.view = {.kind = kind, .unit = TOP_BYTES}, .count = 1};
	_cleanup_close_ int fd = eventfd(0, EFD_CLOEXEC),
			    signals = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	assert_true(fd >= 0 && signals >= 0);
	feed->fd = fd;
	return top_batch_run(feed, &batch, signals, err);
}

/* Samples are there, but nobody has examined the processes yet that they belong to. */
static void is_busy(struct top_status *s, size_t look)
{
	s->cpu_collections = 5;
	s->cpu_samples = 1000;
	s->intervals = 5;
	s->age_ns = 20 * NS_PER_SEC;
	s->sampled = look >= MANY_LOOKS;
	s->sums.running = look >= MANY_LOOKS;
}

static void a_busy_machine_is_waited_for(void **state)
{
	struct top_feed feed = {.script = is_busy};
	struct err err = {};

	(void)state;
	assert_int_equal(run_once(&feed, TOP_CPU, &err), 0);
	assert_true(feed.looks > MANY_LOOKS);
	assert_int_equal(feed.tables, 1);
}

static void is_too_busy(struct top_status *s, size_t look)
{
	is_busy(s, 0);
	s->age_ns = look * 20 * NS_PER_SEC;
}

static void who_never_has_anything_to_show_says_why(void **state)
{
	struct top_feed feed = {.script = is_too_busy};
	struct err err = {};

	(void)state;
	assert_int_equal(run_once(&feed, TOP_CPU, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.text, "1000 stacks were sampled"));
	assert_int_equal(feed.tables, 0);
	feed = (struct top_feed){.script = is_too_busy};
	assert_int_equal(run_once(&feed, TOP_LIVE, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.text, "no process could be examined"));
	assert_int_equal(feed.tables, 0);
}

static void is_idle(struct top_status *s, size_t look)
{
	s->cpu_collections = look;
	s->intervals = look;
	s->age_ns = look * NS_PER_SEC;
}

static void an_idle_machine_is_no_failure(void **state)
{
	struct top_feed feed = {.script = is_idle};
	struct err err = {};

	(void)state;
	assert_int_equal(run_once(&feed, TOP_CPU, &err), 0);
	assert_int_equal(feed.tables, 1);
}

/* Others run, and were shown to; the one that was asked for does not. */
static void rests(struct top_status *s, size_t look)
{
	is_idle(s, look);
	s->cpu_samples = 1000;
	s->sampled = true;
	s->looked = look >= MANY_LOOKS;
}

static void who_rests_is_no_failure_once_all_were_examined(void **state)
{
	struct top_feed feed = {.script = rests};
	struct err err = {};

	(void)state;
	assert_int_equal(run_once(&feed, TOP_CPU, &err), 0);
	/* What was sampled before it was examined came with the interval after. */
	assert_true(feed.looks > MANY_LOOKS + 1);
	assert_int_equal(feed.tables, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_busy_machine_is_waited_for),
		cmocka_unit_test(who_never_has_anything_to_show_says_why),
		cmocka_unit_test(an_idle_machine_is_no_failure),
		cmocka_unit_test(who_rests_is_no_failure_once_all_were_examined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
