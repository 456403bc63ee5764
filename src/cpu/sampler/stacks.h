/* src/cpu/sampler/stacks.h: stacks as BPF sent them, found by their hash. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "cpu/bpf/shared.h"

/* Followed by its frames. */
struct cpu_stack_record {
	struct cpu_sampler_stack *stack; /* its array of frames is shorter */
	uint32_t generation;		 /* of the newest file when it came */
};

/* Empty if zeroed. */
struct cpu_stacks {
	struct arena bytes;
	struct map by_hash;
};

/* The length of a record with this many frames. */
size_t cpu_stacks_bytes(const struct cpu_sampler_stack *stack);
/* Whether its parts are consistent and fit into len bytes. */
bool cpu_stacks_is_sound(const struct cpu_sampler_stack *stack, size_t len);
/* -EBADMSG for an inconsistent record; -ENOMEM, also at the memory limit. */
int cpu_stacks_add(struct cpu_stacks *stacks, const void *record, size_t len, uint32_t generation);
/* NULL if not found. */
const struct cpu_stack_record *cpu_stacks_find(const struct cpu_stacks *stacks, uint64_t hash);
void cpu_stacks_clear(struct cpu_stacks *stacks);

/*
 * Splits the words after the kernel's frames of a valid record: n_user native frames, and n_interp
 * of an interpreter. Returns how many of these replace native frames; they come first.
 */
uint16_t cpu_stacks_split(const struct cpu_sampler_stack *stack, uint64_t *ret_user,
			  struct interp_frame *ret_interp);
/* Whether the word of a native frame stands for an interpreter frame. */
bool cpu_stacks_is_interp(uint64_t word);
