/* src/java/recorder/settings.h: the recorder's settings, in the JVM's format. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct java_recording_options {
	const char *state_dir; /* where is noted what we put into targets */
	uint32_t stack_depth;  /* 0: 128; only the first recording of a JVM can choose */
	bool cpu_time;	       /* CPU time too, JDK 25 and later */
};

/*
 * Appends a settings file for that release: everything that it does not name is off. Files are read
 * by all releases, settings on the command line only since JDK 17.
 */
int java_recording_settings(unsigned int major, const struct java_recording_options *options,
			    struct buf *text);
