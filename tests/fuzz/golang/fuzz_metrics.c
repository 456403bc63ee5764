/*
 * tests/fuzz/golang/fuzz_metrics.c: any bytes as the runtime's own variables. The first byte is the
 * release; the rest lies, over and over again, in a page or two that all variables point into.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "../no_sleep.h"
#include "golang/metrics/layout.h"
#include "mem_fake.h"

#define BASE ((uint64_t)0x10000)
#define MEMORY ((size_t)24 << 10)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct golang_metrics_vars vars = {.memstats = BASE,
							.controller = BASE + 16384,
							.sched = BASE + 17408,
							.allp = BASE + 18432,
							.allgs = BASE + 18456};
	static uint8_t memory[MEMORY];
	_cleanup_(golang_metrics_freep) struct golang_metrics_reader *reader = NULL;
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct golang_process process = {0};
	struct golang_metrics m;
	struct err err = {};

	if (size < 2 || proc_mem_open_fake(&mem, &err) < 0)
		return 0;
	for (size_t i = 0; i < MEMORY; i++)
		memory[i] = data[1 + i % (size - 1)];
	/* Mostly a slice that can be: its pointers lie behind it. */
	if (data[0] & 0x80)
		memcpy(memory + 18432,
		       &(struct golang_metrics_slice){BASE + 18480, data[0] & 15, data[0] & 15},
		       sizeof(struct golang_metrics_slice));
	assert(proc_mem_fake_add(mem, BASE, memory, MEMORY) == 0);
	process.mem = mem;
	(void)golang_layout_for(GOLANG_OLDEST_MINOR + data[0] % 11U, &process.layout, &err);
	if (golang_metrics_reader_new(&process, &vars, &reader, &err) < 0 ||
	    golang_metrics_read(reader, &m, &err) < 0) {
		assert(err.text[0]);
		return 0;
	}
	assert(m.goroutines >= 1 && m.n_pauses <= 256 && m.n_pauses <= m.gc_count);
	return 0;
}
