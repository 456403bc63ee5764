/* src/java/recording.c: see recording.h. */
#include "java/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/un.h>

#include "base/io.h"
#include "java/attach.h"
#include "java/recording_jfr.h"
#include "java/recording_mount.h"
#include "java/recording_note.h"
#include "java/recording_undo.h"
#include "oom/limit.h"

/* What a first recording takes: its classes and threads, buffers, and its files in memory. */
#define RECORDING_HEADROOM ((uint64_t)128 << 20)

struct java_recording {
	char *state_dir;
	struct java_attach *attach;
	struct java_note note;
	int dirfd;
	int lock;
	bool noted;
};

int java_recording_dirfd(const struct java_recording *rec)
{
	return rec->dirfd;
}

const struct java_vm *java_recording_vm(const struct java_recording *rec)
{
	return java_attach_vm(rec->attach);
}

bool java_recording_is_live(const struct java_recording *rec)
{
	return java_recording_vm(rec)->major >= 14;
}

/*
 * A container that has ended takes its namespace with it, but not a directory on a disk that the
 * next one gets as well.
 */
static void recording_remove_dir(const struct java_recording *rec)
{
	char name[JAVA_NOTE_NAME];

	java_note_dir_name(&rec->note, name);
	if (rec->attach)
		(void)unlinkat(java_attach_tmp(rec->attach), name, AT_REMOVEDIR);
}

int java_recording_stop(struct java_recording *rec, struct err *err)
{
	int r;

	if (!rec->noted)
		return 0;
	rec->noted = false;
	r = java_recording_undo(rec->state_dir, &rec->note, err);
	if (r == 0)
		recording_remove_dir(rec);
	/* Who restores later must find it free. */
	closep(&rec->lock);
	rec->lock = -1;
	return r;
}

void java_recording_free(struct java_recording *rec)
{
	if (!rec)
		return;
	(void)java_recording_stop(rec, NULL);
	closep(&rec->dirfd);
	closep(&rec->lock);
	java_attach_close(rec->attach);
	free(rec->state_dir);
	free(rec);
}

/* A container that is short of memory must not be the one that our recording breaks. */
static int recording_check_memory(const struct proc_id *id, struct err *err)
{
	_cleanup_(oom_limit_closep) struct oom_limit *limit = NULL;
	_cleanup_(buf_release) struct buf text = buf_with_max((size_t)64 << 10);
	struct oom_mounts mounts;
	struct oom_fill fill;
	char path[48];
	const char *s;

	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)id->pid);
	if (io_read_file(AT_FDCWD, path, &text, NULL) < 0 || !(s = buf_cstr(&text)) ||
	    oom_mounts_read(&mounts, NULL) < 0 || oom_limit_open(&mounts, s, &limit, NULL) < 0)
		return 0;
	/* The first group that is at all full is its own; those above it are only looked at. */
	if ((oom_limit_is_near(limit, 0, &fill) &&
	     fill.limit_bytes - MIN(fill.used_bytes, fill.limit_bytes) < RECORDING_HEADROOM) ||
	    oom_limit_is_near(limit, 97, &fill))
		return err_set(err, -ENOTSUP,
			       "process %d: its container has too little memory left for a "
			       "recording (%llu of %llu MB are used)",
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
	java_note_dir_name(&rec->note, name);
	r = java_target_read(&rec->note.id, &target, err);
	return r < 0 ? r : java_mount_make(&target, name, buf_view(&settings), &rec->dirfd, err);
}

static int recording_begin(struct java_recording *rec, const struct java_recording_options *o,
			   struct err *err)
{
	char dir_name[JAVA_NOTE_NAME], name[JAVA_NOTE_NAME];
	char dir[64], settings[96];
	int r;

