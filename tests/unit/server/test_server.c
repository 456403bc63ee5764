/*
 * tests/unit/server/test_server.c: the server over real sockets, with a made-up store and agent:
 * every route, every refusal, and clients that mean no good.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "query_fake.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/gzip.h"
#include "base/io.h"
#include "profile/pprof.h"
#include "server/api/routes.h"
#include "server/peer.h"
#include "server/server.h"

#define WINDOW "service=shop&type=go_heap:inuse_space:bytes"
#define POLICY                                                                                     \
	"Content-Security-Policy: default-src 'self'; img-src 'self' data:; style-src 'self'; "    \
	"object-src 'none'; frame-ancestors 'none'; base-uri 'none'\r\n"
#define TWO_WINDOWS WINDOW "&from=5000&to=6000&before_from=1000&before_to=2000"

static const struct fake_stack after[] = {{"main;a", 10}, {"main;b\"\n\xff;c", 4}};
static const struct fake_stack earlier[] = {{"main;a", 6}, {"main;gone", 8}};
static struct store store;
static struct server *server;

int store_series(struct store *s, const struct store_window *window, int64_t step_ns,
		 double *points, size_t n_points, struct err *err)
{
	(void)window;
	(void)step_ns;
	if (s->error)
		return err_set(err, s->error, "the store does not like this");
	for (size_t i = 0; i < n_points; i++)
		points[i] = i % 3 == 1 ? NAN : (double)i;
	return 0;
}

int store_series_many(struct store *s, const struct store_window *window,
		      const struct store_series_request *requests, size_t n, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = store_series(s, window, requests[i].step_ns, requests[i].points,
				 requests[i].n_points, err);
	return r;
}

/* Two services, of which one ended long ago, in the first and the third step; and the machine. */
int store_overview(struct store *s, const struct store_overview_query *q,
		   struct store_overview *ret_overview, struct err *err)
{
	static const char *types[] = {"cpu:cpu:nanoseconds", "process:memory:bytes"};
	static const char *const names[] = {"shop", "touch", "(machine)"};
	struct store_overview o = {.len = 3, .types = types, .n_types = 2};

	if (s->error)
		return err_set(err, s->error, "the store does not like this");
	o.n_steps = (size_t)((q->to_ns - q->from_ns) / q->step_ns);
	o.services = arena_alloc(&o.memory, 3 * sizeof(*o.services));
	assert_non_null(o.services);
	for (size_t i = 0; i < 3; i++) {
		struct store_overview_service *to = &o.services[i];

		*to = (struct store_overview_service){.name = names[i],
						      .runtime = i == 0 ? "Go 1.27" : "",
						      .parent = i == 1 ? "make" : "",
						      .lived = i == 0,
						      .processes = 2,
						      .types = {i == 0 ? 3 : 1},
						      .first_ns = q->from_ns,
						      .last_ns = q->from_ns + FAKE_SECOND};
		for (size_t k = 0; k < 2; k++) {
			size_t type = i == 2 ? k + 2 : k;

			to->cells[type] =
				arena_alloc(&o.memory, o.n_steps * sizeof(*to->cells[type]));
			assert_non_null(to->cells[type]);
			to->cells[type][0] = (struct store_overview_cell){
				.sum = 1500000 * (int64_t)(i + 1), .times = 2, .points = 2};
			if (o.n_steps > 2 && k == 1)
				to->cells[type][2] = to->cells[type][0];
		}
	}
	*ret_overview = o;
	return 0;
}

void store_overview_release(struct store_overview *overview)
{
	arena_release(&overview->memory);
}

/* Of three points the second is a gap, and the third could not be read. */
int store_curve(struct store *s, const struct store_window *window,
		const struct store_function *function, const struct store_curve *curve,
		struct err *err)
{
	(void)window;
	if (s->error)
		return err_set(err, s->error, "the store does not like this");
	for (size_t i = 0; i < curve->n; i++) {
		curve->self[i] = i % 3 ? NAN : (double)strlen(function->name);
		curve->total[i] = i % 3 ? NAN : 10 + (double)i;
		curve->unread[i] = i % 3 == 2;
	}
	return 0;
}

int store_streams(struct store *s, int64_t from_ns, int64_t to_ns,
		  struct store_stream **ret_streams, size_t *ret_len, struct err *err)
{
	static const struct store_stream streams[] = {
		{"bakery", "go_heap:alloc_space:bytes", false, FAKE_SECOND, 9 * FAKE_SECOND},
		{"shop", "go_heap:alloc_space:bytes", false, FAKE_SECOND, 9 * FAKE_SECOND},
		{"shop", "go_heap:inuse_space:bytes", true, FAKE_SECOND, 9 * FAKE_SECOND},
	};

	(void)from_ns;
	(void)to_ns;
	if (s->error)
		return err_set(err, s->error, "the store does not like this");
	*ret_streams = malloc(sizeof(streams));
	assert_non_null(*ret_streams);
	memcpy(*ret_streams, streams, sizeof(streams));
	*ret_len = 3;
	return 0;
}

int store_labelsets(struct store *s, const char *service, int64_t from_ns, int64_t to_ns,
		    struct store_labelset **ret_sets, size_t *ret_len, struct err *err)
{
	static struct label labels[] = {{"process.pid", "2"},
					{"host.name", "here"},
					{"process.pid", "1"},
					{"host.name", "here"}};
	struct store_labelset sets[] = {
		{service ? service : "shop", &labels[0], 2, 5 * FAKE_SECOND, 9 * FAKE_SECOND},
		{service ? service : "shop", &labels[2], 2, 3 * FAKE_SECOND, 6 * FAKE_SECOND},
		{"bakery", &labels[0], 2, 5 * FAKE_SECOND, 9 * FAKE_SECOND},
		{"bakery", &labels[2], 2, 5 * FAKE_SECOND, 9 * FAKE_SECOND}};

	(void)from_ns;
	(void)to_ns;
	if (s->error)
		return err_set(err, s->error, "the store does not like this");
	*ret_sets = malloc(sizeof(sets));
	assert_non_null(*ret_sets);
	memcpy(*ret_sets, sets, sizeof(sets));
	*ret_len = !service ? 4 : strcmp(service, "x") == 0 ? 0 : 2;
	return 0;
}

/* Metrics and events of a real store are in test_server_metrics.c. */
int store_metrics(struct store *s, const struct store_metric_query *query,
		  struct store_metric_answer *ret_answer, struct err *err)
{
	(void)query;
	if (s->error)
		return err_set(err, s->error, "the store does not like this");
	*ret_answer = (struct store_metric_answer){0};
	return 0;
}

