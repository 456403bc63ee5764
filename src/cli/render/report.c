/* src/cli/render/report.c: see report.h. */
#include "cli/render/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/text.h"
#include "cli/term.h"
#include "profile/pprof.h"

#define REPORT_MAX_BYTES ((size_t)1 << 30)

struct report_format {
	const char *name;
	int (*render)(const struct render *r, struct buf *out, struct err *err);
	bool binary;
};

static int report_collapsed(const struct render *r, struct buf *out, struct err *err)
{
	return profile_collapse(r->profile, r->type, out, err);
}

static int report_pprof(const struct render *r, struct buf *out, struct err *err)
{
	return profile_encode_pprof(r->profile, out, err);
}

static const struct report_format report_formats[] = {
	{"top", render_top, false},
	{"tree", render_tree, false},
	{"collapsed", report_collapsed, false},
	{"pprof", report_pprof, true},
	{"json", render_json, false},
};

static int report_find_format(const char *name, const struct report_format **ret_format,
			      struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(report_formats); i++)
		if (strcmp(report_formats[i].name, name) == 0) {
			*ret_format = &report_formats[i];
			return 0;
		}
	return err_set(err, -EINVAL, "unknown format '%s'; use top, tree, collapsed, pprof or json",
		       name);
}

static bool report_to_stdout(const struct report *r)
{
	return !r->path || strcmp(r->path, "-") == 0;
}

int report_parse(const struct cli_args *args, struct report *ret_report, struct err *err)
{
	struct report r = {.type = args->values[REPORT_TYPE],
			   .format = &report_formats[0],
			   .path = args->values[REPORT_OUTPUT],
			   .all_nodes = args->values[REPORT_ALL_NODES] != NULL};
	const char *nodes = args->values[REPORT_NODES];
	int k;

	if (args->values[REPORT_FORMAT]) {
		k = report_find_format(args->values[REPORT_FORMAT], &r.format, err);
		if (k < 0)
			return k;
	}
	if (nodes && strcmp(nodes, "0") != 0) {
		k = cli_parse_number("--nodes", nodes, UINT32_MAX, &r.max_nodes, err);
		if (k < 0)
			return k;
	}
	if (r.path && !*r.path)
		return err_set(err, -EINVAL, "--output needs a file name");
	if (r.format->binary && report_to_stdout(&r) && isatty(STDOUT_FILENO))
		return err_set(err, -EINVAL,
			       "not writing binary pprof data to a terminal; use -o FILE.pb.gz");
	if (report_to_stdout(&r)) {
		r.columns = term_width(STDOUT_FILENO);
		r.lines = nodes ? 0 : term_height(STDOUT_FILENO);
	}
	*ret_report = r;
	return 0;
}

int report_check_type(const char *type, const enum type_id *ids, size_t n, struct err *err)
{
	char known[256] = "";
	size_t len = 0;

	for (size_t i = 0; i < n && len < sizeof(known); i++) {
		const char *name = registry_types[ids[i]].name;

		if (!type || strcmp(type, name) == 0)
			return 0;
		len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s",
					i == 0 ? "" : (i == n - 1 ? " or " : ", "), name);
	}
	return err_set(err, -EINVAL, "unknown type '%s'; use %s", type, known);
}

int report_find_type(const struct profile *p, const char *type, size_t *ret_type, struct err *err)
{
	char known[256] = "";
	size_t len = 0;
	int i = -ENOENT;

	if (profile_n_types(p) == 0)
		return err_set(err, -EBADMSG, "the profile has no sample types");
	if (!type && profile_header_const(p)->default_type)
		i = profile_find_type(p, profile_cstring(p, profile_header_const(p)->default_type));
	else if (type)
		i = profile_find_type(p, type);
	if (!type && i < 0)
		i = (int)profile_n_types(p) - 1;
	if (i >= 0) {
		*ret_type = (size_t)i;
		return 0;
	}
	for (size_t t = 0; t < profile_n_types(p) && len < sizeof(known); t++)
		len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s", t ? ", " : "",
					profile_cstring(p, profile_type_at(p, t)->type));
	return err_set(err, -EINVAL, "the profile has no type '%s'; it has %s", type, known);
}

