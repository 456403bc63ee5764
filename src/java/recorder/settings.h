/* src/java/recorder/settings.h: the recorder's settings, in the JVM's format. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* The first release with jdk.ObjectAllocationSample. */
#define JAVA_RECORDING_WEIGHTS_MAJOR 16

struct java_recording_options {
	const char *state_dir; /* where changes to targets are noted */
	uint32_t stack_depth;  /* 0: 128; only a JVM's first recording can choose */
	bool cpu_time;	       /* CPU time too, JDK 25 and later */
	unsigned int park_ms;  /* shorter waits for java.util.concurrent are left out; 0: 1 ms */
	/* How often threads say how much they have allocated; 0: at the start and at the end. */
	uint64_t totals_ns;
};

/*
 * Appends a settings file for that release: everything it does not name is off. All releases read
 * files; only since JDK 17 can settings be on the command line.
 */
int java_recording_settings(unsigned int major, const struct java_recording_options *options,
			    struct buf *text);
