/* tests/unit/pipeline/test_pipeline.c: one record reaches every sink, near or far. */
#include "pipeline/pipeline.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../test_pipeline.h"
#include "base/clock.h"
#include "run.h"

#define SPOOL_BYTES ((uint64_t)1 << 20)

struct sink {
	atomic_int closed;
	atomic_int n;
	atomic_bool unreachable;
	char text[256]; /* of the last record or message */
};

static void describe(const struct record *record, char *text, size_t size)
{
	(void)snprintf(text, size, "%s %d at %lld: %g", record->resource->service,
		       (int)record->resource->process.pid, (long long)record->when.time_ns,
		       record->metrics->points[0].value);
}

static int on_write(struct sink *sink, struct record *record, struct err *err)
{
	(void)err;
	describe(record, sink->text, sizeof(sink->text));
	atomic_fetch_add(&sink->n, 1);
	return 0;
}

static int on_flush(struct sink *sink, struct err *err)
{
	(void)sink;
	(void)err;
	return 0;
}

static int on_encode(struct sink *sink, struct record *const *records, size_t n, struct buf *out,
		     struct err *err)
{
	char text[256];

	(void)sink;
	(void)err;
	assert_int_equal(n, 1);
	describe(records[0], text, sizeof(text));
	return buf_printf(out, "%s", text);
}

static int on_send(struct sink *sink, struct view message, struct err *err)
{
	if (atomic_load(&sink->unreachable))
		return err_set(err, -EAGAIN, "nobody answers");
	(void)snprintf(sink->text, sizeof(sink->text), "%.*s", (int)message.len, message.data);
	atomic_fetch_add(&sink->n, 1);
	return 0;
}

static void on_close(struct sink *sink)
{
	atomic_fetch_add(&sink->closed, 1);
}

static const struct sink_ops near_ops = {
	.name = "near", .write = on_write, .flush = on_flush, .close = on_close};
static const struct sink_ops far_ops = {
	.name = "far", .encode = on_encode, .send = on_send, .close = on_close};

static char folder[64];

