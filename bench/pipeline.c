/*
 * bench/pipeline.c: what records cost on their way: putting one into an outbox whose sink does
 * nothing, and messages through a spool. Answers with JSON.
 * Usage: pipeline FOLDER   (for the spool; it is left empty)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "bench.h"
#include "pipeline/outbox/outbox.h"
#include "pipeline/spool/spool.h"

#define RECORDS 1000000
#define BURST 1000 /* records of one interval */
#define MESSAGE_BYTES ((size_t)256 << 10)
#define MESSAGES 2000

static int on_write(struct sink *sink, struct record *record, struct err *err)
{
	(void)sink, (void)record, (void)err;
	return 0;
}

static int on_flush(struct sink *sink, struct err *err)
{
	(void)sink, (void)err;
	return 0;
}

static void on_close(struct sink *sink)
{
	(void)sink;
}

/* Of the calling thread. */
static uint64_t thread_cpu_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NS_PER_SEC + (uint64_t)t.tv_nsec;
}

static void settle(struct outbox *o)
{
	struct outbox_status s;

	for (outbox_status(o, &s); !s.settled; outbox_status(o, &s))
		clock_sleep_ns(NS_PER_MS / 10);
}

static void bench_outbox(struct json *j)
{
	static const struct sink_ops ops = {
		.name = "null", .write = on_write, .flush = on_flush, .close = on_close};
	struct record *record = record_new_metrics(metrics_new());
	struct outbox_status status;
	struct outbox *o = NULL;
	struct err err = {0};
	uint64_t put_ns = 0, begin = clock_mono_ns(), wall_ns;

	bench_check(
		outbox_open(&(struct sink_row){.ops = &ops}, &(struct outbox_config){0}, &o, &err),
		&err);
	for (size_t i = 0; i < RECORDS; i += BURST) {
		uint64_t from = thread_cpu_ns();

		for (size_t k = 0; k < BURST; k++)
			outbox_put(o, record);
		put_ns += thread_cpu_ns() - from;
		outbox_flush(o);
		/* Often enough that nothing is dropped. */
		if (i % (10 * (size_t)BURST) == 0)
			settle(o);
	}
	settle(o);
	wall_ns = clock_mono_ns() - begin;
	outbox_status(o, &status);
	(void)outbox_close(o, UINT64_MAX);
	record_unref(record);
	json_key(j, "put_cpu_ns");
	json_uint(j, put_ns / RECORDS);
	json_key(j, "records_per_s");
	json_uint(j, RECORDS * NS_PER_SEC / wall_ns);
	json_key(j, "dropped");
	json_uint(j, status.dropped);
}

static uint64_t megabytes_per_s(uint64_t ns)
{
	return MESSAGES * MESSAGE_BYTES * 1000 / ns;
}

static void bench_spool(const char *folder, struct json *j)
{
	_cleanup_(buf_release) struct buf got = {0};
	_cleanup_free_ uint8_t *message = malloc(MESSAGE_BYTES);
	struct spool *s = NULL;
	struct err err = {0};
	uint64_t begin, append_ns, sync_ns;

	if (!message)
		exit(1);
	memset(message, 'x', MESSAGE_BYTES);
	bench_check(
		spool_open(&(struct spool_config){.dir = folder, .max_bytes = 1 << 30}, &s, &err),
		&err);
	begin = clock_mono_ns();
	for (size_t i = 0; i < MESSAGES; i++)
		bench_check(spool_append(s, view_of(message, MESSAGE_BYTES), &err), &err);
	append_ns = clock_mono_ns() - begin;
	bench_check(spool_sync(s, &err), &err);
	sync_ns = clock_mono_ns() - begin;
	begin = clock_mono_ns();
	while (spool_peek(s, &got, &err) > 0)
		bench_check(spool_pop(s, &err), &err);
	json_key(j, "append_mb_per_s");
	json_uint(j, megabytes_per_s(append_ns));
	json_key(j, "append_synced_mb_per_s");
	json_uint(j, megabytes_per_s(sync_ns));
	json_key(j, "peek_pop_mb_per_s");
	json_uint(j, megabytes_per_s(clock_mono_ns() - begin));
	spool_close(s);
}

int main(int argc, char **argv)
{
	_cleanup_(buf_release) struct buf out = {0};
	struct json j = json_to(&out);

	if (argc != 2) {
		(void)fprintf(stderr, "usage: pipeline FOLDER\n");
		return 2;
	}
	json_object_begin(&j);
	bench_outbox(&j);
	bench_spool(argv[1], &j);
	json_object_end(&j);
	return bench_print(&j);
}
