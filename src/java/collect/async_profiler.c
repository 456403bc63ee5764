/* src/java/collect/async_profiler.c: see async_profiler.h. */
#include "java/collect/async_profiler.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/io.h"
#include "java/jfr/jfr.h"
#include "java/jvmti/load.h"
#include "java/jvmti/place.h"

#define ASYNC_PREFIX "libsonde-async-"
#define ASYNC_FILE "async.jfr"
/* It prints to the JVM's output unless every command says otherwise. */
#define ASYNC_STOP "stop,loglevel=none"
#define ASYNC_MAX_LIBRARY ((size_t)32 << 20)
#define ASYNC_PIECE ((size_t)1 << 20)
#define ASYNC_MAX_READ ((uint64_t)512 << 20) /* per read, so that no JVM can hold us up */
#define ASYNC_MIN_CHUNK_NS (5 * NS_PER_SEC)
/* It stops by itself unless restarted before this: after kill -9 nobody is left to stop it. */
#define ASYNC_LEASE_NS (600 * NS_PER_SEC)

struct java_async {
	struct proc_id id;
	struct java_vm vm;
	struct java_async_options options; /* without borrowed members */
	struct java_place *place;
	uint64_t begun_ns;
	char library[2 * JAVA_PLACE_PATH]; /* the path as the JVM sees it */
	char file[JAVA_PLACE_PATH];
	int fd; /* of that file, which we created */
	uint64_t at;
	struct java_jfr *jfr;
	/* Protects readers against each other; never held while waiting for the JVM. */
	pthread_mutex_t reading;
	struct java_jfr_profiler *profiler;
	bool is_on;
};

const struct java_vm *java_async_vm(const struct java_async *a)
{
	return &a->vm;
}

void java_async_stats(struct java_async *a, struct java_jfr_profiler_stats *ret_stats)
{
	(void)pthread_mutex_lock(&a->reading);
	java_jfr_profiler_stats(a->profiler, ret_stats);
	(void)pthread_mutex_unlock(&a->reading);
}

/*
 * Our file system disappears with us, and with it the path to the library. But the JVM's loader
 * knows it by the path it was loaded from, which follows from the file name.
 */
int java_async_find(const struct proc_maps *maps, char *dst, size_t cap)
{
	unsigned long long ours = 0;

	for (size_t i = 0; i < maps->len; i++) {
		const char *path = maps->maps[i].path, *name = strrchr(path, '/');
		unsigned long long token;
		char *end;

		if (!name)
			continue;
		name++;
		if (strstr(name, "libasyncProfiler") || strstr(name, "libjavaProfiler"))
			return -EBUSY;
		if (strncmp(name, ASYNC_PREFIX, strlen(ASYNC_PREFIX)) != 0)
			continue;
		token = strtoull(name + strlen(ASYNC_PREFIX), &end, 16);
		if (strcmp(end, ".so") == 0)
			ours = token;
	}
	if (!ours)
		return 0;
	(void)snprintf(dst, cap, "/tmp/.sonde-%016llx/" ASYNC_PREFIX "%016llx.so", ours, ours);
	return 1;
}

static int async_check(struct java_async *a, struct err *err)
{
	_cleanup_(proc_maps_release) struct proc_maps maps = {};
	int r = java_detect_pid(a->id.pid, &a->vm, err);

	if (r < 0)
		return r;
	if (r == 0 || a->vm.kind != JAVA_HOTSPOT)
		return err_lack(err, -ENOTSUP, ERR_CAUSE_NOT_JAVA, "",
				"process %d is not a HotSpot JVM", (int)a->id.pid);
	r = proc_maps_read(a->id.pid, &maps, err);
	if (r < 0)
		return r;
	if (java_async_find(&maps, a->library, sizeof(a->library)) < 0)
		return err_set(err, -EBUSY,
			       "process %d already has its own async-profiler; not touched",
			       (int)a->id.pid);
	return 0;
}

/* Uses our own name, which includes the directory's. */
static int async_place_library(struct java_async *a, const char *path, struct err *err)
{
	_cleanup_(buf_release) struct buf bytes = buf_with_max(ASYNC_MAX_LIBRARY);
	char dir[JAVA_PLACE_PATH], name[64];
	const char *token;
	int r, code;

	/* A library already there may still be active for a sonde that was killed. */
	if (a->library[0] &&
	    java_jvmti_load(java_place_attach(a->place), a->library, ASYNC_STOP, &code, NULL) == 0)
		return 0;
	r = io_read_file(AT_FDCWD, path, &bytes, err);
	if (r < 0)
		return r;
	java_place_path(a->place, "", dir);
	token = strstr(dir, ".sonde-") + strlen(".sonde-");
	(void)snprintf(name, sizeof(name), ASYNC_PREFIX "%.16s.so", token);
	r = java_place_write(a->place, name, buf_view(&bytes), err);
	(void)snprintf(a->library, sizeof(a->library), "%s%s", dir, name);
	return r;
}

