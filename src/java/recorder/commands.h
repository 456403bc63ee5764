/* src/java/recorder/commands.h: the recorder's commands, and the meaning of their responses. */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "base/view.h"
#include "java/attach/attach.h"
#include "java/recorder/settings.h"

/* The first start loads the recorder: half a second of CPU, a minute or more on a busy machine. */
#define JAVA_RECORDER_TIMEOUT_NS (120ULL * 1000000000)

/* Where the JVM keeps recordings: the parent of its own directory. */
int java_recorder_directory(struct java_attach *attach, char *dst, size_t cap, struct err *err);
int java_recorder_set_directory(struct java_attach *attach, const char *dir,
				unsigned int stack_depth, struct err *err);
/* Existing recordings, including stopped ones, as bits. */
enum {
	JAVA_RECORDER_OURS = 1,
	JAVA_RECORDER_OTHERS = 2,
};
int java_recorder_find(struct java_attach *attach, const char *name, struct err *err);
/* -ENOTSUP with the JVM's message if it does not start. */
int java_recorder_start(struct java_attach *attach, const char *name, const char *settings,
			struct err *err);
/* 1 if it existed, 0 if not. */
int java_recorder_stop(struct java_attach *attach, const char *name, struct err *err);
int java_recorder_rotate(struct java_attach *attach, const char *name, struct err *err);

/* Parses any text as an answer. The bits of java_recorder_find(), or -EBADMSG. */
int java_recorder_parse_check(struct view answer, const char *name);
/* The directory of "Repository path: DIR/DATE_PID"; "" for "N/A". -EBADMSG. */
int java_recorder_parse_directory(struct view answer, char *dst, size_t cap);
/* The value of a property in the text of VM.system_properties. -ENOENT, -EBADMSG. */
int java_recorder_parse_property(struct view answer, const char *name, char *dst, size_t cap);
