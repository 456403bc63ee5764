/*
 * tests/oracle/dump/jfr_dump.c: what src/java/jfr/jfr.h reads of a recording, for comparison with
 * the JDK's own tool.
 *
 *   jfr_dump [--feed N] FILE                      "name count bytes" per type of event
 *   jfr_dump [--feed N] FILE EVENT FIELD...       one line of JSON per event
 *   jfr_dump --follow DIRECTORY [EVENT FIELD...]  of a running JVM, until standard input ends
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/json.h"
#include "java/jfr/follow.h"
#include "java/jfr/jfr.h"

static void put_view(struct json *j, const char *key, bool known, struct view text)
{
	json_key(j, key);
	if (known)
		json_string(j, text);
	else
		json_null(j);
}

static void put_stack(struct json *out, const struct java_jfr_stack *s)
{
	json_object_begin(out);
	json_key(out, "truncated");
	json_bool(out, s->truncated);
	json_key(out, "frames");
	json_array_begin(out);
	for (uint32_t i = 0; i < s->n_frames; i++) {
		struct view class_name, method, type;
		bool known = java_jfr_method_names(s, &s->frames[i], &class_name, &method);

		json_array_begin(out);
		json_string(out, known ? class_name : view_str("?"));
		json_string(out, known ? method : view_str("?"));
		json_int(out, s->frames[i].line);
		json_string(out,
			    java_jfr_frame_type(s, &s->frames[i], &type) ? type : view_str("?"));
		json_array_end(out);
	}
	json_array_end(out);
	json_object_end(out);
}

static void put_key(struct json *out, const struct java_jfr *j, const struct java_jfr_value *v)
{
	struct java_jfr_thread thread;
	struct java_jfr_stack stack;
	struct view text;

	if (v->type && view_eq(v->type->name, view_str("java.lang.Thread")) &&
	    java_jfr_thread(j, v, &thread)) {
		json_object_begin(out);
		put_view(out, "javaName", true, thread.java_name);
		put_view(out, "osName", true, thread.os_name);
		json_key(out, "javaThreadId");
		json_int(out, thread.java_id);
		json_key(out, "osThreadId");
		json_int(out, thread.os_id);
		json_object_end(out);
	} else if (v->type && view_eq(v->type->name, view_str("java.lang.Class")) &&
		   java_jfr_class_name(j, v, &text)) {
		json_string(out, text);
	} else if (v->type && view_eq(v->type->name, view_str("jdk.types.StackTrace")) &&
		   java_jfr_stack(j, v, &stack)) {
		put_stack(out, &stack);
	} else if (java_jfr_text(j, v, &text)) {
		json_string(out, text);
	} else {
		json_null(out);
	}
}

static void put_value(struct json *out, const struct java_jfr *j, const struct java_jfr_value *v)
{
	switch (v->kind) {
	case JAVA_JFR_VALUE_INTEGER:
		json_int(out, v->number);
		break;
	case JAVA_JFR_VALUE_REAL:
		json_double(out, v->real);
		break;
	case JAVA_JFR_VALUE_TEXT:
		json_string(out, v->text);
		break;
	case JAVA_JFR_VALUE_KEY:
		put_key(out, j, v);
		break;
	default:
		json_null(out);
	}
}

static void put_event(const struct java_jfr *j, const struct java_jfr_event *e,
		      const struct java_jfr_query *q)
{
	_cleanup_(buf_release) struct buf line = {0};
	struct json out = json_to(&line);

	json_array_begin(&out);
	for (size_t i = 0; i < q->n_fields; i++) {
		bool is_time = strcmp(q->fields[i], "startTime") == 0;

		if (is_time)
			json_int(&out, java_jfr_time_ns(j, e->values[i].number));
		else if (strcmp(q->fields[i], "duration") == 0)
			json_int(&out, java_jfr_duration_ns(j, e->values[i].number));
		else
			put_value(&out, j, &e->values[i]);
	}
	json_array_end(&out);
	if (json_finish(&out) == 0)
		printf("%s\n", buf_cstr(&line));
}

static int dump(struct java_jfr *j, const struct java_jfr_query *q, struct err *err)
{
	struct java_jfr_event e;
	int r;

	while ((r = java_jfr_next(j, &e, err)) == 1)
		put_event(j, &e, q);
	return r;
}

static int dump_fed(const char *path, size_t step, const struct java_jfr_options *options,
		    struct java_jfr **ret_jfr, struct err *err)
{
	_cleanup_(buf_release) struct buf bytes = {0};
	int r = io_read_file(AT_FDCWD, path, &bytes, err);

	if (r == 0)
		r = java_jfr_open_feed(path, options, ret_jfr, err);
	for (size_t at = 0; r == 0 && at < bytes.len; at += step) {
		r = java_jfr_feed(*ret_jfr, view_of(bytes.data + at, MIN(step, bytes.len - at)),
				  err);
		if (r == 0)
			r = dump(*ret_jfr, options->queries, err);
	}
	return r;
}

static int dump_file(const char *path, const struct java_jfr_options *options,
		     struct java_jfr **ret_jfr, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return err_set(err, -errno, "cannot open %s: %s", path, strerror(errno));
	r = java_jfr_open_take(fd, path, options, ret_jfr, err);
	return r < 0 ? r : dump(*ret_jfr, options->queries, err);
}

static bool stdin_ended(int timeout_ms)
{
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
	char byte;

	return poll(&p, 1, timeout_ms) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

static int follow(struct java_jfr_follow *f, const struct java_jfr_query *q, struct err *err)
{
	bool ended = false;
	int r = 0;

	/* What the JVM wrote last is there when it has ended. */
	for (int rest = 8; r == 0 && rest > 0; rest -= ended) {
		struct java_jfr_event e;

		while ((r = java_jfr_follow_next(f, &e, err)) == 1)
			put_event(java_jfr_follow_parser(f), &e, q);
		ended = ended || stdin_ended(50);
	}
	return r;
}

