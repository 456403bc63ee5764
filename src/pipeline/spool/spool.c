/* src/pipeline/spool/spool.c: see spool.h. */
#include "pipeline/spool/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/spool/folder.h"
#include "pipeline/spool/segment.h"

#define SPOOL_SEGMENT_BYTES ((uint64_t)8 << 20)

struct spool {
	char *dir; /* for messages */
	int dirfd;
	uint64_t max_bytes;
	uint64_t segment_bytes;
	struct spool_segment *segments; /* oldest first; we read the first and write the last */
	size_t n;
	size_t cap;
	uint64_t next_number;
	int write_fd;	  /* -1: the next message starts a segment */
	int read_fd;	  /* -1: not open yet */
	uint64_t read_at; /* in the first segment */
	uint64_t peeked;  /* end of the message peeked last; 0: it is gone */
	bool unsynced;
	bool dir_unsynced;
	struct spool_status status;
};

static bool is_no_space(int r)
{
	return r == -ENOSPC || r == -EDQUOT;
}

static int spool_failed(const struct spool *s, int r, const char *what, struct err *err)
{
	if (is_no_space(r))
		return err_lack(err, r, ERR_CAUSE_DISK, "free space on its disk",
				"cannot %s in the spool directory %s: %s", what, s->dir,
				strerror(-r));
	if (r == -EOVERFLOW || r == -E2BIG)
		return err_lack(
			err, r, ERR_CAUSE_DISK, "empty the directory",
			"the spool directory %s has too many files, or one with too high a number",
			s->dir);
	return err_set(err, r, "cannot %s in the spool directory %s: %s", what, s->dir,
		       strerror(-r));
}

static struct spool_segment *spool_last(const struct spool *s)
{
	return &s->segments[s->n - 1];
}

static int position_write(struct spool *s, struct err *err)
{
	int r = spool_position_write(s->dirfd, s->segments[0].number, s->read_at);

	return r < 0 ? spool_failed(s, r, "save the read position", err) : 0;
}

/* --- segments -------------------------------------------------------------------------------- */

static void segment_unlink(const struct spool *s, uint64_t number)
{
	char name[SPOOL_NAME_BYTES];

	spool_segment_name(number, name);
	(void)unlinkat(s->dirfd, name, 0);
}

/* Removes the first segment, with everything still in it. */
static void spool_remove_first(struct spool *s)
{
	struct spool_segment *first = &s->segments[0];

	segment_unlink(s, first->number);
	s->status.bytes -= first->bytes;
	s->status.messages -= first->messages;
	if (s->n == 1) {
		closep(&s->write_fd);
		s->write_fd = -1;
		s->unsynced = false;
	}
	closep(&s->read_fd);
	s->read_fd = -1;
	s->read_at = SPOOL_HEAD_BYTES;
	s->peeked = 0;
	s->n--;
	memmove(s->segments, s->segments + 1, s->n * sizeof(*s->segments));
}

static void spool_drop_first(struct spool *s)
{
	s->status.dropped += s->segments[0].messages;
	spool_remove_first(s);
}

static int spool_add(struct spool *s, const struct spool_segment *segment)
{
	if (s->n == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 32;
		struct spool_segment *more = reallocarray(s->segments, cap, sizeof(*more));

		if (!more)
			return -ENOMEM;
		s->segments = more;
		s->cap = cap;
	}
	s->segments[s->n++] = *segment;
	s->status.bytes += segment->bytes;
	s->status.messages += segment->messages;
	return 0;
}

