/*
 * src/base/json.h: writes JSON into a buffer, with commas and escapes.
 *
 * The first error sticks and json_finish() returns it, so calls need no checks of their own.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define JSON_MAX_DEPTH 32

struct json {
	struct buf *out;
	int depth;
	int error;
	bool has_item[JSON_MAX_DEPTH];
	bool after_key;
};

static inline struct json json_to(struct buf *out)
{
	return (struct json){.out = out};
}

void json_object_begin(struct json *j);
void json_object_end(struct json *j);
void json_array_begin(struct json *j);
void json_array_end(struct json *j);
void json_key(struct json *j, const char *key);
/*
 * Bytes that are not UTF-8 become U+FFFD: the output is always valid JSON. So do characters that
 * would make a page show another text (base/text.h).
 */
void json_string(struct json *j, struct view value);
void json_cstring(struct json *j, const char *value); /* NULL gives null */
void json_int(struct json *j, int64_t value);
void json_uint(struct json *j, uint64_t value);
void json_double(struct json *j, double value); /* null unless finite */
void json_bool(struct json *j, bool value);
void json_null(struct json *j);
int json_finish(const struct json *j); /* 0, -E2BIG or -ENOMEM */
