/* tests/unit/pipeline/test_resource.c: equal labels are one resource, which goes with its last
 * user. */
#include "pipeline/resource.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct resources *table(size_t max)
{
	struct resources *resources = NULL;
	struct err err = {0};

	assert_int_equal(resources_new(max, &resources, &err), 0);
	return resources;
}

#define GET(resources, ret, ...)                                                                   \
	({                                                                                         \
		const struct label _labels[] = {__VA_ARGS__};                                      \
		resource_get(                                                                      \
			resources,                                                                 \
			&(struct resource){.labels = _labels, .n_labels = ARRAY_SIZE(_labels)},    \
			ret, &err);                                                                \
	})

static void equal_labels_are_the_same_pointer_in_any_order(void **state)
{
	struct resources *resources = table(10);
	const struct resource *a, *b, *c;
	struct err err = {0};

	(void)state;
	assert_int_equal(GET(resources, &a, {"service.name", "shop"}, {"host.name", "h1"}), 0);
	assert_int_equal(GET(resources, &b, {"host.name", "h1"}, {"service.name", "shop"}), 0);
	assert_int_equal(GET(resources, &c, {"host.name", "h2"}, {"service.name", "shop"}), 0);
	assert_ptr_equal(a, b);
	assert_ptr_not_equal(a, c);
	assert_string_equal(a->service, "shop");
	assert_int_equal(a->n_labels, 2);
	assert_string_equal(a->labels[0].key, "host.name");
	assert_string_equal(a->labels[1].key, "service.name");
	assert_true(a->bytes >= sizeof(*a) + strlen("service.nameshophost.nameh1"));
	resource_unref(a);
	resource_unref(b);
	resource_unref(c);
	resources_free(resources);
}

static void process_and_user_tell_resources_apart(void **state)
{
	const struct label labels[] = {{"service.name", "shop"}};
	struct resource like = {.labels = labels, .n_labels = 1, .process = {.pid = 7}};
	const struct resource *found[4];
	struct resources *resources = table(10);
	struct err err = {0};

	(void)state;
	assert_int_equal(resource_get(resources, &like, &found[0], &err), 0);
	like.process.start_ticks = 1;
	assert_int_equal(resource_get(resources, &like, &found[1], &err), 0);
	like.uid = 1000;
	assert_int_equal(resource_get(resources, &like, &found[2], &err), 0);
	assert_int_equal(resource_get(resources, &like, &found[3], &err), 0);
	assert_ptr_not_equal(found[0], found[1]);
	assert_ptr_not_equal(found[1], found[2]);
	assert_ptr_equal(found[2], found[3]);
	assert_int_equal(found[2]->uid, 1000);
	assert_int_equal(found[2]->process.start_ticks, 1);
	for (size_t i = 0; i < 4; i++)
		resource_unref(found[i]);
	resources_free(resources);
}

static void last_value_counts_and_empty_ones_do_not(void **state)
{
	struct resources *resources = table(10);
	const struct resource *a, *b;
	struct err err = {0};

	(void)state;
	assert_int_equal(GET(resources, &a, {"service.name", "old"}, {"zone", "1"}, {"zone", ""},
			     {"", "nothing"}, {"empty", ""}, {"service.name", "shop"}),
			 0);
	assert_int_equal(GET(resources, &b, {"service.name", "shop"}, {"zone", "1"}), 0);
	assert_ptr_equal(a, b);
	assert_string_equal(resource_label(a, "zone"), "1");
	assert_null(resource_label(a, "empty"));
	assert_null(resource_label(a, ""));
	assert_null(resource_label(a, "zzz"));
	resource_unref(a);
	resource_unref(b);
	resources_free(resources);
}

static void nothing_of_what_was_given_is_kept(void **state)
{
	char key[] = "service.name", value[] = "shop";
	struct resources *resources = table(10);
	const struct resource *a;
	struct err err = {0};

	(void)state;
	assert_int_equal(GET(resources, &a, {key, value}), 0);
	memset(key, 'x', sizeof(key) - 1);
	memset(value, 'x', sizeof(value) - 1);
	assert_string_equal(a->service, "shop");
	assert_string_equal(resource_label(a, "service.name"), "shop");
	resource_unref(a);
	resources_free(resources);
}

