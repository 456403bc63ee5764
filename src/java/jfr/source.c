/* src/java/jfr/source.c: see source.h. */
#include "java/jfr/source.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

#define SOURCE_WINDOW ((size_t)256 << 10)

void java_jfr_source_init_take(struct java_jfr_source *s, int fd, size_t max)
{
	*s = (struct java_jfr_source){.fd = fd, .bytes = buf_with_max(max)};
}

void java_jfr_source_release(struct java_jfr_source *s)
{
	buf_release(&s->bytes);
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

int java_jfr_source_refresh(struct java_jfr_source *s, struct err *err)
{
	struct stat st;

	if (s->fd < 0)
		return 0;
	if (fstat(s->fd, &st) < 0)
		return err_set(err, -errno, "cannot be read: %s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, -ENOTSUP, "is not a regular file");
	s->size = (uint64_t)st.st_size;
	buf_clear(&s->bytes);
	return 0;
}

static int fill(struct java_jfr_source *s, uint64_t off, size_t len, struct err *err)
{
	uint64_t there = s->size - off;
	size_t want = MAX(len, (size_t)MIN(there, (uint64_t)SOURCE_WINDOW));
	ssize_t n;
	int r;

	buf_clear(&s->bytes);
	r = buf_reserve(&s->bytes, want);
	if (r < 0)
		return r == -E2BIG ? err_set(err, r,
					     "has an event of %zu bytes, which is too large", len)
				   : err_oom(err);
	n = io_pread_full(s->fd, s->bytes.data, want, off);
	if (n < 0)
		return err_set(err, (int)n, "cannot be read: %s", strerror((int)-n));
	s->from = off;
	s->bytes.len = (size_t)n;
	return 0;
}

int java_jfr_source_view(struct java_jfr_source *s, uint64_t off, size_t len, struct view *ret_view,
			 struct err *err)
{
	struct view v;
	int r;

	if (off > s->size || len > s->size - off || (s->fd < 0 && off < s->from))
		return err_set(err, -EBADMSG, "ends too early");
	if (s->fd >= 0 && (off < s->from || !view_has(buf_view(&s->bytes), off - s->from, len))) {
		r = fill(s, off, len, err);
		if (r < 0)
			return r;
	}
	v = buf_view(&s->bytes);
	if (!view_has(v, off - s->from, len))
		return err_set(err, -EBADMSG, "was truncated while being read");
	*ret_view = view_of(v.data + (off - s->from), v.len - (size_t)(off - s->from));
	return 0;
}

int java_jfr_source_feed(struct java_jfr_source *s, struct view bytes, struct err *err)
{
	int r = buf_append(&s->bytes, bytes.data, bytes.len);

	if (r == -E2BIG)
		return err_set(err, r,
			       "has a chunk of more than %zu MB, too large to read from a pipe",
			       s->bytes.max >> 20);
	if (r < 0)
		return err_oom(err);
	s->size += bytes.len;
	return 0;
}

void java_jfr_source_forget(struct java_jfr_source *s, uint64_t before)
{
	size_t n = (size_t)(before - s->from);

	if (s->fd >= 0 || before <= s->from || n > s->bytes.len)
		return;
	memmove(s->bytes.data, s->bytes.data + n, s->bytes.len - n);
	s->bytes.len -= n;
	s->from = before;
}
