/* src/pipeline/spool/segment.c: see segment.h. */
#include "pipeline/spool/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/crc.h"
#include "base/io.h"
#include "pipeline/spool/spool.h"

#define SEGMENT_VERSION 1
#define SEGMENT_SUFFIX ".spool"
#define SEGMENT_DIGITS 16

static const uint8_t segment_magic[8] = {'s', 'o', 'n', 'd', 'e', 's', 'p', 'l'};

void spool_segment_name(uint64_t number, char dst[SPOOL_NAME_BYTES])
{
	(void)snprintf(dst, SPOOL_NAME_BYTES, "%016" PRIu64 SEGMENT_SUFFIX, number);
}

bool spool_segment_parse_name(const char *name, uint64_t *ret_number)
{
	uint64_t number = 0;

	for (size_t i = 0; i < SEGMENT_DIGITS; i++) {
		if (name[i] < '0' || name[i] > '9')
			return false;
		number = number * 10 + (uint64_t)(name[i] - '0');
	}
	*ret_number = number;
	return strcmp(name + SEGMENT_DIGITS, SEGMENT_SUFFIX) == 0;
}

static int write_at(int fd, const void *data, size_t len, uint64_t at)
{
	const char *p = data;

	while (len) {
		ssize_t n = pwrite(fd, p, len, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		at += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static int read_at(int fd, void *dst, size_t len, uint64_t at)
{
	ssize_t n = io_pread_full(fd, dst, len, at);

	if (n < 0)
		return (int)n;
	return (size_t)n == len ? 0 : -EBADMSG;
}

static void head_make(uint8_t head[SPOOL_HEAD_BYTES])
{
	const uint32_t version = SEGMENT_VERSION;
	uint32_t crc;

	memcpy(head, segment_magic, sizeof(segment_magic));
	memcpy(head + 8, &version, sizeof(version));
	crc = crc32c(view_of(head, 12));
	memcpy(head + 12, &crc, sizeof(crc));
}

int spool_segment_create(int dirfd, uint64_t number, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	uint8_t head[SPOOL_HEAD_BYTES];
	char name[SPOOL_NAME_BYTES];
	int r;

	spool_segment_name(number, name);
	fd = openat(dirfd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	head_make(head);
	r = write_at(fd, head, sizeof(head), 0);
	if (r < 0) {
		(void)unlinkat(dirfd, name, 0);
		return r;
	}
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* A buffered part of the file, so that small messages do not cost a system call each. */
struct window {
	int fd;
	uint64_t at;
	size_t len;
	uint8_t bytes[16 << 10];
};

/* The length of the message at an offset, if it is complete before end; otherwise 0. */
static uint32_t window_message(struct window *w, uint64_t at, uint64_t end)
{
	uint32_t length;

	if (end - at <= SPOOL_MESSAGE_BYTES)
		return 0;
	if (at < w->at || at + SPOOL_MESSAGE_BYTES > w->at + w->len) {
		ssize_t n = io_pread_full(w->fd, w->bytes, sizeof(w->bytes), at);

		w->at = at;
		w->len = n > 0 ? (size_t)n : 0;
	}
	if (!view_u32(view_of(w->bytes, w->len), at - w->at, &length) ||
	    length > SPOOL_MAX_MESSAGE || length > end - at - SPOOL_MESSAGE_BYTES)
		return 0;
	return length;
}

/* The last message is complete, by its checksum. */
static bool message_is_whole(int fd, const struct spool_segment *segment, uint64_t at)
{
	_cleanup_(buf_release) struct buf message = buf_with_max(SPOOL_MAX_MESSAGE);
	uint64_t next;

	return spool_segment_read(fd, segment, at, &message, &next) != -EBADMSG;
}

int spool_segment_scan(int fd, uint64_t *from, struct spool_segment *segment)
{
	_cleanup_free_ struct window *w = malloc(sizeof(*w));
	uint8_t head[SPOOL_HEAD_BYTES], ours[SPOOL_HEAD_BYTES];
	uint64_t at = SPOOL_HEAD_BYTES, last = 0, all = 0, waiting = 0;
	bool found = false;
	struct stat st;
	uint32_t length;
	int r;

	if (!w)
		return -ENOMEM;
	if (fstat(fd, &st) < 0)
		return -errno;
	head_make(ours);
	r = read_at(fd, head, sizeof(head), 0);
	if (r < 0)
		return r;
	if (memcmp(head, ours, sizeof(head)) != 0)
		return -EBADMSG;
	*w = (struct window){.fd = fd};
	for (;; at += SPOOL_MESSAGE_BYTES + length) {
		found |= at == *from;
		length = window_message(w, at, (uint64_t)st.st_size);
		if (length == 0)
			break;
		last = at;
		all++;
		waiting += found;
	}
	segment->bytes = at;
	if (last && !message_is_whole(fd, segment, last)) {
		segment->bytes = last;
		waiting -= found && *from <= last;
		all--;
		found &= *from <= last;
	}
	if (!found)
		*from = SPOOL_HEAD_BYTES;
	segment->messages = found ? waiting : all;
	return 0;
}

int spool_segment_append(int fd, struct spool_segment *segment, struct view message)
{
	const uint32_t head[2] = {(uint32_t)message.len, crc32c(message)};
	int r = write_at(fd, head, sizeof(head), segment->bytes);

	if (r == 0)
		r = write_at(fd, message.data, message.len, segment->bytes + sizeof(head));
	if (r < 0) {
		/* If this fails too, the next message overwrites it. */
		(void)!ftruncate(fd, (off_t)segment->bytes);
		return r;
	}
	segment->bytes += sizeof(head) + message.len;
	segment->messages++;
	return 0;
}

int spool_segment_read(int fd, const struct spool_segment *segment, uint64_t at, struct buf *dst,
		       uint64_t *ret_next)
{
	uint64_t left = segment->bytes - at;
	uint32_t head[2];
	int r = left > sizeof(head) ? read_at(fd, head, sizeof(head), at) : -EBADMSG;

	*ret_next = segment->bytes;
	/* An unreadable message is as good as a damaged one. */
	if (r < 0 || head[0] == 0 || head[0] > SPOOL_MAX_MESSAGE || head[0] > left - sizeof(head))
		return -EBADMSG;
	buf_clear(dst);
	r = buf_reserve(dst, head[0]);
	if (r < 0)
		return r;
	*ret_next = at + sizeof(head) + head[0];
	if (read_at(fd, dst->data, head[0], at + sizeof(head)) < 0)
		return -EBADMSG;
	dst->len = head[0];
	return crc32c(buf_view(dst)) == head[1] ? 0 : -EBADMSG;
}
