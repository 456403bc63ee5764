/* src/java/recording_undo.c: see recording_undo.h. */
#include "java/recording_undo.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "java/attach.h"
#include "java/recording.h"
#include "java/recording_jfr.h"
#include "java/recording_mount.h"

int java_recording_lock(const struct proc_id *id, int *ret_fd, struct err *err)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "sonde-java-%d-%llu",
			 (int)id->pid, (unsigned long long)id->start_ticks);
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return err_set(err, -errno, "cannot make a lock: %s", strerror(errno));
	if (bind(fd, (const struct sockaddr *)&name, len) < 0)
		return err_set(err, -EBUSY, "another sonde records the JVM of process %d",
			       (int)id->pid);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* Unless somebody has chosen another directory since. */
static int undo_directory(struct java_attach *attach, const struct java_note *note, struct err *err)
{
	char name[JAVA_NOTE_NAME], now[256];
	int r;

	java_note_dir_name(note, name);
	r = java_jfr_directory(attach, now, sizeof(now), err);
	if (r < 0 || !strstr(now, name))
		return r;
	return java_jfr_set_directory(attach, note->before, 0, err);
}

static int undo_in_jvm(const struct java_note *note, struct err *err)
{
	_cleanup_(java_attach_closep) struct java_attach *attach = NULL;
	char name[JAVA_NOTE_NAME];
	int r;

	/* Nothing was asked of the JVM that it must forget, so that it is not asked for anything.
	 */
	if (!note->before[0])
		return 0;
	java_note_recording_name(note, name);
	r = java_attach_open(&note->id, JAVA_JFR_TIMEOUT_NS, &attach, err);
	/* It runs another program by now. */
	if (r == -ENOTSUP)
		return 0;
	if (r == 0)
		r = java_jfr_stop(attach, name, err);
	if (r >= 0)
		r = undo_directory(attach, note, err);
	if (r == 0)
		r = java_jfr_find(attach, name, err);
	if (r > 0)
		return err_set(err, -EBUSY,
			       "process %d: a recording of its user's has files in our file "
			       "system, which stays until it ends",
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
	if (proc_id_alive(&note->id))
		r = undo_in_jvm(note, err);
	if (r < 0 && proc_id_alive(&note->id))
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
	for (size_t i = 0; i < len; i++)
		done += restore_one(state_dir, &notes[i], err) == 0 && notes[i].token;
	return done;
}