int report_check_output(const struct report *report, struct err *err)
{
	_cleanup_free_ char *dir = NULL;
	struct stat st;
	char *slash;

	if (report_to_stdout(report))
		return 0;
	if (stat(report->path, &st) == 0 && !S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode)
			       ? err_set(err, -EISDIR, "cannot write %s: it is a directory",
					 report->path)
			       : 0;
	/* Files are written next to their name and renamed, so the directory must be writable. */
	dir = strdup(report->path);
	if (!dir)
		return err_oom(err);
	slash = strrchr(dir, '/');
	if (slash)
		slash[slash == dir] = '\0';
	if (faccessat(AT_FDCWD, slash ? dir : ".", W_OK | X_OK, AT_EACCESS) < 0)
		return err_set(err, -errno, "cannot write %s: %s", report->path, strerror(errno));
	return 0;
}

int report_print(const struct buf *text, struct err *err)
{
	int k = io_write_full(STDOUT_FILENO, text->data, text->len);

	return k < 0 ? err_set(err, k, "cannot write to standard output: %s", strerror(-k)) : 0;
}

static int report_render(const struct report *report, struct profile *p, struct buf *out,
			 struct err *err)
{
	struct render r;
	size_t type = 0;
	int k;

	k = report_find_type(p, report->type, &type, err);
	if (k < 0)
		return k;
	render_init(&r, p, type);
	r.max_nodes = report->max_nodes;
	r.all_nodes = report->all_nodes;
	r.source = report->source;
	r.columns = report->columns;
	/* A tree that is cut anywhere says little. */
	r.lines = report->format->render == render_top ? report->lines : 0;
	r.colour = report_to_stdout(report) && term_wants_colour(STDOUT_FILENO);
	if (report->before && report->format->render == render_top)
		return render_change(&r, report->before, report->after, out, err);
	return report->format->render(&r, out, err);
}

/* The destination of a report, written in pieces. */
struct report_output {
	struct io_file file;
	bool to_file;
	struct err err;
};

static int report_drain(void *arg, struct view bytes)
{
	struct report_output *o = arg;
	int k;

	if (o->to_file)
		return io_file_append(&o->file, bytes, &o->err);
	k = io_write_full(STDOUT_FILENO, bytes.data, bytes.len);
	return k < 0 ? err_set(&o->err, k, "cannot write to standard output: %s", strerror(-k)) : 0;
}

/* Collapsed stacks keep names unchanged for other tools, but a terminal must not interpret them. */
static int report_drain_clean(void *arg, struct view bytes)
{
	uint8_t *text = (uint8_t *)(uintptr_t)bytes.data; /* our own buffer */
	size_t at = 0;

	while (at < bytes.len) {
		uint8_t *newline = memchr(text + at, '\n', bytes.len - at);
		size_t end = newline ? (size_t)(newline - text) : bytes.len;

		text_clean((char *)text + at, end - at);
		at = end + 1;
	}
	return report_drain(arg, bytes);
}

int report_write(const struct report *report, struct profile *p, struct err *err)
{
	struct report_output output = {.to_file = !report_to_stdout(report)};
	bool clean = !output.to_file && report->format->render == report_collapsed &&
		     isatty(STDOUT_FILENO);
	_cleanup_(buf_release) struct buf out = {.max = REPORT_MAX_BYTES,
						 .drain = clean ? report_drain_clean : report_drain,
						 .drain_arg = &output};
	struct err inner = {};
	int k = 0;

	if (output.to_file)
		k = io_file_create(report->path, &output.file, err);
	if (k < 0)
		return k;
	k = report_render(report, p, &out, &inner);
	if (k == 0)
		k = buf_drain(&out);
	if (k == 0)
		return output.to_file ? io_file_commit(&output.file, err) : 0;
	if (output.to_file)
		io_file_abort(&output.file);
	/* The output's own error is closer to the cause. */
	if (output.err.text[0])
		return err_pass(err, k, &output.err);
	return inner.text[0] ? err_pass(err, k, &inner)
			     : err_set(err, k, "cannot write the report: %s", strerror(-k));
}

int report_load(const char *path, struct profile **ret_profile, struct err *err)
{
	_cleanup_(buf_release) struct buf data = buf_with_max(PROFILE_PPROF_MAX_UNPACKED);
	int k;

	if (strcmp(path, "-") == 0) {
		k = io_read_all(STDIN_FILENO, &data);
		if (k < 0)
			return err_set(err, k, "cannot read standard input: %s", strerror(-k));
	} else {
		k = io_read_file(AT_FDCWD, path, &data, err);
		if (k < 0)
			return k;
	}
	k = profile_decode_pprof(buf_view(&data), ret_profile, err);
	return k < 0 ? err_prefix(err, k, "%s", path) : 0;
}