static int async_command(struct java_async *a, const char *command, struct err *err)
{
	int code = 0, r;

	r = java_jvmti_load(java_place_attach(a->place), a->library, command, &code, err);
	if (r == 0 && code != 0)
		r = err_set(err, -ENOTSUP, "process %d: async-profiler failed (%d)%s",
			    (int)a->id.pid, code,
			    a->vm.major < 11
				    ? "; allocations on JDK 8 need debug symbols for libjvm"
				    : "");
	return r;
}

static int async_begin(struct java_async *a, struct err *err)
{
	const struct java_async_options *o = &a->options;
	uint64_t cpu_ns = o->cpu_interval_ns ? o->cpu_interval_ns : 10 * NS_PER_MS;
	uint64_t alloc_bytes = o->alloc_bytes ? o->alloc_bytes : (uint64_t)2 << 20;
	uint64_t lock_ns = o->lock_ns ? o->lock_ns : NS_PER_MS;
	uint64_t chunk_s = MAX(o->chunk_ns, ASYNC_MIN_CHUNK_NS) / NS_PER_SEC;
	uint64_t lease_s = ASYNC_LEASE_NS / NS_PER_SEC;
	char command[512];
	int r;

	(void)snprintf(command, sizeof(command),
		       "start,event=cpu,interval=%" PRIu64 ",alloc=%" PRIu64 ",lock=%" PRIu64
		       ",jfr,chunktime=%" PRIu64 "s,timeout=%" PRIu64 ",loglevel=none,file=%s",
		       cpu_ns, alloc_bytes, lock_ns, chunk_s, lease_s, a->file);
	a->begun_ns = clock_mono_ns();
	a->at = 0;
	r = async_command(a, command, err);
	a->is_on = r == 0;
	return r;
}

static int async_open_parser(struct java_async *a, const struct java_async_options *o,
			     struct err *err)
{
	struct java_jfr_options options = {0};
	int r;

	options.queries = java_jfr_profiler_queries(&options.n_queries);
	r = java_jfr_profiler_new(&o->profile, &a->profiler, err);
	return r < 0 ? r : java_jfr_open_feed("async-profiler's recording", &options, &a->jfr, err);
}

static struct java_async *async_new(void)
{
	struct java_async *a = calloc(1, sizeof(*a));

	if (a && pthread_mutex_init(&a->reading, NULL)) {
		free(a);
		return NULL;
	}
	if (a)
		a->fd = -1;
	return a;
}

int java_async_start(const struct proc_id *id, const struct java_async_options *o,
		     struct java_async **ret_async, struct err *err)
{
	_cleanup_(java_async_freep) struct java_async *a = async_new();
	int r;

	if (!a)
		return err_oom(err);
	a->id = *id;
	a->options = *o;
	a->options.library = a->options.state_dir = NULL;
	r = async_check(a, err);
	if (r == 0)
		r = async_open_parser(a, o, err);
	if (r == 0)
		r = java_place_make(id, o->state_dir, &a->place, err);
	if (r < 0)
		return r;
	java_place_path(a->place, ASYNC_FILE, a->file);
	r = async_place_library(a, o->library, err);
	/* Created by us, so it need not be searched by name. */
	if (r == 0)
		r = java_place_create(a->place, ASYNC_FILE, true, &a->fd, err);
	if (r == 0)
		r = async_begin(a, err);
	if (r == 0)
		r = java_place_seal(a->place, err);
	if (r < 0)
		return r;
	*ret_async = TAKE_PTR(a);
	return 0;
}

/* Big-endian: magic, version, length, offsets of the last checkpoint and of the metadata. */
int64_t java_async_chunk_len(struct view header)
{
	uint64_t len, checkpoint, metadata;

	if (header.len < JAVA_ASYNC_HEADER_BYTES || !view_starts_with(header, "FLR") ||
	    !view_u64(header, 8, &len) || !view_u64(header, 16, &checkpoint) ||
	    !view_u64(header, 24, &metadata))
		return -EBADMSG;
	len = be64toh(len);
	if (checkpoint == 0 || metadata == 0)
		return 0;
	if (len < JAVA_ASYNC_HEADER_BYTES || len > JAVA_ASYNC_MAX_CHUNK)
		return -EBADMSG;
	return (int64_t)len;
}

