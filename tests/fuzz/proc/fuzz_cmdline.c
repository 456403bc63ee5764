/*
 * tests/fuzz/proc/fuzz_cmdline.c: any bytes as the command line of any interpreter. The first byte
 * says which; the second where the directory ends that stands before the arguments.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "proc/cmdline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text, size_t cap)
{
	size_t n = strnlen(text, cap);

	assert(n < cap);
	for (size_t i = 0; i < n; i++)
		assert(text_unsafe(view_of(text, n), i) == 0);
}

static void feed(struct view args, const char *exe, const char *cwd)
{
	struct proc_cmdline found;
	char name[32];

	if (!proc_cmdline_find(args, exe, &found))
		return;
	assert(found.what.len > 0);
	(void)proc_cmdline_needs_cwd(&found);
	proc_cmdline_name(&found, cwd, name, sizeof(name));
	check_text(name, sizeof(name));
	assert(name[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const exes[] = {"",
					   "/usr/bin/python3.11",
					   "/usr/bin/node",
					   "/usr/bin/java",
					   "/usr/bin/ruby3.1",
					   "/usr/bin/php8.2",
					   "/usr/bin/perl",
					   "/bin/bash",
					   "/bin/busybox",
					   "/usr/bin/dotnet"};
	_cleanup_free_ char *cwd = NULL;
	char line[64];
	size_t split;

	if (size < 2)
		return 0;
	split = MIN((size_t)data[1], size - 2);
	cwd = strndup((const char *)data + 2, split);
	if (!cwd)
		return 0;
	feed(view_of(data + 2 + split, size - 2 - split), exes[data[0] % ARRAY_SIZE(exes)], cwd);
	proc_cmdline_text(view_of(data + 2, size - 2), line, sizeof(line));
	check_text(line, sizeof(line));
	return 0;
}
