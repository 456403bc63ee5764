/* src/java/agent_lib/session.c: see session.h. */
#include "java/agent_lib/session.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct java_session {
	struct java_ring_header *header; /* shared; the records follow it */
	size_t mapped_bytes;
	uint64_t data_bytes; /* copied at the start: the file may change */
	uint64_t idle_ns;
	uint64_t interval_bytes;
	uint32_t wanted, depth;
	uint64_t beat, beat_ns;
	uint64_t frames[JAVA_RING_MAX_FRAMES]; /* hashes of method and location; 0 is free */
	uint8_t is_named[JAVA_RING_MAX_FRAMES];
	uint32_t n_frames;
};

/*
 * The JVM cannot unload the library, so its state is static. gate: 1 while the session is on, plus
 * 2 for each thread in it. Whoever brings it to 0 unmaps the session; only then can another one
 * start.
 */
static uint64_t gate;
static struct java_session *session;

uint64_t java_session_now_ns(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_MONOTONIC, &t) != 0)
		return 1;
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static void session_unmap(void)
{
	struct java_session *s = __atomic_load_n(&session, __ATOMIC_ACQUIRE);

	if (!s)
		return;
	(void)munmap(s->header, s->mapped_bytes);
	(void)munmap(s, sizeof(*s));
	__atomic_store_n(&session, NULL, __ATOMIC_RELEASE);
}

struct java_session *java_session_enter(void)
{
	uint64_t now = __atomic_load_n(&gate, __ATOMIC_RELAXED);

	do
		if (!(now & 1))
			return NULL;
	while (!__atomic_compare_exchange_n(&gate, &now, now + 2, true, __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED));
	return __atomic_load_n(&session, __ATOMIC_ACQUIRE);
}

void java_session_leave(struct java_session *s)
{
	(void)s;
	if (__atomic_sub_fetch(&gate, 2, __ATOMIC_ACQ_REL) == 0)
		session_unmap();
}

bool java_session_end(struct java_session *s)
{
	__atomic_store_n(&s->header->ended, 1, __ATOMIC_RELAXED);
	return __atomic_fetch_and(&gate, ~1ULL, __ATOMIC_ACQ_REL) & 1;
}

/* sonde made the file, but anyone may have changed it. */
static bool header_is_sane(const struct java_ring_header *h, uint64_t file_bytes)
{
	return h->magic == JAVA_RING_MAGIC && h->data_bytes >= JAVA_RING_DATA_MIN &&
	       h->data_bytes <= JAVA_RING_DATA_MAX && (h->data_bytes & (h->data_bytes - 1)) == 0 &&
	       file_bytes == JAVA_RING_HEADER_BYTES + h->data_bytes && h->depth &&
	       h->depth <= JAVA_RING_MAX_DEPTH && h->interval_bytes &&
	       h->interval_bytes <= 1u << 30;
}

static struct java_ring_header *session_map_file(const char *path, size_t *ret_bytes)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	struct java_ring_header *h = MAP_FAILED;
	off_t size;

	if (fd < 0)
		return NULL;
	size = lseek(fd, 0, SEEK_END);
	if (size > JAVA_RING_HEADER_BYTES &&
	    size <= (off_t)JAVA_RING_HEADER_BYTES + JAVA_RING_DATA_MAX)
		h = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	if (h == MAP_FAILED)
		return NULL;
	if (!header_is_sane(h, (uint64_t)size)) {
		(void)munmap(h, (size_t)size);
		return NULL;
	}
	*ret_bytes = (size_t)size;
	return h;
}

int java_session_open(const char *path)
{
	struct java_ring_header *h;
	struct java_session *s;
	size_t bytes;

	if (__atomic_load_n(&session, __ATOMIC_ACQUIRE))
		return JAVA_RING_ERR_BUSY;
	h = session_map_file(path, &bytes);
	if (!h)
		return JAVA_RING_ERR_FILE;
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED) {
		(void)munmap(h, bytes);
		return JAVA_RING_ERR_MEMORY;
	}
	s->header = h;
	s->mapped_bytes = bytes;
	s->data_bytes = bytes - JAVA_RING_HEADER_BYTES;
	s->idle_ns = h->idle_ns;
	s->interval_bytes = h->interval_bytes;
	s->wanted = h->wanted;
	s->depth = h->depth <= JAVA_RING_MAX_DEPTH ? h->depth : JAVA_RING_MAX_DEPTH;
	__atomic_store_n(&session, s, __ATOMIC_RELEASE);
	__atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
	return JAVA_RING_OK;
}

