/* src/golang/binary/mem_cache.c: see mem_cache.h. */
#include "golang/binary/mem_cache.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define WINDOW_WAYS 4
#define WINDOW_PAGE ((uint64_t)4096)
#define WINDOW_SCRATCH_MAX ((size_t)1 << 20)
/* Window addresses remembered; a walk over more of them hits few twice. */
#define WINDOW_MAX_LOADED ((size_t)1 << 16)
#define WINDOW_BYTES_PER_WORK 32

/* The readable part [lo, hi) of an aligned window; lo == hi if the slot is free. */
struct golang_window {
	uint64_t lo;
	uint64_t hi;
	uint64_t last_use;
	uint8_t *data;
};

void golang_mem_cache_init(struct golang_mem_cache *w, struct proc_mem *mem, size_t window_bytes,
			   size_t n_windows, size_t max_windows)
{
	*w = (struct golang_mem_cache){
		.mem = mem,
		.window_bytes = window_bytes,
		.n_windows = n_windows,
		.max_windows = max_windows,
		.work_left = GOLANG_MEM_CACHE_WORK,
	};
}

void golang_mem_cache_refill(struct golang_mem_cache *w)
{
	w->work_left = GOLANG_MEM_CACHE_WORK;
}

static void windows_free(struct golang_window *windows, size_t n)
{
	for (size_t i = 0; windows && i < n; i++)
		free(windows[i].data);
	free(windows);
}

void golang_mem_cache_release(struct golang_mem_cache *w)
{
	windows_free(w->windows, w->n_windows);
	w->windows = NULL;
	map_release(&w->loaded);
	free(w->scratch);
	w->scratch = NULL;
	w->scratch_len = 0;
	golang_mem_cache_refill(w);
}

static struct golang_window *windows_set(struct golang_mem_cache *w, uint64_t base)
{
	size_t sets = w->n_windows / WINDOW_WAYS;

	/* Neighbours never evict each other. */
	return &w->windows[(base / w->window_bytes & (sets - 1)) * WINDOW_WAYS];
}

static struct golang_window *windows_oldest(struct golang_window *set)
{
	struct golang_window *oldest = set;

	for (size_t i = 1; i < WINDOW_WAYS; i++)
		if (set[i].last_use < oldest->last_use)
			oldest = &set[i];
	return oldest;
}

/* Keeps the cached windows: the walk that made us grow is about to use them. */
static int windows_grow(struct golang_mem_cache *w)
{
	struct golang_mem_cache bigger = *w;

	bigger.n_windows = w->n_windows * 2;
	bigger.windows = calloc(bigger.n_windows, sizeof(*bigger.windows));
	if (!bigger.windows)
		return -ENOMEM;
	for (size_t i = 0; i < w->n_windows; i++) {
		struct golang_window *from = &w->windows[i];
		struct golang_window *to;

		if (!from->data)
			continue;
		to = windows_oldest(windows_set(&bigger, from->lo & ~(w->window_bytes - 1)));
		free(to->data);
		*to = *from;
		from->data = NULL;
	}
	windows_free(w->windows, w->n_windows);
	*w = bigger;
	return 0;
}

/* Reads the window around addr. If its start is unmapped, starts at addr's mapping or page. */
static int windows_load(struct golang_mem_cache *w, uint64_t addr, struct golang_window *slot)
{
	uint64_t base = addr & ~(uint64_t)(w->window_bytes - 1);
	uint64_t end = base + w->window_bytes;
	const struct proc_map *map = proc_maps_find(proc_mem_maps(w->mem), addr);
	uint64_t lo = map ? MAX(base, map->start) : base;
	ssize_t n;

	if (end < base)
		return -EFAULT;
	if (!golang_mem_cache_spend(w, w->window_bytes / WINDOW_BYTES_PER_WORK))
		return -E2BIG;
	if (!slot->data)
		slot->data = malloc(w->window_bytes);
	if (!slot->data)
		return -ENOMEM;
	slot->lo = slot->hi = 0;
	n = proc_mem_read_some(w->mem, lo, slot->data, end - lo);
	if (n >= 0 && lo + (uint64_t)n <= addr) {
		lo = addr & ~(WINDOW_PAGE - 1);
		n = proc_mem_read_some(w->mem, lo, slot->data, end - lo);
	}
	if (n < 0)
		return (int)n;
	if (lo + (uint64_t)n <= addr)
		return -EFAULT;
	slot->lo = lo;
	slot->hi = lo + (uint64_t)n;
	slot->last_use = ++w->uses;
	return 0;
}

/* Grows the cache, if it may, when the window at base had been evicted. */
static int windows_miss(struct golang_mem_cache *w, uint64_t base)
{
	uint64_t seen;

	if (w->n_windows >= w->max_windows)
		return 0;
	if (map_get(&w->loaded, base, &seen))
		return windows_grow(w);
	if (w->loaded.len >= WINDOW_MAX_LOADED)
		map_release(&w->loaded);
	return map_put(&w->loaded, base, 1);
}

static int windows_find(struct golang_mem_cache *w, uint64_t addr,
			struct golang_window **ret_window)
{
	uint64_t base = addr & ~(uint64_t)(w->window_bytes - 1);
	struct golang_window *set;
	int r;

	if (!golang_mem_cache_spend(w, 1))
		return -E2BIG;
	if (!w->windows) {
		w->windows = calloc(w->n_windows, sizeof(*w->windows));
		if (!w->windows)
			return -ENOMEM;
	}
	set = windows_set(w, base);
	for (size_t i = 0; i < WINDOW_WAYS; i++) {
		if (addr >= set[i].lo && addr < set[i].hi) {
			set[i].last_use = ++w->uses;
			*ret_window = &set[i];
			return 0;
		}
	}
	r = windows_miss(w, base);
	if (r < 0)
		return r;
	*ret_window = windows_oldest(windows_set(w, base));
	return windows_load(w, addr, *ret_window);
}

const uint8_t *golang_mem_cache_span(struct golang_mem_cache *w, uint64_t addr, size_t *ret_len,
				     int *ret_code)
{
	struct golang_window *window;
	int r = windows_find(w, addr, &window);

	if (r < 0) {
		*ret_code = r;
		return NULL;
	}
	*ret_len = window->hi - addr;
	return window->data + (addr - window->lo);
}

/* Joins bytes that span two or more windows. */
static int windows_assemble(struct golang_mem_cache *w, uint64_t addr, size_t len)
{
	size_t done = 0;

	if (len > WINDOW_SCRATCH_MAX)
		return -EFAULT;
	if (w->scratch_len < len) {
		uint8_t *scratch = realloc(w->scratch, len);

		if (!scratch)
			return -ENOMEM;
		w->scratch = scratch;
		w->scratch_len = len;
	}
	while (done < len) {
		size_t have;
		int r = 0;
		const uint8_t *p = golang_mem_cache_span(w, addr + done, &have, &r);

		if (!p)
			return r;
		have = MIN(have, len - done);
		memcpy(w->scratch + done, p, have);
		done += have;
	}
	return 0;
}

const uint8_t *golang_mem_cache_get(struct golang_mem_cache *w, uint64_t addr, size_t len,
				    int *ret_code)
{
	size_t have;
	const uint8_t *p = golang_mem_cache_span(w, addr, &have, ret_code);
	int r;

	if (!p || have >= len)
		return p;
	r = windows_assemble(w, addr, len);
	if (r < 0) {
		*ret_code = r;
		return NULL;
	}
	return w->scratch;
}
