/*
 * tests/fuzz/golang/fuzz_process.c: any bytes as the memory of a program, from its ELF header to
 * its buckets: found, opened, its heap read twice and made a profile.
 */
#include <assert.h>
#include <string.h>

#include "../no_sleep.h"
#include "golang/heap/heap.h"
#include "mem_fake.h"

#define BASE ((uint64_t)0x10000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_heap(struct golang_process *process)
{
	_cleanup_(golang_heap_freep) struct golang_heap *heap = NULL;
	struct err err = {};

	if (golang_heap_new(process, &heap, &err) < 0) {
		assert(err.text[0]);
		return;
	}
	for (int i = 0; i < 2; i++) {
		_cleanup_(profile_freep) struct profile *profile = NULL;

		err.text[0] = 0;
		if (golang_heap_read(heap, &err) < 0 ||
		    golang_heap_profile(heap, &profile, &err) < 0) {
			assert(err.text[0] && !profile);
			continue;
		}
		assert(profile_n_samples(profile) <= golang_heap_stats(heap)->buckets);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(golang_process_closep) struct golang_process *process = NULL;
	struct proc_mem *mem;
	struct err err = {};
	char version[64];

	if (proc_mem_open_fake(&mem, &err) < 0)
		return 0;
	if (proc_mem_fake_add(mem, BASE, data, size) < 0) {
		proc_mem_close(mem);
		return 0;
	}
	if (golang_detect(mem, version, sizeof(version), &err) == 1)
		assert(strlen(version) < sizeof(version));
	err.text[0] = 0;
	if (golang_process_open_take(mem, NULL, &process, &err) < 0)
		assert(err.text[0] && !process);
	else
		read_heap(process);
	return 0;
}
