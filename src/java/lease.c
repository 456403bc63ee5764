/* src/java/lease.c: see lease.h. */
#include "java/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "java/detect.h"
#include "java/recorder/commands.h"
#include "java/recorder/mount.h"
#include "java/recorder/undo.h"

int java_lease_init(struct java_lease *h, const char *state_dir, struct err *err)
{
	*h = (struct java_lease){.state_dir = strdup(state_dir), .dirfd = -1, .lock = -1};
	return h->state_dir ? 0 : err_oom(err);
}

int java_lease_check(const struct proc_id *id, struct err *err)
{
	struct java_vm vm;
	int r = java_detect_pid(id->pid, &vm, err);

	if (r < 0)
		return r;
	if (r == 0)
		return err_lack(err, -ENOTSUP, ERR_CAUSE_NOT_JAVA, "",
				"process %d is not a Java process", (int)id->pid);
	if (vm.reason)
		return err_lack(err, -ENOTSUP, vm.cause, "", "process %d runs %s %s: %s",
				(int)id->pid, vm.name, vm.version, vm.reason);
	return java_mount_check(err);
}

/* Undoes what a killed sonde left: our note would replace its note. */
static int hold_restore(const struct java_lease *h, const struct proc_id *id, struct err *err)
{
	_cleanup_free_ struct java_note *notes = NULL;
	size_t len = 0;
	int r = java_notes_read(h->state_dir, &notes, &len, err);

	for (size_t i = 0; r == 0 && i < len; i++)
		if (notes[i].id.pid == id->pid && notes[i].id.start_ticks == id->start_ticks)
			r = java_recording_undo(h->state_dir, &notes[i], err);
	return r;
}

int java_lease_begin(struct java_lease *h, const struct proc_id *id, struct err *err)
{
	int r = java_recording_lock(id, &h->lock, err);

	if (r == 0)
		r = hold_restore(h, id, err);
	if (r == 0)
		r = java_note_make(id, &h->note, err);
	if (r == 0)
		r = java_note_save(h->state_dir, &h->note, err);
	if (r < 0)
		return r;
	h->noted = true;
	return java_attach_open(id, JAVA_RECORDER_TIMEOUT_NS, &h->attach, err);
}

int java_lease_end(struct java_lease *h, struct err *err)
{
	char name[JAVA_NOTE_NAME];
	int r;

	if (!h->noted)
		return 0;
	h->noted = false;
	r = java_recording_undo(h->state_dir, &h->note, err);
	/*
	 * When a container ends, its namespace goes, but not a directory on a disk that the next
	 * container reuses.
	 */
	java_note_dir_name(&h->note, name);
	if (r == 0 && h->attach)
		(void)unlinkat(java_attach_tmp(h->attach), name, AT_REMOVEDIR);
	/* Whoever restores later must be able to lock it. */
	closep(&h->lock);
	h->lock = -1;
	return r;
}

void java_lease_release(struct java_lease *h)
{
	(void)java_lease_end(h, NULL);
	closep(&h->dirfd);
	closep(&h->lock);
	java_attach_close(h->attach);
	free(h->state_dir);
}
