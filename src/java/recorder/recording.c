/* src/java/recorder/recording.c: see recording.h. */
#include "java/recorder/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "java/lease.h"
#include "java/recorder/commands.h"
#include "java/recorder/mount.h"
#include "oom/limit.h"

/* Memory for a first recording: classes, threads, buffers, and its files. */
#define RECORDING_HEADROOM ((uint64_t)128 << 20)

#define RECORDING_CALM_SETTINGS "calm.jfc"
#define RECORDING_NAME (JAVA_NOTE_NAME + sizeof(JAVA_NOTE_CALM))

struct java_recording {
	struct java_lease lease;
	struct java_recording_options options; /* without borrowed members */
	bool is_calm;
};

/* Of the one that is on. */
static void recording_name(const struct java_recording *rec, char dst[RECORDING_NAME])
{
	char name[JAVA_NOTE_NAME];

	java_note_recording_name(&rec->lease.note, name);
	(void)snprintf(dst, RECORDING_NAME, "%s%s", name, rec->is_calm ? JAVA_NOTE_CALM : "");
}

int java_recording_dirfd(const struct java_recording *rec)
{
	return rec->lease.dirfd;
}

const struct java_vm *java_recording_vm(const struct java_recording *rec)
{
	return java_attach_vm(rec->lease.attach);
}

bool java_recording_is_live(const struct java_recording *rec)
{
	return java_recording_vm(rec)->major >= 14;
}

int java_recording_stop(struct java_recording *rec, struct err *err)
{
	return java_lease_end(&rec->lease, err);
}

void java_recording_free(struct java_recording *rec)
{
	if (!rec)
		return;
	java_lease_release(&rec->lease);
	free(rec);
}

/* A recording must not push a container over its memory limit. */
static int recording_check_memory(const struct proc_id *id, struct err *err)
{
	_cleanup_(oom_limit_closep) struct oom_limit *limit = NULL;
	_cleanup_(buf_release) struct buf text = buf_with_max((size_t)64 << 10);
	_cleanup_(oom_mounts_close) struct oom_mounts mounts = {};
	struct oom_fill fill;
	char path[48];
	const char *s;

	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)id->pid);
	if (io_read_file(AT_FDCWD, path, &text, NULL) < 0 || !(s = buf_cstr(&text)) ||
	    oom_mounts_open(&mounts, NULL) < 0 || oom_limit_open(&mounts, s, &limit, NULL) < 0)
		return 0;
	/*
	 * The first group with any usage is its own; for those above it, only check the fill level.
	 */
	if ((oom_limit_is_near(limit, 0, &fill) &&
	     fill.limit_bytes - MIN(fill.used_bytes, fill.limit_bytes) < RECORDING_HEADROOM) ||
	    oom_limit_is_near(limit, 97, &fill))
		return err_lack(err, -ENOTSUP, ERR_CAUSE_LIMIT, "",
				"process %d: its container has too little memory left for a "
				"recording (%llu of %llu MB in use)",
				(int)id->pid, (unsigned long long)(fill.used_bytes >> 20),
				(unsigned long long)(fill.limit_bytes >> 20));
	return 0;
}

static int recording_mount(struct java_recording *rec, const struct java_recording_options *o,
			   struct err *err)
{
	_cleanup_(buf_release) struct buf settings = buf_with_max((size_t)16 << 10);
	struct java_target target;
	char name[JAVA_NOTE_NAME];
	int r;

	if (java_recording_settings(java_recording_vm(rec)->major, o, &settings) < 0)
		return err_oom(err);
	java_note_dir_name(&rec->lease.note, name);
	r = java_target_read(&rec->lease.note.id, &target, err);
	return r < 0 ? r
		     : java_mount_make(&target, name, buf_view(&settings), &rec->lease.dirfd, err);
}

static int recording_begin(struct java_recording *rec, const struct java_recording_options *o,
			   struct err *err)
{
	char dir_name[JAVA_NOTE_NAME], name[JAVA_NOTE_NAME];
	char dir[64], settings[96];
	int r;

