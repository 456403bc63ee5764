/*
 * src/java/jfr/follow.h: follows the recorder of a running JVM through its files, without a gap.
 *
 *   repository/DATE_PID/DATE.jfr     one chunk each; the newest grows (JDK 14 on), or stays empty
 *                                    until it is finished (before)
 *
 * The target controls the directory: links are not followed, anything but regular files is skipped,
 * and only names in a JVM's format count.
 */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"
#include "java/jfr/jfr.h"

struct java_jfr_follow;

/* dirfd: the repository; borrowed as long as the follower lives. Implies options.live. */
int java_jfr_follow_open(int dirfd, const struct java_jfr_options *options,
			 struct java_jfr_follow **ret_follow, struct err *err);
void java_jfr_follow_close(struct java_jfr_follow *f);
DEFINE_CLEANUP(struct java_jfr_follow, java_jfr_follow_close)

/*
 * Like java_jfr_next(): 1 for an event, 0 if there is none now. An unreadable file is counted and
 * skipped; errors are our own (-ENOMEM, a directory that is gone).
 */
int java_jfr_follow_next(struct java_jfr_follow *f, struct java_jfr_event *ret_event,
			 struct err *err);
/* Resolves the event; NULL before the first file. */
struct java_jfr *java_jfr_follow_parser(struct java_jfr_follow *f);

struct java_jfr_follow_stats {
	uint64_t files;	 /* opened */
	uint64_t broken; /* given up: malformed, or never finished */
	char why[512];	 /* the reason of the last of these */
};
const struct java_jfr_follow_stats *java_jfr_follow_stats(const struct java_jfr_follow *f);
