/*
 * tests/fuzz/cpu/fuzz_copied_stack.c: any stack that BPF may have copied, walked with the tables of
 * this very program.
 *
 * The input is the record, with its thread and lengths as they come. Words that end in 0xc0de are
 * replaced by addresses of code, in the file that their first bits choose, those that end in 0x57ac
 * by addresses in the copy: else hardly any would be one.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cpu/sampler/state.h"
#include "proc/maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STACK 0x7ff000000000ULL

static struct cpu_sampler *sampler;
static struct cpu_sampler_thread thread = {.tgid = 1, .tid = 1, .start_ns = 1};
static const struct cpu_sampler_mapping *mappings;
static size_t n_mappings;

static void start(void)
{
	static struct cpu_sampler s;
	static struct interp_layout rows[INTERP_LAYOUTS];
	struct cpu_layout layout = {.parent = getpid()};
	_cleanup_(proc_maps_release) struct proc_maps maps = {0};
	struct cpu_process_tables tables;
	struct cpu_range range;

	s.rules = calloc(CPU_SAMPLER_RULES, sizeof(*s.rules));
	s.shared_files = calloc(CPU_SAMPLER_FILES, sizeof(*s.shared_files));
	s.mappings = calloc(CPU_SAMPLER_MAPPINGS, sizeof(*s.mappings));
	s.n_mappings = CPU_SAMPLER_MAPPINGS;
	s.layouts.rows = rows;
	tables = (struct cpu_process_tables){
		.mappings = s.mappings, .n_mappings = s.n_mappings, .fd = -1};
	if (!s.rules || !s.shared_files || !s.mappings ||
	    cpu_tables_new(s.rules, -1, &s.tables, NULL) < 0 ||
	    cpu_files_new(s.shared_files, s.tables, &s.layouts, &s.files, NULL) < 0 ||
	    cpu_processes_new(&tables, s.files, &s.layouts, &s.subuids, &s.processes, NULL) < 0 ||
	    proc_maps_read(getpid(), &maps, NULL) < 0)
		__builtin_trap();
	for (size_t i = 0; i < maps.len; i++) {
		if (!layout.start_code && maps.maps[i].flags & PROC_MAP_EXEC)
			layout.start_code = maps.maps[i].start;
		if (strcmp(maps.maps[i].path, "[stack]") == 0)
			layout.start_stack = maps.maps[i].start;
	}
	range = cpu_processes_inherit(s.processes, &thread, &layout);
	if (!range.n)
		__builtin_trap();
	mappings = &s.mappings[range.first];
	n_mappings = range.n;
	sampler = &s;
}

static uint64_t placed(uint64_t word)
{
	const struct cpu_sampler_mapping *code = &mappings[(word >> 56) % n_mappings];

	if ((word & 0xffff) == 0xc0de)
		return code->start + (word << 8 >> 24) % (code->end - code->start);
	if ((word & 0xffff) == 0x57ac)
		return STACK + (word >> 16) % (CPU_SAMPLER_COPY_BLOCKS * CPU_SAMPLER_COPY_BLOCK);
	return word;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct cpu_sampler_copy copy;
	static uint64_t words[sizeof(copy) / sizeof(uint64_t)];
	size_t header = offsetof(struct cpu_sampler_copy, stack.frames);
	size_t n = MIN(size, sizeof(copy));

	if (!sampler)
		start();
	memset(&copy, 0, sizeof(copy));
	/* The frames that BPF had found are of no interest: the rest of the input is what follows.
	 */
	memcpy(&copy, data, MIN(n, header));
	if (n > header) {
		memset(words, 0, sizeof(words));
		memcpy(words, data + header, n - header);
		for (size_t i = 0; i < ARRAY_SIZE(words); i++)
			words[i] = placed(words[i]);
		memcpy(copy.regs, words,
		       MIN(sizeof(words), sizeof(copy) - offsetof(struct cpu_sampler_copy, regs)));
	}
	copy.stack.thread = thread;
	copy.start = STACK;
	n = offsetof(struct cpu_sampler_copy, bytes) +
	    MIN((size_t)copy.n_bytes, sizeof(copy.bytes));
	if (cpu_sampler_on_copy(sampler, &copy, n) != 0)
		__builtin_trap();
	/* What it makes of it is sound. */
	if (cpu_stacks_is_sound(&copy.stack, sizeof(copy.stack)) &&
	    copy.n_bytes <= sizeof(copy.bytes) &&
	    !cpu_stacks_is_sound(&sampler->copy.stack, sizeof(copy.stack)))
		__builtin_trap();
	cpu_stacks_clear(&sampler->waiting);
	cpu_stacks_clear(&sampler->running[0]);
	cpu_stacks_clear(&sampler->running[1]);
	return 0;
}
