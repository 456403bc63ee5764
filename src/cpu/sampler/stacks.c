/* src/cpu/sampler/stacks.c: see stacks.h. */
#include "cpu/sampler/stacks.h"

#include <errno.h>
#include <string.h>

#define STACKS_MAX_BYTES ((size_t)32 << 20)

size_t cpu_stacks_bytes(const struct cpu_sampler_stack *stack)
{
	size_t words =
		(size_t)stack->n_kernel + stack->n_user + INTERP_WORDS * (size_t)stack->n_interp;

	return offsetof(struct cpu_sampler_stack, frames) + words * sizeof(stack->frames[0]);
}

bool cpu_stacks_is_interp(uint64_t word)
{
	return word >> CPU_SAMPLER_FRAME_FILE_SHIFT == CPU_SAMPLER_FRAME_INTERP;
}

bool cpu_stacks_is_sound(const struct cpu_sampler_stack *s, size_t len)
{
	size_t at, n = 0;

	if (len < offsetof(struct cpu_sampler_stack, frames) ||
	    s->n_kernel > CPU_SAMPLER_KERNEL_MAX || s->n_user > CPU_SAMPLER_FRAMES_MAX ||
	    s->n_interp > CPU_SAMPLER_FRAMES_MAX || s->interp >= INTERP_N ||
	    ((s->n_interp || s->interp_cut) && !s->interp) || len < cpu_stacks_bytes(s))
		return false;
	at = s->n_kernel;
	for (size_t i = 0; i < s->n_user; i++, at++) {
		if (!cpu_stacks_is_interp(s->frames[at]))
			continue;
		if (n++ == s->n_interp)
			return false;
		at += INTERP_WORDS;
	}
	return true;
}

uint16_t cpu_stacks_split(const struct cpu_sampler_stack *s, uint64_t *ret_user,
			  struct interp_frame *ret_interp)
{
	const __u64 *word = &s->frames[s->n_kernel];
	uint16_t n = 0, inlined;

	for (size_t i = 0; i < s->n_user; i++) {
		ret_user[i] = *word++;
		if (!cpu_stacks_is_interp(ret_user[i]))
			continue;
		ret_interp[n++] = (struct interp_frame){.id = word[0], .check = word[1]};
		word += INTERP_WORDS;
	}
	inlined = n;
	for (; n < s->n_interp; word += INTERP_WORDS)
		ret_interp[n++] = (struct interp_frame){.id = word[0], .check = word[1]};
	return inlined;
}

int cpu_stacks_add(struct cpu_stacks *s, const void *record, size_t len, uint32_t generation)
{
	const struct cpu_sampler_stack *sent = record;
	struct cpu_stack_record *copy;

	if (!cpu_stacks_is_sound(sent, len))
		return -EBADMSG;
	if (cpu_stacks_find(s, sent->hash))
		return 0;
	s->bytes.max = STACKS_MAX_BYTES;
	copy = arena_alloc(&s->bytes, sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	copy->generation = generation;
	copy->stack = arena_dup(&s->bytes, record, len);
	if (!copy->stack)
		return -ENOMEM;
	return map_put(&s->by_hash, sent->hash, (uintptr_t)copy);
}

const struct cpu_stack_record *cpu_stacks_find(const struct cpu_stacks *s, uint64_t hash)
{
	uint64_t found;

	return map_get(&s->by_hash, hash, &found)
		       ? (const struct cpu_stack_record *)(uintptr_t)found
		       : NULL;
}

void cpu_stacks_clear(struct cpu_stacks *s)
{
	arena_release(&s->bytes);
	map_release(&s->by_hash);
}
