/* tests/unit/pipeline/test_outbox.c: nobody waits for a sink, and what it loses is counted. */
#include "pipeline/outbox/outbox.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../test_pipeline.h"
#include "base/clock.h"
#include "run.h"

/* What must happen is waited for, and a failure hangs. */
#define FOREVER UINT64_MAX
#define FLUSH (-1) /* in the log */
#define BAD 13	   /* a record that the sink does not like */
#define LOG_MAX 20000

struct sink {
	pthread_mutex_t lock;
	pthread_cond_t moved;
	int log[LOG_MAX];
	size_t len;
	size_t calls; /* of write or send that have begun */
	size_t sent;  /* messages */
	size_t closed;
	bool shut;	    /* calls hang */
	int refuse;	    /* what send says */
	size_t unreachable; /* so many times send says -EAGAIN first */
};

/* Has what was put so far flushed, and waits until it was; false at until_ns. */
static bool settle(struct outbox *o, uint64_t until_ns)
{
	struct outbox_status s;

	outbox_status(o, &s);
	if (s.unflushed)
		outbox_flush(o);
	for (outbox_status(o, &s); !s.settled && clock_mono_ns() < until_ns; outbox_status(o, &s))
		clock_sleep_ns(NS_PER_MS);
	return s.settled;
}

static struct sink *sink_new(void)
{
	struct sink *sink = calloc(1, sizeof(*sink));

	assert_non_null(sink);
	(void)pthread_mutex_init(&sink->lock, NULL);
	(void)pthread_cond_init(&sink->moved, NULL);
	return sink;
}

static void sink_free(struct sink *sink)
{
	(void)pthread_cond_destroy(&sink->moved);
	(void)pthread_mutex_destroy(&sink->lock);
	free(sink);
}

static void sink_set(struct sink *sink, bool shut)
{
	(void)pthread_mutex_lock(&sink->lock);
	sink->shut = shut;
	(void)pthread_cond_broadcast(&sink->moved);
	(void)pthread_mutex_unlock(&sink->lock);
}

static void sink_wait(struct sink *sink, const size_t *count, size_t wanted)
{
	(void)pthread_mutex_lock(&sink->lock);
	while (*count < wanted)
		(void)pthread_cond_wait(&sink->moved, &sink->lock);
	(void)pthread_mutex_unlock(&sink->lock);
}

/* With the lock held. */
static void sink_log(struct sink *sink, int what)
{
	assert_true(sink->len < LOG_MAX);
	sink->log[sink->len++] = what;
	(void)pthread_cond_broadcast(&sink->moved);
}

/* Takes the lock, and hangs while the sink is shut. */
static void sink_enter(struct sink *sink)
{
	(void)pthread_mutex_lock(&sink->lock);
	sink->calls++;
	(void)pthread_cond_broadcast(&sink->moved);
	while (sink->shut)
		(void)pthread_cond_wait(&sink->moved, &sink->lock);
}

static int number(const struct record *record)
{
	return (int)record->metrics->points[0].value;
}

static int on_write(struct sink *sink, struct record *record, struct err *err)
{
	int what = number(record);

	sink_enter(sink);
	if (what != BAD)
		sink_log(sink, what);
	(void)pthread_mutex_unlock(&sink->lock);
	return what == BAD ? err_set(err, -EINVAL, "unlucky") : 0;
}

static int on_flush(struct sink *sink, struct err *err)
{
	(void)err;
	(void)pthread_mutex_lock(&sink->lock);
	sink_log(sink, FLUSH);
	(void)pthread_mutex_unlock(&sink->lock);
	return 0;
}

static int on_encode(struct sink *sink, struct record *const *records, size_t n, struct buf *out,
		     struct err *err)
{
	(void)sink;
	for (size_t i = 0; i < n; i++) {
		if (number(records[i]) == BAD)
			return err_set(err, -EINVAL, "unlucky");
		assert_int_equal(buf_printf(out, "%d ", number(records[i])), 0);
	}
	return 0;
}

static int on_send(struct sink *sink, struct view message, struct err *err)
{
	char *text = strndup((const char *)message.data, message.len), *at = text, *word;
	int r = 0;

	sink_enter(sink);
	if (sink->unreachable) {
		sink->unreachable--;
		r = err_set(err, -EAGAIN, "nobody answers");
	} else if (sink->refuse) {
		r = err_set(err, sink->refuse, "no, thanks");
	}
	while (r == 0 && (word = strsep(&at, " ")))
		if (word[0])
			sink_log(sink, atoi(word));
	sink->sent += r == 0;
	(void)pthread_cond_broadcast(&sink->moved);
	(void)pthread_mutex_unlock(&sink->lock);
	free(text);
	return r;
}

