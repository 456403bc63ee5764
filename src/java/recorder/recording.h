/*
 * src/java/recorder/recording.h: makes a JVM record allocations and lock waits with its own
 * recorder.
 *
 * Nothing is loaded into the JVM. What we put into it is first noted on disk (note.h) and
 * removed again, after kill -9 by the next start: the recording, its file system
 * (mount.h) with its directory, and the JVM's new recording path.
 *
 * Recordings of one JVM share files and part of their settings. So a JVM that its user is already
 * recording is not touched, and if the user starts while we record, ours stops; what theirs has
 * written by then stays until it ends.
 *
 * Follow the files with java_recording_dirfd(): DATE_PID/DATE.jfr below it. They belong to the
 * target: open them with openat2(), RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS, and expect anything in
 * them. Since JDK 14 the newest is written every second; before, it is complete only after a
 * rotation.
 *
 * JDK 8 may not record all allocations (java_hides_allocs() in java/detect.h). There its own
 * per-thread allocation counts are recorded too, so the missing part is known.
 */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "java/detect.h"
#include "java/recorder/settings.h"
#include "proc/id.h"

struct java_recording; /* opaque */

/*
 * -ENOTSUP: this JVM cannot (JDK 8 before 8u262, 9, 10; no jdk.jfr module; no commands; too little
 * memory left in its container). -EBUSY: its user, or another sonde, is already recording. -EPERM.
 * -EAGAIN: it is still starting, or stopped. Leaves nothing in the JVM on failure.
 */
int java_recording_start(const struct proc_id *id, const struct java_recording_options *options,
			 struct java_recording **ret_recording, struct err *err);

/*
 * Call each interval. -EBUSY: the user has started a recording, and ours has ended; -ESRCH: the
 * process has exited; -ENOENT: our recording is gone. After any of these only _stop() may follow.
 */
int java_recording_check(struct java_recording *recording, struct err *err);
/*
 * Starts a new file, so that the previous one is complete. Takes one pause of about a millisecond.
 */
int java_recording_rotate(struct java_recording *recording, struct err *err);
/*
 * Leaves out waits for java.util.concurrent below JAVA_RECORDING_CALM_MS from now on: idle threads
 * park as well, and each event takes the JVM some 8 us. Another recording takes the place of this
 * one, without a gap. 0 also if it is so already.
 */
#define JAVA_RECORDING_CALM_MS 10
int java_recording_calm(struct java_recording *recording, struct err *err);
/*
 * Ends it and removes everything. On failure (-EBUSY: the user's recording needs its files;
 * -ETIMEDOUT: the JVM does not answer) the note stays for java_recordings_restore().
 */
int java_recording_stop(struct java_recording *recording, struct err *err);
void java_recording_free(
	struct java_recording *recording); /* stops it if necessary; NULL is fine */
DEFINE_CLEANUP(struct java_recording, java_recording_free)

/* Borrowed: the directory with all its files. */
int java_recording_dirfd(const struct java_recording *recording);
/* The newest file grows every second; no rotation is needed. */
bool java_recording_is_live(const struct java_recording *recording);
const struct java_vm *java_recording_vm(const struct java_recording *recording);

/*
 * Removes from all JVMs what sondes that used that directory left, because they were killed or
 * could not remove it. Leaves alone what a running sonde has put in. Returns how many notes were
 * settled. -EINTR.
 */
int java_recordings_restore(const char *state_dir, struct err *err);
