/* src/cpu/symbols/cache.c: see cache.h. */
#include "cpu/symbols/cache.h"

#include <errno.h>

#include "base/hash.h"

/* Approximate cost per slot in base/map.h and base/intern.h. */
#define NAMES_SLOT_BYTES 16
#define NAMES_STRING_BYTES 24

struct names_frame {
	uint32_t function, system_name, file; /* string ids */
	int32_t line, start_line;
};

struct names_entry {
	struct names_entry *next; /* with the same hash */
	struct cpu_symbols_key key;
	uint32_t n;
	struct names_frame frames[];
};

static uint64_t names_hash(const struct cpu_symbols_key *key)
{
	uint64_t h = hash_u64((uint64_t)key->kind << 32 | key->id);

	return hash_mix(hash_mix(h ^ key->owner) ^ key->addr);
}

static bool names_key_eq(const struct cpu_symbols_key *a, const struct cpu_symbols_key *b)
{
	return a->addr == b->addr && a->id == b->id && a->owner == b->owner && a->kind == b->kind;
}

static void generation_release(struct cpu_symbols_generation *g)
{
	map_release(&g->index);
	arena_release(&g->entries);
	intern_release(&g->strings);
	*g = (struct cpu_symbols_generation){0};
}

static size_t generation_memory(const struct cpu_symbols_generation *g)
{
	return g->index.cap * NAMES_SLOT_BYTES + g->entries.used + g->strings.bytes.used +
	       g->strings.cap * (size_t)NAMES_STRING_BYTES;
}

void cpu_symbols_cache_release(struct cpu_symbols_cache *cache)
{
	generation_release(&cache->young);
	generation_release(&cache->old);
}

static struct names_entry *generation_find(const struct cpu_symbols_generation *g,
					   const struct cpu_symbols_key *key)
{
	uint64_t value;

	if (!map_get(&g->index, names_hash(key), &value))
		return NULL;
	for (struct names_entry *e = (struct names_entry *)(uintptr_t)value; e; e = e->next)
		if (names_key_eq(&e->key, key))
			return e;
	return NULL;
}

static const char *generation_string(const struct cpu_symbols_generation *g, uint32_t id)
{
	return (const char *)intern_get(&g->strings, id).data;
}

static size_t generation_answer(const struct cpu_symbols_generation *g, const struct names_entry *e,
				struct cpu_name *out)
{
	for (uint32_t i = 0; i < e->n; i++)
		out[i] = (struct cpu_name){
			.function = generation_string(g, e->frames[i].function),
			.system_name = generation_string(g, e->frames[i].system_name),
			.file = generation_string(g, e->frames[i].file),
			.line = e->frames[i].line,
			.start_line = e->frames[i].start_line,
		};
	return e->n;
}

static int32_t names_line(int64_t line)
{
	return line < 0 || line > INT32_MAX ? 0 : (int32_t)line;
}

static int generation_add_frame(struct cpu_symbols_generation *g, const struct cpu_name *name,
				struct names_frame *frame)
{
	int r = intern_add(&g->strings, view_str(name->function), &frame->function);

	if (r == 0)
		r = intern_add(&g->strings, view_str(name->system_name), &frame->system_name);
	if (r == 0)
		r = intern_add(&g->strings, view_str(name->file), &frame->file);
	frame->line = names_line(name->line);
	frame->start_line = names_line(name->start_line);
	return r;
}

static int generation_add(struct cpu_symbols_generation *g, const struct cpu_symbols_key *key,
			  const struct cpu_name *names, size_t n, struct names_entry **ret_entry)
{
	struct names_entry *e = arena_alloc(&g->entries, sizeof(*e) + n * sizeof(*e->frames));
	uint64_t hash = names_hash(key), first = 0;
	int r = e ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && r == 0; i++)
		r = generation_add_frame(g, &names[i], &e->frames[i]);
	if (r < 0)
		return -ENOMEM;
	if (map_get(&g->index, hash, &first))
		e->next = (struct names_entry *)(uintptr_t)first;
	e->key = *key;
	e->n = (uint32_t)n;
	r = map_put(&g->index, hash, (uint64_t)(uintptr_t)e);
	if (r < 0)
		return r;
	*ret_entry = e;
	return 0;
}

/* Called before adding to the young generation, because answers live in it until the next call. */
static void cache_make_room(struct cpu_symbols_cache *cache)
{
	if (generation_memory(&cache->young) < cache->max_bytes / 2)
		return;
	generation_release(&cache->old);
	cache->old = cache->young;
	cache->young = (struct cpu_symbols_generation){0};
}

int cpu_symbols_cache_put(struct cpu_symbols_cache *cache, const struct cpu_symbols_key *key,
			  const struct cpu_name *names, size_t n, struct cpu_name *out)
{
	struct names_entry *e;
	int r;

	cache_make_room(cache);
	r = generation_add(&cache->young, key, names, n, &e);
	if (r < 0)
		return r;
	(void)generation_answer(&cache->young, e, out);
	return 0;
}

size_t cpu_symbols_cache_get(struct cpu_symbols_cache *cache, const struct cpu_symbols_key *key,
			     struct cpu_name *out)
{
	struct cpu_name names[CPU_SYMBOLIZER_MAX];
	struct names_entry *e = generation_find(&cache->young, key), *moved;
	size_t n;

	if (e)
		return generation_answer(&cache->young, e, out);
	e = generation_find(&cache->old, key);
	if (!e)
		return 0;
	n = generation_answer(&cache->old, e, names);
	/*
	 * The old generation stays unless the young one replaces it: then look the name up again.
	 */
	if (generation_memory(&cache->young) >= cache->max_bytes / 2) {
		cache_make_room(cache);
		return 0;
	}
	if (generation_add(&cache->young, key, names, n, &moved) < 0)
		return 0;
	return generation_answer(&cache->young, moved, out);
}
