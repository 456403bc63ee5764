/*
 * src/java/detect.h: which JVM runs in a process, if any, and whether we can work with it.
 *
 * HotSpot is recognized by its mapped library, not by a command line. Others are named, so the user
 * learns why they are not profiled. Nothing here touches the JVM.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/view.h"
#include "proc/id.h"
#include "proc/maps.h"

enum java_kind {
	JAVA_HOTSPOT,
	JAVA_OPENJ9,
	JAVA_NATIVE_IMAGE,
	JAVA_OTHER,
};

/* Whether the JVM accepts commands (jcmd), as far as known without asking it. */
enum java_commands {
	JAVA_COMMANDS_YES,
	JAVA_COMMANDS_NO,      /* -XX:+DisableAttachMechanism */
	JAVA_COMMANDS_UNKNOWN, /* it has no counters file, which would tell */
	JAVA_COMMANDS_NOT_YET, /* it is still starting */
};

struct java_vm {
	struct proc_id id;
	enum java_kind kind;
	enum java_commands commands;
	char name[64];	      /* "OpenJDK 64-Bit Server VM", "OpenJ9", ... */
	char version[32];     /* "17.0.15", "1.8.0_462"; "" if unknown */
	unsigned int major;   /* 8, 11, 17, ...; 0 if unknown */
	unsigned int update;  /* 262 of 8u262, 15 of 17.0.15 */
	const char *reason;   /* why it cannot be profiled; NULL if it can */
	enum err_cause cause; /* if so */
	bool hides_allocs;    /* its recorder, and async-profiler, may not see all allocations; see
				 below */
};

/* 1 and *ret_vm for a process that runs Java, 0 for others. maps are those of the process. */
int java_detect(const struct proc_id *id, const struct proc_maps *maps, struct java_vm *ret_vm,
		struct err *err);
/* Reads the maps itself. */
int java_detect_pid(pid_t pid, struct java_vm *ret_vm, struct err *err);

/* "17.0.15" of the line JAVA_VERSION="17.0.15" of a file `release`; false if it has none. */
bool java_parse_release(const char *text, char *dst, size_t cap);
/* "1.8.0_462" and "17.0.15" to numbers; both 0 if invalid. */
void java_parse_version(const char *version, unsigned int *ret_major, unsigned int *ret_update);

/*
 * Whether a JVM of that release hides allocations: in JDK 8 with a collector other than G1, C1 code
 * allocates new TLABs by itself (-XX:+FastTLABRefill), and no event reports them. collector is
 * sun.gc.collector.0.name of its counters, arguments are java.rt.vmArgs; if unknown, it may.
 */
bool java_hides_allocs(unsigned int major, const char *collector, struct view arguments);
