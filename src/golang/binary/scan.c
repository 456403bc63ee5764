/* src/golang/binary/scan.c: see scan.h. */
#include "golang/binary/scan.h"

#include <errno.h>

#include "base/cleanup.h"
#include "proc/ranges.h"

#define SCAN_CHUNK ((size_t)256 << 10)
#define SCAN_PAGE ((uint64_t)4096)

/* The next address that is mapped: a forged segment may be one big hole. */
static uint64_t scan_mapped_from(const struct golang_scan *scan, uint64_t addr)
{
	const struct proc_maps *maps = proc_mem_maps(scan->mem);
	size_t i = proc_ranges_from(maps->maps, maps->len, sizeof(*maps->maps), addr);

	return i < maps->len ? MAX(addr, maps->maps[i].start) : UINT64_MAX;
}

int golang_scan(struct golang_scan *scan, uint64_t addr, uint64_t len, size_t overlap,
		golang_scan_fn visit, void *arg)
{
	_cleanup_free_ uint8_t *chunk = NULL;
	uint64_t end;

	/* Exclude the last page, so that stepping to the next one cannot wrap. */
	if (__builtin_add_overflow(addr, len, &end) || end > UINT64_MAX - SCAN_PAGE)
		return 0;
	chunk = malloc(MIN(SCAN_CHUNK, end - addr) + 1);
	if (!chunk)
		return -ENOMEM;
	while (addr < end) {
		size_t want = MIN(SCAN_CHUNK, end - addr);
		ssize_t got;
		int r;

		if (scan->left == 0)
			return -E2BIG;
		got = proc_mem_read_some(scan->mem, addr, chunk, want);
		if (got < 0)
			return (int)got;
		scan->left -= MIN(scan->left, MAX((uint64_t)got, SCAN_PAGE));
		if (got > 0) {
			r = visit(addr, view_of(chunk, (size_t)got), arg);
			if (r != 0)
				return r;
		}
		if ((size_t)got < want)
			addr = scan_mapped_from(scan, (addr + (uint64_t)got + SCAN_PAGE) &
							      ~(SCAN_PAGE - 1));
		else if (addr + want == end)
			break;
		else
			addr += want - overlap;
	}
	return 0;
}
