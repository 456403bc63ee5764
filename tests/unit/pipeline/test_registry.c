/* tests/unit/pipeline/test_registry.c: no row of the registry is missing or half filled, and a name
 * means one thing only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "agent/sources/sources.h"
#include "base/cleanup.h"
#include "pipeline/registry/registry.h"

static bool is_sentence(const char *text)
{
	size_t len = text ? strlen(text) : 0;

	return len > 1 && !strchr(text, '\n') && text[len - 1] == '.';
}

/* Letters, digits and one separator between them. */
static bool is_name(const char *text, const char *separators)
{
	char before = 0;

	if (!text || !islower((unsigned char)text[0]))
		return false;
	for (; *text; before = *text++) {
		bool separates = strchr(separators, *text);

		if (!separates && !islower((unsigned char)*text) && !isdigit((unsigned char)*text))
			return false;
		if (separates && strchr(separators, before))
			return false;
	}
	return !strchr(separators, before);
}

static bool is_unit(const char *unit, bool is_metric)
{
	static const char *const units[] = {"bytes", "count", "nanoseconds", "ppm", "bool"};
	size_t n = is_metric ? ARRAY_SIZE(units) : 3;

	for (size_t i = 0; i < n; i++)
		if (strcmp(unit, units[i]) == 0)
			return true;
	return false;
}

static void types_are_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < TYPES; i++) {
		const struct registry_type *t = &registry_types[i];

		assert_true(is_name(t->family, "_"));
		assert_true(is_name(t->name, "_"));
		assert_true(is_unit(t->unit, false));
		assert_true(is_name(t->measure, "_"));
		assert_true(t->group[0] && t->variant[0] && t->title[0]);
		assert_true(is_sentence(t->help));
		/* Each is found as itself, so no two have the same name. */
		assert_ptr_equal(registry_type_find(t->family, t->name, t->unit), t);
	}
	assert_null(registry_type_find("go_heap", "inuse_space", "count"));
	assert_null(registry_type_find("java_heap", "inuse_space", "bytes"));
}

/* What is shown together lies together: a heading or a card comes once. */
static void types_of_a_group_and_a_measure_lie_together(void **state)
{
	(void)state;
	for (size_t i = 0; i < TYPES; i++)
		for (size_t k = i + 2; k < TYPES; k++) {
			const struct registry_type *a = &registry_types[i], *c = &registry_types[k];
			const struct registry_type *b = &registry_types[k - 1];

			if (strcmp(a->group, c->group) == 0)
				assert_string_equal(b->group, c->group);
			if (strcmp(a->family, c->family) == 0 &&
			    strcmp(a->measure, c->measure) == 0)
				assert_string_equal(b->measure, c->measure);
		}
}

static void check_labels(const struct metric *m)
{
	for (size_t i = 0; i < METRIC_MAX_ATTRIBUTES; i++) {
		assert_int_equal(!m->attributes[i], !m->labels[i]);
		if (!m->attributes[i])
			continue;
		assert_true(i == 0 || m->attributes[i - 1]);
		assert_true(is_name(m->attributes[i], "._"));
		assert_true(is_name(m->labels[i], "_"));
	}
}

/* What Prometheus' own conventions ask of a name. */
static void check_prometheus(const struct metric *m)
{
	size_t len = strlen(m->prometheus);
	bool is_total = len > 6 && strcmp(m->prometheus + len - 6, "_total") == 0;
	bool is_time = strcmp(m->unit, "nanoseconds") == 0;

	assert_true(is_name(m->prometheus, "_"));
	assert_int_equal(is_total, m->kind == METRIC_COUNTER);
	assert_int_equal(is_time, strstr(m->prometheus, "_seconds") != NULL);
	assert_true(m->prometheus_divisor == (is_time			    ? 1e9
					      : strcmp(m->unit, "ppm") == 0 ? 1e6
									    : 0));
	assert_true((strncmp(m->prometheus, "sonde_", 6) == 0) ==
		    (strcmp(m->family, "sonde") == 0));
}

