/*
 * tests/fuzz/java/fuzz_perfmap_text.c: any text as the perf map of a JVM. What is written is a perf
 * map again, no longer than allowed. The first byte says how long that is.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "java/perfmap/text.h"

#define MAX_BYTES 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t count_lines(int fd, size_t len)
{
	static char text[MAX_BYTES];
	uint64_t n = 0;

	if (io_pread_full(fd, text, len, 0) != (ssize_t)len || (len && text[len - 1] != '\n'))
		__builtin_trap();
	for (size_t at = 0; at < len; n++) {
		const char *end = memchr(text + at, '\n', len - at);
		const char *size = memchr(text + at, ' ', (size_t)(end - text) - at);
		const char *name = size ? memchr(size + 1, ' ', (size_t)(end - size - 1)) : NULL;

		if (!name || name + 1 == end)
			__builtin_trap();
		at = (size_t)(end - text) + 1;
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_close_ int from = memfd_create("from", MFD_CLOEXEC);
	_cleanup_close_ int to = memfd_create("to", MFD_CLOEXEC);
	struct java_perfmap_copied copied = {0};
	struct stat st;
	uint64_t max;

	if (size == 0)
		return 0;
	max = (uint64_t)data[0] << 8;
	if (from < 0 || to < 0 || write(from, data + 1, size - 1) != (ssize_t)(size - 1) ||
	    lseek(from, 0, SEEK_SET) != 0)
		__builtin_trap();
	if (java_perfmap_copy(from, to, max, &copied) < 0)
		return 0;
	if (fstat(to, &st) < 0 || (uint64_t)st.st_size > max ||
	    count_lines(to, (size_t)st.st_size) != copied.functions)
		__builtin_trap();
	return 0;
}