	java_note_dir_name(&rec->lease.note, dir_name);
	java_note_recording_name(&rec->lease.note, name);
	(void)snprintf(dir, sizeof(dir), "/tmp/%s", dir_name);
	(void)snprintf(settings, sizeof(settings), "%s/" JAVA_MOUNT_SETTINGS, dir);
	r = java_recorder_find(rec->lease.attach, name, err);
	if (r > 0)
		return err_lack(err, -EBUSY, ERR_CAUSE_BUSY, "wait until that ends",
				"process %d: its user is already recording, and another recording "
				"would interfere",
				(int)rec->lease.note.id.pid);
	if (r == 0)
		r = java_recorder_directory(rec->lease.attach, rec->lease.note.before,
					    sizeof(rec->lease.note.before), err);
	if (r == 0)
		r = java_note_save(rec->lease.state_dir, &rec->lease.note, err);
	if (r == 0)
		r = recording_mount(rec, o, err);
	if (r == 0)
		r = java_recorder_set_directory(rec->lease.attach, dir,
						o->stack_depth ? o->stack_depth : 128, err);
	return r < 0 ? r : java_recorder_start(rec->lease.attach, name, settings, err);
}

int java_recording_start(const struct proc_id *id, const struct java_recording_options *o,
			 struct java_recording **ret_recording, struct err *err)
{
	_cleanup_(java_recording_freep) struct java_recording *rec = calloc(1, sizeof(*rec));
	int r;

	if (!rec)
		return err_oom(err);
	rec->options = *o;
	rec->options.state_dir = NULL;
	r = java_lease_init(&rec->lease, o->state_dir, err);
	if (r == 0)
		r = java_lease_check(id, err);
	if (r == 0)
		r = recording_check_memory(id, err);
	if (r == 0)
		r = java_lease_begin(&rec->lease, id, err);
	if (r == 0)
		r = recording_begin(rec, o, err);
	if (r < 0)
		return r;
	*ret_recording = TAKE_PTR(rec);
	return 0;
}

/*
 * Ends ours; from now on, the user's recording writes where it would have without us. The file
 * system stays for what it has already written.
 */
static int recording_yield(struct java_recording *rec, const char *name, struct err *err)
{
	int r = java_recorder_stop(rec->lease.attach, name, err);

	if (r >= 0)
		r = java_recorder_set_directory(rec->lease.attach, rec->lease.note.before, 0, err);
	if (r < 0)
		return r;
	return err_set(err, -EBUSY,
		       "process %d: its user has started a recording; sonde's has stopped",
		       (int)rec->lease.note.id.pid);
}

int java_recording_check(struct java_recording *rec, struct err *err)
{
	char name[RECORDING_NAME];
	int r;

	recording_name(rec, name);
	r = java_recorder_find(rec->lease.attach, name, err);
	if (r < 0 && proc_id_gone(&rec->lease.note.id))
		return err_set(err, -ESRCH, "process %d has exited", (int)rec->lease.note.id.pid);
	if (r < 0)
		return r;
	if (r & JAVA_RECORDER_OTHERS)
		return recording_yield(rec, name, err);
	if (!(r & JAVA_RECORDER_OURS))
		return err_set(err, -ENOENT,
			       "process %d: sonde's recording was stopped by someone else",
			       (int)rec->lease.note.id.pid);
	return 0;
}

int java_recording_rotate(struct java_recording *rec, struct err *err)
{
	char name[RECORDING_NAME];

	recording_name(rec, name);
	return java_recorder_rotate(rec->lease.attach, name, err);
}

int java_recording_calm(struct java_recording *rec, struct err *err)
{
	_cleanup_(buf_release) struct buf settings = buf_with_max((size_t)16 << 10);
	struct java_recording_options o = rec->options;
	char before[RECORDING_NAME], after[RECORDING_NAME];
	char dir[JAVA_NOTE_NAME], path[96];
	int r;

	if (rec->is_calm)
		return 0;
	o.park_ms = JAVA_RECORDING_CALM_MS;
	if (java_recording_settings(java_recording_vm(rec)->major, &o, &settings) < 0)
		return err_oom(err);
	r = java_mount_add(rec->lease.dirfd, RECORDING_CALM_SETTINGS, buf_view(&settings));
	if (r < 0)
		return err_set(err, r, "cannot write settings for the JVM of process %d: %s",
			       (int)rec->lease.note.id.pid, strerror(-r));
	recording_name(rec, before);
	rec->is_calm = true;
	recording_name(rec, after);
	java_note_dir_name(&rec->lease.note, dir);
	(void)snprintf(path, sizeof(path), "/tmp/%s/" RECORDING_CALM_SETTINGS, dir);
	r = java_recorder_start(rec->lease.attach, after, path, err);
	if (r < 0) {
		rec->is_calm = false;
		return r;
	}
	r = java_recorder_stop(rec->lease.attach, before, err);
	return r < 0 ? r : 0;
}
