/*
 * tests/fuzz/pipeline/fuzz_spool.c: any bytes as the files of a spool: a flag byte, 20 of the
 * position, two that say how many of the rest are the first segment. By the flags checksums are
 * made right, so that they do not keep the fuzzer out. Whatever is there, what is appended comes
 * back after it.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/crc.h"
#include "base/io.h"
#include "pipeline/spool/spool.h"

#define POSITION_BYTES 20
#define MAX_BYTES ((size_t)1 << 20)

enum { FIX_HEADS = 1, FIX_MESSAGES = 2, FIX_POSITION = 4, NO_POSITION = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[64];
static int dirfd = -1;
static const char *const names[] = {"0000000000000001.spool", "0000000000000002.spool",
				    "0000000000000003.spool", "position", "position.new"};

static void clean(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		(void)unlinkat(dirfd, names[i], 0);
}

static void clean_all(void)
{
	clean();
	(void)rmdir(dir);
}

static void begin(void)
{
	(void)snprintf(dir, sizeof(dir), "%s/sonde-fuzz-XXXXXX",
		       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert(mkdtemp(dir));
	dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert(dirfd >= 0 && atexit(clean_all) == 0);
}

static void put_u32(uint8_t *at, uint32_t word)
{
	memcpy(at, &word, sizeof(word));
}

static void write_file(const char *name, const uint8_t *bytes, size_t len)
{
	_cleanup_close_ int fd =
		openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert(fd >= 0 && io_write_full(fd, bytes, len) == 0);
}

static void write_segment(const char *name, uint8_t flags, const uint8_t *bytes, size_t len)
{
	_cleanup_free_ uint8_t *copy = malloc(len + 1);
	uint32_t length;

	assert(copy);
	memcpy(copy, bytes, len);
	if (flags & FIX_HEADS && len >= 16) {
		memcpy(copy, "sondespl\1\0\0\0", 12);
		put_u32(copy + 12, crc32c(view_of(copy, 12)));
	}
	for (size_t at = 16; flags & FIX_MESSAGES && at + 8 < len; at += 8 + length) {
		memcpy(&length, copy + at, sizeof(length));
		if (length > len - at - 8)
			break;
		put_u32(copy + at + 4, crc32c(view_of(copy + at + 8, length)));
	}
	write_file(name, copy, len);
}

static struct spool *reopen(struct spool *s)
{
	const struct spool_config config = {
		.dir = dir, .max_bytes = MAX_BYTES, .segment_bytes = 4096};
	struct err err = {0};

	spool_close(s);
	assert(spool_open(&config, &s, &err) == 0);
	return s;
}

static bool take(struct spool *s, struct buf *message)
{
	struct spool_status before, after;
	struct err err = {0};
	int r = spool_peek(s, message, &err);

	spool_status(s, &before);
	assert(r >= 0 && (r > 0) == (before.messages > 0));
	if (r == 0)
		return false;
	assert(message->len > 0 && spool_pop(s, &err) == 0);
	spool_status(s, &after);
	assert(after.messages == before.messages - 1);
	return true;
}

static void feed(uint64_t n_taken)
{
	_cleanup_(buf_release) struct buf message = {0};
	struct spool *s = reopen(NULL);
	bool was_last_but_one = false, is_last = false;
	struct err err = {0};
	uint64_t n = 0;

	while (n < n_taken && take(s, &message))
		n++;
	assert(spool_append(s, view_str("the last but one"), &err) == 0);
	assert(spool_append(s, view_str("the last"), &err) == 0);
	s = reopen(s);
	/* What is fed may say the same, so all are taken. */
	while (take(s, &message)) {
		is_last = was_last_but_one && view_eq(buf_view(&message), view_str("the last"));
		was_last_but_one = view_eq(buf_view(&message), view_str("the last but one"));
	}
	assert(is_last);
	s = reopen(s);
	assert(!take(s, &message));
	spool_close(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t position[POSITION_BYTES];
	uint16_t first;

	if (size < 1 + POSITION_BYTES + sizeof(first) || size > MAX_BYTES / 2)
		return 0;
	if (dirfd < 0)
		begin();
	memcpy(position, data + 1, sizeof(position));
	if (data[0] & FIX_POSITION)
		put_u32(position + 16, crc32c(view_of(position, 16)));
	if (!(data[0] & NO_POSITION))
		write_file("position", position, sizeof(position));
	memcpy(&first, data + 1 + POSITION_BYTES, sizeof(first));
	size -= 1 + POSITION_BYTES + sizeof(first);
	first = (uint16_t)MIN(first, size);
	write_segment(names[0], data[0], data + 23, first);
	write_segment(names[1], data[0], data + 23 + first, size - first);
	feed(data[0] >> 4);
	clean();
	return 0;
}
