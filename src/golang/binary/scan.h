/* src/golang/binary/scan.h: walks over target memory in chunks of bounded size. */
#pragma once

#include <stdint.h>

#include "base/view.h"
#include "proc/mem.h"

/*
 * One search over any number of ranges. Its total bytes are limited: segments can be forged, each
 * as large as the address space, and all the same. No Go program has more.
 */
struct golang_scan {
	struct proc_mem *mem; /* borrowed */
	uint64_t left;	      /* bytes; mapped pages that are unreadable count too */
};
#define GOLANG_SCAN_BYTES ((uint64_t)1 << 30)

static inline struct golang_scan golang_scan_of(struct proc_mem *mem)
{
	return (struct golang_scan){.mem = mem, .left = GOLANG_SCAN_BYTES};
}

/*
 * Calls visit for consecutive pieces of [addr, addr+len) that overlap by `overlap` bytes, so
 * nothing of that length is split. Skips unreadable pages. A non-zero return of visit ends the walk
 * and is returned; 0 at the end; -E2BIG if the budget is spent; -ESRCH, -ENOMEM.
 */
typedef int (*golang_scan_fn)(uint64_t addr, struct view bytes, void *arg);
int golang_scan(struct golang_scan *scan, uint64_t addr, uint64_t len, size_t overlap,
		golang_scan_fn visit, void *arg);