/* Opens it if it is a regular file that is ours alone; 0 for anything else. */
static int segment_open(const struct spool *s, uint64_t number, struct stat *ret_stat, int *ret_fd)
{
	char name[SPOOL_NAME_BYTES];
	_cleanup_close_ int fd = -1;

	spool_segment_name(number, name);
	fd = openat(s->dirfd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOMEM || errno == EMFILE || errno == ENFILE ? -errno : 0;
	if (fstat(fd, ret_stat) < 0)
		return -errno;
	if (!S_ISREG(ret_stat->st_mode))
		return 0;
	*ret_fd = TAKE_FD(fd);
	return 1;
}

/* Adopts an existing segment; anything after its last complete message is truncated. */
static int spool_load(struct spool *s, uint64_t number, uint64_t from, struct err *err)
{
	struct spool_segment segment = {.number = number};
	_cleanup_close_ int fd = -1;
	uint64_t begin = from;
	struct stat st;
	int r = segment_open(s, number, &st, &fd);

	if (r == 0)
		return 0;
	if (r > 0)
		r = (uint64_t)st.st_size <= SPOOL_MAX_SEGMENT
			    ? spool_segment_scan(fd, &begin, &segment)
			    : -EBADMSG;
	if (r == -EBADMSG) {
		/* Without a complete head it never held anything. */
		s->status.damaged += (uint64_t)st.st_size > SPOOL_HEAD_BYTES;
		segment_unlink(s, number);
		return 0;
	}
	if (r == 0 && (uint64_t)st.st_size > segment.bytes) {
		s->status.damaged++;
		if (ftruncate(fd, (off_t)segment.bytes) < 0)
			r = -errno;
	}
	if (r < 0)
		return spool_failed(s, r, "read messages", err);
	/* No message starts at the read position: make sure that none ever does by chance. */
	if (begin != from)
		spool_position_remove(s->dirfd);
	if (s->n == 0)
		s->read_at = begin;
	closep(&s->write_fd);
	s->write_fd = TAKE_FD(fd);
	r = spool_add(s, &segment);
	return r < 0 ? err_oom(err) : 0;
}

/* The index of the segment with the read position; 0 and no offset if unknown. */
static size_t spool_begin(const struct spool *s, const uint64_t *numbers, size_t n,
			  uint64_t *ret_at)
{
	uint64_t number, at;
	size_t i = 0;

	*ret_at = SPOOL_HEAD_BYTES;
	if (!spool_position_read(s->dirfd, &number, &at))
		return 0;
	while (i < n && numbers[i] < number)
		i++;
	if (i == n) {
		/* It refers to a segment that does not exist yet, and must not once it does. */
		spool_position_remove(s->dirfd);
		return 0;
	}
	if (numbers[i] == number)
		*ret_at = at;
	return i;
}

static int spool_load_all(struct spool *s, struct err *err)
{
	_cleanup_free_ uint64_t *numbers = NULL;
	size_t n = 0, begin;
	uint64_t at;
	int r = spool_folder_list(s->dirfd, &numbers, &n);

	if (r < 0)
		return spool_failed(s, r, "list files", err);
	begin = spool_begin(s, numbers, n, &at);
	for (size_t i = 0; i < begin; i++)
		segment_unlink(s, numbers[i]);
	for (size_t i = begin; i < n && r == 0; i++)
		r = spool_load(s, numbers[i], i == begin ? at : SPOOL_HEAD_BYTES, err);
	s->next_number = n ? numbers[n - 1] + 1 : 1;
	/* The limit may have been lowered. */
	while (r == 0 && s->n && s->status.bytes > s->max_bytes)
		spool_drop_first(s);
	return r;
}

int spool_open(const struct spool_config *config, struct spool **ret_spool, struct err *err)
{
	_cleanup_(spool_closep) struct spool *s = calloc(1, sizeof(*s));
	uint64_t segment = config->segment_bytes ? config->segment_bytes
						 : MIN(config->max_bytes / 16, SPOOL_SEGMENT_BYTES);
	int r;

	if (!s)
		return err_oom(err);
	s->dirfd = s->write_fd = s->read_fd = -1;
	s->read_at = SPOOL_HEAD_BYTES;
	s->max_bytes = config->max_bytes;
	/* Not so small that there are too many files. */
	s->segment_bytes = MIN(MAX(segment, config->max_bytes / 256), SPOOL_MAX_SEGMENT);
	s->dir = strdup(config->dir);
	if (!s->dir)
		return err_oom(err);
	if (config->max_bytes == 0)
		return err_set(err, -EINVAL, "the spool directory %s needs a size limit", s->dir);
	r = spool_folder_open(s->dir, &s->dirfd, err);
	if (r == 0)
		r = spool_load_all(s, err);
	if (r < 0)
		return r;
	*ret_spool = TAKE_PTR(s);
	return 0;
}

void spool_close(struct spool *s)
{
	if (!s)
		return;
	closep(&s->read_fd);
	closep(&s->write_fd);
	closep(&s->dirfd);
	free(s->segments);
	free(s->dir);
	free(s);
}

/* --- writing --------------------------------------------------------------------------------- */

static int spool_sync_segment(struct spool *s)
{
	if (s->unsynced && fdatasync(s->write_fd) < 0)
		return -errno;
	s->unsynced = false;
	return 0;
}

static int spool_new_segment(struct spool *s)
{
	struct spool_segment segment = {.number = s->next_number, .bytes = SPOOL_HEAD_BYTES};
	int r = segment.number > SPOOL_MAX_NUMBER
			? -EOVERFLOW
			: spool_segment_create(s->dirfd, segment.number, &s->write_fd);

	if (r < 0)
		return r;
	s->next_number++;
	s->dir_unsynced = true;
	r = spool_add(s, &segment);
	if (r < 0) {
		closep(&s->write_fd);
		s->write_fd = -1;
		segment_unlink(s, segment.number);
	}
	return r;
}

/* On a full disk: removes something older than what is being written, or already sent. */
static bool spool_free_space(struct spool *s)
{
	if (s->n == 0 ||
	    (s->n == 1 && (s->segments[0].messages || s->segments[0].bytes == SPOOL_HEAD_BYTES)))
		return false;
	spool_drop_first(s);
	return true;
}

static int spool_write(struct spool *s, struct view message)
{
	uint64_t before;
	int r = s->write_fd < 0 ? spool_new_segment(s) : 0;

	if (r < 0)
		return r;
	before = spool_last(s)->bytes;
	r = spool_segment_append(s->write_fd, spool_last(s), message);
	if (r < 0)
		return r;
	s->status.bytes += spool_last(s)->bytes - before;
	s->status.messages++;
	s->unsynced = true;
	return 0;
}

int spool_append(struct spool *s, struct view message, struct err *err)
{
	uint64_t need = SPOOL_MESSAGE_BYTES + message.len;
	int r;

	if (message.len == 0)
		return err_set(err, -EINVAL, "a message in a spool cannot be empty");
	if (message.len > SPOOL_MAX_MESSAGE || SPOOL_HEAD_BYTES + need > s->max_bytes)
		return err_set(err, -E2BIG,
			       "a message of %zu bytes is too large for the spool directory %s",
			       message.len, s->dir);
	if (s->write_fd >= 0 && spool_last(s)->bytes + need > s->segment_bytes &&
	    spool_last(s)->bytes > SPOOL_HEAD_BYTES) {
		r = spool_sync_segment(s);
		if (r < 0)
			return spool_failed(s, r, "write messages", err);
		closep(&s->write_fd);
		s->write_fd = -1;
	}
	while (s->n &&
	       s->status.bytes + need + (s->write_fd < 0 ? SPOOL_HEAD_BYTES : 0) > s->max_bytes)
		spool_drop_first(s);
	do
		r = spool_write(s, message);
	while (is_no_space(r) && spool_free_space(s));
	return r < 0 ? spool_failed(s, r, "write messages", err) : 0;
}

int spool_sync(struct spool *s, struct err *err)
{
	int r = spool_sync_segment(s);

	if (r == 0 && s->dir_unsynced && fsync(s->dirfd) < 0)
		r = -errno;
	if (r < 0)
		return spool_failed(s, r, "write messages", err);
	s->dir_unsynced = false;
	return 0;
}

/* --- reading --------------------------------------------------------------------------------- */

static int spool_open_first(struct spool *s)
{
	struct stat st;
	int r = s->read_fd < 0 ? segment_open(s, s->segments[0].number, &st, &s->read_fd) : 1;

	/* Someone removed it. */
	return r == 0 ? -EBADMSG : r;
}

/* Everything before next was read, or is unreadable. */
static void spool_move_to(struct spool *s, uint64_t next)
{
	struct spool_segment *first = &s->segments[0];
	/* If their number is unknown, count them all as gone. */
	uint64_t gone = next == first->bytes ? first->messages : MIN(first->messages, 1);

	first->messages -= gone;
	s->status.messages -= gone;
	s->read_at = next;
	s->peeked = 0;
}

int spool_peek(struct spool *s, struct buf *ret_message, struct err *err)
{
	while (s->n) {
		struct spool_segment *first = &s->segments[0];
		uint64_t next = first->bytes;
		int r;

		if (s->read_at >= first->bytes) {
			if (s->n == 1)
				return 0;
			spool_remove_first(s);
			continue;
		}
		r = spool_open_first(s);
		if (r >= 0)
			r = spool_segment_read(s->read_fd, first, s->read_at, ret_message, &next);
		if (r == 0) {
			s->peeked = next;
			return 1;
		}
		if (r != -EBADMSG)
			return spool_failed(s, r, "read a message", err);
		s->status.damaged++;
		spool_move_to(s, next);
	}
	return 0;
}

int spool_pop(struct spool *s, struct err *err)
{
	if (!s->peeked)
		return 0;
	spool_move_to(s, s->peeked);
	if (s->n > 1 && s->read_at >= s->segments[0].bytes) {
		spool_remove_first(s);
		return 0;
	}
	return position_write(s, err);
}

void spool_status(const struct spool *s, struct spool_status *ret_status)
{
	*ret_status = s->status;
}
