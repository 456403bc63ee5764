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
 * memory left in its container). -EBUSY: its user, or another sonde, records already. -EPERM.
 * -EAGAIN: it is still starting, or stopped. Nothing stays in the JVM when it fails.
 */
int java_recording_start(const struct proc_id *id, const struct java_recording_options *options,
			 struct java_recording **ret_recording, struct err *err);

/*
 * To be called each interval. -EBUSY: the user has started a recording, and ours has ended; -ESRCH:
 * the process is gone; -ENOENT: our recording is. After each of them there is only _stop() left.
 */
int java_recording_check(struct java_recording *recording, struct err *err);
/* Has it begin a new file, so that the one before is whole. One pause of a millisecond or so. */
int java_recording_rotate(struct java_recording *recording, struct err *err);
/*
 * Ends it and takes everything out. When that fails (-EBUSY: the user's recording needs its files;
 * -ETIMEDOUT: the JVM does not answer) the note stays for java_recordings_restore().
 */
int java_recording_stop(struct java_recording *recording, struct err *err);
void java_recording_free(
	struct java_recording *recording); /* stops it unless it is; NULL is fine */
DEFINE_CLEANUP(struct java_recording, java_recording_free)

/* Borrowed: the directory of all its files. */
int java_recording_dirfd(const struct java_recording *recording);
/* The newest file grows each second, no rotation is needed. */
bool java_recording_is_live(const struct java_recording *recording);
const struct java_vm *java_recording_vm(const struct java_recording *recording);

/*
 * Takes out of all JVMs what those of us left who used that directory and were killed, or who could
 * not at the time. What one that runs now has put in stays. Returns how many notes were done with.
 */
int java_recordings_restore(const char *state_dir, struct err *err);