static int async_broken(const struct java_async *a, struct err *err)
{
	return err_set(err, -EBADMSG, "process %d: async-profiler's output is invalid",
		       (int)a->id.pid);
}

/* Feeds all bytes of a finished chunk. */
static int async_feed(struct java_async *a, uint64_t len, struct err *err)
{
	_cleanup_(buf_release) struct buf piece = buf_with_max(ASYNC_PIECE);
	int r = 0;

	if (buf_reserve(&piece, ASYNC_PIECE) < 0)
		return err_oom(err);
	for (uint64_t done = 0; r == 0 && done < len;) {
		size_t n = MIN((size_t)(len - done), ASYNC_PIECE);

		if (io_pread_full(a->fd, piece.data, n, a->at + done) != (ssize_t)n)
			return async_broken(a, err);
		r = java_jfr_feed(a->jfr, view_of(piece.data, n), err);
		done += n;
	}
	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&a->reading);
	r = java_jfr_profiler_read(a->profiler, a->jfr, err);
	(void)pthread_mutex_unlock(&a->reading);
	return r;
}

static int async_read(struct java_async *a, struct err *err)
{
	uint8_t header[JAVA_ASYNC_HEADER_BYTES];
	uint64_t from = a->at;
	int64_t len;
	int r;

	while (a->at - from < ASYNC_MAX_READ) {
		ssize_t n = io_pread_full(a->fd, header, sizeof(header), a->at);

		/* The next chunk has not begun. */
		if (n >= 0 && (size_t)n < sizeof(header))
			return 0;
		len = n < 0 ? -EBADMSG : java_async_chunk_len(view_of(header, (size_t)n));
		if (len == 0)
			return 0;
		if (len < 0)
			return async_broken(a, err);
		r = async_feed(a, (uint64_t)len, err);
		if (r < 0)
			return err_prefix(err, r, "process %d", (int)a->id.pid);
		/* Free what was read; the file only appears to grow. */
		(void)fallocate(a->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)a->at,
				(off_t)len);
		a->at += (uint64_t)len;
	}
	return 0;
}

/* A new lease is a new session, which starts a new file. */
static int async_renew(struct java_async *a, struct err *err)
{
	int r = async_command(a, ASYNC_STOP, err);

	if (r == 0)
		r = async_read(a, err);
	return r < 0 ? r : async_begin(a, err);
}

int java_async_read(struct java_async *a, struct err *err)
{
	int r;

	if (!a->is_on)
		return err_set(err, -ESRCH, "process %d: async-profiler has stopped",
			       (int)a->id.pid);
	if (proc_id_gone(&a->id))
		return err_set(err, -ESRCH, "process %d has exited", (int)a->id.pid);
	r = async_read(a, err);
	if (r == 0 && clock_mono_ns() - a->begun_ns > ASYNC_LEASE_NS / 2)
		r = async_renew(a, err);
	return r;
}

int java_async_take(struct java_async *a, enum java_jfr_profile_kind kind, int64_t time_ns,
		    int64_t duration_ns, struct profile **ret_profile, struct err *err)
{
	int r;

	(void)pthread_mutex_lock(&a->reading);
	r = java_jfr_profiler_take(a->profiler, kind, time_ns, duration_ns, ret_profile, err);
	(void)pthread_mutex_unlock(&a->reading);
	return r;
}

int java_async_stop(struct java_async *a, struct err *err)
{
	int r = 0, removed;

	if (a->is_on && !proc_id_gone(&a->id)) {
		r = async_command(a, ASYNC_STOP, err);
		if (r == 0)
			r = async_read(a, err);
	}
	a->is_on = false;
	closep(&a->fd);
	a->fd = -1;
	removed = a->place ? java_place_remove(a->place, r < 0 ? NULL : err) : 0;
	return r < 0 ? r : removed;
}

void java_async_free(struct java_async *a)
{
	if (!a)
		return;
	(void)java_async_stop(a, NULL);
	java_place_free(a->place);
	java_jfr_close(a->jfr);
	java_jfr_profiler_free(a->profiler);
	(void)pthread_mutex_destroy(&a->reading);
	free(a);
}
