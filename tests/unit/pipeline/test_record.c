/* tests/unit/pipeline/test_record.c: records are counted, and say how much memory they keep. */
#include "pipeline/record.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../test_pipeline.h"

static struct profile *profile(size_t strings)
{
	struct profile *p = profile_new();
	char text[64];
	uint32_t id;

	assert_non_null(p);
	for (size_t i = 0; i < strings; i++) {
		(void)snprintf(text, sizeof(text), "function number %zu", i);
		assert_int_equal(profile_add_string(p, view_str(text), &id), 0);
	}
	return p;
}

static void record_goes_with_its_last_user(void **state)
{
	struct resources *resources = NULL;
	struct record *record = test_record(1);
	const struct resource *other;
	struct err err = {0};

	(void)state;
	/* Room for one: as long as the record lives, there is none. */
	assert_int_equal(resources_new(1, &resources, &err), 0);
	record->resource = test_resource(resources, "shop", 1);
	assert_ptr_equal(record_ref(record), record);
	record_unref(record);
	assert_int_equal(
		resource_get(resources,
			     &(struct resource){.labels = &(struct label){"service.name", "other"},
						.n_labels = 1},
			     &other, &err),
		-E2BIG);
	record_unref(record);
	resource_unref(test_resource(resources, "other", 1));
	record_unref(NULL);
	resources_free(resources);
}

static void bytes_follow_what_is_held(void **state)
{
	_cleanup_(record_unrefp) struct record *small = record_new_profile(
		&(struct record_profile){.family = "test", .profile = profile(1)});
	_cleanup_(record_unrefp) struct record *large = record_new_profile(
		&(struct record_profile){.family = "test", .profile = profile(20000)});
	struct event *event = event_new(EVENT_OOM_KILL);
	struct record *with_picture;
	size_t before;

	(void)state;
	assert_true(record_bytes(large) > record_bytes(small) + 20000 * 20);
	assert_true(record_bytes(large) >= profile_memory(large->profile.profile));
	assert_non_null(event);
	event->profile = profile(20000);
	with_picture = record_new_event(event);
	assert_true(record_bytes(with_picture) > 20000 * 20);
	record_unref(with_picture);

	_cleanup_(record_unrefp) struct record *metrics = test_record(1);

	before = record_bytes(metrics);
	assert_true(before >= sizeof(struct record) + sizeof(struct metric_point));
	for (int i = 0; i < 1000; i++)
		assert_int_equal(metrics_add_gauge(metrics->metrics, 0, i), 0);
	assert_true(record_bytes(metrics) >= before + 990 * sizeof(struct metric_point));
}

static void resource_counts(void **state)
{
	struct resources *resources = NULL;
	struct record *record = test_record(1);
	size_t before = record_bytes(record);
	struct err err = {0};

	(void)state;
	assert_int_equal(resources_new(1, &resources, &err), 0);
	record->resource = test_resource(resources, "shop", 1);
	assert_int_equal(record_bytes(record), before + record->resource->bytes);
	record_unref(record);
	resources_free(resources);
}

static void *use(void *arg)
{
	for (int i = 0; i < 20000; i++) {
		struct record *record = record_ref(arg);

		assert_true(record->metrics->points[0].value == 5);
		record_unref(record);
	}
	record_unref(arg);
	return NULL;
}

static void threads_share_a_record(void **state)
{
	struct record *record = test_record(5);
	pthread_t threads[4];

	(void)state;
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, use, record_ref(record)), 0);
	record_unref(record);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(record_goes_with_its_last_user),
		cmocka_unit_test(bytes_follow_what_is_held),
		cmocka_unit_test(resource_counts),
		cmocka_unit_test(threads_share_a_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