static void put_tallies(const struct java_jfr *j)
{
	const struct java_jfr_tally *tallies;
	size_t n;

	tallies = java_jfr_tallies(j, &n);
	for (size_t i = 0; i < n; i++)
		printf("%s %llu %llu\n", (const char *)tallies[i].name.data,
		       (unsigned long long)tallies[i].count, (unsigned long long)tallies[i].bytes);
}

static int main_follow(const char *dir, const struct java_jfr_options *options)
{
	_cleanup_(java_jfr_follow_closep) struct java_jfr_follow *f = NULL;
	_cleanup_close_ int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct err err;
	int r;

	if (fd < 0)
		return 1;
	r = java_jfr_follow_open(fd, options, &f, &err);
	if (r == 0)
		r = follow(f, options->queries, &err);
	if (r < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	if (!options->n_queries && java_jfr_follow_parser(f))
		put_tallies(java_jfr_follow_parser(f));
	fprintf(stderr, "files %llu broken %llu %s\n",
		(unsigned long long)java_jfr_follow_stats(f)->files,
		(unsigned long long)java_jfr_follow_stats(f)->broken,
		java_jfr_follow_stats(f)->why);
	return java_jfr_follow_stats(f)->broken ? 3 : 0;
}

int main(int argc, char **argv)
{
	_cleanup_(java_jfr_closep) struct java_jfr *j = NULL;
	struct java_jfr_options options = {0};
	struct java_jfr_query query = {0};
	size_t step = 0;
	struct err err;
	bool is_follow = false;
	int at = 1, r;

	if (argc > 2 && strcmp(argv[1], "--follow") == 0) {
		is_follow = true;
		at = 2;
	}
	if (argc > 3 && strcmp(argv[1], "--feed") == 0) {
		step = strtoul(argv[2], NULL, 10);
		at = 3;
	}
	if (argc <= at)
		return 2;
	if (argc > at + 1) {
		query = (struct java_jfr_query){.event = argv[at + 1],
						.fields = (const char *const *)&argv[at + 2],
						.n_fields = (size_t)(argc - at - 2)};
		options = (struct java_jfr_options){.queries = &query, .n_queries = 1};
	}
	if (is_follow)
		return main_follow(argv[at], &options);
	r = step ? dump_fed(argv[at], step, &options, &j, &err)
		 : dump_file(argv[at], &options, &j, &err);
	if (r < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	if (!query.event)
		put_tallies(j);
	return java_jfr_stats(j)->malformed || java_jfr_stats(j)->unknown ? 3 : 0;
}
