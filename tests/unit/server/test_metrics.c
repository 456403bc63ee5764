/*
 * tests/unit/server/test_metrics.c: /api/metrics and /api/events on a real store: curves and
 * groups, old events and new ones, and what types that are metrics now say elsewhere.
 */
#include "../store/test_metrics.h"

#include <errno.h>

#include "server/api/routes.h"

#define STEP (15 * SEC_NS)
#define WINDOW "service=svc&from=1728000000000&to=1728000060000"

/* The answer to a question, until the next one. */
static const char *ask(struct rig *rig, const char *path, const char *query, int want)
{
	static struct server_answer a;
	static struct err err;
	const struct server_route *route = server_routes_find(path);
	const struct server_context context = {.store = rig->store, .interval_ns = STEP};
	struct server_request *rq = calloc(1, sizeof(*rq));
	int r;

	assert_non_null(route);
	assert_non_null(rq);
	server_answer_release(&a);
	a = server_answer_new();
	*rq = (struct server_request){.context = &context, .now_ns = rig->now_ns};
	r = server_params_parse(&route->rules, query, rig->now_ns, &rq->params, &err);
	if (r == 0)
		r = route->handle(rq, &a, &err);
	free(rq);
	if (r != want)
		fail_msg("%s?%s: %d %s", path, query, r, r < 0 ? err.text : buf_cstr(&a.body));
	return r < 0 ? err.text : buf_cstr(&a.body);
}

static void fill(struct rig *rig)
{
	static const char *const states[] = {"running", "waiting"};

	rig_init(rig);
	for (int i = 0; i < 4; i++)
		for (int pid = 1; pid <= 2; pid++) {
			const uint64_t buckets[] = {1, 0, 2, 0};
			struct metric_point points[] = {
				{.metric = &test_live, .value = 10 * pid + i},
				{.metric = &test_cycles, .increase = i == 0 ? NAN : pid},
				{.metric = &test_states, .attributes = {states[0]}, .value = pid},
				{.metric = &test_states, .attributes = {states[1]}, .value = 5},
				{.metric = &test_pauses, .buckets = buckets, .sum = 0.5},
			};

			assert_int_equal(write_points(rig, "svc", pid == 1 ? "1" : "2",
						      DAY_0 + i * STEP, points, ARRAY_SIZE(points)),
					 0);
		}
	assert_int_equal(store_commit(rig->store, NULL), 0);
	rig->now_ns = DAY_0 + 60 * SEC_NS;
}

static void metrics_are_listed(void **state)
{
	_cleanup_(rig_release) struct rig rig;

	(void)state;
	fill(&rig);
	assert_string_equal(
		ask(&rig, "/api/metrics", WINDOW, 0),
		"{\"from\":1728000000000,\"to\":1728000060000,\"metrics\":["
		"{\"metric\":\"go.gc.cycles\",\"kind\":\"counter\",\"unit\":\"count\","
		"\"attributes\":[],\"series\":2,\"first\":1728000015000,\"last\":1728000045000},"
		"{\"metric\":\"go.gc.pauses\",\"kind\":\"histogram\",\"unit\":\"seconds\","
		"\"attributes\":[],\"series\":2,\"first\":1728000000000,\"last\":1728000045000},"
		"{\"metric\":\"go.goroutines\",\"kind\":\"gauge\",\"unit\":\"count\","
		"\"attributes\":[{\"key\":\"state\",\"values\":[\"running\",\"waiting\"]}],"
		"\"series\":4,\"first\":1728000000000,\"last\":1728000045000},"
		"{\"metric\":\"go.heap.live\",\"kind\":\"gauge\",\"unit\":\"bytes\","
		"\"attributes\":[],\"series\":2,\"first\":1728000000000,\"last\":1728000045000}]}");
	assert_non_null(
		strstr(ask(&rig, "/api/metrics", "service=svc&from=1&to=2", 0), "\"metrics\":[]"));
	assert_non_null(strstr(ask(&rig, "/api/metrics", "service=nobody", -ENOENT), "nobody"));
}

