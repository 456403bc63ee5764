/*
 * tests/fuzz/cpu/fuzz_perfmap.c: any text as a perf map. The first byte says how much of it is
 * there at first; the rest comes later.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cpu/symbols/perfmap.h"

#define SEC 1000000000ULL

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(struct cpu_perfmap *map)
{
	char name[64];

	for (uint64_t addr = 0; addr < 0x3000; addr += 0x7f)
		if (cpu_perfmap_lookup(map, addr, name, sizeof(name)) == 0 && name[0] == 0)
			__builtin_trap();
	(void)cpu_perfmap_lookup(map, UINT64_MAX, name, sizeof(name));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(cpu_perfmap_closep) struct cpu_perfmap *map = NULL;
	int fd = memfd_create("map", MFD_CLOEXEC);
	size_t first;

	if (fd < 0 || size == 0) {
		closep(&fd);
		return 0;
	}
	first = (size - 1) * data[0] / 255;
	if (write(fd, data + 1, first) != (ssize_t)first ||
	    cpu_perfmap_open_take(fcntl(fd, F_DUPFD_CLOEXEC, 0), &map, NULL) < 0)
		__builtin_trap();
	(void)cpu_perfmap_refresh(map, SEC);
	look(map);
	if (data[0] & 1 && ftruncate(fd, 0) < 0)
		__builtin_trap();
	if (pwrite(fd, data + 1 + first, size - 1 - first, data[0] & 1 ? 0 : (off_t)first) < 0)
		__builtin_trap();
	look(map);
	(void)cpu_perfmap_refresh(map, 100 * SEC);
	look(map);
	close(fd);
	return 0;
}
