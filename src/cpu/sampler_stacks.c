/* src/cpu/sampler_stacks.c: see sampler_stacks.h. */
#include "cpu/sampler_stacks.h"

#include <errno.h>
#include <string.h>

#define STACKS_MAX_BYTES ((size_t)32 << 20)

size_t stacks_bytes(const struct sampler_stack *stack)
{
	size_t words = (size_t)stack->n_kernel + stack->n_user + 2 * (size_t)stack->n_python;

	return offsetof(struct sampler_stack, frames) + words * sizeof(stack->frames[0]);
}

int stacks_add(struct stacks *s, const void *record, size_t len, uint32_t generation)
{
	const struct sampler_stack *sent = record;
	struct stack_record *copy;

	if (len < offsetof(struct sampler_stack, frames) || sent->n_kernel > SAMPLER_FRAMES_MAX ||
	    sent->n_user > SAMPLER_FRAMES_MAX || sent->n_python > SAMPLER_FRAMES_MAX ||
	    len < stacks_bytes(sent))
		return -EBADMSG;
	if (stacks_find(s, sent->hash))
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

const struct stack_record *stacks_find(const struct stacks *s, uint64_t hash)
{
	uint64_t found;

	return map_get(&s->by_hash, hash, &found) ? (const struct stack_record *)(uintptr_t)found
						  : NULL;
}

void stacks_clear(struct stacks *s)
{
	arena_release(&s->bytes);
	map_release(&s->by_hash);
}
