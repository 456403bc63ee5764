/* src/server/api/answer.c: see answer.h. */
#include "server/api/answer.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/gzip.h"

#define ANSWER_MAX_BYTES ((size_t)128 << 20)
#define ANSWER_MIN_PACKED 1024

struct server_answer server_answer_new(void)
{
	return (struct server_answer){
		.status = 200,
		.type = "application/json",
		.cache = "no-store",
		.body = buf_with_max(ANSWER_MAX_BYTES),
	};
}

void server_answer_release(struct server_answer *a)
{
	buf_release(&a->body);
}

static unsigned int answer_status(int error)
{
	switch (error) {
	case -EINVAL:
		return 400;
	case -ENOENT:
		return 404;
	case -E2BIG:
		return 413;
	case -EBUSY:
	case -ENOMEM:
		return 503;
	default:
		return 500;
	}
}

void server_answer_refuse(struct server_answer *a, unsigned int status, const char *sentence)
{
	struct json j = json_to(&a->body);

	buf_clear(&a->body);
	a->status = status;
	a->type = "application/json";
	a->cache = "no-store";
	a->etag = NULL;
	a->file_name[0] = '\0';
	a->packed = false;
	json_object_begin(&j);
	json_key(&j, "error");
	json_cstring(&j, sentence);
	json_object_end(&j);
	/* If out of memory, the body is empty; the status still helps. */
	if (json_finish(&j) < 0)
		buf_clear(&a->body);
}

void server_answer_error(struct server_answer *a, int error, const struct err *err)
{
	unsigned int status = answer_status(error);
	char line[ERR_LINE_MAX];

	if (status == 503)
		a->retry_after_s = 1;
	server_answer_refuse(a, status, err_describe(err, error, line));
}

void server_answer_pack(struct server_answer *a)
{
	_cleanup_(gzip_writer_freep) struct gzip_writer *w = NULL;
	_cleanup_(buf_release) struct buf out = buf_with_max(ANSWER_MAX_BYTES);

	if (a->packed || a->body.len < ANSWER_MIN_PACKED || gzip_writer_new(&out, &w, NULL) < 0)
		return;
	if (gzip_writer_write(w, buf_view(&a->body)) < 0 || gzip_writer_finish(w) < 0)
		return;
	buf_release(&a->body);
	a->body = out;
	out = (struct buf){0};
	a->packed = true;
}

void server_answer_text(struct json *j, const char *key, const char *value)
{
	json_key(j, key);
	json_cstring(j, *value ? value : NULL);
}

void server_answer_uint(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	json_uint(j, value);
}

void server_answer_double(struct json *j, const char *key, double value)
{
	json_key(j, key);
	json_double(j, value);
}

void server_answer_damaged(struct json *j, uint64_t pieces)
{
	if (pieces > 0)
		server_answer_uint(j, "damaged", pieces);
}

void server_answer_window(struct json *j, int64_t from_ns, int64_t to_ns)
{
	/* Unlike in observed times, 0 is a valid time here. */
	json_key(j, "from");
	json_int(j, from_ns / (int64_t)NS_PER_MS);
	json_key(j, "to");
	json_int(j, to_ns / (int64_t)NS_PER_MS);
}

void server_answer_time(struct json *j, const char *key, int64_t ns)
{
	json_key(j, key);
	if (ns)
		json_int(j, ns / (int64_t)NS_PER_MS);
	else
		json_null(j);
}