static void check_stream(const struct metric *m)
{
	char stream[96];
	const char *name = strchr(m->stream, ':');

	assert_non_null(name);
	(void)snprintf(stream, sizeof(stream), "%s:%.*s:%s", m->family, (int)strcspn(name + 1, ":"),
		       name + 1, m->unit);
	assert_string_equal(stream, m->stream);
}

static void metrics_are_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < METRICS; i++) {
		const struct metric *m = &registry_metrics[i];

		assert_true(is_name(m->name, "._"));
		assert_true(is_unit(m->unit, true));
		assert_true(is_name(m->family, "_"));
		assert_true(m->title[0]);
		assert_true(is_sentence(m->help));
		/* What sonde says of itself may be for its own queries only. */
		assert_true(m->prometheus || m->stream || strcmp(m->family, "sonde") == 0);
		assert_int_equal(m->kind == METRIC_HISTOGRAM, m->n_bounds > 0);
		check_labels(m);
		if (m->prometheus)
			check_prometheus(m);
		if (m->stream)
			check_stream(m);
	}
}

static bool same(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
}

static void names_of_metrics_are_taken_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < METRICS; i++)
		for (size_t k = 0; k < i; k++) {
			assert_false(same(registry_metrics[i].name, registry_metrics[k].name));
			assert_false(same(registry_metrics[i].prometheus,
					  registry_metrics[k].prometheus));
			assert_false(same(registry_metrics[i].stream, registry_metrics[k].stream));
		}
}

static bool is_family(const char *family)
{
	for (size_t i = 0; i < TYPES; i++)
		if (strcmp(registry_types[i].family, family) == 0)
			return true;
	for (size_t i = 0; i < METRICS; i++)
		if (strcmp(registry_metrics[i].family, family) == 0)
			return true;
	return false;
}

static void families_of_sources_are_registered(void **state)
{
	const struct agent_source_configs configs = {};
	struct source_row rows[AGENT_SOURCES_MAX];
	size_t n = agent_sources_list(&configs, rows);

	(void)state;
	assert_true(n > 0);
	for (size_t i = 0; i < n; i++)
		assert_true(!rows[i].ops->family || is_family(rows[i].ops->family));
	assert_false(is_family("go"));
}

static void events_are_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < EVENTS; i++) {
		const struct event_kind *e = &registry_events[i];
		bool has_types = false;

		assert_true(is_name(e->name, "_"));
		assert_true(e->title[0]);
		assert_true(is_sentence(e->help));
		for (size_t k = 0; k < TYPES; k++)
			has_types |= strcmp(registry_types[k].family, e->family) == 0;
		assert_true(has_types);
	}
}

static void snapshots_are_told_from_deltas(void **state)
{
	_cleanup_(profile_freep) struct profile *p = profile_new();

	(void)state;
	assert_non_null(p);
	assert_int_equal(registry_type_add(p, TYPE_GO_HEAP_ALLOC_SPACE), 0);
	assert_int_equal(registry_type_add(p, TYPE_GO_HEAP_INUSE_SPACE), 0);
	assert_int_equal(profile_add_type(p, "odd", "count"), 0);
	assert_int_equal(registry_type_add(p, TYPE_GO_HEAP_INUSE_OBJECTS), 0);
	assert_string_equal(profile_cstring(p, profile_type_at(p, 1)->type), "inuse_space");
	assert_string_equal(profile_cstring(p, profile_type_at(p, 1)->unit), "bytes");
	assert_int_equal(registry_snapshot_types("go_heap", p), 1 << 1 | 1 << 3);
	assert_int_equal(registry_snapshot_types("unknown", p), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_are_whole),
		cmocka_unit_test(types_of_a_group_and_a_measure_lie_together),
		cmocka_unit_test(metrics_are_whole),
		cmocka_unit_test(names_of_metrics_are_taken_once),
		cmocka_unit_test(families_of_sources_are_registered),
		cmocka_unit_test(events_are_whole),
		cmocka_unit_test(snapshots_are_told_from_deltas),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
