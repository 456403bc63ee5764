/*
 * bench/heap_strategies.c: the heap buckets of one running program, read in four ways.
 *
 *   chase     along the list, two preads of /proc/PID/mem per bucket
 *   centred   along the list through one window of 256 KB around the wanted address, read again
 *             whenever that is outside: what Coroot's node agent does
 *   first     ours, knowing nothing yet
 *   repeated  ours, again
 *
 * Each round runs every strategy a few times in a row. All of these passes make its figures; the
 * first of each row, which finds the CPU's caches filled by another strategy, also makes those
 * that are called cold. All take the same counts out of every bucket, and their sums are compared
 * in the end: who reads less because it skips something fails. Usage: heap_strategies PID ROUNDS
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "bench.h"
#include "golang/buckets/bucket.h"
#include "golang/heap/heap.h"
#include "golang/process_state.h"

#define ROW 7
#define WINDOW_BYTES ((size_t)256 << 10)

/* What was found: alloc_objects, alloc_space, inuse_objects, inuse_space of all buckets. */
struct sums {
	uint64_t buckets;
	uint64_t values[4];
};

/* One descriptor of /proc/PID/mem, with the window of the centred strategy. */
struct reader {
	int fd;
	uint64_t syscalls;
	uint64_t bytes;
	uint64_t base;
	size_t valid;
	uint8_t window[WINDOW_BYTES];
};

typedef void (*read_fn)(struct reader *r, uint64_t addr, void *dst, size_t len);

static ssize_t reader_pread(struct reader *r, uint64_t addr, void *dst, size_t len)
{
	ssize_t n = pread(r->fd, dst, len, (off_t)addr);

	r->syscalls++;
	r->bytes += n > 0 ? (uint64_t)n : 0;
	return n;
}

static void read_plain(struct reader *r, uint64_t addr, void *dst, size_t len)
{
	if (reader_pread(r, addr, dst, len) != (ssize_t)len) {
		(void)fprintf(stderr, "cannot read a bucket: %s\n", strerror(errno));
		exit(1);
	}
}

static void read_centred(struct reader *r, uint64_t addr, void *dst, size_t len)
{
	if (addr < r->base || addr + len > r->base + r->valid) {
		r->base = addr - WINDOW_BYTES / 2;
		r->valid = 0;
		while (r->valid < WINDOW_BYTES) {
			ssize_t n = reader_pread(r, r->base + r->valid, r->window + r->valid,
						 WINDOW_BYTES - r->valid);
			if (n <= 0)
				break;
			r->valid += (size_t)n;
		}
	}
	/* A window that begins in unmapped memory comes back empty. The original ends its walk
	 * there, with the rest of the list lost; to compare equal work, this one goes on. */
	if (addr + len > r->base + r->valid)
		read_plain(r, addr, dst, len);
	else
		memcpy(dst, r->window + (addr - r->base), len);
}

static void sums_add(struct sums *s, const struct golang_counts *c, uint64_t size)
{
	s->buckets++;
	s->values[0] += c->allocs;
	s->values[1] += c->allocs * size;
	s->values[2] += c->allocs - c->frees;
	s->values[3] += (c->allocs - c->frees) * size;
}

/* Walks the list; every bucket costs two reads: its header, then its stack and record. */
static struct sums walk(struct reader *r, const struct golang_process *p, read_fn read_bytes)
{
	static uint8_t rest[8 * GOLANG_BUCKET_MAX_DEPTH + 256];
	struct golang_bucket_header h;
	struct sums s = {0};
	uint64_t addr;
	uint32_t cycle;

	r->syscalls = r->bytes = r->base = r->valid = 0;
	read_plain(r, p->vars.mbuckets, &addr, sizeof(addr));
	read_plain(r, p->vars.mprof_cycle, &cycle, sizeof(cycle));
	for (; addr; addr = h.allnext) {
		struct golang_counts c;

		read_bytes(r, addr, &h, sizeof(h));
		if (h.depth > GOLANG_BUCKET_MAX_DEPTH)
			break;
		read_bytes(r, addr + sizeof(h), rest,
			   golang_bucket_bytes(p->layout, h.depth) - sizeof(h));
		c = golang_bucket_counts(rest + 8 * h.depth, h.size,
					 cycle >> p->layout->cycle_shift, p->layout);
		sums_add(&s, &c, h.size);
	}
	return s;
}

static struct sums heap_sums(struct golang_heap *heap)
{
	_cleanup_(profile_freep) struct profile *profile = NULL;
	struct sums s = {.buckets = golang_heap_stats(heap)->buckets};
	struct err err = {0};

