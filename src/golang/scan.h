/* src/golang/scan.h: walks a stretch of target memory in chunks of bounded size. */
#pragma once

#include <stdint.h>

#include "base/view.h"
#include "proc/mem.h"

/*
 * One search, of as many stretches as it takes. Its bytes are limited in sum: segments can be
 * forged, each as large as the address space, and all of them the same. No Go program has more.
 */
struct golang_scan {
	struct proc_mem *mem; /* borrowed */
	uint64_t left;	      /* bytes; a page that cannot be read counts like one that can */
};
#define GOLANG_SCAN_BYTES ((uint64_t)1 << 30)

static inline struct golang_scan golang_scan_of(struct proc_mem *mem)
{
	return (struct golang_scan){.mem = mem, .left = GOLANG_SCAN_BYTES};
}

/*
 * Calls visit for consecutive pieces of [addr, addr+len) that overlap by `overlap` bytes, so that
 * nothing of that length is cut in two. Unreadable pages are stepped over. A non-zero answer of
 * visit ends the walk and is returned; 0 at the end; -E2BIG when the search is spent; -ESRCH,
 * -ENOMEM.
 */
typedef int (*golang_scan_fn)(uint64_t addr, struct view bytes, void *arg);
int golang_scan(struct golang_scan *scan, uint64_t addr, uint64_t len, size_t overlap,
		golang_scan_fn visit, void *arg);
