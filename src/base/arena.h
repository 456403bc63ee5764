/* src/base/arena.h: many small allocations with one lifetime and one memory limit. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct arena_block;

/* A zeroed struct arena is empty and limited to ARENA_DEFAULT_MAX bytes. */
struct arena {
	struct arena_block *head;
	size_t used; /* bytes taken from the system */
	size_t max;  /* 0 means ARENA_DEFAULT_MAX */
};

#define ARENA_DEFAULT_MAX ((size_t)256 << 20)

/* Zeroed memory aligned to 8, or NULL if out of memory or past the limit. */
void *arena_alloc(struct arena *a, size_t size);
void *arena_dup(struct arena *a, const void *data, size_t size);
void arena_release(struct arena *a);
