/* tests/unit/pipeline/test_event.c: attributes of an event. */
#include "pipeline/event.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../test_pipeline.h"

static void attributes_are_kept_and_replaced(void **state)
{
	_cleanup_(event_freep) struct event *event = event_new(EVENT_OOM_KILL);

	(void)state;
	assert_non_null(event);
	assert_ptr_equal(event->kind, &registry_events[EVENT_OOM_KILL]);
	event_add(event, "limit", "100");
	event_add(event, "cgroup", "/a");
	event_add(event, "limit", "200");
	assert_int_equal(event->n_attributes, 2);
	assert_string_equal(event_attribute(event, "limit"), "200");
	assert_string_equal(event_attribute(event, "cgroup"), "/a");
	assert_null(event_attribute(event, "lim"));
	event_free(NULL);
}

static void long_texts_are_cut_between_characters(void **state)
{
	_cleanup_(event_freep) struct event *event = event_new(EVENT_OOM_KILL);
	char text[200], key[100];

	(void)state;
	/* 62 bytes, then a character of three that does not fit in 63. */
	memset(text, 'a', sizeof(text));
	memcpy(text + 62, "€€", sizeof("€€"));
	event_add(event, "cut", text);
	assert_int_equal(strlen(event_attribute(event, "cut")), 62);
	/* 60 and a character of three are 63. */
	memcpy(text + 60, "€€", sizeof("€€"));
	event_add(event, "whole", text);
	assert_int_equal(strlen(event_attribute(event, "whole")), 63);
	/* Continuation bytes alone are no reason to read before the text. */
	memset(text, 0x80, sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	event_add(event, "odd", text);
	assert_string_equal(event_attribute(event, "odd"), "");
	memset(key, 'k', sizeof(key) - 1);
	key[sizeof(key) - 1] = 0;
	event_add(event, key, "1");
	event_add(event, key, "2");
	assert_int_equal(event->n_attributes, 4);
}

static void attributes_beyond_the_limit_are_left_out(void **state)
{
	_cleanup_(event_freep) struct event *event = event_new(EVENT_OOM_KILL);
	char key[8];

	(void)state;
	for (int i = 0; i < EVENT_MAX_ATTRIBUTES + 3; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		event_add(event, key, key);
	}
	assert_int_equal(event->n_attributes, EVENT_MAX_ATTRIBUTES);
	assert_null(event_attribute(event, "k8"));
	event_add(event, "k7", "again");
	assert_string_equal(event_attribute(event, "k7"), "again");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attributes_are_kept_and_replaced),
		cmocka_unit_test(long_texts_are_cut_between_characters),
		cmocka_unit_test(attributes_beyond_the_limit_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
