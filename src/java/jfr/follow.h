/*
 * src/java/jfr/follow.h: follows the recorder of a running JVM through its files, without a gap.
 *
 *   repository/DATE_PID/DATE.jfr     one chunk each; the newest grows (JDK 14 on), or stays empty
 *                                    until it is finished (before)
 *
 * The directory belongs to the target, who may put anything there: links are not followed, what is
 * no regular file is passed over, and only names that a JVM makes count.
 */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"
#include "java/jfr/jfr.h"

struct java_jfr_follow;

/* dirfd: of the repository; borrowed for as long as the follower lives. options.live is implied. */
int java_jfr_follow_open(int dirfd, const struct java_jfr_options *options,
			 struct java_jfr_follow **ret_follow, struct err *err);
void java_jfr_follow_close(struct java_jfr_follow *f);
DEFINE_CLEANUP(struct java_jfr_follow, java_jfr_follow_close)

/*
 * As java_jfr_next(): 1 for an event, 0 when there is none now. A file that cannot be read is
 * counted and left for the next one; errors are those of our own (-ENOMEM, a directory that is
 * gone).
 */
int java_jfr_follow_next(struct java_jfr_follow *f, struct java_jfr_event *ret_event,
			 struct err *err);
/* What resolves the event; NULL before the first file. */
struct java_jfr *java_jfr_follow_parser(struct java_jfr_follow *f);

struct java_jfr_follow_stats {
	uint64_t files;	 /* that were begun */
	uint64_t broken; /* that were given up: malformed, or never finished */
	char why[512];	 /* of the last of these */
};
const struct java_jfr_follow_stats *java_jfr_follow_stats(const struct java_jfr_follow *f);