static void curves_are_added_up_by_group(void **state)
{
	static const struct {
		const char *query;
		const char *series;
	} rows[] = {
		{"metric=go.heap.live&step_ms=30000",
		 "[{\"labels\":[],\"points\":[31,35],\"buckets\":null,\"sums\":null}]"},
		{"metric=go.heap.live&step_ms=60000&group=process.pid",
		 "[{\"labels\":[{\"key\":\"process.pid\",\"value\":\"1\"}],\"points\":[11.5],"
		 "\"buckets\":null,\"sums\":null},{\"labels\":[{\"key\":\"process.pid\","
		 "\"value\":\"2\"}],\"points\":[21.5],\"buckets\":null,\"sums\":null}]"},
		{"metric=go.heap.live&step_ms=60000&aggregate=min",
		 "[{\"labels\":[],\"points\":[10],\"buckets\":null,\"sums\":null}]"},
		{"metric=go.heap.live&step_ms=60000&aggregate=max",
		 "[{\"labels\":[],\"points\":[23],\"buckets\":null,\"sums\":null}]"},
		{"metric=go.heap.live&step_ms=60000&aggregate=last",
		 "[{\"labels\":[],\"points\":[36],\"buckets\":null,\"sums\":null}]"},
		{"metric=go.gc.cycles&step_ms=15000&aggregate=max",
		 "[{\"labels\":[],\"points\":[null,3,3,3],\"buckets\":null,\"sums\":null}]"},
		{"metric=go.goroutines&step_ms=60000&group=state&label=process.pid=2",
		 "[{\"labels\":[{\"key\":\"state\",\"value\":\"running\"}],\"points\":[2],"
		 "\"buckets\":null,\"sums\":null},{\"labels\":[{\"key\":\"state\","
		 "\"value\":\"waiting\"}],\"points\":[5],\"buckets\":null,\"sums\":null}]"},
		{"metric=go.goroutines&step_ms=60000&group=*&label=process.pid=2&label=state="
		 "waiting",
		 "[{\"labels\":[{\"key\":\"state\",\"value\":\"waiting\"},{\"key\":\"host.name\","
		 "\"value\":\"here\"},{\"key\":\"process.pid\",\"value\":\"2\"}],\"points\":[5],"
		 "\"buckets\":null,\"sums\":null}]"},
		{"metric=go.gc.pauses&step_ms=60000",
		 "[{\"labels\":[],\"points\":null,\"buckets\":[[8],[0],[16],[0]],\"sums\":[4]}]"},
		{"metric=go.heap.live&label=process.pid=7", "[]"},
		{"metric=go.goroutines&step_ms=60000&group=nothing",
		 "[{\"labels\":[],\"points\":[13],\"buckets\":null,\"sums\":null}]"},
	};
	_cleanup_(rig_release) struct rig rig;

	(void)state;
	fill(&rig);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char query[256];
		const char *body, *series;

		(void)snprintf(query, sizeof(query), WINDOW "&%s", rows[i].query);
		body = ask(&rig, "/api/metrics", query, 0);
		series = strstr(body, "\"series\":");
		assert_non_null(series);
		assert_int_equal(strncmp(series + 9, rows[i].series, strlen(rows[i].series)), 0);
	}
	assert_non_null(strstr(ask(&rig, "/api/metrics", WINDOW "&metric=go.gc.cycles", 0),
			       "\"metric\":\"go.gc.cycles\",\"kind\":\"counter\","
			       "\"unit\":\"count\",\"aggregate\":\"sum\",\"bounds\":null"));
	assert_non_null(strstr(ask(&rig, "/api/metrics", WINDOW "&metric=go.gc.pauses", 0),
			       "\"bounds\":[0.001"));
	/* Nothing in the window, but at another time. */
	assert_non_null(
		strstr(ask(&rig, "/api/metrics", "service=svc&metric=go.heap.live&from=1&to=2", 0),
		       "\"kind\":\"gauge\",\"unit\":\"bytes\""));
}

