/* src/golang/scan.h: walks a stretch of target memory in chunks of bounded size. */
#pragma once

#include <stdint.h>

#include "base/view.h"
#include "proc/mem.h"

/* Nothing we look for lies further into a segment; a forged one must not keep us reading. */
#define GOLANG_SCAN_MAX ((uint64_t)1 << 30)

/*
 * Calls visit for consecutive pieces of [addr, addr+len) that overlap by `overlap` bytes, so that
 * nothing of that length is cut in two. Unreadable pages are stepped over. A non-zero answer of
 * visit ends the walk and is returned; 0 at the end; -ESRCH, -ENOMEM.
 */
typedef int (*golang_scan_fn)(uint64_t addr, struct view bytes, void *arg);
int golang_scan(struct proc_mem *mem, uint64_t addr, uint64_t len, size_t overlap,
		golang_scan_fn visit, void *arg);