void store_metric_answer_release(struct store_metric_answer *answer)
{
	arena_release(&answer->memory);
}

int store_events(struct store *s, const char *service, int64_t from_ns, int64_t to_ns,
		 struct store_events_answer *ret_answer, struct err *err)
{
	(void)service;
	(void)from_ns;
	(void)to_ns;
	if (s->error)
		return err_set(err, s->error, "the store does not like this");
	*ret_answer = (struct store_events_answer){0};
	return 0;
}

void store_events_answer_release(struct store_events_answer *answer)
{
	arena_release(&answer->memory);
}

void store_status(struct store *s, struct store_status *ret_status)
{
	(void)s;
	*ret_status = (struct store_status){.bytes_on_disk = 4096,
					    .days = 2,
					    .oldest_ns = FAKE_SECOND,
					    .writing = false,
					    .trouble = "the disk is full"};
}

void agent_targets_release(struct agent_targets *targets)
{
	for (size_t i = 0; i < targets->len; i++)
		metrics_free(targets->items[i].metrics);
	free(targets->items);
}

int agent_targets(struct agent *agent, struct agent_targets *ret_targets)
{
	struct agent_target *t = calloc(2, sizeof(*t));

	(void)agent;
	assert_non_null(t);
	t[0].target.info = (struct proc_info){
		.id = {.pid = 17, .start_ticks = 99}, .comm = "sh\"op\\\n\xff", .service = "shop"};
	t[0].n_sources = 1;
	t[0].sources[0].source = "go-heap";
	t[0].sources[0].family = "go_heap";
	t[0].sources[0].answer.yes = true;
	t[0].metrics = metrics_new();
	t[1].metrics = metrics_new();
	assert_int_equal(metrics_add_counter(t[0].metrics, METRIC_GO_PROFILE_ALLOCATED,
					     18446744073709551615.0, NAN),
			 0);
	strcpy(t[0].target.runtime, "go1.27.3");
	strcpy(t[0].target.info.command, "shop --token ***");
	assert_int_equal(metrics_add_gauge(t[0].metrics, METRIC_PROCESS_MEMORY, 8192), 0);
	t[1].target.info = (struct proc_info){.id = {.pid = 18}, .comm = "sh", .service = "sh"};
	t[1].n_sources = 1;
	t[1].sources[0].source = "go-heap";
	t[1].sources[0].family = "go_heap";
	t[1].sources[0].answer.cause = ERR_CAUSE_NOT_GO;
	(void)snprintf(t[1].sources[0].answer.reason, 256, "not a Go program");
	*ret_targets = (struct agent_targets){.items = t, .len = 2};
	return 0;
}

int agent_machine(struct agent *agent, struct metrics *to)
{
	const struct metric_point point = {.metric = &registry_metrics[METRIC_SYSTEM_CPU_TIME],
					   .attributes = {"user"},
					   .value = 1.5e9};

	(void)agent;
	return metrics_add(to, &point);
}

void agent_health(struct agent *agent, struct agent_health *ret_health)
{
	(void)agent;
	*ret_health = (struct agent_health){.started_ns = (int64_t)clock_unix_ns() - FAKE_SECOND,
					    .cpu_ns = 2500000,
					    .targets = 2,
					    .profiled = 1,
					    .lag_ns = -5000000};
}

void agent_sinks_status(struct agent *agent, struct agent_sinks_status *ret_sinks)
{
	(void)agent;
	*ret_sinks = (struct agent_sinks_status){.len = 2};
	ret_sinks->items[0] = (struct outbox_status){.name = "store", .written = 7};
	ret_sinks->items[1] = (struct outbox_status){.name = "far",
						     .dropped = 3,
						     .spooled = 4,
						     .lag_ns = 9000000,
						     .trouble = "connection refused"};
}

void agent_features(struct agent *agent, struct features *ret_features)
{
	const struct err err = {.text = "there is no BTF",
				.remedy = "use another kernel",
				.cause = ERR_CAUSE_NO_BTF};

	(void)agent;
	*ret_features = (struct features){};
	features_set(ret_features, FEATURES_CPU, -ENOTSUP, &err);
}

static int connect_to_server(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET,
				 .sin_port = htons(server_port(server)),
				 .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	return fd;
}

/* Sends the bytes, and reads until the server closes or is silent; an answer is kept as text. */
static void talk(const char *request, size_t len, struct buf *answer)
{
	_cleanup_close_ int fd = connect_to_server();
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char bytes[4096];
	ssize_t n;

	buf_clear(answer);
	for (size_t done = 0; done < len; done += (size_t)n) {
		n = send(fd, request + done, len - done, MSG_NOSIGNAL);
		if (n <= 0)
			break;
	}
	while (poll(&p, 1, 300000) > 0 && (n = recv(fd, bytes, sizeof(bytes), 0)) > 0)
		assert_int_equal(buf_append(answer, bytes, (size_t)n), 0);
	assert_non_null(buf_cstr(answer));
}

static unsigned int status_of(struct buf *answer)
{
	unsigned int status = 0;

	(void)sscanf(buf_cstr(answer), "HTTP/1.%*d %u", &status);
	return status;
}

static unsigned int ask(const char *method, const char *path, const char *headers,
			struct buf *answer)
{
	_cleanup_(buf_release) struct buf request = {0};

	assert_int_equal(buf_printf(&request,
				    "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nConnection: close\r\n"
				    "%s\r\n",
				    method, path, server_port(server), headers),
			 0);
	talk((const char *)request.data, request.len, answer);
	return status_of(answer);
}

static const char *body_of(struct buf *answer)
{
	const char *body = strstr(buf_cstr(answer), "\r\n\r\n");

	assert_non_null(body);
	return body + 4;
}

static void expect(const char *path, unsigned int status, const char *part)
{
	_cleanup_(buf_release) struct buf answer = {0};

	if (ask("GET", path, "", &answer) != status)
		fail_msg("%s: %s", path, buf_cstr(&answer));
	if (!strstr(buf_cstr(&answer), part))
		fail_msg("%s has no '%s': %s", path, part, buf_cstr(&answer));
}

static int set_up(void **state)
{
	struct server_config config = {.listen = "127.0.0.1:0",
				       .interval_ns = 15 * (uint64_t)FAKE_SECOND};
	struct err err = {};

	(void)state;
	store = (struct store){.stacks = {after, earlier},
			       .n_stacks = {2, 2},
			       .collections = {4, 2},
			       .snapshot = true};
	/* Only its address counts. */
	return server_start(&config, (struct agent *)&store, &store, &server, &err);
}

