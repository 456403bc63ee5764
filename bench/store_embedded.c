/* bench/store_embedded.c: sonde's own store, as the agent uses it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/sqlite/sqlite.h"
#include "store_engine.h"

struct embedded {
	struct engine base;
	struct load *load;
	struct store *store;
	int64_t now_ns;
};

static int64_t now(void *ctx)
{
	return ((struct embedded *)ctx)->now_ns;
}

static void check(int r, const struct err *err)
{
	if (r < 0)
		engine_fail("%s", err->text);
}

static struct engine *embedded_open(const char *place, struct load *load)
{
	struct embedded *e = calloc(1, sizeof(*e));
	struct store_sqlite_config config = {.dir = place, .now_ns = now, .now_ctx = e};
	struct err err = {};

	if (!e)
		engine_fail("no memory");
	e->base.ops = &engine_embedded;
	e->load = load;
	check(store_sqlite_open(&config, &e->store, &err), &err);
	return &e->base;
}

static void embedded_write(struct engine *base, const struct load_draw *d)
{
	struct embedded *e = (struct embedded *)base;
	struct profile *p = load_profile(e->load, d);
	char pid[16];
	const struct label labels[] = {{"process.pid", pid}, {"host.name", "bench"}};
	const struct store_entry entry = {
		.service = load_service(d->service),
		.family = "bench",
		.labels = labels,
		.n_labels = 2,
		.time_ns = d->time_ns,
		.duration_ns = LOAD_MINUTE_NS,
		.profile = p,
	};
	struct err err = {};
	uint64_t start;

	e->now_ns = d->time_ns;
	(void)snprintf(pid, sizeof(pid), "%u", d->pid);
	start = clock_cpu_ns();
	check(store_write(e->store, &entry, &err), &err);
	base->write_cpu_ns += clock_cpu_ns() - start;
	profile_free(p);
}

static void maintain(struct embedded *e, int64_t now_ns)
{
	uint64_t start = clock_cpu_ns();
	struct err err = {};

	e->now_ns = now_ns;
	check(store_maintain(e->store, now_ns, &err), &err);
	e->base.pack_cpu_ns += clock_cpu_ns() - start;
}

static void embedded_commit(struct engine *base, int64_t now_ns)
{
	struct embedded *e = (struct embedded *)base;
	uint64_t start = clock_cpu_ns();
	struct err err = {};

	check(store_commit(e->store, &err), &err);
	base->write_cpu_ns += clock_cpu_ns() - start;
	maintain(e, now_ns);
}

static void embedded_settle(struct engine *base, int64_t now_ns)
{
	maintain((struct embedded *)base, now_ns);
}

static void embedded_sum(struct engine *base, unsigned int service, unsigned int type,
			 const int64_t window_ns[2], struct engine_sum *ret)
{
	struct embedded *e = (struct embedded *)base;
	const struct store_window w = {
		.service = load_service(service),
		.type = load_type(type),
		.from_ns = window_ns[0],
		.to_ns = window_ns[1],
	};
	struct store_sum sum = {0};
	struct err err = {};

	check(store_sum(e->store, &w, &sum, &err), &err);
	*ret = (struct engine_sum){.stacks = profile_n_samples(sum.profile)};
	for (size_t i = 0; i < ret->stacks; i++)
		ret->total += profile_sample_at(sum.profile, i)->values[0];
	profile_free(sum.profile);
}

#define STEPS 300

static int64_t embedded_curve(struct engine *base, unsigned int service, unsigned int type,
			      const char *function, const int64_t window_ns[2])
{
	struct embedded *e = (struct embedded *)base;
	const struct store_window w = {
		.service = load_service(service),
		.type = load_type(type),
		.from_ns = window_ns[0],
		.to_ns = window_ns[1],
	};
	const struct store_function f = {.name = function};
	double self[STEPS], total[STEPS];
	uint8_t unread[STEPS];
	const struct store_curve curve = {.step_ns = (w.to_ns - w.from_ns) / STEPS,
					  .n = STEPS,
					  .self = self,
					  .total = total,
					  .unread = unread};
	struct err err = {};
	int64_t sum = 0;

	check(store_curve(e->store, &w, &f, &curve, &err), &err);
	for (size_t i = 0; i < STEPS; i++)
		sum += isnan(total[i]) ? 0 : (int64_t)total[i];
	return sum;
}

static uint64_t embedded_cpu_ns(struct engine *base)
{
	(void)base;
	return clock_cpu_ns();
}

static uint64_t embedded_bytes(struct engine *base)
{
	struct store_status status;

	store_status(((struct embedded *)base)->store, &status);
	return status.bytes_on_disk;
}

static void embedded_close(struct engine *base)
{
	store_close(((struct embedded *)base)->store);
	free(base);
}

const struct engine_ops engine_embedded = {
	.open = embedded_open,
	.write = embedded_write,
	.commit = embedded_commit,
	.settle = embedded_settle,
	.sum = embedded_sum,
	.curve = embedded_curve,
	.cpu_ns = embedded_cpu_ns,
	.bytes = embedded_bytes,
	.close = embedded_close,
};
