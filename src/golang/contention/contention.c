/*
 * src/golang/contention/contention.c: reads the buckets of waits; see contention.h.
 *
 * Their records are final at once, but count and delay are two words, updated one after the other.
 * So each record is read until two reads agree.
 */
#include "golang/contention/contention.h"

#include <string.h>

#include "golang/binary/stack_depth.h"
#include "golang/contention/state.h"
#include "golang/grow.h"

/* runtime/mprof.go: maxStack until 1.22, then debug.profstackdepth. */
#define DEPTH_OLD 32
#define DEPTH_DEFAULT 128

#define SETTLE_TRIES 8

int golang_contention_new(struct golang_process *process, enum golang_contention_kind kind,
			  struct golang_contention **ret_contention, struct err *err)
{
	_cleanup_(golang_contention_freep) struct golang_contention *c = calloc(1, sizeof(*c));
	uint64_t typ = kind == GOLANG_BLOCK ? GOLANG_BUCKET_BLOCK : GOLANG_BUCKET_MUTEX;
	int r;

	if (!c)
		return err_oom(err);
	c->process = process;
	c->kind = kind;
	c->stats.ticks_how = "not needed yet";
	golang_buckets_init_delays(&c->buckets, process->mem, typ);
	r = golang_contention_vars_find(process, typ, &c->vars, err);
	if (r < 0)
		return golang_process_why(process, r, err);
	*ret_contention = TAKE_PTR(c);
	return 0;
}

void golang_contention_free(struct golang_contention *c)
{
	if (!c)
		return;
	golang_buckets_release(&c->buckets);
	golang_stack_cache_release(&c->names);
	free(c->bases);
	free(c);
}

static uint32_t depth_of(const struct golang_contention *c, int32_t configured)
{
	if (c->process->layout->minor < 23)
		return DEPTH_OLD;
	if (!c->vars.stack_depth || configured < 0 || configured > GOLANG_STACK_DEPTH_MAX)
		return DEPTH_DEFAULT;
	return (uint32_t)configured;
}

static int read_globals(struct golang_contention *c, uint64_t *ret_head, struct err *err)
{
	int32_t depth = 0;
	int64_t rate = 0;
	const struct proc_range ranges[] = {
		{.addr = c->vars.buckets, .dst = ret_head, .len = sizeof(*ret_head)},
		{.addr = c->vars.rate, .dst = &rate, .len = sizeof(rate)},
		{.addr = c->vars.stack_depth, .dst = &depth, .len = sizeof(depth)},
	};
	int r = proc_mem_readv(c->process->mem, ranges,
			       ARRAY_SIZE(ranges) - (c->vars.stack_depth == 0), err);

	if (r < 0)
		return r;
	c->stats.rate = rate;
	c->max_depth = depth_of(c, depth);
	return 0;
}

/* Reads the records that changed once more, all at nearly the same time. */
static int settle_once(struct golang_contention *c, struct proc_range *ranges, uint8_t *records,
		       uint32_t *moving, size_t *n, struct err *err)
{
	size_t left = 0;
	int r;

	for (size_t i = 0; i < *n; i++) {
		const struct golang_bucket *b = &c->buckets.items[moving[i]];

		ranges[i] = (struct proc_range){
			.addr = b->addr + GOLANG_BUCKET_HEADER + 8UL * b->depth,
			.dst = records + i * GOLANG_BUCKET_DELAY_BYTES,
			.len = GOLANG_BUCKET_DELAY_BYTES,
		};
	}
	r = proc_mem_readv(c->process->mem, ranges, *n, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < *n; i++) {
		struct golang_delay *d = &c->buckets.items[moving[i]].delay;
		const uint8_t *p = records + i * GOLANG_BUCKET_DELAY_BYTES;

		if (golang_delay_take(d, p))
			moving[left++] = moving[i];
	}
	*n = left;
	return 0;
}

static int settle(struct golang_contention *c, struct err *err)
{
	size_t n = c->buckets.tally.moved, at = 0;
	_cleanup_free_ uint32_t *moving = calloc(n + 1, sizeof(*moving));
	_cleanup_free_ struct proc_range *ranges = calloc(n + 1, sizeof(*ranges));
	_cleanup_free_ uint8_t *records = calloc(n + 1, GOLANG_BUCKET_DELAY_BYTES);

	if (!moving || !ranges || !records)
		return err_oom(err);
	for (size_t i = 0; i < c->buckets.len && at < n; i++)
		if (c->buckets.items[i].delay.moved)
			moving[at++] = (uint32_t)i;
	n = at;
	for (int tries = 0; n && tries < SETTLE_TRIES; tries++) {
		int r = settle_once(c, ranges, records, moving, &n, err);

		if (r < 0)
			return r;
	}
	c->stats.torn_records = n;
	return 0;
}

static int read_buckets(struct golang_contention *c, uint64_t head, struct err *err)
{
	struct golang_buckets *b = &c->buckets;
	bool known = b->len > 0;
	int r;

	r = golang_buckets_follow(b, head, 0, err);
	if (r == 0 && known)
		r = golang_buckets_reread(b, 0, err);
	if (r == 0)
		r = golang_buckets_reread(b, 0, err);
	if (r == 0 && b->tally.moved)
		r = settle(c, err);
	c->stats.buckets = b->len;
	c->stats.bad_buckets = b->bad;
	c->stats.incomplete = b->incomplete;
	return r;
}

int golang_contention_read(struct golang_contention *c, struct err *err)
{
	struct err why = {0};
	uint64_t head = 0;
	int64_t rate;
	int r, gone;

	c->stats.torn_records = c->stats.unknown_frames = 0;
	r = read_globals(c, &head, &why);
	if (r == 0)
		r = read_buckets(c, head, &why);
	if (r == 0 && c->buckets.len)
		r = golang_contention_clock(c, &why);
	/* The message of a failed read does not tell why; the address space may be gone. */
	gone = golang_contention_rate(c, &rate, err);
	if (gone < 0)
		return gone;
	return r < 0 ? err_pass(err, r, &why) : 0;
}

const struct golang_contention_stats *golang_contention_stats(const struct golang_contention *c)
{
	return &c->stats;
}

int golang_contention_rate(struct golang_contention *c, int64_t *ret_rate, struct err *err)
{
	return proc_mem_check(c->process->mem, c->vars.rate, ret_rate, sizeof(*ret_rate), err);
}

int golang_contention_block_rate(struct golang_contention *c, uint64_t ns, int64_t *ret_rate,
				 struct err *err)
{
	double rate;
	int r;

	/* 0 (off) and 1 (everything) need no clock. */
	if (ns <= 1) {
		*ret_rate = (int64_t)ns;
		return 0;
	}
	r = golang_contention_clock(c, err);
	if (r < 0)
		return r;
	rate = (double)ns * c->stats.ticks_per_second / 1e9;
	if (!(rate < 9e18))
		return err_set(err, -EINVAL, "a rate of %llu ns does not fit",
			       (unsigned long long)ns);
	*ret_rate = rate < 1 ? 1 : (int64_t)rate;
	return 0;
}