static int tear_down(void **state)
{
	(void)state;
	server_stop(server);
	server = NULL;
	return 0;
}

static void overview_has_whole_steps_and_refreshes_what_changed(void **state)
{
	(void)state;
	expect("/api/overview?from=6000&to=6180", 200,
	       "{\"from\":6000000,\"to\":6180000,\"step_ms\":60000,\"next\":6000000,");
	expect("/api/overview?from=6000&to=6180", 200,
	       "\"machine\":[0,[5,null,null],[2197,null,2197]],"
	       "\"types\":[\"cpu:cpu:nanoseconds\",\"process:memory:bytes\"],"
	       "\"services\":[{\"id\":0,\"service\":\"shop\",\"runtime\":\"Go "
	       "1.27\",\"parent\":\"\","
	       "\"short\":false,\"types\":[0,1],\"first\":6000000,\"last\":6001000},"
	       "{\"id\":1,\"service\":\"touch\",\"runtime\":\"\",\"parent\":\"make\",\"short\":"
	       "true,"
	       "\"types\":[0],\"first\":6000000,\"last\":6001000}],"
	       "\"rows\":[[0,2,0,[2,null,null],[732,null,732]],"
	       "[1,2,0,[3,null,null],[1465,null,1465]]],\"damaged\":0}");
	/* Nothing has changed since the end of time. */
	expect("/api/overview?from=6000&to=6180&since=8999999999999", 200,
	       "\"from\":6120000,\"to\":6180000,");
	expect("/api/overview?from=6000&to=6180&since=8999999999999", 200,
	       "\"types\":[],\"services\":[],\"rows\":[[0,2,0,[2],[732]],[1,2,0,[3],[1465]]]");
	/* What was not asked for is rounded outwards, to at most 72 steps. */
	expect("/api/overview?from=6030&to=6090&step_ms=120000", 200,
	       "{\"from\":6000000,\"to\":6120000,");
	expect("/api/overview?from=6030&to=92430", 200, "{\"from\":7200000,\"to\":93600000,");
	expect("/api/overview?step_ms=90000", 400, "multiple of 60000");
	expect("/api/overview?from=-30d&step_ms=60000", 400, "use a larger step_ms");
}

static void every_route_answers(void **state)
{
	(void)state;
	expect("/api/health", 200, "\"interval_ms\":15000");
	expect("/api/health", 200, "\"writing\":false,\"trouble\":\"the disk is full\"");
	expect("/api/health", 200, "\"lag_ms\":-5");
	expect("/api/health", 200,
	       "\"features\":[{\"feature\":\"cpu\",\"title\":\"CPU profiles\",\"state\":\"off\","
	       "\"cause\":\"no_btf\",\"reason\":\"there is no BTF\","
	       "\"remedy\":\"use another kernel\"},");
	expect("/api/health", 200, "\"sinks\":[{\"sink\":\"store\",\"written\":7,\"dropped\":0,");
	expect("/api/health", 200,
	       "\"spooled\":4,\"spooled_bytes\":0,\"spool_lost\":0,\"lag_ms\":9,"
	       "\"trouble\":\"connection refused\"}]");
	/* Of the store the store itself knows. */
	expect("/api/health", 200,
	       "\"state\":\"off\",\"cause\":\"disk\",\"reason\":\"the disk is full\"");
	expect("/api/targets", 200, "\"cause\":\"not_go\",\"reason\":\"not a Go program\"");
	expect("/api/targets", 200, "\"exe\":null,\"command\":\"shop --token ***\",\"service\":");
	expect("/api/targets", 200, "\"command\":null,\"service\":\"sh\"");
	expect("/api/targets", 200, "\"comm\":\"sh\\\"op\\\\\\u000a\\ufffd\"");
	expect("/api/services?from=5000&to=5120&points=3", 200,
	       "\"step_ms\":40000,\"services\":[{\"service\":\"bakery\"");
	expect("/api/services?from=5000&to=5120&points=3", 200,
	       "\"mode\":\"delta\",\"first\":1000,\"last\":9000,\"value\":2,\"series\":[0,null,2]");
	expect("/api/labels?service=shop", 200,
	       "{\"labels\":[{\"key\":\"host.name\",\"values\":[{\"value\":\"here\",\"first\":3000,"
	       "\"last\":9000}]},{\"key\":\"process.pid\",\"values\":[{\"value\":\"1\"");
	expect("/api/series?" WINDOW "&from=5000&to=5060&step_ms=20000", 200,
	       "{\"from\":5000000,\"to\":5060000,\"step_ms\":20000,\"unit\":\"bytes\",\"mode\":"
	       "\"snapshot\",\"points\":[0,null,2],\"spread\":[]}");
	expect("/api/services?service=shop&from=5000&to=5120", 200,
	       "\"services\":[{\"service\":\"shop\"");
	expect("/api/services?service=nobody&from=5000&to=5120", 200, "\"services\":[]");
	expect("/api/services?type=*:inuse_space:bytes&type=a:b:c&from=5000&to=5120", 200,
	       "\"services\":[{\"service\":\"bakery\",\"types\":[],\"processes\":2},{\"service\":"
	       "\"shop\",\"types\":[{\"type\":\"go_heap:inuse_space:bytes\"");
	/* What this program does not have is left out. */
	expect("/api/series?" WINDOW "&type=go_oom:x:bytes&type=go_heap:alloc_space:bytes&from=5000"
	       "&to=5060&step_ms=20000",
	       200,
	       "\"step_ms\":20000,\"series\":[{\"type\":\"go_heap:inuse_space:bytes\",\"unit\":"
	       "\"bytes\",\"mode\":\"snapshot\",\"points\":[0,null,2],\"spread\":[]},{\"type\":"
	       "\"go_heap:alloc_space:bytes\",\"unit\":\"bytes\",\"mode\":\"delta\",\"points\":"
	       "[0,null,2],\"spread\":[]}]}");
	expect("/api/flame?" WINDOW "&from=5000&to=6000", 200,
	       "\"names\":[\"\",\"(other)\",\"main\",\"a\",\"b\\\"\\u000a\\ufffd\",\"c\"]");
	expect("/api/flame?" WINDOW "&from=5000&to=6000", 200,
	       "\"depth\":[0,1,2,2,3],\"self\":[0,0,2.5,0,1],\"total_of\":[3.5,3.5,2.5,1,1]}");
	expect("/api/flame?" TWO_WINDOWS, 200, "\"before_total_of\":[7,7,3,0,0,4]}");
	expect("/api/top?" TWO_WINDOWS "&limit=1", 200,
	       "\"functions\":5,\"rows\":[{\"name\":\"gone\",\"file\":\"file.go\",\"self\":0,"
	       "\"total\":0,\"before_self\":4,\"before_total\":4}]}");
	expect("/api/targets?service=sh", 200, "{\"targets\":[{\"pid\":18,");
	expect("/api/targets?service=nobody", 200, "{\"targets\":[]}");
	expect("/api/targets?service=sh", 200,
	       "\"reader\":\"go-heap\",\"family\":\"go_heap\",\"available\":false");
	expect("/api/function?" TWO_WINDOWS "&name=main", 200,
	       "\"name\":\"main\",\"file\":\"file.go\",\"self\":0,\"before_self\":0,\"total\":3.5,"
	       "\"before_total\":7,\"window_total\":3.5,\"before_window_total\":7,\"n_lines\":1,"
	       "\"n_callers\":0,\"n_callees\":3,\"lines\":[{\"file\":\"file.go\",\"line\":7,");
	expect("/api/function?" WINDOW "&from=5000&to=6000&name=main&limit=1", 200,
	       "\"callers\":[],\"callees\":[{\"name\":\"a\",\"total\":2.5}]}");
	expect("/api/function/series?" WINDOW "&name=main&from=5000&to=5060&step_ms=20000", 200,
	       "\"unit\":\"bytes\",\"mode\":\"snapshot\",\"self\":[4,null,null],\"total\":"
	       "[10,null,null],\"spread\":[]}");
	expect("/", 200, "<html");
	expect("/any/page", 200, "<html");
}

