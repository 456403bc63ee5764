/* src/java/jvmti/ring.c: see ring.h. */
#include "java/jvmti/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

static int ring_write(const struct java_ring *r, const void *data, size_t len, uint64_t off)
{
	ssize_t n = pwrite(r->fd, data, len, (off_t)off);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

int java_ring_create_take(struct java_ring *ring, int fd, const struct java_ring_options *o,
			  struct err *err)
{
	struct java_ring r = {.fd = fd, .data_bytes = o->data_bytes};
	struct java_ring_header h = {
		.magic = JAVA_RING_MAGIC,
		.data_bytes = o->data_bytes,
		.idle_ns = o->idle_ns,
		.interval_bytes = o->interval_bytes,
		.wanted = o->wanted,
		.depth = o->depth,
	};
	int result;

	/* Allocate all pages: writing to a missing one would kill the JVM. */
	result = fallocate(fd, 0, 0, (off_t)(JAVA_RING_HEADER_BYTES + o->data_bytes)) < 0 ? -errno
											  : 0;
	if (result == 0)
		result = ring_write(&r, &h, sizeof(h), 0);
	if (result < 0)
		return err_set(err, result, "cannot create a file for a JVM to write to: %s",
			       strerror(-result));
	r.bytes = buf_with_max(o->data_bytes);
	*ring = r;
	return 0;
}

void java_ring_release(struct java_ring *r)
{
	closep(&r->fd);
	r->fd = -1;
	buf_release(&r->bytes);
}

static int ring_broken(struct err *err)
{
	return err_set(err, -EBADMSG, "invalid data from sonde's JVMTI library");
}

/* The bytes starting at tail, in order. */
static int ring_fetch(struct java_ring *r, size_t len, struct err *err)
{
	uint64_t at = r->tail & (r->data_bytes - 1);
	size_t first = MIN(len, (size_t)(r->data_bytes - at));
	ssize_t n;

	buf_clear(&r->bytes);
	if (buf_reserve(&r->bytes, len) < 0)
		return err_oom(err);
	n = io_pread_full(r->fd, r->bytes.data, first, JAVA_RING_HEADER_BYTES + at);
	if (n == (ssize_t)first && len > first)
		n = io_pread_full(r->fd, (char *)r->bytes.data + first, len - first,
				  JAVA_RING_HEADER_BYTES);
	else if (n == (ssize_t)first)
		n = 0;
	if (n != (ssize_t)(len - first))
		return ring_broken(err);
	r->bytes.len = len;
	return 0;
}

static bool record_len(struct view bytes, size_t at, uint32_t *ret_len)
{
	uint32_t len;

	if (!view_u32(bytes, at + offsetof(struct java_ring_record_header, len), &len) ||
	    len < sizeof(struct java_ring_record_header) || len % JAVA_RING_ALIGN ||
	    !view_has(bytes, at, len))
		return false;
	*ret_len = len;
	return true;
}

/* The length of the complete records; stops at one being written. */
static int ring_whole(const struct java_ring *r, size_t *ret_end, struct err *err)
{
	struct view bytes = buf_view(&r->bytes);
	size_t at = 0;
	uint64_t commit;
	uint32_t len;

	while (view_u64(bytes, at, &commit) && commit == r->tail + at + 1) {
		if (!record_len(bytes, at, &len))
			return ring_broken(err);
		at += len;
	}
	*ret_end = at;
	return 0;
}

int java_ring_read(struct java_ring *r, struct err *err)
{
	uint64_t head, beat = r->beat + 1;
	size_t end = 0;
	int result;

	r->at = 0;
	if (ring_write(r, &beat, sizeof(beat), offsetof(struct java_ring_header, beat)) < 0 ||
	    io_pread_full(r->fd, &head, sizeof(head), offsetof(struct java_ring_header, head)) !=
		    sizeof(head) ||
	    head - r->tail > r->data_bytes)
		return ring_broken(err);
	r->beat = beat;
	result = ring_fetch(r, (size_t)(head - r->tail), err);
	if (result == 0)
		result = ring_whole(r, &end, err);
	/* Fetch again: a record complete now may have been incomplete when copied. */
	return result < 0 ? result : ring_fetch(r, end, err);
}

static int parse_name(struct view v, struct java_ring_record *r)
{
	uint16_t class_len, method_len;
	uint32_t line;

	if (!view_u32(v, offsetof(struct java_ring_name, frame), &r->frame) ||
	    !view_u32(v, offsetof(struct java_ring_name, line), &line) ||
	    !view_u16(v, offsetof(struct java_ring_name, class_len), &class_len) ||
	    !view_u16(v, offsetof(struct java_ring_name, method_len), &method_len) ||
	    !view_sub(v, sizeof(struct java_ring_name), class_len, &r->class) ||
	    !view_sub(v, sizeof(struct java_ring_name) + class_len, method_len, &r->method) ||
	    r->frame == 0 || r->frame >= JAVA_RING_MAX_FRAMES || class_len > JAVA_RING_MAX_NAME ||
	    method_len > JAVA_RING_MAX_NAME)
		return -EBADMSG;
	r->line = (int32_t)line;
	return 1;
}

static int parse_event(struct view v, struct java_ring_record *r)
{
	uint16_t class_len, thread_len, n_frames;
	size_t at = sizeof(struct java_ring_event);

	if (!view_u16(v, offsetof(struct java_ring_record_header, n_frames), &n_frames) ||
	    !view_u64(v, offsetof(struct java_ring_event, a), &r->a) ||
	    !view_u64(v, offsetof(struct java_ring_event, b), &r->b) ||
	    !view_u16(v, offsetof(struct java_ring_event, class_len), &class_len) ||
	    !view_u16(v, offsetof(struct java_ring_event, thread_len), &thread_len) ||
	    !view_u32(v, offsetof(struct java_ring_event, flags), &r->flags) ||
	    n_frames > JAVA_RING_MAX_DEPTH || class_len > JAVA_RING_MAX_NAME ||
	    thread_len > JAVA_RING_MAX_NAME ||
	    !view_sub(v, at, n_frames * sizeof(uint32_t), &r->frames) ||
	    !view_sub(v, at + r->frames.len, class_len, &r->class) ||
	    !view_sub(v, at + r->frames.len + class_len, thread_len, &r->thread))
		return -EBADMSG;
	return 1;
}

int java_ring_next(struct java_ring *r, struct java_ring_record *ret_record)
{
	struct view bytes = buf_view(&r->bytes), v;
	struct java_ring_record record = {0};
	uint32_t len;
	int result;

	do {
		if (r->at == bytes.len)
			return 0;
		if (!record_len(bytes, r->at, &len) || !view_sub(bytes, r->at, len, &v) ||
		    !view_u16(v, offsetof(struct java_ring_record_header, kind), &record.kind))
			return -EBADMSG;
		r->at += len;
	} while (record.kind == JAVA_RING_FILL);
	if (record.kind == JAVA_RING_NAME)
		result = parse_name(v, &record);
	else if (record.kind == JAVA_RING_ALLOC || record.kind == JAVA_RING_LOCK)
		result = parse_event(v, &record);
	else
		result = -EBADMSG;
	if (result == 1)
		*ret_record = record;
	return result;
}

int java_ring_done(struct java_ring *r, struct err *err)
{
	r->tail += r->bytes.len;
	buf_clear(&r->bytes);
	r->at = 0;
	if (ring_write(r, &r->tail, sizeof(r->tail), offsetof(struct java_ring_header, tail)) < 0)
		return ring_broken(err);
	return 0;
}

int java_ring_counts(const struct java_ring *r, struct java_ring_counts *ret_counts)
{
	struct java_ring_header h;

	if (io_pread_full(r->fd, &h, sizeof(h), 0) != sizeof(h))
		return -EBADMSG;
	*ret_counts = (struct java_ring_counts){
		.events = h.events,
		.dropped = h.dropped,
		.interval_bytes = h.interval_now,
		.has_ended = h.ended != 0,
		.sees_parks = h.parks != 0,
	};
	return 0;
}
