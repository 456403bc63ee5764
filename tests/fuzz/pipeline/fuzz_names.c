/*
 * tests/fuzz/pipeline/fuzz_names.c: any bytes as the file with the names of services: what is read
 * is written and read again as the same, and every process gets a name.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "pipeline/names.h"

#define MAX_BYTES ((size_t)64 << 10)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(pipeline_names_freep) struct pipeline_names *names = NULL, *again = NULL;
	_cleanup_(buf_release) struct buf text = {}, same = {};
	struct proc_info info = {.owner = "uid 1"};

	if (size > MAX_BYTES || pipeline_names_new(&names, NULL) < 0 ||
	    pipeline_names_new(&again, NULL) < 0)
		return 0;
	pipeline_names_read(names, view_of(data, size));
	assert(pipeline_names_write(names, &text) == 0);
	pipeline_names_read(again, buf_view(&text));
	assert(pipeline_names_write(again, &same) == 0);
	assert(same.len == text.len);
	/* The first bytes as a claim. */
	size = MIN(size, sizeof(info.service) - 1);
	memcpy(info.service, data, size);
	pipeline_names_settle(names, &info);
	assert(strlen(info.service) < sizeof(info.service));
	pipeline_names_tick(names, 3600 * NS_PER_SEC);
	return 0;
}