static void wrong_questions_get_a_sentence(void **state)
{
	(void)state;
	expect("/api/nothing", 404,
	       "{\"error\":\"unknown path '/api/nothing' (expected: /api/health, ");
	expect("/assets/nothing.js", 404, "{\"error\":");
	expect("/api/flame", 400, "missing parameter service");
	expect("/api/flame?" WINDOW "&maxnodes=5", 400,
	       "unknown parameter 'maxnodes' (expected: service, type, ");
	expect("/api/flame?" WINDOW "&from=0", 400, "longer than 40 days");
	expect("/api/series?" WINDOW "&from=-30d&step_ms=1000", 400, "more than 10000 points");
	expect("/api/labels?service=x", 404, "no stored profiles of service 'x'");
	expect("/api/series?service=x&type=y", 404, "no stored profiles of service 'x'");
	expect("/api/series?service=x&type=y&type=z", 404, "no stored profiles of service 'x'");
	expect("/api/flame?" WINDOW "&type=y", 400, "type is given twice");
	expect("/api/function?" WINDOW, 400, "missing parameter name");
	expect("/api/function?" WINDOW "&name=", 400, "name must have 1 to 4000 bytes");
	expect("/api/function/series?service=x&type=y&name=z", 404, "of service 'x'");
	expect("/api/function/series?service=shop&type=go_runtime:heap_live:bytes&name=z", 400,
	       "has no stacks");
	expect("/api/health?x=1", 400, "this path has none");
	store.error = -EIO;
	expect("/api/flame?" WINDOW, 500, "the store does not like this");
	expect("/api/services", 500, "the store does not like this");
	store.error = -E2BIG;
	expect("/api/top?" WINDOW, 413, "the store does not like this");
	store.error = -ENOENT;
	expect("/api/pprof?" WINDOW, 404, "the store does not like this");
}

static void pprof_is_a_profile_with_a_telling_name(void **state)
{
	_cleanup_(buf_release) struct buf answer = {0};
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct err err = {};
	const char *body;
	size_t head;

	(void)state;
	assert_int_equal(ask("GET", "/api/pprof?" WINDOW "&from=5000&to=6000",
			     "Accept-Encoding: gzip\r\n", &answer),
			 200);
	assert_non_null(strstr(buf_cstr(&answer),
			       "attachment; filename=\"shop-inuse_space-19700101T012320Z.pb.gz\""));
	/* The file itself is gzipped; the transfer is not. */
	assert_null(strstr(buf_cstr(&answer), "Content-Encoding"));
	body = body_of(&answer);
	head = (size_t)(body - (const char *)answer.data);
	assert_int_equal(profile_decode_pprof(view_of(body, answer.len - head), &p, &err), 0);
	assert_int_equal(profile_n_samples(p), 2);
	assert_int_equal(profile_header(p)->duration_ns, 1000 * FAKE_SECOND);
}

static void headers_keep_other_sites_out(void **state)
{
	static const char *const headers[] = {POLICY, "X-Content-Type-Options: nosniff\r\n",
					      "Referrer-Policy: no-referrer\r\n"};
	static const char *const paths[] = {"/", "/api/health", "/metrics", "/api/nothing"};
	_cleanup_(buf_release) struct buf answer = {0};

	(void)state;
	for (size_t i = 0; i < 4; i++)
		for (size_t k = 0; k < 3; k++) {
			(void)ask("GET", paths[i], "", &answer);
			assert_non_null(strstr(buf_cstr(&answer), headers[k]));
		}
	assert_int_equal(ask("GET", "/", "Origin: http://evil.example\r\n", &answer), 403);
	assert_int_equal(ask("GET", "/api/health", "Origin: null\r\n", &answer), 403);
	assert_int_equal(ask("GET", "/api/health", "Sec-Fetch-Site: cross-site\r\n", &answer), 403);
	assert_int_equal(ask("GET", "/", "Sec-Fetch-Site: cross-site\r\n", &answer), 200);
	/* Of another port of this machine, where anybody may serve a page. */
	assert_int_equal(ask("GET", "/api/health", "Sec-Fetch-Site: same-site\r\n", &answer), 403);
	assert_int_equal(ask("GET", "/api/health",
			     "Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n", &answer),
			 403);
	assert_int_equal(ask("GET", "/api/health", "Sec-Fetch-Site: none\r\n", &answer), 200);
	assert_int_equal(ask("GET", "/api/health", "Sec-Fetch-Site: same-origin\r\n", &answer),
			 200);
}

