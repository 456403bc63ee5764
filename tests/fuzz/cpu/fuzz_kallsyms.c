/* tests/fuzz/cpu/fuzz_kallsyms.c: any text as the kernel's symbols. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cpu/symbols/kallsyms.h"
#include "cpu/symbols/kallsyms_parse.h"

#define SEC 1000000000ULL

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Sorted, with names that end. */
static void check(int fd)
{
	struct cpu_ksyms k = {0};

	if (lseek(fd, 0, SEEK_SET) != 0 || cpu_ksyms_read(fd, &k) < 0)
		__builtin_trap();
	for (size_t i = 0; i < k.len; i++) {
		if (i && k.list[i].start <= k.list[i - 1].start)
			__builtin_trap();
		if (k.list[i].name >= k.names.len ||
		    !memchr(k.names.data + k.list[i].name, 0, k.names.len - k.list[i].name))
			__builtin_trap();
	}
	cpu_ksyms_release(&k);
}

static void look_up(struct cpu_kallsyms *k, uint64_t address)
{
	char name[64];
	int r = cpu_kallsyms_lookup(k, address, SEC, name, sizeof(name));

	if (r == 0 && (!name[0] || strlen(name) >= sizeof(name)))
		__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(cpu_kallsyms_freep) struct cpu_kallsyms *k = NULL;
	_cleanup_close_ int fd = memfd_create("kallsyms", MFD_CLOEXEC);
	char path[64];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		__builtin_trap();
	check(fd);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (cpu_kallsyms_new(path, &k, NULL) < 0)
		__builtin_trap();
	for (uint64_t i = 0; i < 64; i++) {
		look_up(k, 0xffffffff81000000 + i * 0x1f7);
		look_up(k, i * 0x3f);
	}
	look_up(k, UINT64_MAX);
	(void)cpu_kallsyms_check(path, NULL);
	return 0;
}
