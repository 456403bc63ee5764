/*
 * bench/ui_overview.c: what the overview of many services costs the server: a made-up store of a
 * day, packed as `sonde run` packs it, and /api/overview asked for all of it, and for what is new;
 * and /api/services, which reads every point.
 *
 *     ui_overview DIR ROUNDS SERVICES INTERVAL_S
 *
 * DIR, an empty folder, takes the store. Services have CPU profiles and resident memory, one in
 * five also a Go heap; one in ten is made of programs that live for an interval. The figures go to
 * standard output as JSON: CPU of each response, and the sizes, compressed.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bench.h"
#include "pipeline/metrics.h"
#include "server/api/known.h"
#include "server/handler.h"
#include "store/sqlite/sqlite.h"

#define DAY_NS (86400 * (int64_t)NS_PER_SEC)
#define HOUR_NS (3600 * (int64_t)NS_PER_SEC)
#define MAX_SERVICES 10000

struct day {
	struct store *store;
	int64_t now_ns;
	unsigned int services;
	int64_t interval_ns;
	uint64_t state;
};

static const struct metric memory = {.name = "process.memory",
				     .kind = METRIC_GAUGE,
				     .unit = "bytes",
				     .stream = "process:memory:bytes"};
static const struct metric busy = {.name = "system.cpu.busy",
				   .kind = METRIC_COUNTER,
				   .unit = "nanoseconds",
				   .stream = "system:cpu_busy:nanoseconds"};
static const struct metric used = {.name = "system.memory.used",
				   .kind = METRIC_GAUGE,
				   .unit = "bytes",
				   .stream = "system:memory_used:bytes"};

static int64_t day_now(void *ctx)
{
	return ((struct day *)ctx)->now_ns;
}

static uint64_t draw(struct day *d, uint64_t below)
{
	d->state = d->state * 6364136223846793005U + 1442695040888963407U;
	return (d->state >> 33) % below;
}

/* One stack with these values. */
static struct profile *make_profile(const char *const types[][2], size_t n, const int64_t *values)
{
	struct profile *p = profile_new();
	struct profile_function f = {0};
	struct profile_line line = {.line = 1};
	uint32_t location = 0, stack = 0;
	int r = p ? 0 : -1;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = profile_add_type(p, types[i][0], types[i][1]);
	if (r == 0)
		r = profile_add_string(p, view_str("work"), &f.name);
	if (r == 0)
		r = profile_add_function(p, &f, &line.function);
	if (r == 0)
		r = profile_add_location(p, 0, PROFILE_NO_MAPPING, &line, 1, &location);
	if (r == 0)
		r = profile_add_stack(p, &location, 1, &stack);
	if (r == 0)
		r = profile_add_sample(p, stack, values, NULL, 0);
	bench_check(r, &(struct err){.text = "no memory for a profile"});
	return p;
}

static void write_profile(struct day *d, const struct store_entry *like, const char *family,
			  struct profile *p)
{
	struct store_entry e = *like;
	struct err err = {};

	e.family = family;
	e.profile = p;
	e.snapshot_types = registry_snapshot_types(family, p);
	bench_check(store_write(d->store, &e, &err), &err);
	profile_free(p);
}

static void write_metrics(struct day *d, const struct store_entry *like,
			  struct metric_point *points, size_t n)
{
	const struct metrics metrics = {.points = points, .len = n};
	const struct store_metrics e = {.service = like->service,
					.labels = like->labels,
					.n_labels = like->n_labels,
					.time_ns = like->time_ns,
					.duration_ns = d->interval_ns,
					.metrics = &metrics};
	struct err err = {};

	bench_check(store_write_metrics(d->store, &e, &err), &err);
}

static void write_service(struct day *d, unsigned int i)
{
	static const char *const cpu[][2] = {{"cpu", "nanoseconds"}, {"samples", "count"}};
	static const char *const heap[][2] = {{"inuse_space", "bytes"},
					      {"inuse_objects", "count"},
					      {"alloc_space", "bytes"},
					      {"alloc_objects", "count"}};
	bool is_short = i % 10 == 9;
	char name[64], pid[32];
	const struct label labels[] = {
		{"process.pid", pid},
		{"process.runtime.description", i % 5 ? "native" : "Go 1.27"},
		{"sonde.parent", is_short ? "make" : "systemd"}};
	const struct store_entry e = {
		.service = name, .labels = labels, .n_labels = 3, .time_ns = d->now_ns};
	int64_t samples = (int64_t)draw(d, 40), kib = 4 * (int64_t)(1000 + draw(d, 100000));
	const int64_t values[] = {samples * 10101010, samples};
	const int64_t live[] = {kib * 512, kib, kib * 64, kib};
	struct metric_point point = {.metric = &memory, .value = (double)(kib * 1024)};

	/* Programs that live for a moment are not always there. */
	if (is_short && draw(d, 20))
		return;
	(void)snprintf(name, sizeof(name), is_short ? "tool-%u" : "service-%u.example", i);
	(void)snprintf(pid, sizeof(pid), "%llu",
		       (unsigned long long)(is_short ? draw(d, 4000000) : 1000 + i));
	if (samples > 0)
		write_profile(d, &e, "cpu", make_profile(cpu, 2, values));
	write_metrics(d, &e, &point, 1);
	if (i % 5 == 0)
		write_profile(d, &e, "go_heap", make_profile(heap, 4, live));
}