static void only_our_host_is_served(void **state)
{
	static const char *const requests[] = {
		"GET /api/health HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: 127.0.0.1:1\r\nConnection: close\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: localhost\r\nhost: evil\r\nConnection: close\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\nConnection: close\r\n\r\n",
		"GET / HTTP/1.1\r\nHost : evil\r\nHost: localhost\r\nConnection: close\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: localhost.\r\nConnection: close\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: localhost, evil\r\nConnection: close\r\n\r\n",
		"GET /metrics HTTP/1.0\r\n\r\n",
	};
	_cleanup_(buf_release) struct buf answer = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		talk(requests[i], strlen(requests[i]), &answer);
		assert_int_equal(status_of(&answer), 403);
		assert_non_null(strstr(buf_cstr(&answer), "Host header"));
	}
}

#define BYTES(text)                                                                                \
	{                                                                                          \
		(const uint8_t *)(text), sizeof(text) - 1                                          \
	}
#define GET "GET /api/health HTTP/1.1\r\n"
#define OURS "Host: localhost\r\n"
#define LAST "Connection: close\r\n\r\n"

static unsigned int status_of_bytes(struct view request, struct buf *answer)
{
	talk((const char *)request.data, request.len, answer);
	return status_of(answer);
}

/* Who forwards a request may understand it otherwise than the library: whose Host is it then? */
static void requests_of_two_meanings_are_refused(void **state)
{
	static const struct view requests[] = {
		BYTES(GET "Host: localhost\0evil\r\n" LAST),
		BYTES(GET "Host: localhost\0\r\n" LAST),
		BYTES(GET OURS "X-A: b\0c\r\n" LAST),
		BYTES(GET OURS "Connection: close\r\nX-A: b\0\r\n\r\n"),
		BYTES(GET OURS "Connection: close\r\n\0Host: evil\r\n\r\n"),
		BYTES(GET OURS "Connection: close\r\n\0\r\n"),
		BYTES(GET OURS "X-A: \x01\r\n" LAST),
		BYTES(GET OURS "X-A: b\x7f\r\n" LAST),
		BYTES(GET OURS "X-A: b\rc\r\n" LAST),
		BYTES(GET OURS "X-\x1f: b\r\n" LAST),
		BYTES(GET OURS "X-A: a\r\n b\r\n" LAST),
		BYTES(GET "Host: evil\r\n x\r\nHo: localhost\r\n st\r\n" LAST),
		BYTES("GET /api/health HTTP/1.1\nHost: localhost\nConnection: close\n\n"),
		BYTES("GET /api/health\0/evil HTTP/1.1\r\n" OURS LAST),
		BYTES("GET /api/health?\x01 HTTP/1.1\r\n" OURS LAST),
		BYTES("GET /api/health?a=\t HTTP/1.1\r\n" OURS LAST),
	};
	_cleanup_(buf_release) struct buf answer = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
		if (status_of_bytes(requests[i], &answer) != 400 ||
		    !strstr(buf_cstr(&answer), "control characters"))
			fail_msg("request %zu: %s", i, buf_cstr(&answer));
}

/* Here the library itself refuses, or closes. */
static void what_is_no_request_is_not_served(void **state)
{
	static const struct view requests[] = {
		BYTES(GET OURS "X\0A: b\r\n" LAST),
		BYTES("GET /api/health HTTP/1.1\0\r\n" OURS LAST),
		BYTES("GET /api/health \0HTTP/1.1\r\n" OURS LAST),
		BYTES("GET\0 /api/health HTTP/1.1\r\n" OURS LAST),
	};
	_cleanup_(buf_release) struct buf answer = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
		if (status_of_bytes(requests[i], &answer) == 200)
			fail_msg("request %zu: %s", i, buf_cstr(&answer));
}

static void odd_but_plain_requests_are_served(void **state)
{
	static const struct view requests[] = {
		BYTES(GET "Host:localhost\r\nX-A:\r\nX-B: \r\nX-C: \t b\tc \r\nX-D: \xff\r\n" LAST),
		BYTES("\r\n" GET OURS "Cookie: a=b; c=\"d\"\r\n" LAST),
		BYTES("GET /api/health HTTP/1.0\r\n" OURS "\r\n"),
		BYTES("GET /%61pi/../?a=%00&b HTTP/1.1\r\n" OURS "\r\n" GET OURS LAST),
	};
	_cleanup_(buf_release) struct buf answer = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		(void)status_of_bytes(requests[i], &answer);
		if (!strstr(buf_cstr(&answer), "\"interval_ms\":15000") ||
		    strstr(buf_cstr(&answer), "control characters"))
			fail_msg("request %zu: %s", i, buf_cstr(&answer));
	}
}

static void only_get_and_head_are_methods(void **state)
{
	static const char *const methods[] = {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"};
	_cleanup_(buf_release) struct buf answer = {0};

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(ask(methods[i], "/api/health", "", &answer), 405);
		assert_non_null(strstr(buf_cstr(&answer), "Allow: GET, HEAD\r\n"));
	}
	assert_int_equal(ask("POST", "/api/health", "Content-Length: 1000000000\r\n", &answer),
			 405);
	assert_int_equal(ask("GET", "/api/health", "Content-Length: 5\r\n", &answer), 400);
	assert_int_equal(ask("HEAD", "/api/health", "", &answer), 200);
	assert_string_equal(body_of(&answer), "");
}

static void malformed_requests_do_no_harm(void **state)
{
	static const char *const requests[] = {
		"\r\n\r\n\r\n",
		"GET\r\n\r\n",
		"GET / HTTP/9.9\r\n\r\n",
		"\x16\x03\x01\x02",
		"GET / HTTP/1.1\r\nHost localhost\r\n\r\n",
		"GET /\0 HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"};
	_cleanup_(buf_release) struct buf answer = {0};

	(void)state;
	for (size_t i = 0; i < 7; i++) {
		_cleanup_close_ int fd = connect_to_server();

		(void)send(fd, requests[i], strlen(requests[i]), MSG_NOSIGNAL);
		(void)shutdown(fd, SHUT_WR);
	}
	assert_int_equal(ask("GET", "/api/health", "", &answer), 200);
}

