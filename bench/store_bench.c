/*
 * bench/store_bench.c: one engine keeps the made-up load and is asked for sums of it. The figures
 * go to standard output as JSON; what they are compared with is another run with another engine.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "store_engine.h"

#define HOUR_NS (60 * LOAD_MINUTE_NS)
#define MAX_QUERIES 16

struct run {
	struct load *load;
	struct engine *engine;
	unsigned int first; /* service */
	unsigned int services;
	uint32_t minutes;
	uint64_t samples;
	uint64_t early_samples; /* until the last hour began */
	uint64_t early_cpu_ns;
	struct buf out;
	struct json json;
};

void engine_fail(const char *fmt, ...)
{
	va_list args;

	(void)fputs("store_bench: ", stderr);
	va_start(args, fmt);
	(void)vfprintf(stderr, fmt, args);
	va_end(args);
	(void)fputc('\n', stderr);
	exit(1);
}

/* A field of our own status, in kB. */
static uint64_t status_kb(const char *field)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/status", "re");
	size_t len = strlen(field);
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, field, len) == 0 && line[len] == ':')
			return strtoull(line + len + 1, NULL, 10);
	return 0;
}

static void put_number(struct run *r, const char *key, double value)
{
	json_key(&r->json, key);
	json_double(&r->json, value);
}

static int compare_doubles(const void *va, const void *vb)
{
	double a = *(const double *)va, b = *(const double *)vb;

	return a < b ? -1 : a > b;
}

/* The sums of a window, over services and types in turn: the median of their CPU time. */
static void ask(struct run *r, const char *key, int64_t from_ns, int64_t to_ns)
{
	const int64_t window[] = {from_ns, to_ns};
	struct engine_sum sum = {0};
	double ms[MAX_QUERIES];
	int64_t total = 0;
	uint64_t stacks = 0;

	for (unsigned int i = 0; i < MAX_QUERIES; i++) {
		uint64_t start = r->engine->ops->cpu_ns(r->engine);

		r->engine->ops->sum(r->engine, r->first + i * 7 % r->services, i % LOAD_TYPES,
				    window, &sum);
		ms[i] = (double)(r->engine->ops->cpu_ns(r->engine) - start) / 1e6;
		total += sum.total;
		stacks += sum.stacks;
	}
	qsort(ms, MAX_QUERIES, sizeof(*ms), compare_doubles);
	json_key(&r->json, key);
	json_object_begin(&r->json);
	put_number(r, "cpu_ms", (ms[MAX_QUERIES / 2 - 1] + ms[MAX_QUERIES / 2]) / 2);
	put_number(r, "max_ms", ms[MAX_QUERIES - 1]);
	put_number(r, "stacks", (double)stacks / MAX_QUERIES);
	json_key(&r->json, "total");
	json_int(&r->json, total);
	json_object_end(&r->json);
}

/* The same of one function over the window: of frames anywhere between root and leaf. */
static void ask_curves(struct run *r, const char *key, int64_t from_ns, int64_t to_ns)
{
	const int64_t window[] = {from_ns, to_ns};
	double ms[MAX_QUERIES];
	int64_t total = 0;

	if (!r->engine->ops->curve)
		return;
	for (unsigned int i = 0; i < MAX_QUERIES; i++) {
		unsigned int service = r->first + i * 7 % r->services;
		uint16_t frames[LOAD_DEPTH];
		uint32_t n = load_frames(r->load, service, i, frames);
		const char *file;
		const char *name = load_function(r->load, frames[i * n / MAX_QUERIES], &file);
		uint64_t start = r->engine->ops->cpu_ns(r->engine);

		total += r->engine->ops->curve(r->engine, service, i % LOAD_TYPES, name, window);
		ms[i] = (double)(r->engine->ops->cpu_ns(r->engine) - start) / 1e6;
	}
	qsort(ms, MAX_QUERIES, sizeof(*ms), compare_doubles);
	json_key(&r->json, key);
	json_object_begin(&r->json);
	put_number(r, "cpu_ms", (ms[MAX_QUERIES / 2 - 1] + ms[MAX_QUERIES / 2]) / 2);
	put_number(r, "max_ms", ms[MAX_QUERIES - 1]);
	json_key(&r->json, "total");
	json_int(&r->json, total);
	json_object_end(&r->json);
}