static void wrong_questions_are_told_what_is_wrong(void **state)
{
	static const struct {
		const char *query;
		int error;
		const char *text;
	} rows[] = {
		{"metric=go.heap.live", -EINVAL, "missing parameter service"},
		{WINDOW "&metric=", -EINVAL, "metric must have 1 to 127 bytes"},
		{WINDOW "&metric=go.heap", -ENOENT, "without metric"},
		{WINDOW "&metric=go.heap.live&aggregate=sum", -EINVAL,
		 "expected: average, min, max, last"},
		{WINDOW "&metric=a&metric=b", -EINVAL, "metric is given twice"},
		{WINDOW "&group=1&group=2&group=3&group=4&group=5&group=6&group=7&group=8&group=9",
		 -EINVAL, "at most 8 group keys"},
		{"service=svc&metric=go.heap.live&from=1&to=1728000060000&step_ms=1000", -EINVAL,
		 "longer than 40 days"},
		{"service=svc&metric=go.heap.live&from=-1d&step_ms=1000", -EINVAL, "larger step"},
		{WINDOW "&type=a", -EINVAL, "unknown parameter 'type'"},
	};
	_cleanup_(rig_release) struct rig rig;

	(void)state;
	fill(&rig);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *text = ask(&rig, "/api/metrics", rows[i].query, rows[i].error);

		if (!strstr(text, rows[i].text))
			fail_msg("%s: %s", rows[i].query, text);
	}
}

static void types_that_are_metrics_answer_as_before(void **state)
{
	_cleanup_(rig_release) struct rig rig;

	(void)state;
	fill(&rig);
	assert_string_equal(ask(&rig, "/api/series",
				WINDOW "&type=go_runtime:heap_live:bytes&step_ms=30000", 0),
			    "{\"from\":1728000000000,\"to\":1728000060000,\"step_ms\":30000,"
			    "\"unit\":\"bytes\",\"mode\":\"snapshot\",\"points\":[31,35],"
			    "\"spread\":[]}");
	assert_string_equal(ask(&rig, "/api/top", WINDOW "&type=go_runtime:gc_cycles:count", 0),
			    "{\"unit\":\"count\",\"mode\":\"delta\",\"total\":9,\"functions\":1,"
			    "\"rows\":[{\"name\":\"[go runtime]\",\"file\":\"\",\"self\":9,"
			    "\"total\":9}]}");
	assert_string_equal(
		ask(&rig, "/api/services", WINDOW "&points=1", 0),
		"{\"from\":1728000000000,\"to\":1728000060000,\"step_ms\":60000,\"services\":["
		"{\"service\":\"svc\",\"types\":[{\"type\":\"go_runtime:gc_cycles:count\","
		"\"mode\":\"delta\",\"first\":1728000015000,\"last\":1728000045000,\"value\":9,"
		"\"series\":[9]},{\"type\":\"go_runtime:heap_live:bytes\",\"mode\":\"snapshot\","
		"\"first\":1728000000000,\"last\":1728000045000,\"value\":33,\"series\":[33]}],"
		"\"processes\":2}]}");
	assert_non_null(strstr(ask(&rig, "/api/labels", WINDOW, 0), "process.pid"));
}

static struct profile *heap_of(int64_t bytes)
{
	struct profile *p = make_profile();

	add_stack(p, 1, bytes, bytes);
	return p;
}

/* As events were stored before: a profile whose labels say what it is. */
static void write_old_event(struct rig *rig, int64_t time_ns, const char *killed)
{
	const struct label labels[] = {{"process.pid", "7"},
				       {"oom.killed", killed},
				       {"oom.rss", "4096"},
				       {"oom.picture", "kill"}};
	_cleanup_(profile_freep) struct profile *p = heap_of(100);
	const struct store_entry e = {.service = "svc",
				      .family = "go_oom",
				      .labels = labels,
				      .n_labels = 4,
				      .time_ns = time_ns,
				      .profile = p,
				      .snapshot_types = 3};

	assert_int_equal(store_write(rig->store, &e, NULL), 0);
}

