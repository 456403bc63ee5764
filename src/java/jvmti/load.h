/*
 * src/java/jvmti/load.h: makes a JVM load a library and pass it a command, as `jcmd PID
 * JVMTI.agent_load` does, on JDK 8 too.
 *
 * Since JDK 21 a JVM prints a warning on standard error when it first loads a library dynamically.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/view.h"
#include "java/attach/attach.h"

/*
 * path: as the JVM sees it, or the name by which it finds a library already loaded. ret_code: the
 * library's response to the command. -ENOTSUP: the JVM loads no libraries
 * (-XX:-EnableDynamicAgentLoading), or not this one.
 */
int java_jvmti_load(struct java_attach *attach, const char *path, const char *options,
		    int *ret_code, struct err *err);

/* The code in an answer, or -ENOENT if the library did not respond. */
int java_jvmti_parse_answer(struct view text, int *ret_code);