static void giants_are_refused(void **state)
{
	_cleanup_(buf_release) struct buf request = {0};
	_cleanup_(buf_release) struct buf answer = {0};

	(void)state;
	assert_int_equal(buf_append_str(&request, "GET /api/health?"), 0);
	for (int i = 0; i < 9000; i++)
		assert_int_equal(buf_append_byte(&request, 'a'), 0);
	assert_int_equal(
		buf_printf(&request, " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
		0);
	talk((const char *)request.data, request.len, &answer);
	assert_int_equal(status_of(&answer), 414);

	buf_clear(&request);
	assert_int_equal(buf_append_str(&request, "GET / HTTP/1.1\r\nHost: localhost\r\nX-A: "), 0);
	for (int i = 0; i < 300000; i++)
		assert_int_equal(buf_append_byte(&request, 'a'), 0);
	assert_int_equal(buf_append_str(&request, "\r\n\r\n"), 0);
	talk((const char *)request.data, request.len, &answer);
	/* The library may close before we have read its answer. */
	assert_true(answer.len == 0 || status_of(&answer) == 431 || status_of(&answer) == 413 ||
		    status_of(&answer) == 400);
	assert_int_equal(ask("GET", "/api/health", "", &answer), 200);
}

static void many_connections_are_served(void **state)
{
	enum { MANY = 200 };
	static const char request[] = "GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n";
	char bytes[64];
	int fds[MANY];

	(void)state;
	for (int i = 0; i < MANY; i++)
		fds[i] = connect_to_server();
	/* All of them are open; now all of them ask, twice each: connections are kept. */
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < MANY; i++)
			assert_int_equal(send(fds[i], request, sizeof(request) - 1, MSG_NOSIGNAL),
					 sizeof(request) - 1);
		for (int i = 0; i < MANY; i++) {
			char rest[8192];

			assert_int_equal(recv(fds[i], bytes, 15, MSG_WAITALL), 15);
			assert_memory_equal(bytes, "HTTP/1.1 200 OK", 15);
			do
				assert_true(recv(fds[i], rest, sizeof(rest), 0) > 0);
			while (recv(fds[i], rest, 1, MSG_PEEK | MSG_DONTWAIT) > 0);
		}
	}
	for (int i = 0; i < MANY; i++)
		close(fds[i]);
}

static void slow_clients_do_not_stop_others(void **state)
{
	enum { MANY = 100 };
	_cleanup_(buf_release) struct buf answer = {0};
	int fds[MANY];
	char byte;

	(void)state;
	for (int i = 0; i < MANY; i++) {
		fds[i] = connect_to_server();
		assert_int_equal(send(fds[i], "GET / HT", 8, MSG_NOSIGNAL), 8);
	}
	assert_int_equal(ask("GET", "/api/health", "", &answer), 200);
	/* Nobody had to go before this answer could come. */
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(recv(fds[i], &byte, 1, MSG_DONTWAIT), -1);
		assert_int_equal(errno, EAGAIN);
		close(fds[i]);
	}
}

/* More than the server holds; by one user, so that nothing tells them from the page's. */
static void no_number_of_slow_clients_keeps_the_page_away(void **state)
{
	enum { MANY = 300, ROUNDS = 20 };
	_cleanup_(buf_release) struct buf answer = {0};
	uint64_t begin_ns = clock_mono_ns();
	int fds[MANY];
	size_t ended = 0;
	char byte;

	(void)state;
	for (int i = 0; i < MANY; i++) {
		fds[i] = connect_to_server();
		(void)send(fds[i], "GET / HT", 8, MSG_NOSIGNAL);
	}
	for (int i = 0; i < ROUNDS; i++) {
		assert_int_equal(ask("GET", "/", "", &answer), 200);
		assert_int_equal(ask("GET", "/metrics", "", &answer), 200);
		close(fds[i]);
		fds[i] = connect_to_server();
		(void)send(fds[i], "GET / HT", 8, MSG_NOSIGNAL);
	}
	/* The library's own timeout, which let others in before, had no part in it. */
	assert_true(clock_mono_ns() - begin_ns < 15 * NS_PER_SEC);
	for (int i = 0; i < MANY; i++) {
		ended += recv(fds[i], &byte, 1, MSG_DONTWAIT) == 0;
		close(fds[i]);
	}
	assert_true(ended >= MANY - 256 - ROUNDS);
}

static void whose_a_connection_is_is_known(void **state)
{
	_cleanup_close_ int fd = connect_to_server(), peers = server_peer_open();
	struct sockaddr_in own = {0};
	struct sockaddr_storage ours = {0};
	socklen_t len = sizeof(own), ours_len = sizeof(ours);

	(void)state;
	assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &len), 0);
	assert_int_equal(getpeername(fd, (struct sockaddr *)&ours, &ours_len), 0);
	assert_int_equal(server_peer_uid(peers, (struct sockaddr *)&own, &ours), geteuid());
	own.sin_port = htons(1);
	assert_int_equal(server_peer_uid(peers, (struct sockaddr *)&own, &ours),
			 SERVER_PEER_UNKNOWN);
	assert_int_equal(server_peer_uid(-1, (struct sockaddr *)&own, &ours), SERVER_PEER_UNKNOWN);
}

struct heavy {
	pthread_t thread;
	atomic_uint status; /* 0 while there is no answer */
};

static void *ask_heavily(void *arg)
{
	_cleanup_(buf_release) struct buf answer = {0};
	unsigned int status = ask("GET", "/api/flame?" WINDOW, "", &answer);
	struct heavy *h = arg;

	if (status == 503 && !strstr(buf_cstr(&answer), "Retry-After: 1\r\n"))
		status = 1;
	atomic_store(&h->status, status);
	return NULL;
}

static unsigned int count_status(struct heavy *heavy, size_t n, unsigned int status)
{
	unsigned int count = 0;

	for (size_t i = 0; i < n; i++)
		count += atomic_load(&heavy[i].status) == status;
	return count;
}

static void heavy_questions_are_limited(void **state)
{
	enum { INSIDE = 4, WAITING = 16, MANY = 40 };
	_cleanup_(buf_release) struct buf answer = {0};
	struct heavy heavy[MANY] = {0};
	unsigned int good, busy;

	(void)state;
	atomic_store(&store.hold, true);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(pthread_create(&heavy[i].thread, NULL, ask_heavily, &heavy[i]), 0);
	/* Those that find the queue full are told to come back. */
	while (atomic_load(&store.inside) < INSIDE ||
	       count_status(heavy, MANY, 503) < MANY - INSIDE - WAITING)
		usleep(1000);
	/* The light ones pass by: the store still holds the others. */
	assert_int_equal(ask("GET", "/api/health", "", &answer), 200);
	assert_int_equal(count_status(heavy, MANY, 200), 0);
	atomic_store(&store.hold, false);
	for (int i = 0; i < MANY; i++)
		(void)pthread_join(heavy[i].thread, NULL);
	good = count_status(heavy, MANY, 200);
	busy = count_status(heavy, MANY, 503);
	assert_int_equal(good + busy, MANY);
	assert_true(good >= INSIDE);
	assert_int_equal(atomic_load(&store.most_inside), INSIDE);
	assert_int_equal(ask("GET", "/api/flame?" WINDOW, "", &answer), 200);
}