	java_note_dir_name(&rec->note, dir_name);
	java_note_recording_name(&rec->note, name);
	(void)snprintf(dir, sizeof(dir), "/tmp/%s", dir_name);
	(void)snprintf(settings, sizeof(settings), "%s/" JAVA_MOUNT_SETTINGS, dir);
	r = java_jfr_find(rec->attach, name, err);
	if (r > 0)
		return err_set(err, -EBUSY,
			       "process %d: its user is recording, and ours would change the "
			       "settings and files of that; it waits until that has ended",
			       (int)rec->note.id.pid);
	if (r == 0)
		r = java_jfr_directory(rec->attach, rec->note.before, sizeof(rec->note.before),
				       err);
	if (r == 0)
		r = java_note_save(rec->state_dir, &rec->note, err);
	if (r == 0)
		r = recording_mount(rec, o, err);
	if (r == 0)
		r = java_jfr_set_directory(rec->attach, dir, o->stack_depth ? o->stack_depth : 128,
					   err);
	return r < 0 ? r : java_jfr_start(rec->attach, name, settings, err);
}

/* What must be known before anything of the JVM is touched. */
static int recording_prepare(struct java_recording *rec, const struct proc_id *id, struct err *err)
{
	struct java_vm vm;
	int r;

	r = java_detect_pid(id->pid, &vm, err);
	if (r == 0)
		return err_set(err, -ENOTSUP, "process %d runs no Java", (int)id->pid);
	if (r > 0)
		r = vm.reason ? err_set(err, -ENOTSUP, "process %d runs %s %s: %s", (int)id->pid,
					vm.name, vm.version, vm.reason)
			      : 0;
	if (r == 0)
		r = java_mount_check(err);
	if (r == 0)
		r = recording_check_memory(id, err);
	if (r == 0)
		r = java_recording_lock(id, &rec->lock, err);
	return r < 0 ? r : java_note_make(id, &rec->note, err);
}

int java_recording_start(const struct proc_id *id, const struct java_recording_options *o,
			 struct java_recording **ret_recording, struct err *err)
{
	_cleanup_(java_recording_freep) struct java_recording *rec = calloc(1, sizeof(*rec));
	int r;

	if (!rec)
		return err_oom(err);
	rec->dirfd = rec->lock = -1;
	rec->state_dir = strdup(o->state_dir);
	if (!rec->state_dir)
		return err_oom(err);
	r = recording_prepare(rec, id, err);
	if (r == 0)
		r = java_note_save(rec->state_dir, &rec->note, err);
	if (r < 0)
		return r;
	rec->noted = true;
	r = java_attach_open(id, JAVA_JFR_TIMEOUT_NS, &rec->attach, err);
	if (r == 0)
		r = recording_begin(rec, o, err);
	if (r < 0)
		return r;
	*ret_recording = TAKE_PTR(rec);
	return 0;
}

/*
 * Ours ends, and what the user's recording writes from now on goes where it would have gone. The
 * file system stays for what it has written there.
 */
static int recording_yield(struct java_recording *rec, const char *name, struct err *err)
{
	int r = java_jfr_stop(rec->attach, name, err);

	if (r >= 0)
		r = java_jfr_set_directory(rec->attach, rec->note.before, 0, err);
	if (r < 0)
		return r;
	return err_set(err, -EBUSY,
		       "process %d: its user has started a recording, so that ours has ended",
		       (int)rec->note.id.pid);
}

int java_recording_check(struct java_recording *rec, struct err *err)
{
	char name[JAVA_NOTE_NAME];
	int r;

	java_note_recording_name(&rec->note, name);
	r = java_jfr_find(rec->attach, name, err);
	if (r < 0 && !proc_id_alive(&rec->note.id))
		return err_set(err, -ESRCH, "process %d is gone", (int)rec->note.id.pid);
	if (r < 0)
		return r;
	if (r & JAVA_JFR_OTHERS)
		return recording_yield(rec, name, err);
	if (!(r & JAVA_JFR_OURS))
		return err_set(err, -ENOENT, "process %d: somebody has ended our recording",
			       (int)rec->note.id.pid);
	return 0;
}

int java_recording_rotate(struct java_recording *rec, struct err *err)
{
	char name[JAVA_NOTE_NAME];

	java_note_recording_name(&rec->note, name);
	return java_jfr_rotate(rec->attach, name, err);
}
