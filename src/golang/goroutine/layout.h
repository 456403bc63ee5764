/*
 * src/golang/goroutine/layout.h: offsets of the fields of a goroutine's g, and of its thread's m.
 *
 * The same on amd64 and arm64. No patch release of 1.17 to 1.27 moved any of them: runtime.m did
 * change within releases, but only after the first fields, which are all we read.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"

struct golang_g_layout {
	unsigned int first_minor; /* the releases of this row */
	unsigned int last_minor;
	/* Of the stacks in runtime/pprof's goroutine profile, unless GODEBUG says otherwise. */
	unsigned int max_depth;

	/* runtime.g; runtime/runtime2.go */
	unsigned int m;
	unsigned int sched_sp;
	unsigned int sched_pc;
	unsigned int syscall_sp;
	unsigned int syscall_pc;
	unsigned int status;
	unsigned int goid;
	unsigned int wait_since;
	unsigned int wait_reason;
	unsigned int tracking_seq; /* u8, counts how often the g stopped running */
	unsigned int locked_m;
	unsigned int running_cleanups; /* 0 if there are none */
	unsigned int parent_goid;      /* 0 if it does not exist */
	unsigned int gopc;
	unsigned int start_pc;
	unsigned int labels;
	unsigned int bytes; /* of g, as far as we read it */

	/* runtime.m; runtime/runtime2.go */
	unsigned int m_procid;

	bool labels_are_map; /* runtime/pprof/label.go: map[string]string, later a slice */
};

/* -ENOTSUP with a message that names the supported releases. */
int golang_g_layout_for(unsigned int minor, const struct golang_g_layout **ret_layout,
			struct err *err);
