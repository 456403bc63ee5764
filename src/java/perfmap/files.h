/*
 * src/java/perfmap/files.h: the perf map of a JVM in its /tmp, and how to tell ours from others.
 *
 *   perf-12.map            where the JVM writes it and everybody looks for it
 *   .sonde-TOKEN.raw       what the JVM writes, while it does; the same file until JDK 21
 *   .sonde-TOKEN.new       the same with other names, while we write it
 *   .sonde-TOKEN.map       that, when it is done; the same file as perf-12.map
 *
 * "The same file" means a hard link: perf-12.map is ours only if it is the same file as one of the
 * others, even after a crash; anything else put there is not. They are made with the target's
 * rights (proc/aide/rights.h): it decides what its /tmp is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "java/attach/target.h"
#include "java/perfmap/text.h"
#include "java/recorder/note.h"

struct java_perfmap_files {
	int tmp; /* an O_PATH descriptor, which outlives the JVM; owned */
	char name[32];
	char raw[JAVA_NOTE_NAME + 4];
	char fresh[JAVA_NOTE_NAME + 4];
	char done[JAVA_NOTE_NAME + 4];
};

enum java_perfmap_there {
	JAVA_PERFMAP_NONE,
	JAVA_PERFMAP_OURS,
	JAVA_PERFMAP_USERS, /* a regular file of the JVM's user or root, newer than the JVM */
	JAVA_PERFMAP_OTHER,
};

/* Takes tmp. name: the perf map; the others are named by the note's token. */
void java_perfmap_files_init(struct java_perfmap_files *files, int tmp, const char *name,
			     const struct java_note *note);
void java_perfmap_files_release(struct java_perfmap_files *files);

/* What is in place of the perf map. */
enum java_perfmap_there java_perfmap_files_look(const struct java_perfmap_files *files,
						const struct java_target *target);
/*
 * Creates a raw file, which the JVM can write and nobody can read; by_name: also as perf-12.map.
 * -EEXIST if something else is there.
 */
int java_perfmap_files_begin(const struct java_perfmap_files *files,
			     const struct java_target *target, bool by_name, int *ret_raw);
/* Replaces our old map by what the JVM wrote. -EEXIST, -ENODATA: it is empty. */
int java_perfmap_files_finish(const struct java_perfmap_files *files,
			      const struct java_target *target, int raw,
			      struct java_perfmap_copied *ret_copied);
/* Removes everything that is ours, and nothing else; does not follow links. */
int java_perfmap_files_remove(const struct java_perfmap_files *files);