static void write_machine(struct day *d)
{
	struct metric_point points[] = {
		{.metric = &busy, .value = 0, .increase = (double)draw(d, 1U << 30)},
		{.metric = &used, .value = (double)((uint64_t)8 << 30)}};
	struct metric_point covered = {.metric = &registry_metrics[METRIC_SONDE_COVERED],
				       .attributes = {"cpu"},
				       .value = NAN,
				       .increase = (double)d->interval_ns};
	struct store_entry e = {.service = "(machine)", .time_ns = d->now_ns};

	write_metrics(d, &e, points, 2);
	e.service = "sonde";
	write_metrics(d, &e, &covered, 1);
}

static void fill(struct day *d, int64_t end_ns)
{
	int64_t packed_ns = d->now_ns;
	struct err err = {};

	for (; d->now_ns < end_ns; d->now_ns += d->interval_ns) {
		for (unsigned int i = 0; i < d->services; i++)
			write_service(d, i);
		write_machine(d);
		bench_check(store_commit(d->store, &err), &err);
		if (d->now_ns - packed_ns < 60 * (int64_t)NS_PER_SEC)
			continue;
		packed_ns = d->now_ns;
		bench_check(store_maintain(d->store, d->now_ns, &err), &err);
	}
}

static size_t ask(struct server_handler *serve, const char *uri, struct bench_series *series)
{
	struct server_raw_request rq = {.method = "GET", .uri = uri, .accept_encoding = "gzip"};
	_cleanup_(server_answer_release) struct server_answer a = server_answer_new();
	struct bench_timer start = bench_start();

	server_respond(serve, &rq, &a);
	bench_stop(series, start, 0, a.body.len);
	bench_check(a.status == 200 ? 0 : -1, &(struct err){.text = "a request was refused"});
	return a.body.len;
}

int main(int argc, char **argv)
{
	static struct bench_series whole = {.name = "whole"}, refresh = {.name = "refresh"},
				   services = {.name = "services"};
	struct day d = {.state = 1};
	struct store_sqlite_config config = {
		.dir = argc == 5 ? argv[1] : NULL, .now_ns = day_now, .now_ctx = &d};
	_cleanup_(buf_release) struct buf out = {0};
	struct json j = json_to(&out);
	struct server_handler serve = {0};
	int64_t end_ns = (int64_t)clock_unix_ns();
	size_t whole_bytes = 0, refresh_bytes = 0;
	char since[128];
	struct err err = {};
	uint64_t rounds;

	bench_check(config.dir ? 0 : -1,
		    &(struct err){.text = "usage: ui_overview DIR ROUNDS SERVICES INTERVAL_S"});
	rounds = bench_number("rounds", argv[2], BENCH_MAX_ROUNDS);
	d.services = (unsigned int)bench_number("services", argv[3], MAX_SERVICES);
	d.interval_ns = (int64_t)(bench_number("interval", argv[4], 60) * NS_PER_SEC);
	d.now_ns = end_ns - DAY_NS;
	bench_check(store_sqlite_open(&config, &d.store, &err), &err);
	fill(&d, end_ns);
	serve.context = (struct server_context){.store = d.store,
						.interval_ns = (uint64_t)d.interval_ns,
						.known = server_known_new()};
	server_gate_init(&serve.gate, 1, 1);
	(void)snprintf(since, sizeof(since), "/api/overview?from=-24h&to=now&since=%lld",
		       (long long)(d.now_ns / (20 * 60 * (int64_t)NS_PER_SEC) * 20 * 60 * 1000));
	for (uint64_t i = 0; i < rounds; i++) {
		whole_bytes = ask(&serve, "/api/overview?from=-24h&to=now", &whole);
		refresh_bytes = ask(&serve, since, &refresh);
	}
	(void)ask(&serve, "/api/services?from=-24h&to=now", &services);
	json_object_begin(&j);
	server_answer_uint(&j, "whole_bytes", whole_bytes);
	server_answer_uint(&j, "refresh_bytes", refresh_bytes);
	bench_series_json(&whole, &j);
	bench_series_json(&refresh, &j);
	bench_series_json(&services, &j);
	json_object_end(&j);
	store_close(d.store);
	server_known_free(serve.context.known);
	server_gate_release(&serve.gate);
	return bench_print(&j);
}
