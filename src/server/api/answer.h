/* src/server/api/answer.h: the response to a request: status, body and headers. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

struct server_answer {
	unsigned int status; /* HTTP */
	const char *type;    /* Content-Type */
	const char *cache;   /* Cache-Control */
	const char *etag;    /* NULL for none */
	const char *allow;   /* methods, with status 405 */
	unsigned int retry_after_s;
	char file_name[256]; /* for Content-Disposition; "" for none */
	bool packed;	     /* the body is gzipped */
	struct buf body;
};

/* Zeroed, except for the limit of the body. */
struct server_answer server_answer_new(void);
void server_answer_release(struct server_answer *a);

/* Sets the status for an error, and its message as JSON. Replaces the body. */
void server_answer_error(struct server_answer *a, int error, const struct err *err);
/* The same with an explicit status. */
void server_answer_refuse(struct server_answer *a, unsigned int status, const char *sentence);
/* Compresses the body if worthwhile. Leaves it unchanged if out of memory. */
void server_answer_pack(struct server_answer *a);

/* Key-value pairs of objects. "" and 0 become null where they mean "none". */
void server_answer_text(struct json *j, const char *key, const char *value);
void server_answer_uint(struct json *j, const char *key, uint64_t value);
void server_answer_double(struct json *j, const char *key, double value);
/* "from" and "to" of the requested window. */
void server_answer_window(struct json *j, int64_t from_ns, int64_t to_ns);
/* How many pieces the answer lacks because they are damaged; nothing where it lacks none. */
void server_answer_damaged(struct json *j, uint64_t pieces);
/* Nanoseconds as milliseconds. */
void server_answer_time(struct json *j, const char *key, int64_t ns);