static void what_is_too_much_is_refused(void **state)
{
	static char texts[RESOURCE_MAX_LABELS + 1][16];
	static char huge[RESOURCE_MAX_BYTES];
	struct label labels[RESOURCE_MAX_LABELS + 1];
	struct resource like = {.labels = labels};
	struct resources *resources = table(10);
	const struct resource *found = NULL;
	struct err err = {0};

	(void)state;
	assert_int_equal(GET(resources, &found, {"host.name", "h"}), -EINVAL);
	assert_int_equal(GET(resources, &found, {"service.name", ""}), -EINVAL);
	assert_int_equal(resource_get(resources, &(struct resource){0}, &found, &err), -EINVAL);
	assert_non_null(strstr(err.text, "service.name"));
	labels[0] = (struct label){"service.name", "shop"};
	for (size_t i = 1; i <= RESOURCE_MAX_LABELS; i++) {
		(void)snprintf(texts[i], sizeof(texts[i]), "k%zu", i);
		labels[i] = (struct label){texts[i], "v"};
	}
	like.n_labels = RESOURCE_MAX_LABELS;
	assert_int_equal(resource_get(resources, &like, &found, &err), 0);
	resource_unref(found);
	like.n_labels++;
	assert_int_equal(resource_get(resources, &like, &found, &err), -E2BIG);
	memset(huge, 'x', sizeof(huge) - 1);
	assert_int_equal(GET(resources, &found, {"service.name", "shop"}, {"huge", huge}), -E2BIG);
	resources_free(resources);
}

static const struct resource *numbered(struct resources *resources, size_t number)
{
	const struct label labels[] = {{"service.name", "shop"}};
	const struct resource *found = NULL;
	struct err err = {0};
	struct resource like = {
		.labels = labels,
		.n_labels = 1,
		.process = {.pid = (pid_t)(number % 30000 + 1), .start_ticks = number}};

	return resource_get(resources, &like, &found, &err) == 0 ? found : NULL;
}

static void table_is_bounded_and_those_given_back_make_room(void **state)
{
	struct resources *resources = table(100);
	const struct resource *held[100];

	(void)state;
	for (size_t i = 0; i < 100; i++) {
		held[i] = numbered(resources, i);
		assert_non_null(held[i]);
	}
	assert_null(numbered(resources, 100));
	/* One that is there can still be had. */
	resource_unref(numbered(resources, 99));
	for (size_t i = 0; i < 100; i++)
		resource_unref(held[i]);
	/* Far more of them than fit, each for a moment. */
	for (size_t i = 0; i < 10000; i++) {
		const struct resource *r = numbered(resources, i);

		assert_non_null(r);
		resource_unref(resource_ref(r));
		resource_unref(r);
	}
	/* None of them piled up. */
	for (size_t i = 0; i < 100; i++) {
		held[i] = numbered(resources, 20000 + i);
		assert_non_null(held[i]);
	}
	for (size_t i = 0; i < 100; i++)
		resource_unref(held[i]);
	resource_unref(NULL);
	resources_free(resources);
	resources_free(NULL);
}

#define THREADS 4
#define ROUNDS 20000

static void *churn(void *arg)
{
	struct resources *resources = arg;

	for (size_t i = 0; i < ROUNDS; i++) {
		/* A few numbers only: the threads meet at making and at giving back the last. */
		const struct resource *r = numbered(resources, i % 3);

		assert_non_null(r);
		assert_int_equal(r->process.start_ticks, i % 3);
		assert_string_equal(r->service, "shop");
		resource_unref(r);
	}
	return NULL;
}

static void threads_share_one_table(void **state)
{
	struct resources *resources = table(3);
	const struct resource *left[4];
	pthread_t threads[THREADS];

	(void)state;
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, churn, resources), 0);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	for (size_t i = 0; i < 4; i++)
		left[i] = numbered(resources, 10 + i);
	assert_non_null(left[2]);
	assert_null(left[3]);
	for (size_t i = 0; i < 3; i++)
		resource_unref(left[i]);
	resources_free(resources);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_labels_are_the_same_pointer_in_any_order),
		cmocka_unit_test(process_and_user_tell_resources_apart),
		cmocka_unit_test(last_value_counts_and_empty_ones_do_not),
		cmocka_unit_test(nothing_of_what_was_given_is_kept),
		cmocka_unit_test(what_is_too_much_is_refused),
		cmocka_unit_test(table_is_bounded_and_those_given_back_make_room),
		cmocka_unit_test(threads_share_one_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