uint32_t java_session_wanted(const struct java_session *s)
{
	return s->wanted;
}

uint32_t java_session_depth(const struct java_session *s)
{
	return s->depth;
}

uint64_t java_session_interval(const struct java_session *s)
{
	return s->interval_bytes;
}

void java_session_tell(struct java_session *s, uint64_t interval_bytes)
{
	__atomic_store_n(&s->header->interval_now, interval_bytes, __ATOMIC_RELAXED);
}

void java_session_tell_parks(struct java_session *s, bool are_seen)
{
	__atomic_store_n(&s->header->parks, are_seen, __ATOMIC_RELAXED);
}

/* Uses our own clock only: a container's may differ from sonde's. */
bool java_session_is_forgotten(struct java_session *s, uint64_t now_ns)
{
	uint64_t beat = __atomic_load_n(&s->header->beat, __ATOMIC_RELAXED);
	uint64_t seen_ns = __atomic_load_n(&s->beat_ns, __ATOMIC_RELAXED);

	if (seen_ns == 0 || beat != __atomic_load_n(&s->beat, __ATOMIC_RELAXED)) {
		__atomic_store_n(&s->beat, beat, __ATOMIC_RELAXED);
		__atomic_store_n(&s->beat_ns, now_ns, __ATOMIC_RELAXED);
		return false;
	}
	return now_ns > seen_ns && now_ns - seen_ns > s->idle_ns;
}

static struct java_ring_record_header *ring_at(const struct java_session *s, uint64_t position)
{
	return (struct java_ring_record_header *)((uint8_t *)s->header + JAVA_RING_HEADER_BYTES +
						  (position & (s->data_bytes - 1)));
}

static void ring_commit(struct java_ring_record_header *r, uint64_t position)
{
	__atomic_store_n(&r->commit, position + 1, __ATOMIC_RELEASE);
}

/*
 * len is a multiple of JAVA_RING_ALIGN. NULL if there is no room, or if someone has overwritten the
 * positions, which must not lead us out of the ring.
 */
