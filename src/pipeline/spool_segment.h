/* src/pipeline/spool_segment.h: one file of a spool, in the format of spool.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/view.h"

#define SPOOL_HEAD_BYTES ((uint64_t)16)
#define SPOOL_MESSAGE_BYTES ((uint64_t)8) /* before a message */
#define SPOOL_MAX_SEGMENT ((uint64_t)64 << 20)
#define SPOOL_MAX_NUMBER 9999999999999999ULL
#define SPOOL_NAME_BYTES 24

struct spool_segment {
	uint64_t number;
	uint64_t bytes;	   /* head and whole messages */
	uint64_t messages; /* that wait */
};

void spool_segment_name(uint64_t number, char dst[SPOOL_NAME_BYTES]);
/* False for what is no segment's name. */
bool spool_segment_parse_name(const char *name, uint64_t *ret_number);

/* An empty segment. -EEXIST when there is something under its name. */
int spool_segment_create(int dirfd, uint64_t number, int *ret_fd);
/*
 * Goes over the messages: how long the part is that holds whole ones, and how many lie at from and
 * after. from is moved to the first when none begins there. -EBADMSG without a head of ours.
 */
int spool_segment_scan(int fd, uint64_t *from, struct spool_segment *segment);
/* Writes a message to the end; when that fails, what came of it is cut off. */
int spool_segment_append(int fd, struct spool_segment *segment, struct view message);
/*
 * The message at an offset. -EBADMSG for one that is damaged: after it there is another one where
 * ret_next says, which is the end when nobody knows.
 */
int spool_segment_read(int fd, const struct spool_segment *segment, uint64_t at, struct buf *dst,
		       uint64_t *ret_next);
