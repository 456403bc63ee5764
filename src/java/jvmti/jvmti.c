/* src/java/jvmti/jvmti.c: see jvmti.h. */
#include "java/jvmti/jvmti.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "java/jvmti/builder.h"
#include "java/jvmti/load.h"
#include "java/jvmti/place.h"
#include "java/jvmti/ring.h"
#include "proc/maps.h"

#define JVMTI_DEPTH 128
#define JVMTI_IDLE_NS (60 * NS_PER_SEC)
#define JVMTI_INTERVAL ((uint64_t)512 << 10) /* the JVM's default for new threads */
#define JVMTI_RING_FILE "ring"

struct java_jvmti {
	struct proc_id id;
	struct java_vm vm;
	struct java_place *place;
	struct java_ring ring;
	struct java_jvmti_builder builder;
	struct java_jvmti_stats last;  /* of the ring while it existed */
	char library[JAVA_PLACE_PATH]; /* the path as the JVM sees it */
	bool is_on;
	bool has_ended; /* used by the side that sends commands */
};

const struct java_vm *java_jvmti_vm(const struct java_jvmti *j)
{
	return &j->vm;
}

/* Found by the name inside the library, whatever happened to its file. */
static bool is_loaded(pid_t pid)
{
	_cleanup_(proc_maps_release) struct proc_maps maps = {};

	if (proc_maps_read(pid, &maps, NULL) < 0)
		return false;
	for (size_t i = 0; i < maps.len; i++)
		if (strstr(maps.maps[i].path, "/" JAVA_RING_SONAME))
			return true;
	return false;
}

static int start_failed(const struct java_jvmti *j, int code, struct err *err)
{
	int pid = (int)j->id.pid;

	/* JVMTI_ERROR_NOT_AVAILABLE: only one library at a time can have this capability. */
	if (code == JAVA_RING_ERR_CAPABILITY + 98)
		return err_lack(err, -EBUSY, ERR_CAUSE_BUSY,
				"stop that one, or use sonde java --flight-recorder",
				"process %d: another agent already samples allocations", pid);
	if (code == JAVA_RING_ERR_OLD)
		return err_set(err, -ENOTSUP,
			       "process %d: sonde's JVMTI library needs JDK 11 or later", pid);
	if (code == JAVA_RING_ERR_BUSY)
		return err_set(err, -EBUSY, "process %d: sonde's JVMTI library is still stopping",
			       pid);
	return err_set(err, -ENOTSUP, "process %d: sonde's JVMTI library cannot start (%d)", pid,
		       code);
}

/*
 * Refers to a loaded library by its own name, so that it is not loaded twice. If that does not work
 * (not with all C libraries), it is loaded once more.
 */
static int jvmti_command(struct java_jvmti *j, const char *command, int *ret_code, struct err *err)
{
	struct java_attach *attach = java_place_attach(j->place);

	if (is_loaded(j->id.pid) && !j->library[0] &&
	    java_jvmti_load(attach, JAVA_RING_SONAME, command, ret_code, NULL) == 0) {
		(void)snprintf(j->library, sizeof(j->library), "%s", JAVA_RING_SONAME);
		return 0;
	}
	if (!j->library[0])
		java_place_path(j->place, JAVA_RING_SONAME, j->library);
	return java_jvmti_load(attach, j->library, command, ret_code, err);
}

static int jvmti_begin(struct java_jvmti *j, struct err *err)
{
	char ring[JAVA_PLACE_PATH], command[JAVA_PLACE_PATH + 16];
	int r, code = 0;

	java_place_path(j->place, JVMTI_RING_FILE, ring);
	(void)snprintf(command, sizeof(command), "start,%s", ring);
	r = jvmti_command(j, command, &code, err);
	if (r < 0)
		return r;
	if (code != JAVA_RING_OK)
		return start_failed(j, code, err);
	j->is_on = true;
	return 0;
}

static int jvmti_place_files(struct java_jvmti *j, const struct java_jvmti_options *o,
			     struct err *err)
{
	struct java_ring_options ring = {
		.data_bytes = JAVA_RING_BYTES,
		.idle_ns = o->idle_ns ? o->idle_ns : JVMTI_IDLE_NS,
		.interval_bytes = JVMTI_INTERVAL,
		.wanted = JAVA_RING_ALLOCS | JAVA_RING_LOCKS,
		.depth = MIN(o->stack_depth ? o->stack_depth : JVMTI_DEPTH, JAVA_RING_MAX_DEPTH),
	};
	_cleanup_close_ int fd = -1;
	int r;

	r = java_place_write(j->place, JAVA_RING_SONAME,
			     view_of(java_jvmti_library, java_jvmti_library_len), err);
	if (r == 0)
		r = java_place_create(j->place, JVMTI_RING_FILE, true, &fd, err);
	if (r == 0)
		r = java_ring_create_take(&j->ring, fd, &ring, err);
	if (r == 0)
		fd = -1;
	return r;
}