	/* At a rate of 1 nothing is scaled. */
	golang_heap_scale_by(heap, 1);
	bench_check(golang_heap_profile(heap, &profile, &err), &err);
	for (size_t i = 0; i < profile_n_samples(profile); i++)
		for (size_t k = 0; k < ARRAY_SIZE(s.values); k++)
			s.values[k] += (uint64_t)profile_sample_at(profile, i)->values[k];
	return s;
}

enum strategy {
	CHASE,
	CENTRED,
	FIRST,
	REPEATED,
	STRATEGIES,
};

struct bench {
	struct golang_process *process;
	struct golang_heap *known;
	struct reader reader;
	struct bench_series all[STRATEGIES];
	struct bench_series cold[STRATEGIES];
	struct sums sums[STRATEGIES];
};

static void ours(struct bench *b, struct golang_heap *heap)
{
	_cleanup_(golang_heap_freep) struct golang_heap *fresh = NULL;
	struct err err = {0};

	if (!heap) {
		bench_check(golang_heap_new(b->process, &fresh, &err), &err);
		heap = fresh;
	}
	bench_check(golang_heap_read(heap, &err), &err);
}

static void run_pass(struct bench *b, enum strategy strategy, bool cold)
{
	struct proc_mem *mem = golang_process_mem(b->process);
	struct proc_mem_stats before = proc_mem_stats(mem), after;
	struct bench_series *series = &b->all[strategy];
	struct bench_timer t = bench_start();

	if (strategy == CHASE)
		b->sums[strategy] = walk(&b->reader, b->process, read_plain);
	else if (strategy == CENTRED)
		b->sums[strategy] = walk(&b->reader, b->process, read_centred);
	else
		ours(b, strategy == FIRST ? NULL : b->known);
	after = proc_mem_stats(mem);
	bench_stop(series, t, after.syscalls - before.syscalls + b->reader.syscalls,
		   after.bytes - before.bytes + b->reader.bytes);
	b->reader.syscalls = b->reader.bytes = 0;
	if (cold)
		b->cold[strategy].costs[b->cold[strategy].n++] = series->costs[series->n - 1];
}

static int report(const struct bench *b)
{
	_cleanup_(buf_release) struct buf out = buf_with_max(64 << 10);
	struct json j = json_to(&out);
	const struct golang_facts *facts = golang_process_facts(b->process);

	json_object_begin(&j);
	json_key(&j, "go");
	json_cstring(&j, facts->version);
	json_key(&j, "buckets");
	json_uint(&j, b->sums[0].buckets);
	json_key(&j, "retries");
	json_uint(&j, golang_heap_stats(b->known)->retries);
	for (size_t i = 0; i < STRATEGIES; i++) {
		bench_series_json(&b->all[i], &j);
		bench_series_json(&b->cold[i], &j);
	}
	json_object_end(&j);
	return bench_print(&j);
}

/* Does what was found agree? The first reading is the base of the repeated ones. */
static bool agree(struct bench *b)
{
	b->sums[FIRST] = b->sums[REPEATED] = heap_sums(b->known);
	for (size_t i = 1; i < STRATEGIES; i++)
		if (memcmp(&b->sums[0], &b->sums[i], sizeof(b->sums[0])) != 0)
			return false;
	return true;
}

int main(int argc, char **argv)
{
	static const char *const names[STRATEGIES][2] = {
		{"chase", "chase_cold"},
		{"centred", "centred_cold"},
		{"first", "first_cold"},
		{"repeated", "repeated_cold"},
	};
	static struct bench b;
	struct err err = {0};
	uint64_t rounds;
	char path[64];
	pid_t pid;

	if (argc != 3) {
		(void)fprintf(stderr, "usage: heap_strategies PID ROUNDS\n");
		return 2;
	}
	pid = (pid_t)bench_number("PID", argv[1], INT32_MAX);
	rounds = bench_number("ROUNDS", argv[2], BENCH_MAX_ROUNDS / ROW);
	b.process = bench_open(pid, NULL);
	(void)snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	b.reader.fd = open(path, O_RDONLY | O_CLOEXEC);
	if (b.reader.fd < 0) {
		(void)fprintf(stderr, "cannot open %s: %s\n", path, strerror(errno));
		return 1;
	}
	bench_check(golang_heap_new(b.process, &b.known, &err), &err);
	/* The first repetition sorts the buckets by address; only those after it are alike. */
	for (int i = 0; i < 2; i++)
		bench_check(golang_heap_read(b.known, &err), &err);
	for (size_t i = 0; i < STRATEGIES; i++) {
		b.all[i].name = names[i][0];
		b.cold[i].name = names[i][1];
	}
	for (uint64_t i = 0; i < rounds * STRATEGIES * ROW; i++)
		run_pass(&b, i / ROW % STRATEGIES, i % ROW == 0);
	if (!agree(&b)) {
		(void)fprintf(stderr, "the strategies found different profiles\n");
		return 1;
	}
	return report(&b);
}
