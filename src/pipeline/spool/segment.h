/* src/pipeline/spool/segment.h: one file of a spool, in the format of spool.h. */
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
	uint64_t bytes;	   /* head and complete messages */
	uint64_t messages; /* waiting */
};

void spool_segment_name(uint64_t number, char dst[SPOOL_NAME_BYTES]);
/* False if it is not the name of a segment. */
bool spool_segment_parse_name(const char *name, uint64_t *ret_number);

/* Creates an empty segment. -EEXIST if its name is taken. */
int spool_segment_create(int dirfd, uint64_t number, int *ret_fd);
/*
 * Scans the messages: the length of the part with complete ones, and how many start at or after
 * from. Moves from to the first message if none starts there. -EBADMSG without a valid head.
 */
int spool_segment_scan(int fd, uint64_t *from, struct spool_segment *segment);
/* Appends a message; on failure, truncates what was written. */
int spool_segment_append(int fd, struct spool_segment *segment, struct view message);
/*
 * The message at an offset. -EBADMSG if it is damaged; ret_next is then the next message, or the
 * end if unknown.
 */
int spool_segment_read(int fd, const struct spool_segment *segment, uint64_t at, struct buf *dst,
		       uint64_t *ret_next);