/* The server is in this process: its sockets are ours. */
static int count_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n;
}

static void start_impatient(struct server_config config)
{
	struct err err = {};

	config.listen = "127.0.0.1:0";
	store = (struct store){.collections = {1, 1}};
	assert_int_equal(server_start(&config, NULL, &store, &server, &err), 0);
}

static void who_never_ends_its_headers_is_cut_off(void **state)
{
	_cleanup_close_ int fd = -1;
	char byte;
	ssize_t n;

	(void)state;
	start_impatient((struct server_config){.request_ns = 1});
	fd = connect_to_server();
	n = send(fd, "GET / HTTP/1.1\r\nX-A: ", 21, MSG_NOSIGNAL);
	/* A byte now and then keeps the library's own timeout away; in the end it would say 431. */
	while (n > 0) {
		usleep(1000);
		(void)send(fd, "a", 1, MSG_NOSIGNAL);
		n = recv(fd, &byte, 1, MSG_DONTWAIT);
		assert_true(n <= 0);
		if (n < 0 && errno == EAGAIN)
			n = 1;
	}
}

/* Far more than the sockets hold: one function per stack, with a long name. */
static void make_giant(struct fake_stack *stacks, char *names, size_t n, size_t len)
{
	for (size_t i = 0; i < n; i++) {
		char *name = names + i * len;

		memset(name, 'a', len - 1);
		(void)snprintf(name, 8, "%07zu", i);
		name[7] = 'a';
		name[len - 1] = '\0';
		stacks[i] = (struct fake_stack){name, 1};
	}
}

static void who_reads_its_answer_too_slowly_is_cut_off(void **state)
{
	enum { STACKS = 4000, NAME = 4096, SLOWLY = 1024 };
	static const char request[] =
		"GET /api/flame?" WINDOW " HTTP/1.1\r\nHost: localhost\r\n\r\n";
	_cleanup_free_ struct fake_stack *stacks = calloc(STACKS, sizeof(*stacks));
	_cleanup_free_ char *names = malloc((size_t)STACKS * NAME);
	_cleanup_free_ char *bytes = malloc(NAME);
	_cleanup_close_ int fd = -1;
	bool slowly = true;
	size_t got = 0;
	int before;
	ssize_t n;

	(void)state;
	start_impatient((struct server_config){.answer_ns = 1});
	before = count_files();
	assert_true(stacks && names && bytes);
	make_giant(stacks, names, STACKS, NAME);
	store.stacks[0] = stacks;
	store.n_stacks[0] = STACKS;
	fd = connect_to_server();
	assert_int_equal(send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL), sizeof(request) - 1);
	/* It reads all the time, but too slowly; when the server has closed, what is under way. */
	while ((n = recv(fd, bytes, slowly ? SLOWLY : NAME, 0)) > 0) {
		got += (size_t)n;
		slowly = slowly && count_files() > before + 1;
		if (slowly)
			usleep(1000);
	}
	assert_true(got < (size_t)STACKS * NAME);
}

static void answers_are_packed_for_who_accepts_it(void **state)
{
	static const char path[] = "/api/series?" WINDOW "&from=5000&to=10000&step_ms=1000";
	_cleanup_(buf_release) struct buf answer = {0};
	_cleanup_(buf_release) struct buf plain = {0};
	_cleanup_(buf_release) struct buf unpacked = {0};
	struct err err = {};
	const char *body;

	(void)state;
	assert_int_equal(ask("GET", path, "", &plain), 200);
	assert_int_equal(ask("GET", path, "Accept-Encoding: br, gzip;q=0\r\n", &answer), 200);
	assert_null(strstr(buf_cstr(&answer), "Content-Encoding"));
	assert_int_equal(ask("GET", path, "Accept-Encoding: deflate, gzip\r\n", &answer), 200);
	assert_non_null(strstr(buf_cstr(&answer), "Content-Encoding: gzip\r\n"));
	body = body_of(&answer);
	assert_int_equal(
		gzip_unpack(view_of(body, answer.len - (size_t)(body - (char *)answer.data)),
			    &unpacked, &err),
		0);
	assert_string_equal(buf_cstr(&unpacked), body_of(&plain));
}

static void assets_are_not_sent_twice(void **state)
{
	_cleanup_(buf_release) struct buf answer = {0};
	char etag[64], header[128];

	(void)state;
	assert_int_equal(ask("GET", "/", "Accept-Encoding: gzip\r\n", &answer), 200);
	assert_int_equal(sscanf(strstr(buf_cstr(&answer), "ETag: "), "ETag: %63s", etag), 1);
	(void)snprintf(header, sizeof(header), "If-None-Match: %s\r\n", etag);
	assert_int_equal(ask("GET", "/", header, &answer), 304);
	assert_string_equal(body_of(&answer), "");
	assert_int_equal(ask("GET", "/", "If-None-Match: \"old\"\r\n", &answer), 200);
}

