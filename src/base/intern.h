/*
 * src/base/intern.h: gives equal byte strings the same small id.
 *
 * Ids are dense, from 0, in order of first appearance. Used for strings and for anything else
 * compared as bytes (a stack is an array of location ids).
 */
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/view.h"

struct intern_entry;

/* A zeroed struct intern is empty; set bytes.max to limit its memory. */
struct intern {
	struct arena bytes;
	struct intern_entry *entries;
	uint32_t *slots; /* entry index + 1, 0 is free */
	uint32_t len;
	uint32_t cap; /* of entries; slots hold twice as many */
};

/* -ENOMEM, or -E2BIG past the arena's limit. */
int intern_add(struct intern *in, struct view bytes, uint32_t *ret_id);
/* False if these bytes were never added. */
bool intern_find(const struct intern *in, struct view bytes, uint32_t *ret_id);
/* Borrowed until release; empty for an unknown id. Always followed by a NUL byte. */
struct view intern_get(const struct intern *in, uint32_t id);
/* hash_bytes() of the bytes; 0 for an unknown id. */
uint64_t intern_hash(const struct intern *in, uint32_t id);
void intern_release(struct intern *in);