static void write_all(struct run *r)
{
	for (uint32_t minute = 0; minute < r->minutes; minute++) {
		struct load_draw d;

		if (minute + 60 == r->minutes) {
			r->early_samples = r->samples;
			r->early_cpu_ns = r->engine->write_cpu_ns + r->engine->pack_cpu_ns;
		}
		for (unsigned int i = r->first; i < r->first + r->services; i++) {
			for (unsigned int p = 0; p < load_processes(i); p++) {
				load_draw(r->load, i, p, minute, &d);
				r->engine->ops->write(r->engine, &d);
				r->samples += d.samples;
			}
		}
		r->engine->ops->commit(r->engine, d.time_ns);
	}
}

static void report_writing(struct run *r)
{
	uint64_t cpu_ns = r->engine->write_cpu_ns + r->engine->pack_cpu_ns;

	put_number(r, "write_cpu_s", (double)r->engine->write_cpu_ns / 1e9);
	put_number(r, "pack_cpu_s", (double)r->engine->pack_cpu_ns / 1e9);
	put_number(r, "million_samples_per_cpu_s", (double)r->samples * 1e3 / (double)cpu_ns);
	put_number(r, "million_samples_per_cpu_s_last_hour",
		   (double)(r->samples - r->early_samples) * 1e3 /
			   (double)(cpu_ns - r->early_cpu_ns));
	put_number(r, "bytes_per_sample",
		   (double)r->engine->ops->bytes(r->engine) / (double)r->samples);
}

/* Windows that end now are asked for before the last days are closed, the others afterwards. */
static void run(struct run *r, uint64_t before_kb)
{
	int64_t end = LOAD_START_NS + (int64_t)r->minutes * LOAD_MINUTE_NS;
	int64_t half = 30 * LOAD_MINUTE_NS;

	write_all(r);
	put_number(r, "memory_mb", ((double)status_kb("VmHWM") - (double)before_kb) / 1024);
	ask(r, "now_1h", end - HOUR_NS, end);
	if (r->minutes >= 1440) {
		ask(r, "now_24h", end - LOAD_DAY_NS, end);
		ask_curves(r, "curve_24h", end - LOAD_DAY_NS, end);
	}
	r->engine->ops->settle(r->engine, end + 2 * HOUR_NS);
	report_writing(r);
	ask(r, "past_1h", end - HOUR_NS, end);
	if (r->minutes >= 120)
		ask(r, "across_1h", end - HOUR_NS - half, end - half);
	if (r->minutes >= 1440)
		ask(r, "past_24h", end - LOAD_DAY_NS, end);
	if (r->minutes >= 2 * 1440)
		ask(r, "across_24h", end - LOAD_DAY_NS - 11 * HOUR_NS - half,
		    end - 11 * HOUR_NS - half);
	if (r->minutes >= 7 * 1440)
		ask(r, "past_7d", end - 7 * LOAD_DAY_NS, end);
}

static const struct {
	const char *name;
	const struct engine_ops *ops;
} engines[] = {
	{"embedded", &engine_embedded},
	{"rows", &engine_rows},
	{"clickhouse", &engine_clickhouse},
};

static unsigned int number(const char *text, unsigned int most)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (end == text || *end || n > most)
		engine_fail("%s: a number up to %u is wanted", text, most);
	return (unsigned int)n;
}

int main(int argc, char **argv)
{
	struct run r = {.load = NULL};
	uint64_t before_kb;

	if (argc != 6)
		engine_fail("usage: store_bench ENGINE PLACE FIRST_SERVICE SERVICES MINUTES");
	r.first = number(argv[3], LOAD_SERVICES - 1);
	r.services = number(argv[4], LOAD_SERVICES - r.first);
	r.minutes = number(argv[5], 30 * 1440);
	if (r.services == 0 || r.minutes < 60)
		engine_fail("a service and an hour are the least");
	for (size_t i = 0; i < ARRAY_SIZE(engines); i++) {
		if (strcmp(engines[i].name, argv[1]) != 0)
			continue;
		r.load = load_new();
		before_kb = status_kb("VmRSS");
		r.engine = engines[i].ops->open(argv[2], r.load);
		r.json = json_to(&r.out);
		json_object_begin(&r.json);
		run(&r, before_kb);
		put_number(&r, "samples", (double)r.samples);
		json_object_end(&r.json);
		r.engine->ops->close(r.engine);
		load_free(r.load);
		(void)printf("%.*s\n", (int)r.out.len, (const char *)r.out.data);
		buf_release(&r.out);
		return 0;
	}
	engine_fail("%s: embedded, rows or clickhouse", argv[1]);
}