/* Runs promtool on the text, where it is installed. */
static void check_metrics(const char *text)
{
	FILE *f;

	if (system("command -v promtool >/dev/null") != 0)
		return;
	f = popen("promtool check metrics", "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(pclose(f), 0);
}

static void metrics_are_what_prometheus_reads(void **state)
{
	_cleanup_(buf_release) struct buf answer = {0};

	(void)state;
	assert_int_equal(ask("GET", "/metrics", "", &answer), 200);
	assert_non_null(strstr(buf_cstr(&answer), "Content-Type: text/plain; version=0.0.4"));
	assert_non_null(strstr(buf_cstr(&answer),
			       "\ncontainer_go_alloc_bytes_total{service=\"shop\",container=\"\","
			       "pid=\"17\",comm=\"sh\\\"op\\\\\\n?\"} 1.8446744073709552e+19\n"));
	assert_non_null(
		strstr(buf_cstr(&answer), "\nsystem_cpu_seconds_total{mode=\"user\"} 1.5\n"));
	/* The same under the name that it had for Go alone. */
	assert_non_null(strstr(buf_cstr(&answer), "\ncontainer_resident_memory_bytes{service="));
	assert_non_null(strstr(buf_cstr(&answer), "\ncontainer_go_resident_memory_bytes{service="));
	/* What cannot be profiled has no counters. */
	assert_null(strstr(buf_cstr(&answer), "pid=\"18\""));
	assert_non_null(strstr(buf_cstr(&answer), "\nsonde_store_writing 0\n"));
	assert_non_null(strstr(buf_cstr(&answer), "\nsonde_lag_seconds -0.005\n"));
	assert_non_null(strstr(buf_cstr(&answer), "\nsonde_feature_on{feature=\"cpu\"} 0\n"));
	assert_non_null(strstr(buf_cstr(&answer), "\nsonde_feature_on{feature=\"go\"} 1\n"));
	assert_non_null(strstr(buf_cstr(&answer), "\nsonde_feature_on{feature=\"store\"} 0\n"));
	check_metrics(body_of(&answer));
}

static bool read_docs(struct buf *docs)
{
	static const char *const paths[] = {"docs/API.md", "../docs/API.md", "../../docs/API.md"};
	char beside[512];
	struct err err;

	/* From the folder where this was compiled, or one that is near. */
	(void)snprintf(beside, sizeof(beside), "%.*s/../../docs/API.md",
		       (int)(strrchr(__FILE__, '/') - __FILE__), __FILE__);
	if (io_read_file(AT_FDCWD, beside, docs, &err) == 0)
		return buf_cstr(docs) != NULL;

	for (size_t i = 0; i < 3; i++)
		if (io_read_file(AT_FDCWD, paths[i], docs, &err) == 0)
			return buf_cstr(docs) != NULL;
	return false;
}

/* Every "key" between the two places of the text is in the answer. */
static void expect_keys(const char *from, const char *to, const char *path)
{
	_cleanup_(buf_release) struct buf answer = {0};
	char key[64];
	int len = 0;

	assert_int_equal(ask("GET", path, "", &answer), 200);
	for (const char *at = from; (at = strchr(at, '"')) && at < to; at += len + 2) {
		char wanted[80];

		if (sscanf(at, "\"%63[a-z_]\"%n", key, &len) != 1 || len < 3) {
			len = 0;
			at = strchr(at + 1, '"') ? strchr(at + 1, '"') - 1 : to;
			continue;
		}
		len -= 2;
		/* Only where something is. */
		if (strcmp(key, "damaged") == 0 || strcmp(key, "build_of") == 0 ||
		    strcmp(key, "variants") == 0)
			continue;
		(void)snprintf(wanted, sizeof(wanted), "\"%s\":", key);
		if (!strstr(buf_cstr(&answer), wanted))
			fail_msg("docs/API.md promises %s of %s", wanted, path);
	}
}

static void answers_have_the_keys_of_the_docs(void **state)
{
	static const struct {
		const char *row;
		const char *path;
	} rows[] = {
		{"GET `/api/health`", "/api/health"},
		{"GET `/api/services`", "/api/services"},
		{"GET `/api/targets`", "/api/targets"},
		{"GET `/api/labels`", "/api/labels?service=shop"},
		{"GET `/api/series`", "/api/series?" WINDOW},
		{"GET `/api/top`", "/api/top?" TWO_WINDOWS},
		{"GET `/api/function`", "/api/function?" TWO_WINDOWS "&name=a"},
		{"GET `/api/function/series`", "/api/function/series?" WINDOW "&name=a"},
	};
	_cleanup_(buf_release) struct buf docs = {0};
	const char *at;

	(void)state;
	if (!read_docs(&docs))
		skip();
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		at = strstr(buf_cstr(&docs), rows[i].row);
		assert_non_null(at);
		expect_keys(at, strchr(at, '\n'), rows[i].path);
	}
	at = strstr(buf_cstr(&docs), "{\"unit\": \"bytes\"");
	assert_non_null(at);
	/* Its values are texts as well: "bytes" and "snapshot" stand in for none. */
	at = strstr(at, "\"from\"");
	expect_keys(at, strstr(at, "\"names\""), "/api/flame?" TWO_WINDOWS);
	at = strstr(at, "\"name\": [");
	expect_keys(at, strstr(at, "```"), "/api/flame?" TWO_WINDOWS);
}

static void a_second_server_says_that_the_port_is_taken(void **state)
{
	struct server_config config = {0};
	struct server *second = NULL;
	struct err err = {};
	char listen[32];

	(void)state;
	(void)snprintf(listen, sizeof(listen), "127.0.0.1:%u", server_port(server));
	config.listen = listen;
	assert_int_equal(server_start(&config, NULL, &store, &second, &err), -EADDRINUSE);
	assert_int_equal(err.cause, ERR_CAUSE_BUSY);
	assert_non_null(strstr(err.remedy, "is another sonde running?"));
	config.listen = "0.0.0.0:7780";
	assert_int_equal(server_start(&config, NULL, &store, &second, &err), -EINVAL);
	assert_null(second);
}

#define SERVER_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SERVER_TEST(overview_has_whole_steps_and_refreshes_what_changed),
		SERVER_TEST(every_route_answers),
		SERVER_TEST(wrong_questions_get_a_sentence),
		SERVER_TEST(pprof_is_a_profile_with_a_telling_name),
		SERVER_TEST(headers_keep_other_sites_out),
		SERVER_TEST(only_our_host_is_served),
		SERVER_TEST(requests_of_two_meanings_are_refused),
		SERVER_TEST(what_is_no_request_is_not_served),
		SERVER_TEST(odd_but_plain_requests_are_served),
		SERVER_TEST(only_get_and_head_are_methods),
		SERVER_TEST(malformed_requests_do_no_harm),
		SERVER_TEST(giants_are_refused),
		SERVER_TEST(many_connections_are_served),
		SERVER_TEST(slow_clients_do_not_stop_others),
		SERVER_TEST(no_number_of_slow_clients_keeps_the_page_away),
		SERVER_TEST(whose_a_connection_is_is_known),
		SERVER_TEST(heavy_questions_are_limited),
		cmocka_unit_test_teardown(who_never_ends_its_headers_is_cut_off, tear_down),
		cmocka_unit_test_teardown(who_reads_its_answer_too_slowly_is_cut_off, tear_down),
		SERVER_TEST(answers_are_packed_for_who_accepts_it),
		SERVER_TEST(assets_are_not_sent_twice),
		SERVER_TEST(metrics_are_what_prometheus_reads),
		SERVER_TEST(answers_have_the_keys_of_the_docs),
		SERVER_TEST(a_second_server_says_that_the_port_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
