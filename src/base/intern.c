/* src/base/intern.c: see intern.h. */
#include "base/intern.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

struct intern_entry {
	const uint8_t *data;
	uint64_t hash;
	uint32_t len;
};

static uint32_t *intern_slot_for(const struct intern *in, struct view bytes, uint64_t hash)
{
	uint32_t mask = in->cap * 2 - 1;
	uint32_t i = (uint32_t)hash & mask;

	while (in->slots[i]) {
		const struct intern_entry *e = &in->entries[in->slots[i] - 1];

		if (e->hash == hash && view_eq(view_of(e->data, e->len), bytes))
			break;
		i = (i + 1) & mask;
	}
	return &in->slots[i];
}

static int intern_grow(struct intern *in)
{
	uint32_t cap = in->cap ? in->cap * 2 : 16;
	uint32_t mask = cap * 2 - 1;
	struct intern_entry *entries;
	uint32_t *slots;

	if (cap > UINT32_MAX / 4)
		return -E2BIG;
	entries = realloc(in->entries, cap * sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	in->entries = entries;
	slots = calloc((size_t)cap * 2, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (uint32_t id = 0; id < in->len; id++) {
		uint32_t i = (uint32_t)entries[id].hash & mask;

		while (slots[i])
			i = (i + 1) & mask;
		slots[i] = id + 1;
	}
	free(in->slots);
	in->slots = slots;
	in->cap = cap;
	return 0;
}

bool intern_find(const struct intern *in, struct view bytes, uint32_t *ret_id)
{
	const uint32_t *slot;

	if (in->cap == 0)
		return false;
	slot = intern_slot_for(in, bytes, hash_bytes(bytes.data, bytes.len));
	if (*slot == 0)
		return false;
	*ret_id = *slot - 1;
	return true;
}

int intern_add(struct intern *in, struct view bytes, uint32_t *ret_id)
{
	uint64_t hash = hash_bytes(bytes.data, bytes.len);
	uint32_t *slot;
	uint8_t *data;
	int r;

	if (bytes.len >= UINT32_MAX)
		return -E2BIG;
	if (in->len == in->cap) {
		r = intern_grow(in);
		if (r < 0)
			return r;
	}
	slot = intern_slot_for(in, bytes, hash);
	if (*slot == 0) {
		data = arena_alloc(&in->bytes, bytes.len + 1);
		if (!data)
			return -E2BIG;
		if (bytes.len)
			memcpy(data, bytes.data, bytes.len);
		in->entries[in->len] = (struct intern_entry){
			.data = data, .hash = hash, .len = (uint32_t)bytes.len};
		*slot = ++in->len;
	}
	*ret_id = *slot - 1;
	return 0;
}

struct view intern_get(const struct intern *in, uint32_t id)
{
	if (id >= in->len)
		return view_of("", 0);
	return view_of(in->entries[id].data, in->entries[id].len);
}

uint64_t intern_hash(const struct intern *in, uint32_t id)
{
	return id < in->len ? in->entries[id].hash : 0;
}

void intern_release(struct intern *in)
{
	arena_release(&in->bytes);
	free(in->entries);
	free(in->slots);
	*in = (struct intern){.bytes = {.max = in->bytes.max}};
}