static void *ring_reserve(struct java_session *s, uint32_t len, uint64_t *ret_position)
{
	uint64_t head = __atomic_load_n(&s->header->head, __ATOMIC_RELAXED), fill;

	do {
		uint64_t tail = __atomic_load_n(&s->header->tail, __ATOMIC_ACQUIRE);
		uint64_t to_end = s->data_bytes - (head & (s->data_bytes - 1));

		fill = to_end < len ? to_end : 0;
		if (head % JAVA_RING_ALIGN || head - tail > s->data_bytes ||
		    fill + len > s->data_bytes - (head - tail))
			return NULL;
	} while (!__atomic_compare_exchange_n(&s->header->head, &head, head + fill + len, false,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	if (fill) {
		struct java_ring_record_header *r = ring_at(s, head);

		r->len = (uint32_t)fill;
		r->kind = JAVA_RING_FILL;
		r->n_frames = 0;
		ring_commit(r, head);
	}
	*ret_position = head + fill;
	return ring_at(s, head + fill);
}

static uint32_t ring_round(size_t len)
{
	return (uint32_t)((len + JAVA_RING_ALIGN - 1) & ~(size_t)(JAVA_RING_ALIGN - 1));
}

static uint16_t name_len(const char *name)
{
	size_t len = name ? strlen(name) : 0;

	return (uint16_t)(len < JAVA_RING_MAX_NAME ? len : JAVA_RING_MAX_NAME);
}

static void name_copy(uint8_t *dst, const char *name, size_t len)
{
	if (len)
		memcpy(dst, name, len);
}

void java_session_write(struct java_session *s, const struct java_session_event *e)
{
	uint16_t class_len = name_len(e->class), thread_len = name_len(e->thread);
	size_t frames = (size_t)e->n_frames * sizeof(uint32_t);
	uint32_t len = ring_round(sizeof(struct java_ring_event) + frames + class_len + thread_len);
	struct java_ring_event *r;
	uint64_t position;
	uint8_t *at;

	(void)__atomic_add_fetch(&s->header->events, 1, __ATOMIC_RELAXED);
	r = ring_reserve(s, len, &position);
	if (!r) {
		(void)__atomic_add_fetch(&s->header->dropped, 1, __ATOMIC_RELAXED);
		return;
	}
	r->record.len = len;
	r->record.kind = e->kind;
	r->record.n_frames = (uint16_t)e->n_frames;
	r->a = e->a;
	r->b = e->b;
	r->class_len = class_len;
	r->thread_len = thread_len;
	r->flags = e->flags;
	at = (uint8_t *)(r + 1);
	memcpy(at, e->frames, frames);
	name_copy(at + frames, e->class, class_len);
	name_copy(at + frames + class_len, e->thread, thread_len);
	ring_commit(&r->record, position);
}

static int32_t line_of(jvm ti, const struct jvm_frame *f)
{
	struct jvm_line *lines = NULL;
	int32_t n = 0, line = 0;
	int64_t best = -1;

	if (f->location < 0 || ti_get_lines(ti, f->method, &n, &lines) != 0)
		return 0;
	for (int32_t i = 0; i < n; i++)
		if (lines[i].start <= f->location && lines[i].start > best) {
			best = lines[i].start;
			line = lines[i].line;
		}
	ti_deallocate(ti, lines);
	return line;
}

static bool name_write(struct java_session *s, uint32_t id, int32_t line, const char *class,
		       const char *method)
{
	uint16_t class_len = name_len(class), method_len = name_len(method);
	uint32_t len = ring_round(sizeof(struct java_ring_name) + class_len + method_len);
	uint64_t position;
	struct java_ring_name *r = ring_reserve(s, len, &position);
	uint8_t *at;

	if (!r)
		return false;
	r->record.len = len;
	r->record.kind = JAVA_RING_NAME;
	r->record.n_frames = 0;
	r->frame = id;
	r->line = line;
	r->class_len = class_len;
	r->method_len = method_len;
	r->pad = 0;
	at = (uint8_t *)(r + 1);
	name_copy(at, class, class_len);
	name_copy(at + class_len, method, method_len);
	ring_commit(&r->record, position);
	return true;
}

static bool frame_name(struct java_session *s, jvm ti, jvm jni, const struct jvm_frame *f,
		       uint32_t id)
{
	char *class_name = NULL, *method_name = NULL;
	jvm_object class = NULL;
	bool done;

	if (ti_get_method_name(ti, f->method, &method_name) != 0)
		method_name = NULL;
	if (ti_get_method_class(ti, f->method, &class) != 0)
		class = NULL;
	if (class && ti_get_class_signature(ti, class, &class_name) != 0)
		class_name = NULL;
	done = name_write(s, id, line_of(ti, f), class_name, method_name);
	ti_deallocate(ti, class_name);
	ti_deallocate(ti, method_name);
	if (class)
		jni_delete_local_ref(jni, class);
	return done;
}

static uint64_t frame_hash(const struct jvm_frame *f)
{
	uint64_t h = (uint64_t)(uintptr_t)f->method * 0x9e3779b97f4a7c15ULL;

	h ^= (uint64_t)f->location + 0x7f4a7c15ULL;
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93ULL;
	h ^= h >> 32;
	return h ? h : 1;
}

/* Its slot in the table; 0, which is never used, if the table is three quarters full. */
static uint32_t frame_find(struct java_session *s, uint64_t hash)
{
	uint32_t at = (uint32_t)hash & (JAVA_RING_MAX_FRAMES - 1);

	for (uint32_t i = 0; i < 64; i++, at = (at + 1) & (JAVA_RING_MAX_FRAMES - 1)) {
		uint64_t there = __atomic_load_n(&s->frames[at], __ATOMIC_RELAXED);

		if (at == 0)
			continue;
		if (there == hash)
			return at;
		if (there != 0)
			continue;
		if (__atomic_load_n(&s->n_frames, __ATOMIC_RELAXED) > JAVA_RING_MAX_FRAMES / 4 * 3)
			return 0;
		if (__atomic_compare_exchange_n(&s->frames[at], &there, hash, false,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			(void)__atomic_add_fetch(&s->n_frames, 1, __ATOMIC_RELAXED);
			return at;
		}
		if (there == hash)
			return at;
	}
	return 0;
}

uint32_t java_session_frame(struct java_session *s, jvm ti, jvm jni, const struct jvm_frame *frame)
{
	uint32_t id = frame_find(s, frame_hash(frame));

	/* Two threads may both write the names of a new frame, each before its own event. */
	if (id == 0 || __atomic_load_n(&s->is_named[id], __ATOMIC_ACQUIRE))
		return id;
	if (!frame_name(s, ti, jni, frame, id))
		return 0;
	__atomic_store_n(&s->is_named[id], 1, __ATOMIC_RELEASE);
	return id;
}
