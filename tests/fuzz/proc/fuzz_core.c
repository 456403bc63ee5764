/*
 * tests/fuzz/proc/fuzz_core.c: any bytes as a core file: opened, its maps walked, its memory read.
 */
#include <assert.h>
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proc/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_around(struct proc_mem *mem, uint64_t addr)
{
	struct err err;
	char bytes[96];
	ssize_t n = proc_mem_read_some(mem, addr, bytes, sizeof(bytes));
	int r = proc_mem_read(mem, addr, bytes, sizeof(bytes), &err);

	/* Both ways to ask have to agree. */
	assert(n <= (ssize_t)sizeof(bytes));
	assert((r == 0) == (n == (ssize_t)sizeof(bytes)));
	assert(r == 0 || err.text[0]);
}

static void walk(struct proc_mem *mem, int fd)
{
	const struct proc_maps *maps = proc_mem_maps(mem);
	uint64_t value;

	for (size_t i = 0; i < maps->len && i < 64; i++) {
		const struct proc_map *m = &maps->maps[i];

		assert(m->start < m->end && (i == 0 || maps->maps[i - 1].end <= m->start));
		assert(proc_maps_find(maps, m->start) == m);
		assert(proc_maps_find(maps, m->end - 1) == m);
		(void)strlen(m->path);
		/* Every other mapping has the core itself behind it, as a file would be. */
		if (i % 2)
			(void)proc_mem_back(mem, m->start, m->end - m->start, fd, m->offset, NULL);
		read_around(mem, m->start);
		read_around(mem, m->end - 1);
		read_around(mem, m->start + (m->end - m->start) / 2);
	}
	read_around(mem, 0);
	read_around(mem, UINT64_MAX - 8);
	(void)proc_mem_auxv(mem, AT_ENTRY, &value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_close_ int fd = memfd_create("fuzz", MFD_CLOEXEC);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct err err = {};
	char path[64];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (proc_mem_open_core(path, &mem, &err) < 0)
		assert(!mem && err.text[0]);
	else
		walk(mem, fd);
	return 0;
}
