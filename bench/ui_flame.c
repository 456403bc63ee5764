/*
 * bench/ui_flame.c: what the largest flame graph costs the server: a made-up profile of more than
 * 250,000 nodes is stored, and /api/flame asked for it, compressed, as the page does.
 *
 *     ui_flame DIR ROUNDS
 *
 * DIR, an empty folder, takes the store. The figures go to standard output as JSON: CPU of the
 * whole answer and of its query alone, the sizes, and the resident memory after all rounds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench.h"
#include "query/query.h"
#include "server/handler.h"
#include "store/sqlite/sqlite.h"

#define NODES 250000
#define STACKS 22000
#define DEPTH 24
#define SHARED 6 /* frames from the root that have few choices */
#define FUNCTIONS 6000
#define COLLECTIONS 7
#define URI                                                                                        \
	"/api/flame?service=giant&type=go_heap:inuse_space:bytes&from=-5m&to=now&max_nodes=250000"

struct giant {
	struct profile *profile;
	uint32_t locations[FUNCTIONS];
	uint64_t state;
};

static uint64_t draw(struct giant *g, uint64_t below)
{
	g->state = g->state * 6364136223846793005U + 1442695040888963407U;
	return (g->state >> 33) % below;
}

static int add_functions(struct giant *g)
{
	static const char *const packages[] = {"runtime",
					       "net/http",
					       "encoding/json",
					       "reflect",
					       "example.com/mono/orders",
					       "google.golang.org/grpc"};
	int r = profile_add_type(g->profile, "inuse_space", "bytes");

	for (size_t i = 0; r == 0 && i < FUNCTIONS; i++) {
		struct profile_function f = {0};
		struct profile_line line = {.line = (int64_t)i};
		char name[96], file[96];

		(void)snprintf(name, sizeof(name), "%s.(*Type%zu).Method%zu",
			       packages[i % ARRAY_SIZE(packages)], i % 211, i);
		(void)snprintf(file, sizeof(file), "/src/%s/file%zu.go",
			       packages[i % ARRAY_SIZE(packages)], i % 97);
		r = profile_add_string(g->profile, view_str(name), &f.name);
		if (r == 0)
			r = profile_add_string(g->profile, view_str(file), &f.file);
		if (r == 0)
			r = profile_add_function(g->profile, &f, &line.function);
		if (r == 0)
			r = profile_add_location(g->profile, 0, PROFILE_NO_MAPPING, &line, 1,
						 &g->locations[i]);
	}
	return r;
}

/* The same stacks each time, with other values: averages are seldom whole numbers. */
static int add_stacks(struct giant *g, int64_t factor)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < STACKS; i++) {
		int64_t value = (int64_t)(1 + draw(g, 1000000)) * factor;
		uint32_t stack[DEPTH], id;

		/* Leaf first; the frames near the root are shared by many. */
		for (size_t d = 0; d < DEPTH; d++)
			stack[DEPTH - 1 - d] =
				g->locations[d < SHARED ? d * 5 + draw(g, 3) : draw(g, FUNCTIONS)];
		r = profile_add_stack(g->profile, stack, DEPTH, &id);
		if (r == 0)
			r = profile_add_sample(g->profile, id, &value, NULL, 0);
	}
	return r;
}

static void fill(struct store *store, int64_t time_ns, int64_t factor)
{
	struct giant g = {.profile = profile_new(), .state = 1};
	struct store_entry entry = {.service = "giant",
				    .family = "go_heap",
				    .snapshot_types = 1,
				    .profile = g.profile,
				    .time_ns = time_ns,
				    .duration_ns = (int64_t)NS_PER_SEC};
	struct err err = {.text = "no memory for the profile"};

	bench_check(g.profile ? 0 : -1, &err);
	bench_check(add_functions(&g), &err);
	bench_check(add_stacks(&g, factor), &err);
	bench_check(store_write(store, &entry, &err), &err);
	bench_check(store_commit(store, &err), &err);
	profile_free(g.profile);
}

static size_t query(struct store *store, struct bench_series *series)
{
	int64_t now = (int64_t)clock_unix_ns();
	struct store_window w = {.service = "giant",
				 .type = "go_heap:inuse_space:bytes",
				 .from_ns = now - 300 * (int64_t)NS_PER_SEC,
				 .to_ns = now};
	_cleanup_(query_flame_release) struct query_flame flame = {0};
	struct bench_timer start = bench_start();
	struct err err = {};

	bench_check(query_flame(store,
				&(struct query_flame_request){.window = &w, .max_nodes = NODES},
				&flame, &err),
		    &err);
	bench_stop(series, start, 0, 0);
	return flame.n_nodes;
}

static size_t ask(struct server_handler *serve, const char *encoding, struct bench_series *series)
{
	struct server_raw_request rq = {.method = "GET", .uri = URI, .accept_encoding = encoding};
	_cleanup_(server_answer_release) struct server_answer a = server_answer_new();
	struct bench_timer start = bench_start();

	server_respond(serve, &rq, &a);
	bench_check(a.status == 200 ? 0 : -1, &(struct err){.text = "/api/flame was refused"});
	bench_stop(series, start, 0, a.body.len);
	return a.body.len;
}

static uint64_t resident_bytes(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/statm", "re");
	unsigned long long pages = 0;

	if (!f || fscanf(f, "%*s %llu", &pages) != 1)
		return 0;
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

int main(int argc, char **argv)
{
	static struct bench_series queries = {.name = "query"}, plain = {.name = "plain"},
				   packed = {.name = "packed"};
	struct store_sqlite_config config = {.dir = argc == 3 ? argv[1] : NULL};
	_cleanup_(buf_release) struct buf out = {0};
	uint64_t rounds;
	struct json j = json_to(&out);
	struct server_handler serve = {0};
	size_t nodes = 0, bytes = 0, gzipped = 0;
	struct err err = {};

	bench_check(config.dir ? 0 : -1, &(struct err){.text = "usage: ui_flame DIR ROUNDS"});
	rounds = bench_number("rounds", argv[2], BENCH_MAX_ROUNDS);
	bench_check(store_sqlite_open(&config, &serve.context.store, &err), &err);
	server_gate_init(&serve.gate, 1, 1);
	for (int i = 1; i <= COLLECTIONS; i++)
		fill(serve.context.store,
		     (int64_t)clock_unix_ns() - (COLLECTIONS - i) * (int64_t)NS_PER_SEC, i);
	for (uint64_t i = 0; i < rounds; i++) {
		nodes = query(serve.context.store, &queries);
		bytes = ask(&serve, NULL, &plain);
		gzipped = ask(&serve, "gzip", &packed);
	}
	json_object_begin(&j);
	server_answer_uint(&j, "nodes", nodes);
	server_answer_uint(&j, "bytes", bytes);
	server_answer_uint(&j, "gzip_bytes", gzipped);
	server_answer_uint(&j, "rss_bytes", resident_bytes());
	bench_series_json(&queries, &j);
	bench_series_json(&plain, &j);
	bench_series_json(&packed, &j);
	json_object_end(&j);
	store_close(serve.context.store);
	server_gate_release(&serve.gate);
	return bench_print(&j);
}