static void on_close(struct sink *sink)
{
	(void)pthread_mutex_lock(&sink->lock);
	sink->closed++;
	(void)pthread_cond_broadcast(&sink->moved);
	(void)pthread_mutex_unlock(&sink->lock);
}

static const struct sink_ops local = {
	.name = "local", .write = on_write, .flush = on_flush, .close = on_close};
static const struct sink_ops remote = {
	.name = "remote", .encode = on_encode, .send = on_send, .close = on_close};

static struct outbox *open_local(struct sink *sink, size_t max_bytes)
{
	struct outbox *o = NULL;
	struct err err = {0};

	assert_int_equal(outbox_open(&(struct sink_row){&local, sink},
				     &(struct outbox_config){.max_bytes = max_bytes}, &o, &err),
			 0);
	return o;
}

static void put(struct outbox *o, int what)
{
	struct record *record = test_record(what);

	outbox_put(o, record);
	record_unref(record);
}

static struct outbox_status status_of(struct outbox *o)
{
	struct outbox_status status;

	outbox_status(o, &status);
	return status;
}

static size_t bytes_of_one(void)
{
	_cleanup_(record_unrefp) struct record *record = test_record(1);

	return record_bytes(record);
}

#define assert_log(sink, ...)                                                                      \
	do {                                                                                       \
		const int _log[] = {__VA_ARGS__};                                                  \
		assert_int_equal((sink)->len, ARRAY_SIZE(_log));                                   \
		assert_memory_equal((sink)->log, _log, sizeof(_log));                              \
	} while (0)

static void records_and_flushes_keep_their_order(void **state)
{
	struct sink *sink = sink_new();
	struct outbox *o = open_local(sink, 0);
	struct outbox_status status;

	(void)state;
	sink_set(sink, true);
	put(o, 1);
	put(o, 2);
	outbox_flush(o);
	/* The first write hangs: what comes now waits behind it. */
	sink_wait(sink, &sink->calls, 1);
	put(o, 3);
	outbox_flush(o);
	outbox_flush(o);
	put(o, 4);
	status = status_of(o);
	assert_int_equal(status.queued, 4);
	assert_int_equal(status.queued_bytes, 4 * bytes_of_one());
	assert_true(status.lag_ns > 0);
	assert_false(settle(o, 0));
	sink_set(sink, false);
	assert_true(settle(o, FOREVER));
	/* Two flushes with nothing between them are one; settling asked for the last. */
	assert_log(sink, 1, 2, FLUSH, 3, FLUSH, 4, FLUSH);
	status = status_of(o);
	assert_string_equal(status.name, "local");
	assert_int_equal(status.written, 4);
	assert_int_equal(status.queued + status.queued_bytes + status.lag_ns + status.dropped, 0);
	/* Nothing is left to be flushed. */
	assert_true(settle(o, 0));
	outbox_flush(o);
	assert_true(settle(o, FOREVER));
	assert_int_equal(sink->len, 8);
	assert_true(outbox_close(o, FOREVER));
	assert_int_equal(sink->closed, 1);
	sink_free(sink);
}

static void full_queue_loses_its_oldest_and_keeps_its_flushes(void **state)
{
	struct sink *sink = sink_new();
	/* Of ten, one is in the sink's hands. */
	struct outbox *o = open_local(sink, 10 * bytes_of_one());
	struct outbox_status status;

	(void)state;
	sink_set(sink, true);
	put(o, 1);
	outbox_flush(o);
	sink_wait(sink, &sink->calls, 1);
	put(o, 2);
	outbox_flush(o);
	for (int i = 3; i <= 1000; i++)
		put(o, 100 + i);
	status = status_of(o);
	assert_int_equal(status.queued, 10);
	assert_int_equal(status.dropped, 1000 - 10);
	assert_true(status.queued_bytes <= 10 * bytes_of_one());
	sink_set(sink, false);
	assert_true(settle(o, FOREVER));
	/* The flush after 1 and that after 2, which is gone, have become one. */
	assert_log(sink, 1, FLUSH, 1092, 1093, 1094, 1095, 1096, 1097, 1098, 1099, 1100, FLUSH);
	assert_true(outbox_close(o, FOREVER));
	sink_free(sink);
}

