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
static void check(const struct cpu_ksyms *k)
{
	for (size_t i = 0; i < k->len; i++) {
		if (i && k->list[i].start <= k->list[i - 1].start)
			__builtin_trap();
		if (k->list[i].name >= k->names.len ||
		    !memchr(k->names.data + k->list[i].name, 0, k->names.len - k->list[i].name))
			__builtin_trap();
	}
}

static int look_up(struct cpu_kallsyms *k, uint64_t address)
{
	char name[64];
	int r = cpu_kallsyms_lookup(k, address, SEC, name, sizeof(name));

	if (r == 0 && (!name[0] || strlen(name) >= sizeof(name)))
		__builtin_trap();
	return r;
}

/* Few: each unpacks a block of names. */
static void look_up_some(struct cpu_kallsyms *k, const struct cpu_ksyms *ksyms)
{
	for (size_t i = 0; i < ksyms->len; i += ksyms->len / 3 + 1)
		if (look_up(k, ksyms->base + ksyms->list[i].start) < 0)
			__builtin_trap();
	(void)look_up(k, 0);
	(void)look_up(k, ksyms->base + UINT32_MAX);
	(void)look_up(k, UINT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(cpu_kallsyms_freep) struct cpu_kallsyms *k = NULL;
	_cleanup_(cpu_ksyms_release) struct cpu_ksyms ksyms = {0};
	_cleanup_close_ int fd = memfd_create("kallsyms", MFD_CLOEXEC);
	char path[64];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) != 0 ||
	    cpu_ksyms_read(fd, &ksyms) < 0)
		__builtin_trap();
	check(&ksyms);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (cpu_kallsyms_new(path, &k, NULL) < 0)
		__builtin_trap();
	look_up_some(k, &ksyms);
	(void)cpu_kallsyms_check(path, NULL);
	return 0;
}