static int jvmti_check(struct java_jvmti *j, struct err *err)
{
	int r = java_detect_pid(j->id.pid, &j->vm, err);

	if (r < 0)
		return r;
	if (r == 0 || j->vm.kind != JAVA_HOTSPOT)
		return err_lack(err, -ENOTSUP, ERR_CAUSE_NOT_JAVA, "",
				"process %d is not a HotSpot JVM", (int)j->id.pid);
	if (j->vm.major && j->vm.major < 11)
		return err_lack(err, -ENOTSUP, ERR_CAUSE_UNKNOWN_VERSION, "",
				"process %d runs JDK %u; sonde's JVMTI library needs 11 or later",
				(int)j->id.pid, j->vm.major);
	return 0;
}

int java_jvmti_start(const struct proc_id *id, const struct java_jvmti_options *o,
		     struct java_jvmti **ret_jvmti, struct err *err)
{
	_cleanup_(java_jvmti_freep) struct java_jvmti *j = calloc(1, sizeof(*j));
	int r;

	if (!j)
		return err_oom(err);
	j->id = *id;
	j->ring.fd = -1;
	r = jvmti_check(j, err);
	if (r < 0)
		return r;
	if (java_jvmti_builder_init(&j->builder, &o->profile) < 0)
		return err_oom(err);
	r = java_place_make(id, o->state_dir, &j->place, err);
	if (r == 0)
		r = jvmti_place_files(j, o, err);
	if (r == 0)
		r = jvmti_begin(j, err);
	if (r == 0)
		r = java_place_seal(j->place, err);
	if (r < 0)
		return r;
	*ret_jvmti = TAKE_PTR(j);
	return 0;
}

static int jvmti_read(struct java_jvmti *j, struct err *err)
{
	struct java_ring_record record;
	int r = java_ring_read(&j->ring, err);

	if (r < 0)
		return r;
	while ((r = java_ring_next(&j->ring, &record)) > 0) {
		r = java_jvmti_builder_add(&j->builder, &record);
		if (r < 0)
			return err_set(err, r,
				       "not enough memory for data from the JVM of process %d",
				       (int)j->id.pid);
	}
	if (r < 0)
		return err_set(err, r, "process %d: invalid data from sonde's JVMTI library",
			       (int)j->id.pid);
	return java_ring_done(&j->ring, err);
}

int java_jvmti_read(struct java_jvmti *j, struct err *err)
{
	struct java_ring_counts counts = {0};
	int r;

	if (proc_id_gone(&j->id))
		return err_set(err, -ESRCH, "process %d has exited", (int)j->id.pid);
	/* Before reading, so that its last records are read. */
	r = j->is_on ? java_ring_counts(&j->ring, &counts) : -ENOENT;
	if (r == 0)
		r = jvmti_read(j, err);
	if (r == -ENOENT || (r == 0 && counts.has_ended))
		return err_set(err, -ENOENT, "process %d: sonde's JVMTI library has stopped",
			       (int)j->id.pid);
	return r;
}

int java_jvmti_take(struct java_jvmti *j, enum java_jfr_profile_kind kind, int64_t time_ns,
		    int64_t duration_ns, struct profile **ret_profile, struct err *err)
{
	struct profile_header *h;
	int r;

	if (kind == JAVA_JFR_PROFILE_CPU)
		return err_set(err, -ENOTSUP, "sonde's JVMTI library has no CPU profile");
	r = java_jvmti_builder_take(&j->builder, kind, ret_profile, err);
	if (r < 0)
		return r;
	h = profile_header(*ret_profile);
	h->time_ns = time_ns;
	h->duration_ns = duration_ns;
	return 0;
}

static void jvmti_count(const struct java_jvmti *j, struct java_jvmti_stats *s)
{
	struct java_ring_counts counts;

	if (j->ring.fd < 0 || java_ring_counts(&j->ring, &counts) < 0)
		return;
	s->dropped = counts.dropped;
	s->interval_bytes = counts.interval_bytes;
	s->sees_parks = counts.sees_parks;
}

int java_jvmti_end(struct java_jvmti *j, struct err *err)
{
	int code;

	if (!j->is_on || j->has_ended || proc_id_gone(&j->id))
		return 0;
	j->has_ended = true;
	return jvmti_command(j, "stop", &code, err);
}

int java_jvmti_stop(struct java_jvmti *j, struct err *err)
{
	int r = java_jvmti_end(j, err), removed;

	if (r == 0 && j->is_on && proc_id_alive(&j->id))
		r = jvmti_read(j, err);
	j->is_on = false;
	jvmti_count(j, &j->last);
	java_ring_release(&j->ring);
	removed = j->place ? java_place_remove(j->place, r < 0 ? NULL : err) : 0;
	return r < 0 ? r : removed;
}

void java_jvmti_free(struct java_jvmti *j)
{
	if (!j)
		return;
	(void)java_jvmti_stop(j, NULL);
	java_place_free(j->place);
	java_jvmti_builder_release(&j->builder);
	free(j);
}

void java_jvmti_stats(const struct java_jvmti *j, struct java_jvmti_stats *ret_stats)
{
	struct java_jvmti_stats s = j->last;

	jvmti_count(j, &s);
	memcpy(s.events, j->builder.events, sizeof(s.events));
	s.lost = j->builder.lost;
	s.truncated = j->builder.truncated;
	s.no_stack = j->builder.no_stack;
	s.idle_waits = j->builder.idle_waits;
	s.idle_ns = j->builder.idle_ns;
	*ret_stats = s;
}