static void record_that_is_too_large_takes_nobody_with_it(void **state)
{
	struct sink *sink = sink_new();
	struct outbox *o = open_local(sink, 10 * bytes_of_one());
	struct record *large = test_record(2);

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_int_equal(metrics_add_gauge(large->metrics, 0, i), 0);
	put(o, 1);
	outbox_put(o, large);
	record_unref(large);
	put(o, 3);
	assert_true(settle(o, FOREVER));
	assert_log(sink, 1, 3, FLUSH);
	assert_int_equal(status_of(o).dropped, 1);
	assert_non_null(strstr(status_of(o).trouble, "was dropped"));
	put(o, 4);
	assert_true(settle(o, FOREVER));
	assert_string_equal(status_of(o).trouble, "");
	assert_true(outbox_close(o, FOREVER));
	sink_free(sink);
}

static void many_records_do_not_wait_for_a_flush(void **state)
{
	struct sink *sink = sink_new();
	struct outbox *o = open_local(sink, 160 * bytes_of_one());

	(void)state;
	for (int i = 100; i < 200; i++)
		put(o, i);
	/* Without any flush. */
	sink_wait(sink, &sink->len, 90);
	assert_int_equal(sink->log[0], 100);
	assert_true(outbox_close(o, FOREVER));
	/* What was not flushed is, in the end. */
	assert_int_equal(sink->len, 101);
	assert_int_equal(sink->log[100], FLUSH);
	sink_free(sink);
}

static void failures_are_counted_until_all_is_well_again(void **state)
{
	struct sink *sink = sink_new();
	struct outbox *o = open_local(sink, 0);
	struct outbox_status status;

	(void)state;
	put(o, BAD);
	put(o, 1);
	assert_true(settle(o, FOREVER));
	status = status_of(o);
	assert_int_equal(status.failures, 1);
	assert_int_equal(status.dropped, 1);
	assert_int_equal(status.written, 1);
	assert_string_equal(status.trouble, "unlucky");
	put(o, 2);
	assert_true(settle(o, FOREVER));
	status = status_of(o);
	assert_string_equal(status.trouble, "");
	assert_int_equal(status.failures, 1);
	assert_true(outbox_close(o, FOREVER));
	sink_free(sink);
}

static void sink_that_hangs_is_left_behind(void **state)
{
	struct sink *sink = sink_new();
	struct outbox *o = open_local(sink, 100 * bytes_of_one());

	(void)state;
	sink_set(sink, true);
	put(o, 1);
	outbox_flush(o);
	sink_wait(sink, &sink->calls, 1);
	/* Nobody who puts waits for it. */
	for (int i = 0; i < 10000; i++)
		put(o, 100 + i);
	assert_false(outbox_close(o, clock_mono_ns() + NS_PER_MS));
	assert_int_equal(sink->closed, 0);
	sink_set(sink, false);
	/* It closes the sink when it comes back, and writes no more. */
	sink_wait(sink, &sink->closed, 1);
	assert_log(sink, 1);
	/* Its thread may still be about to leave the sink's lock. */
	(void)pthread_mutex_lock(&sink->lock);
	(void)pthread_mutex_unlock(&sink->lock);
	sink_free(sink);
}

static void idle_outbox_closes_without_any_time(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		struct sink *sink = sink_new();

		assert_true(outbox_close(open_local(sink, 0), 0));
		assert_int_equal(sink->closed, 1);
		sink_free(sink);
	}
}

#define PUTTERS 4
#define PUTS 2000

static void *putter(void *arg)
{
	for (int i = 0; i < PUTS; i++) {
		put(arg, 100 + i);
		if (i % 100 == 0)
			outbox_flush(arg);
	}
	return NULL;
}

static void threads_put_at_the_same_time(void **state)
{
	struct sink *sink = sink_new();
	struct outbox *o = open_local(sink, 500 * bytes_of_one());
	pthread_t threads[PUTTERS];
	struct outbox_status status;

	(void)state;
	for (size_t i = 0; i < PUTTERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, putter, o), 0);
	for (size_t i = 0; i < PUTTERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_true(settle(o, FOREVER));
	status = status_of(o);
	assert_int_equal(status.written + status.dropped, PUTTERS * PUTS);
	assert_int_equal(status.queued, 0);
	assert_true(outbox_close(o, FOREVER));
	sink_free(sink);
}

/* --- remote ones ----------------------------------------------------------------------------- */

static char folder[64];

static struct outbox *open_remote_with(struct sink *sink, uint64_t max_bytes)
{
	struct outbox_config config = {.spool_max_bytes = max_bytes};
	struct outbox *o = NULL;
	struct err err = {0};
	char dir[80];