static int make_folder(void **state)
{
	(void)state;
	(void)snprintf(folder, sizeof(folder), "/tmp/test_pipeline.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	run_in("/tmp", "rm -rf %s", folder);
	return 0;
}

static struct pipeline *open_both(struct sink *near, struct sink *far)
{
	const struct sink_row rows[] = {{&near_ops, near}, {&far_ops, far}};
	const struct pipeline_config config = {.sinks = rows,
					       .n_sinks = ARRAY_SIZE(rows),
					       .spool_dir = folder,
					       .spool_max_bytes = SPOOL_BYTES};
	struct pipeline *p = NULL;
	struct err err = {0};

	assert_int_equal(pipeline_open(&config, &p, &err), 0);
	return p;
}

static void write_one(struct pipeline *p, int value)
{
	const struct proc_info info = {.id = {.pid = 42}, .service = "bakery", .comm = "oven"};
	const struct resource *resource = NULL;
	struct err err = {0};

	assert_int_equal(pipeline_process(p, &info, &resource, &err), 0);
	pipeline_write_take(p, resource, (struct record_time){.time_ns = 7}, test_record(value));
	pipeline_flush(p);
	resource_unref(resource);
}

static void wait_for(atomic_int *n, int wanted)
{
	while (atomic_load(n) < wanted)
		clock_sleep_ns(NS_PER_MS);
}

static void close_both(struct pipeline *p)
{
	assert_true(pipeline_stop(p, clock_mono_ns() + 10 * NS_PER_SEC));
	pipeline_free(p);
}

/* Or whoever has many would have many shares of the disk. */
static void ids_that_one_user_was_given_are_one_owner(void **state)
{
	char path[sizeof(folder) + 16];
	const struct pipeline_config config = {.subuid_path = path};
	struct proc_info info = {.id = {.pid = 42}, .service = "s"};
	const struct resource *resource = NULL;
	struct pipeline *p = NULL;
	struct err err = {0};

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/subuid", folder);
	run_in(folder, "echo ann:100000:65536 > subuid; echo 1000:300000:65536 >> subuid");
	assert_int_equal(pipeline_open(&config, &p, &err), 0);
	for (uid_t uid = 100000; uid < 100003; uid++) {
		info.uid = uid;
		assert_int_equal(pipeline_process(p, &info, &resource, &err), 0);
		assert_int_equal(resource->uid, 100000);
		resource_unref(resource);
	}
	/* With the user's own id. */
	info.uid = 300001;
	assert_int_equal(pipeline_process(p, &info, &resource, &err), 0);
	assert_int_equal(resource->uid, 1000);
	resource_unref(resource);
	close_both(p);
}

static void process_has_labels_with_opentelemetry_names(void **state)
{
	static const struct {
		const char *key, *value;
	} wanted[] = {
		{"service.name", "bakery"},
		{"service.namespace", "shop"},
		{"service.version", "1.4"},
		{"process.pid", "42"},
		{"process.executable.name", "ovend"},
		{"container.id", "c0ffee"},
		{"k8s.pod.uid", "p1"},
		{"systemd.unit", "oven.service"},
	};
	const struct proc_info info = {.id = {.pid = 42},
				       .comm = "oven",
				       .exe = "/usr/bin/ovend",
				       .service = "bakery",
				       .namespace = "shop",
				       .version = "1.4",
				       .container = "c0ffee",
				       .pod = "p1",
				       .unit = "oven.service"};
	struct sink near = {}, far = {};
	struct pipeline *p = open_both(&near, &far);
	const struct resource *resource = NULL;
	struct err err = {0};

	(void)state;
	assert_int_equal(pipeline_process(p, &info, &resource, &err), 0);
	assert_non_null(resource_label(resource, "host.name"));
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		assert_string_equal(resource_label(resource, wanted[i].key), wanted[i].value);
	resource_unref(resource);
	close_both(p);
}

static void record_reaches_every_sink(void **state)
{
	struct sink near = {}, far = {};
	struct pipeline *p = open_both(&near, &far);
	struct outbox_status status;

	(void)state;
	assert_int_equal(pipeline_n_sinks(p), 2);
	write_one(p, 1);
	wait_for(&near.n, 1);
	wait_for(&far.n, 1);
	assert_string_equal(near.text, "bakery 42 at 7: 1");
	assert_string_equal(far.text, near.text);
	pipeline_status(p, 1, &status);
	assert_string_equal(status.name, "far");
	close_both(p);
	assert_int_equal(near.closed, 1);
	assert_int_equal(far.closed, 1);
}

static void what_a_far_sink_has_not_taken_waits_in_a_spool_of_its_own(void **state)
{
	struct sink near = {}, far = {.unreachable = true};
	struct pipeline *p = open_both(&near, &far);
	struct outbox_status status = {};

	(void)state;
	write_one(p, 2);
	wait_for(&near.n, 1);
	while (!status.spooled || !status.trouble[0]) {
		pipeline_status(p, 1, &status);
		clock_sleep_ns(NS_PER_MS);
	}
	assert_string_equal(status.trouble, "nobody answers");
	assert_true(pipeline_stop(p, 0));
	pipeline_free(p);
	run_in(folder, "test -d spool-far && ! test -e spool-near");
	atomic_store(&far.unreachable, false);
	p = open_both(&near, &far);
	wait_for(&far.n, 1);
	assert_string_equal(far.text, "bakery 42 at 7: 2");
	close_both(p);
}

static void sinks_are_closed_when_a_pipeline_cannot_be_opened(void **state)
{
	struct sink sinks[PIPELINE_MAX_SINKS + 1] = {};
	struct sink_row rows[PIPELINE_MAX_SINKS + 1];
	struct pipeline_config config = {.sinks = rows, .n_sinks = ARRAY_SIZE(rows)};
	struct pipeline *p = NULL;
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		rows[i] = (struct sink_row){i == 1 ? &far_ops : &near_ops, &sinks[i]};
	assert_int_equal(pipeline_open(&config, &p, &err), -E2BIG);
	/* The second has nowhere to spool. */
	config.n_sinks = 3;
	assert_int_equal(pipeline_open(&config, &p, &err), -EINVAL);
	assert_non_null(strstr(err.text, "sink far"));
	assert_null(p);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(sinks[i].closed, i < 3 ? 2 : 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ids_that_one_user_was_given_are_one_owner,
						make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(process_has_labels_with_opentelemetry_names,
						make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(record_reaches_every_sink, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(
			what_a_far_sink_has_not_taken_waits_in_a_spool_of_its_own, make_folder,
			remove_folder),
		cmocka_unit_test(sinks_are_closed_when_a_pipeline_cannot_be_opened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
