/*
 * tests/fuzz/golang/fuzz_buildinfo.c: any bytes as the data of a program that may hold build info.
 */
#include <assert.h>
#include <string.h>

#include "golang/binary/buildinfo.h"
#include "mem_fake.h"

#define BASE ((uint64_t)0x10000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct golang_version *version)
{
	struct golang_version again;
	size_t len = strnlen(version->text, sizeof(version->text));

	/* What was understood is understood again. */
	assert(len < sizeof(version->text) && version->minor < 1000);
	assert(golang_version_parse(view_of(version->text, len), &again));
	assert(again.minor == version->minor && strcmp(again.text, version->text) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct golang_version version;
	struct golang_scan scan;
	struct err err;

	if (proc_mem_open_fake(&mem, &err) < 0 || proc_mem_fake_add(mem, BASE, data, size) < 0)
		return 0;
	if (golang_version_parse(view_of(data, size), &version))
		check(&version);
	for (uint64_t off = 0; off < size && off < 256; off += 16) {
		err.text[0] = 0;
		if (golang_buildinfo_read(mem, BASE + off, &version, &err) == 0)
			check(&version);
		else
			assert(err.text[0]);
	}
	scan = golang_scan_of(mem);
	/* One byte early, and longer than there is memory. */
	if (golang_buildinfo_scan(&scan, BASE - 1, size + 8192, &version, &err) == 0)
		check(&version);
	return 0;
}
