/*
 * tests/fuzz/cpu/fuzz_hotspot.c: any bytes as the memory of a JVM in which a flag is looked for. It
 * begins with the words that lead to the tables. And any bytes as its library.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "cpu/unwind/hotspot_flag.h"
#include "mem_fake.h"

#define BASE ((uint64_t)0x10000)
#define BIAS ((uint64_t)0x1000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void find(const uint8_t *data, size_t size)
{
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	struct cpu_hotspot hotspot;

	if (elf_image_open_bytes(view_of(data, size), &image, NULL) == 0)
		(void)cpu_hotspot_find(image, &hotspot);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct cpu_hotspot hotspot;
	bool flag = false;

	find(data, size);
	if (proc_mem_open_fake(&mem, NULL) < 0 || proc_mem_fake_add(mem, BASE, data, size) < 0)
		return 0;
	for (size_t i = 0; i < CPU_HOTSPOT_WORDS; i++)
		hotspot.words[i] = BASE - BIAS + i * sizeof(uint64_t);
	if (cpu_hotspot_flag(&hotspot, mem, BIAS, &flag) < 0 && flag)
		__builtin_trap();
	return 0;
}
