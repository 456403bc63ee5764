/*
 * src/bpf/program.bpf.h: included first by every BPF program. Kernel types are declared where they
 * are used, with only the fields needed: BTF supplies the running kernel's offsets.
 */
#pragma once

#include <linux/bpf.h>

#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>

/* Settings and counters, shared with user space by the skeleton, are __u32 and the like. */
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;

#define KERNEL_TYPE __attribute__((preserve_access_index))

/* A ring buffer (rings.h); bytes is a power of two. */
#define BPF_RING(name, bytes)                                                                      \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_RINGBUF);                                                \
		__uint(max_entries, bytes);                                                        \
	} name SEC(".maps")
