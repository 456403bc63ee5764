/*
 * tests/fuzz/golang/fuzz_contention.c: lists of waits of a made-up program, read twice and made
 * profiles. Hashes are right unless the input says otherwise, so that the walk gets far.
 *
 *   0   kind, release, rate, clock (u64 each), depth of stacks (u32)
 *   22  per bucket: flags, depth, count, cycles (u64 each), u16 addresses
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "../../unit/golang/test_program.h"
#include "golang/contention/state.h"
#include "mem_fake.h"

#define BASE ((uint64_t)0x7000000)
#define MEMORY ((size_t)32 << 10)
#define AT_BUCKETS 64
#define HEADER 22
#define DESCRIPTION 18

enum { WRONG_HASH = 1, WRONG_TYPE = 2, CIRCLE = 4, WILD = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct waits {
	uint8_t memory[MEMORY];
	size_t used;
};

static uint64_t address_of(const uint8_t *d)
{
	uint16_t value;

	memcpy(&value, d, sizeof(value));
	return value == UINT16_MAX ? UINT64_MAX : program_address_of(0, value);
}

/* Adds the bucket that is described at data; returns how many bytes that took, 0 at the end. */
static size_t add_bucket(struct waits *w, uint64_t typ, const uint8_t *data, size_t size)
{
	struct golang_bucket_header h = {.typ = typ};
	uint8_t *at = w->memory + w->used;
	uint64_t head;

	if (size < DESCRIPTION)
		return 0;
	h.depth = MIN((size_t)data[1], (size - DESCRIPTION) / 2);
	if (w->used + sizeof(h) + 8 * h.depth + GOLANG_BUCKET_DELAY_BYTES > MEMORY)
		return 0;
	for (uint64_t i = 0; i < h.depth; i++) {
		uint64_t pc = address_of(data + DESCRIPTION + 2 * i);

		memcpy(at + sizeof(h) + 8 * i, &pc, sizeof(pc));
	}
	memcpy(&h.allnext, w->memory, sizeof(h.allnext));
	if (data[0] & CIRCLE)
		h.allnext = BASE + w->used;
	if (data[0] & WILD)
		h.allnext = BASE + data[1] * 131ULL;
	h.hash = golang_bucket_hash(at + sizeof(h), h.depth, 0) + !!(data[0] & WRONG_HASH);
	h.typ += !!(data[0] & WRONG_TYPE);
	memcpy(at, &h, sizeof(h));
	memcpy(at + sizeof(h) + 8 * h.depth, data + 2, GOLANG_BUCKET_DELAY_BYTES);
	head = BASE + w->used;
	memcpy(w->memory, &head, sizeof(head));
	w->used += sizeof(h) + 8 * h.depth + GOLANG_BUCKET_DELAY_BYTES;
	return DESCRIPTION + 2 * h.depth;
}

static void read_twice(struct golang_contention *c)
{
	for (int i = 0; i < 2; i++) {
		_cleanup_(profile_freep) struct profile *p = NULL, *delta = NULL;
		struct err err = {};

		if (golang_contention_read(c, &err) < 0 ||
		    golang_contention_profile(c, &p, &err) < 0 ||
		    golang_contention_delta_profile(c, &delta, &err) < 0) {
			assert(err.text[0] && !delta);
			return;
		}
		assert(profile_n_samples(p) == golang_contention_stats(c)->buckets);
		/* Nothing changed in between. */
		assert(profile_n_samples(delta) == 0);
		assert(golang_contention_stats(c)->torn_records == 0);
	}
}

static struct golang_contention *reader_new(struct golang_process *process, const uint8_t *data)
{
	struct golang_contention *c = calloc(1, sizeof(*c));

	assert(c);
	c->process = process;
	c->kind = data[0] & 1 ? GOLANG_BLOCK : GOLANG_MUTEX;
	c->vars = (struct golang_contention_vars){
		.buckets = BASE, .rate = BASE + 8, .ticks = BASE + 16, .stack_depth = BASE + 48};
	golang_buckets_init_delays(&c->buckets, process->mem,
				   c->kind == GOLANG_BLOCK ? GOLANG_BUCKET_BLOCK
							   : GOLANG_BUCKET_MUTEX);
	/* Measuring takes time that a fuzzer has better use for. */
	c->stats.ticks_per_second = 1e9;
	return c;
}

static void build(struct waits *w, uint64_t typ, const uint8_t *data, size_t size)
{
	size_t at = HEADER, n;

	w->used = AT_BUCKETS;
	memcpy(w->memory + 8, data + 2, 8);
	for (size_t i = 0; i < 3; i++) /* wherever the release has the clock's rate */
		memcpy(w->memory + 24 + 8 * i, data + 10, 8);
	memcpy(w->memory + 48, data + 18, 4);
	while ((n = add_bucket(w, typ, data + at, size - at)) > 0)
		at += n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct program program;
	static struct waits waits;
	_cleanup_(golang_process_closep) struct golang_process *process = NULL;
	_cleanup_(golang_contention_freep) struct golang_contention *c = NULL;
	struct proc_mem *mem;
	struct err err;

	if (size < HEADER || proc_mem_open_fake(&mem, &err) < 0)
		return 0;
	program_build(&program);
	memset(&waits, 0, sizeof(waits));
	build(&waits, data[0] & 1 ? GOLANG_BUCKET_BLOCK : GOLANG_BUCKET_MUTEX, data, size);
	assert(proc_mem_fake_add(mem, PROGRAM_BASE, program.bytes, PROGRAM_BYTES) == 0);
	assert(proc_mem_fake_add(mem, BASE, waits.memory, MEMORY) == 0);
	if (golang_process_open_take(mem, NULL, &process, &err) < 0)
		return 0;
	(void)golang_layout_for(GOLANG_OLDEST_MINOR + data[1] % 11U, &process->layout, &err);
	c = reader_new(process, data);
	read_twice(c);
	return 0;
}
