/*
 * src/cpu/bpf/maps.bpf.h: the maps of the BPF programs. shared.h draws those that user space lays
 * out; all are preallocated, because a sample may interrupt anything.
 */
#pragma once

#include "cpu/bpf/kernel.bpf.h"

#include "cpu/bpf/shared.h"

struct inner_counts {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct cpu_sampler_counts);
} counts_a SEC(".maps"), counts_b SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 2);
	__type(key, u32);
	__array(values, struct inner_counts);
} counts SEC(".maps") = {.values = {&counts_a, &counts_b}};

BPF_RING(stacks, 1 << 20);
BPF_RING(notices, CPU_SAMPLER_NOTICES_BYTES);
BPF_RING(copies, 1 << 20);

/*
 * For each CPU one for samples and, after all of these, one for waits, which a sample may
 * interrupt. Too large for an array per CPU.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct cpu_sampler_copy);
} scratches SEC(".maps");

struct chunk {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct cpu_sampler_chunk));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, CPU_SAMPLER_CHUNKS);
	__type(key, u32);
	__array(values, struct chunk);
} chunks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CPU_SAMPLER_RULES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct elf_unwind_rule);
} rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CPU_SAMPLER_FILES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct cpu_sampler_file);
} files SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CPU_SAMPLER_MAPPINGS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct cpu_sampler_mapping);
} mappings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1U << CPU_SAMPLER_MEMO_BITS);
	__type(key, u32);
	__type(value, struct cpu_sampler_memo);
} memos SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1U << CPU_SAMPLER_HINT_BITS);
	__type(key, u32);
	__type(value, u64);
} hints SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CPU_SAMPLER_PROCESSES);
	__type(key, u32);
	__type(value, struct cpu_sampler_process);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, INTERP_LAYOUTS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct interp_layout);
} interp_layouts SEC(".maps");

/* One for samples and one for waits. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct interp_walk);
} interp_walks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CPU_SAMPLER_WAITS);
	__type(key, u32);
	__type(value, struct cpu_sampler_wait);
} waits SEC(".maps");

/* Off-CPU stacks already in user space: a wait may end long after the interval it began in. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, CPU_SAMPLER_SENT);
	__type(key, u64);
	__type(value, u32);
} sent SEC(".maps");
