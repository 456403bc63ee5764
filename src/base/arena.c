/* src/base/arena.c: see arena.h. */
#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct arena_block {
	struct arena_block *next;
	size_t used;
	size_t cap;
	uint8_t data[];
};

/* Blocks grow with the arena: a small one costs a page, a large one few mallocs. */
#define ARENA_BLOCK_MIN ((size_t)4 << 10)
#define ARENA_BLOCK_MAX ((size_t)256 << 10)

void *arena_alloc(struct arena *a, size_t size)
{
	size_t max = a->max ? a->max : ARENA_DEFAULT_MAX;
	struct arena_block *b = a->head;
	void *p;

	if (size > max)
		return NULL;
	size = (size + 7) & ~(size_t)7;
	if (!b || size > b->cap - b->used) {
		size_t cap = MIN(MAX(a->used, ARENA_BLOCK_MIN), ARENA_BLOCK_MAX);
		size_t left = a->used < max ? max - a->used : 0;

		/* Near the limit, settle for a smaller block. */
		cap = MAX(size, MIN(cap, left));
		if (cap > left)
			return NULL;
		b = calloc(1, sizeof(*b) + cap);
		if (!b)
			return NULL;
		b->cap = cap;
		b->next = a->head;
		a->head = b;
		a->used += cap;
	}
	p = b->data + b->used;
	b->used += size;
	return p;
}

void *arena_dup(struct arena *a, const void *data, size_t size)
{
	void *p = arena_alloc(a, size);

	if (p && size)
		memcpy(p, data, size);
	return p;
}

void arena_release(struct arena *a)
{
	struct arena_block *b = a->head;

	while (b) {
		struct arena_block *next = b->next;

		free(b);
		b = next;
	}
	*a = (struct arena){.max = a->max};
}
