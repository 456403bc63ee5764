/*
 * src/server/api/source.c: the source of a function's lines: /api/function/source.
 *
 * Only of a file that the profile names, and only its lines with values and those around them: the
 * port is no way to browse files. Whether everybody may see it is for the agent to say.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "query/query.h"
#include "server/api/routes.h"

/* Lines shown before and after one with values. */
#define SOURCE_AROUND 2
/* Bytes of a line that are shown; generated code has lines of any length. */
#define SOURCE_LINE_MAX 400

static int compare_numbers(const void *va, const void *vb)
{
	const int64_t *a = va, *b = vb;

	return (*a > *b) - (*a < *b);
}

/* Numbers of the lines with values, ascending, as many as are wanted; 0 of them: -ENOENT. */
static int lines_list(const struct query_function *f, size_t limit, int64_t **ret_lines,
		      size_t *ret_n)
{
	int64_t *lines = calloc(f->n_lines + 1, sizeof(*lines));
	size_t n = 0;

	if (!lines)
		return -ENOMEM;
	/* A forged day may have any number. */
	for (size_t i = 0; i < f->n_lines && n < limit; i++)
		if (f->lines[i].line > 0 && f->lines[i].line < INT32_MAX)
			lines[n++] = f->lines[i].line;
	if (n == 0) {
		free(lines);
		return -ENOENT;
	}
	qsort(lines, n, sizeof(*lines), compare_numbers);
	*ret_lines = lines;
	*ret_n = n;
	return 0;
}

/* As JSON has it, but without characters that steer; tabs stay. Cut between characters. */
static void write_text(struct json *j, struct view line)
{
	char text[SOURCE_LINE_MAX + 4];
	size_t n = MIN(line.len, SOURCE_LINE_MAX);

	while (n < line.len && n > 0 && (line.data[n] & 0xc0) == 0x80)
		n--;
	if (n)
		memcpy(text, line.data, n);
	for (size_t at = 0; at < n; at++) {
		const char *tab = memchr(text + at, '\t', n - at);
		size_t end = tab ? (size_t)(tab - text) : n;

		text_clean(text + at, end - at);
		at = end;
	}
	if (n < line.len) {
		memcpy(text + n, "…", strlen("…"));
		n += strlen("…");
	}
	json_key(j, "text");
	json_string(j, view_of(text, n));
}

static struct view line_next(struct view *rest)
{
	const uint8_t *end = memchr(rest->data, '\n', rest->len);
	struct view line = view_of(rest->data, end ? (size_t)(end - rest->data) : rest->len);
	size_t taken = MIN(line.len + 1, rest->len);

	*rest = view_of(rest->data + taken, rest->len - taken);
	if (line.len && line.data[line.len - 1] == '\r')
		line.len--;
	return line;
}

/* Of those with values and those around them. */
static void write_lines(struct json *j, struct view text, const int64_t *lines, size_t n)
{
	size_t at = 0;

	for (int64_t number = 1; text.len && at < n; number++) {
		struct view line = line_next(&text);

		while (at < n && lines[at] + SOURCE_AROUND < number)
			at++;
		if (at == n || lines[at] - SOURCE_AROUND > number)
			continue;
		json_object_begin(j);
		server_answer_uint(j, "line", (uint64_t)number);
		write_text(j, line);
		json_object_end(j);
	}
}

/* The file, or why it is not shown. */
static int source_read(const struct server_request *rq, struct buf *text, int64_t *ret_modified_ns,
		       struct err *err)
{
	const char *file = rq->params.text[SERVER_PARAM_FILE];

	if (!rq->context->agent)
		return err_set(err, -ENOTSUP, "sonde only serves what is stored");
	if (file[0] != '/')
		return err_set(err, -EINVAL, "the profile does not say where the file is");
	return agent_listing(rq->context->agent, rq->params.text[SERVER_PARAM_SERVICE], file, text,
			     ret_modified_ns, err);
}

static int source_write(const struct server_request *rq, const struct query_function *f,
			struct json *j, struct err *err)
{
	_cleanup_(buf_release) struct buf text = buf_with_max(AGENT_LISTING_MAX);
	_cleanup_free_ int64_t *lines = NULL;
	struct err why = {};
	int64_t modified_ns = 0;
	size_t n = 0;
	int r = lines_list(f, rq->params.number[SERVER_PARAM_LIMIT], &lines, &n);

	if (r == -ENOMEM)
		return err_oom(err);
	if (r < 0)
		r = err_set(&why, r, "the profile has no line of this file");
	else
		r = source_read(rq, &text, &modified_ns, &why);
	json_object_begin(j);
	server_answer_text(j, "file", rq->params.text[SERVER_PARAM_FILE]);
	server_answer_text(j, "reason", r < 0 ? why.text : "");
	/* Whoever owns it may say anything. */
	server_answer_time(j, "modified", modified_ns >= (int64_t)NS_PER_MS ? modified_ns : 0);
	json_key(j, "lines");
	json_array_begin(j);
	if (r == 0)
		write_lines(j, buf_view(&text), lines, n);
	json_array_end(j);
	json_object_end(j);
	return server_api_finish(j, err);
}

int server_api_function_source(const struct server_request *rq, struct server_answer *a,
			       struct err *err)
{
	struct store_window w = server_params_window(&rq->params),
			    before = server_params_before(&rq->params);
	const struct store_function function = {.name = rq->params.text[SERVER_PARAM_NAME],
						.file = rq->params.text[SERVER_PARAM_FILE]};
	_cleanup_(query_function_release) struct query_function f = {0};
	struct json j = json_to(&a->body);
	int r = query_function(rq->context->store, &w, rq->params.has_before ? &before : NULL,
			       &function, &f, err);

	if (r == 0 && f.about.collections == 0)
		r = server_api_find_mode(rq, &f.about.snapshot, err);
	return r < 0 ? r : source_write(rq, &f, &j, err);
}
