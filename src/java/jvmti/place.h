/*
 * src/java/jvmti/place.h: a place in a JVM's file system for a library and its output.
 *
 * The same private file system as for recordings, noted the same way and removed by the same code,
 * after kill -9 too. Code can be run from it only until it is sealed. We create the files, by
 * descriptors, before telling the JVM about them.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/view.h"
#include "java/attach/attach.h"
#include "proc/id.h"

/* Our own library, as bytes. */
extern const unsigned char java_jvmti_library[];
extern const size_t java_jvmti_library_len;

struct java_place; /* opaque */

/*
 * Attaches, and creates the place. -ENOTSUP, -EBUSY (another sonde), -EPERM, -EAGAIN as in
 * java_recording_start(). Leaves nothing behind on failure.
 */
int java_place_make(const struct proc_id *id, const char *state_dir, struct java_place **ret_place,
		    struct err *err);
/* From now on no code can be run from it; loaded code stays. */
int java_place_seal(const struct java_place *place, struct err *err);
/* Removes it; on failure the note stays for java_recordings_restore(). */
int java_place_remove(struct java_place *place, struct err *err);
void java_place_free(struct java_place *place); /* removes it if necessary; NULL is fine */
DEFINE_CLEANUP(struct java_place, java_place_free)

/* Borrowed. */
struct java_attach *java_place_attach(struct java_place *place);
/* The JVM's path of a file in it. */
#define JAVA_PLACE_PATH 96
void java_place_path(const struct java_place *place, const char *name, char dst[JAVA_PLACE_PATH]);

/* A new file, for reading and writing. is_its: owned by the JVM's user. */
int java_place_create(struct java_place *place, const char *name, bool is_its, int *ret_fd,
		      struct err *err);
int java_place_write(struct java_place *place, const char *name, struct view bytes,
		     struct err *err);