static void write_new_event(struct rig *rig, int64_t time_ns, const char *kind, bool picture)
{
	const struct label labels[] = {{"process.pid", "8"}, {"process.executable.name", "shop"}};
	const struct event_kind row = {.name = kind, .family = "go_oom"};
	_cleanup_(profile_freep) struct profile *p = picture ? heap_of(200) : NULL;
	struct event event = {.kind = &row,
			      .attributes = {{"oom.rss", "8192"}, {"oom.picture", "earlier"}},
			      .n_attributes = 2,
			      .profile = p,
			      .snapshot_types = 3};
	const struct store_event e = {.service = "svc",
				      .labels = labels,
				      .n_labels = 2,
				      .time_ns = time_ns,
				      .event = &event};

	assert_int_equal(store_write_event(rig->store, &e, NULL), 0);
}

static void old_events_and_new_ones_are_one_list(void **state)
{
	_cleanup_(rig_release) struct rig rig;
	const char *body;

	(void)state;
	rig_init(&rig);
	write_old_event(&rig, DAY_0 + 1 * SEC_NS, "true");
	write_new_event(&rig, DAY_0 + 2 * SEC_NS, "oom_kill", true);
	write_old_event(&rig, DAY_0 + 3 * SEC_NS, "false");
	write_new_event(&rig, DAY_0 + 4 * SEC_NS, "oom_near", true);
	/* Only the latest of a process near its limit counts, and other kinds are not of here. */
	write_new_event(&rig, DAY_0 + 5 * SEC_NS, "oom_near", false);
	write_new_event(&rig, DAY_0 + 6 * SEC_NS, "deployment", false);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	body = ask(&rig, "/api/events", WINDOW, 0);
	assert_string_equal(
		body,
		"{\"from\":1728000000000,\"to\":1728000060000,\"count\":4,\"events\":["
		"{\"kind\":\"oom_near\",\"time\":1728000005000,\"service\":\"svc\",\"pid\":8,"
		"\"executable\":\"shop\",\"container\":null,\"rss_bytes\":8192,"
		"\"picture\":\"earlier\",\"inuse_bytes\":null,\"top\":null},"
		"{\"kind\":\"oom_near\",\"time\":1728000003000,\"service\":\"svc\",\"pid\":7,"
		"\"executable\":null,\"container\":null,\"rss_bytes\":4096,\"picture\":\"kill\","
		"\"inuse_bytes\":100,\"top\":{\"name\":\"work_1\",\"file\":\"work.go\","
		"\"self\":100,\"share\":1}},"
		"{\"kind\":\"oom_kill\",\"time\":1728000002000,\"service\":\"svc\",\"pid\":8,"
		"\"executable\":\"shop\",\"container\":null,\"rss_bytes\":8192,"
		"\"picture\":\"earlier\",\"inuse_bytes\":200,\"top\":{\"name\":\"work_1\","
		"\"file\":\"work.go\",\"self\":200,\"share\":1}},"
		"{\"kind\":\"oom_kill\",\"time\":1728000001000,\"service\":\"svc\",\"pid\":7,"
		"\"executable\":null,\"container\":null,\"rss_bytes\":4096,\"picture\":\"kill\","
		"\"inuse_bytes\":100,\"top\":{\"name\":\"work_1\",\"file\":\"work.go\","
		"\"self\":100,\"share\":1}}]}");
	/* The process of the new ones is one, those of the old ones are none. */
	assert_non_null(strstr(ask(&rig, "/api/services", WINDOW, 0), "\"processes\":1"));
	assert_non_null(
		strstr(ask(&rig, "/api/events", "service=x&from=1728000000000&to=1728000060000", 0),
		       "\"count\":0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(metrics_are_listed),
		cmocka_unit_test(curves_are_added_up_by_group),
		cmocka_unit_test(wrong_questions_are_told_what_is_wrong),
		cmocka_unit_test(types_that_are_metrics_answer_as_before),
		cmocka_unit_test(old_events_and_new_ones_are_one_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
