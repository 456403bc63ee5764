/*
 * src/golang/binary/mem_cache.h: a bounded cache of aligned windows of target memory.
 *
 * Much of what we read is close together (buckets in 256 KB chunks, tables in a few MB), and a
 * system call costs more than the bytes it fetches. Windows are loaded as a whole and kept in sets
 * of four; the oldest of a set is dropped. When a dropped window is needed again the cache doubles,
 * up to its maximum: a walk that alternates between many places stays cheap.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/map.h"
#include "proc/mem.h"

struct golang_window;

struct golang_mem_cache {
	struct proc_mem *mem;
	size_t window_bytes; /* a power of two */
	size_t max_windows;  /* powers of two, at least 4 */
	size_t n_windows;
	struct golang_window *windows;
	struct map loaded; /* bases loaded before */
	uint64_t uses;
	uint64_t work_left;
	uint8_t *scratch; /* for data that straddles two windows */
	size_t scratch_len;
};

/*
 * Tables and lists of a target can be forged such that following them never ends. So the total work
 * on windows is limited. A unit of work is an access to a window, a step of a walk in it, or 32
 * bytes loaded. The budget takes one to three seconds, and no real program comes close.
 */
#define GOLANG_MEM_CACHE_WORK ((uint64_t)1 << 28)

/* Borrows mem. Allocates memory as windows are loaded. */
void golang_mem_cache_init(struct golang_mem_cache *w, struct proc_mem *mem, size_t window_bytes,
			   size_t n_windows, size_t max_windows);
void golang_mem_cache_release(
	struct golang_mem_cache *w); /* drops everything; reusable afterwards */
/* Resets the work budget for a fresh start. Release does this too. */
void golang_mem_cache_refill(struct golang_mem_cache *w);

/* False if the budget is spent; every call below then fails with -E2BIG. */
static inline bool golang_mem_cache_spend(struct golang_mem_cache *w, uint64_t work)
{
	bool enough = w->work_left > work;

	w->work_left = enough ? w->work_left - work : 0;
	return enough;
}

static inline bool golang_mem_cache_spent(const struct golang_mem_cache *w)
{
	return w->work_left == 0;
}

/* The bytes [addr, addr+len), valid until the next call; NULL and err's code in *ret_code. */
const uint8_t *golang_mem_cache_get(struct golang_mem_cache *w, uint64_t addr, size_t len,
				    int *ret_code);
/* As many bytes from addr as are in its window, at least one; *ret_len says how many. */
const uint8_t *golang_mem_cache_span(struct golang_mem_cache *w, uint64_t addr, size_t *ret_len,
				     int *ret_code);
