/* src/java/recorder/undo.c: see undo.h. */
#include "java/recorder/undo.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "java/attach/attach.h"
#include "java/recorder/commands.h"
#include "java/recorder/mount.h"
#include "java/recorder/recording.h"
#include "proc/lock.h"

int java_recording_lock(const struct proc_id *id, int *ret_fd, struct err *err)
{
	int r = proc_lock(id, "java", ret_fd, err);

	if (r == -EBUSY)
		err_write(err, "another sonde is recording the JVM of process %d", (int)id->pid);
	return r;
}

/* Unless someone has chosen another directory since. */
static int undo_directory(struct java_attach *attach, const struct java_note *note, struct err *err)
{
	char name[JAVA_NOTE_NAME], now[256];
	int r;

	java_note_dir_name(note, name);
	r = java_recorder_directory(attach, now, sizeof(now), err);
	if (r < 0 || !strstr(now, name))
		return r;
	return java_recorder_set_directory(attach, note->before, 0, err);
}

static int undo_in_jvm(const struct java_note *note, struct err *err)
{
	_cleanup_(java_attach_closep) struct java_attach *attach = NULL;
	char name[JAVA_NOTE_NAME], calm[JAVA_NOTE_NAME + sizeof(JAVA_NOTE_CALM)];
	int r;

	/* The JVM was never asked for anything, so there is nothing to undo. */
	if (!note->before[0])
		return 0;
	java_note_recording_name(note, name);
	r = java_attach_open(&note->id, JAVA_RECORDER_TIMEOUT_NS, &attach, err);
	/* It has called exec since. */
	if (r == -ENOTSUP)
		return 0;
	(void)snprintf(calm, sizeof(calm), "%s" JAVA_NOTE_CALM, name);
	if (r == 0)
		r = java_recorder_stop(attach, name, err);
	/* For a moment there are both. */
	if (r >= 0)
		r = java_recorder_stop(attach, calm, err);
	if (r >= 0)
		r = undo_directory(attach, note, err);
	if (r == 0)
		r = java_recorder_find(attach, name, err);
	if (r > 0)
		return err_set(err, -EBUSY,
			       "process %d: its user's recording has files in sonde's tmpfs, which "
			       "stays mounted until that ends",
			       (int)note->id.pid);
	return r;
}

int java_recording_undo(const char *state_dir, const struct java_note *note, struct err *err)
{
	char name[JAVA_NOTE_NAME];
	int r = 0;

	if (!note->token)
		return java_note_remove(state_dir, note, err);
	java_note_dir_name(note, name);
	if (!proc_id_gone(&note->id))
		r = undo_in_jvm(note, err);
	if (r < 0 && !proc_id_gone(&note->id))
		return r;
	r = java_mount_remove(note->mount_ns, note->id.pid, name, err);
	return r < 0 ? r : java_note_remove(state_dir, note, err);
}

static int restore_one(const char *state_dir, const struct java_note *note, struct err *err)
{
	_cleanup_close_ int lock = -1;
	int r = java_recording_lock(&note->id, &lock, err);

	if (r < 0)
		return r;
	java_attach_clean(&note->id);
	return java_recording_undo(state_dir, note, err);
}

int java_recordings_restore(const char *state_dir, struct err *err)
{
	_cleanup_free_ struct java_note *notes = NULL;
	size_t len;
	int done = 0, r;

	r = java_notes_read(state_dir, &notes, &len, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < len && r != -EINTR; i++) {
		r = restore_one(state_dir, &notes[i], err);
		done += r == 0 && notes[i].token;
	}
	return r == -EINTR ? r : done;
}
