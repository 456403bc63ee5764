/*
 * src/golang/windows.h: a bounded cache of aligned windows of target memory.
 *
 * Much of what we read lies close together (buckets in 256 KB chunks, tables in a few MB), and a
 * system call costs more than the bytes it brings. Windows are loaded whole, kept in sets of four,
 * the oldest of a set is dropped. When a dropped window is wanted again the cache doubles, up to
 * its maximum: a walk that alternates between many places then stays cheap.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/map.h"
#include "proc/mem.h"

struct golang_window;

struct golang_windows {
	struct proc_mem *mem;
	size_t window_bytes; /* a power of two */
	size_t max_windows;  /* powers of two, at least 4 */
	size_t n_windows;
	struct golang_window *windows;
	struct map loaded; /* bases that were loaded once */
	uint64_t uses;
	uint64_t work_left;
	uint8_t *scratch; /* for what straddles two windows */
	size_t scratch_len;
};

/*
 * Tables and lists of a target can be forged so that following them never ends. All that is done
 * with windows is therefore limited in sum. A unit of work is a look at a window, or a step of
 * whoever walks what lies in it, or 32 bytes loaded: this much takes one to three seconds, and no
 * real program comes near it.
 */
#define GOLANG_WINDOWS_WORK ((uint64_t)1 << 28)

/* Borrows mem. Memory is taken as windows are loaded. */
void golang_windows_init(struct golang_windows *w, struct proc_mem *mem, size_t window_bytes,
			 size_t n_windows, size_t max_windows);
void golang_windows_release(struct golang_windows *w); /* forgets all; usable again after */
/* Allows as much work as at first: for what begins anew. Done by release, too. */
void golang_windows_refill(struct golang_windows *w);

/* False when the work is spent; every call below then fails with -E2BIG. */
static inline bool golang_windows_spend(struct golang_windows *w, uint64_t work)
{
	bool enough = w->work_left > work;

	w->work_left = enough ? w->work_left - work : 0;
	return enough;
}

static inline bool golang_windows_spent(const struct golang_windows *w)
{
	return w->work_left == 0;
}

/* The bytes [addr, addr+len), valid until the next call; NULL and err's code in *ret_code. */
const uint8_t *golang_windows_get(struct golang_windows *w, uint64_t addr, size_t len,
				  int *ret_code);
/* As many bytes from addr as its window holds, at least one; *ret_len says how many. */
const uint8_t *golang_windows_span(struct golang_windows *w, uint64_t addr, size_t *ret_len,
				   int *ret_code);
