/*
 * tests/unit/golang/test_heap.h: the heap of a made-up program, opened for reading. Include after
 * cmocka.h.
 */
#pragma once

#include "golang/heap/heap.h"
#include "mem_fake.h"
#include "test_fake.h"
#include "test_program.h"

struct fixture {
	struct program program;
	struct golang_process *process;
	struct golang_heap *heap;
};

static inline size_t bucket_at(size_t bucket)
{
	return PROGRAM_BUCKETS +
	       bucket * (sizeof(struct golang_bucket_header) + 8 * PROGRAM_DEPTH + 64);
}

/* Where the counts of a bucket lie. */
static inline size_t counts_at(size_t bucket)
{
	return bucket_at(bucket) + sizeof(struct golang_bucket_header) + 8 * PROGRAM_DEPTH;
}

static inline void fixture_open(struct fixture *f)
{
	struct proc_mem *mem = fake_of_amd64();
	struct err err;

	assert_int_equal(proc_mem_fake_add(mem, PROGRAM_BASE, f->program.bytes, PROGRAM_BYTES), 0);
	assert_int_equal(golang_process_open_take(mem, NULL, &f->process, &err), 0);
	assert_int_equal(golang_heap_new(f->process, &f->heap, &err), 0);
}

static inline void fixture_close(struct fixture *f)
{
	golang_heap_free(f->heap);
	golang_process_close(f->process);
}