	(void)snprintf(dir, sizeof(dir), "%s/spool", folder);
	config.spool_dir = dir;
	assert_int_equal(outbox_open(&(struct sink_row){&remote, sink}, &config, &o, &err), 0);
	return o;
}

static struct outbox *open_remote(struct sink *sink)
{
	return open_remote_with(sink, 1 << 20);
}

static int make_folder(void **state)
{
	(void)state;
	(void)snprintf(folder, sizeof(folder), "/tmp/sonde-outbox-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	run_in("/", "rm -r %s", folder);
	return 0;
}

static void messages_are_sent_in_order(void **state)
{
	struct sink *sink = sink_new();
	struct outbox *o = open_remote(sink);
	struct outbox_status status;

	(void)state;
	for (int i = 0; i < 3; i++) {
		put(o, 100 + 2 * i);
		put(o, 101 + 2 * i);
		outbox_flush(o);
	}
	assert_true(settle(o, FOREVER));
	sink_wait(sink, &sink->len, 6);
	/* The writer may have been behind, but never makes one message of two flushes. */
	assert_int_equal(sink->sent, 3);
	assert_log(sink, 100, 101, 102, 103, 104, 105);
	assert_true(settle(o, FOREVER));
	do
		status = status_of(o);
	while (status.written < 6 || status.spooled);
	assert_int_equal(status.dropped + status.failures + status.spool_lost, 0);
	assert_true(outbox_close(o, FOREVER));
	assert_int_equal(sink->closed, 1);
	sink_free(sink);
}

static void record_that_cannot_be_encoded_takes_nobody_with_it(void **state)
{
	struct sink *sink = sink_new();
	struct outbox *o = open_remote(sink);
	struct outbox_status status;

	(void)state;
	for (int i = 0; i < 40; i++)
		put(o, i);
	assert_true(settle(o, FOREVER));
	sink_wait(sink, &sink->len, 39);
	for (int i = 0; i < 39; i++)
		assert_int_equal(sink->log[i], i < BAD ? i : i + 1);
	status = status_of(o);
	assert_int_equal(status.dropped, 1);
	assert_int_equal(status.failures, 1);
	assert_string_equal(status.trouble, "unlucky");
	assert_true(outbox_close(o, FOREVER));
	sink_free(sink);
}

static void message_that_is_too_large_is_divided(void **state)
{
	struct sink *sink = sink_new();
	/* Room for 14 records of 4 bytes, a head of 16, one of 8 and a trailer of 16. */
	struct outbox *o = open_remote_with(sink, 100);
	struct outbox_status status;

	(void)state;
	for (int i = 0; i < 100; i++)
		put(o, 100 + i);
	assert_true(settle(o, FOREVER));
	do
		status = status_of(o);
	while (status.spooled);
	/* Each of the 8 messages took the place of the one before, unless that was sent already. */
	assert_int_equal(status.dropped + status.failures, 0);
	assert_true(sink->sent >= 1 && sink->sent + status.spool_lost >= 8);
	assert_int_equal(sink->log[sink->len - 1], 199);
	assert_true(outbox_close(o, FOREVER));
	sink_free(sink);
}

static void messages_are_tried_again_or_dropped_when_refused(void **state)
{
	struct sink *sink = sink_new();
	struct outbox *o = open_remote(sink);
	struct outbox_status status;

	(void)state;
	sink->unreachable = 1;
	put(o, 100);
	assert_true(settle(o, FOREVER));
	sink_wait(sink, &sink->calls, 1);
	do
		status = status_of(o);
	while (status.failures == 0);
	assert_string_equal(status.trouble, "nobody answers");
	assert_int_equal(status.spooled, 1);
	assert_true(status.spooled_bytes > 0);
	assert_true(status.lag_ns > 0);
	/* About a second later. */
	sink_wait(sink, &sink->sent, 1);
	assert_log(sink, 100);
	(void)pthread_mutex_lock(&sink->lock);
	sink->refuse = -EBADMSG;
	(void)pthread_mutex_unlock(&sink->lock);
	put(o, 101);
	put(o, 102);
	assert_true(settle(o, FOREVER));
	do
		status = status_of(o);
	while (status.dropped < 2 || status.spooled);
	assert_int_equal(status.dropped, 2);
	assert_int_equal(status.failures, 2);
	assert_string_equal(status.trouble, "no, thanks");
	(void)pthread_mutex_lock(&sink->lock);
	sink->refuse = 0;
	(void)pthread_mutex_unlock(&sink->lock);
	put(o, 103);
	assert_true(settle(o, FOREVER));
	sink_wait(sink, &sink->sent, 2);
	assert_log(sink, 100, 103);
	do
		status = status_of(o);
	while (status.written < 2);
	assert_string_equal(status.trouble, "");
	assert_true(outbox_close(o, FOREVER));
	sink_free(sink);
}

static void what_was_not_sent_outlives_us(void **state)
{
	struct sink *sink = sink_new();
	struct outbox *o = open_remote(sink);
	struct outbox_status status;

	(void)state;
	sink->unreachable = SIZE_MAX;
	for (int i = 0; i < 50; i++) {
		put(o, 100 + i);
		outbox_flush(o);
	}
	/* A send that cannot be done does not hold up the end. */
	sink_wait(sink, &sink->calls, 1);
	assert_true(outbox_close(o, clock_mono_ns() + 3600 * NS_PER_SEC));
	assert_int_equal(sink->len, 0);
	sink_free(sink);

	sink = sink_new();
	o = open_remote(sink);
	put(o, 150);
	assert_true(settle(o, FOREVER));
	sink_wait(sink, &sink->len, 51);
	for (int i = 0; i < 51; i++)
		assert_int_equal(sink->log[i], 100 + i);
	do
		status = status_of(o);
	while (status.written < 51);
	assert_true(outbox_close(o, FOREVER));
	sink_free(sink);
}

static void sending_that_hangs_delays_neither_spooling_nor_the_end(void **state)
{
	struct sink *sink = sink_new();
	struct outbox *o = open_remote(sink), *other = NULL;
	struct sink *second = sink_new();
	struct err err = {0};
	char dir[80];

	(void)state;
	sink_set(sink, true);
	put(o, 100);
	assert_true(settle(o, FOREVER));
	sink_wait(sink, &sink->calls, 1);
	for (int i = 1; i < 20; i++) {
		put(o, 100 + i);
		assert_true(settle(o, FOREVER));
	}
	assert_int_equal(status_of(o).spooled, 20);
	assert_false(outbox_close(o, clock_mono_ns() + NS_PER_MS));
	/* It still holds the folder. */
	(void)snprintf(dir, sizeof(dir), "%s/spool", folder);
	assert_int_equal(
		outbox_open(&(struct sink_row){&remote, second},
			    &(struct outbox_config){.spool_dir = dir, .spool_max_bytes = 1 << 20},
			    &other, &err),
		-EBUSY);
	assert_non_null(strstr(err.text, dir));
	assert_int_equal(second->closed, 1);
	sink_free(second);
	sink_set(sink, false);
	sink_wait(sink, &sink->closed, 1);
	(void)pthread_mutex_lock(&sink->lock);
	(void)pthread_mutex_unlock(&sink->lock);
	sink_free(sink);
}

static void remote_sink_needs_a_folder(void **state)
{
	struct sink *sink = sink_new();
	struct outbox *o = NULL;
	struct err err = {0};

	(void)state;
	assert_int_equal(outbox_open(&(struct sink_row){&remote, sink}, &(struct outbox_config){0},
				     &o, &err),
			 -EINVAL);
	assert_non_null(strstr(err.text, "remote"));
	assert_int_equal(sink->closed, 1);
	sink_free(sink);
}

#define REMOTE_TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_and_flushes_keep_their_order),
		cmocka_unit_test(full_queue_loses_its_oldest_and_keeps_its_flushes),
		cmocka_unit_test(record_that_is_too_large_takes_nobody_with_it),
		cmocka_unit_test(many_records_do_not_wait_for_a_flush),
		cmocka_unit_test(failures_are_counted_until_all_is_well_again),
		cmocka_unit_test(sink_that_hangs_is_left_behind),
		cmocka_unit_test(idle_outbox_closes_without_any_time),
		cmocka_unit_test(threads_put_at_the_same_time),
		REMOTE_TEST(messages_are_sent_in_order),
		REMOTE_TEST(record_that_cannot_be_encoded_takes_nobody_with_it),
		REMOTE_TEST(message_that_is_too_large_is_divided),
		REMOTE_TEST(messages_are_tried_again_or_dropped_when_refused),
		REMOTE_TEST(what_was_not_sent_outlives_us),
		REMOTE_TEST(sending_that_hangs_delays_neither_spooling_nor_the_end),
		cmocka_unit_test(remote_sink_needs_a_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
