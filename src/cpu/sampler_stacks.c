/* src/cpu/sampler_stacks.c: see sampler_stacks.h. */
#include "cpu/sampler_stacks.h"

#include <errno.h>
#include <string.h>

#define STACKS_MAX_BYTES ((size_t)32 << 20)

int stacks_add(struct stacks *s, const void *record, size_t len, uint32_t generation)
{
	const size_t header = offsetof(struct sampler_stack, frames);
	const struct sampler_stack *sent = record;
	struct stack_record *copy;

	if (len < header || sent->n_kernel > SAMPLER_FRAMES_MAX ||
	    sent->n_user > SAMPLER_FRAMES_MAX || sent->n_python > SAMPLER_FRAMES_MAX ||
	    len < header + (size_t)(sent->n_kernel + sent->n_user + 2 * sent->n_python) *
				    sizeof(sent->frames[0]))
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
