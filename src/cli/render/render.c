/* src/cli/render/render.c: see render.h; shared by the tables. */
#include "cli/render/render.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/render/units.h"
#include "cli/term.h"

void render_init(struct render *r, struct profile *p, size_t type)
{
	const struct profile_type *t = profile_type_at(p, type);

	*r = (struct render){.profile = p, .type = type};
	(void)snprintf(r->type_name, sizeof(r->type_name), "%s", profile_cstring(p, t->type));
	(void)snprintf(r->unit, sizeof(r->unit), "%s", profile_cstring(p, t->unit));
	text_clean(r->type_name, strlen(r->type_name));
	text_clean(r->unit, strlen(r->unit));
}

int render_name(const struct render *r, uint32_t name, size_t after, struct buf *out)
{
	_cleanup_(buf_release) struct buf clean = {};
	struct view v = profile_string(r->profile, name);
	struct buf *to = r->columns ? &clean : out;
	size_t at = to->len;
	int k = buf_append(to, v.data, v.len);

	if (k < 0)
		return k;
	text_clean((char *)to->data + at, v.len);
	if (!r->columns)
		return 0;
	if (!buf_cstr(&clean))
		return -ENOMEM;
	return term_shorten(out, buf_cstr(&clean),
			    MAX(r->columns, after + RENDER_MIN_NAME) - after);
}

size_t render_fit_rows(size_t lines, size_t rows)
{
	if (!lines)
		return rows;
	if (lines < RENDER_OTHER_LINES + RENDER_MIN_ROWS)
		lines = RENDER_OTHER_LINES + RENDER_MIN_ROWS;
	return MIN(rows, lines - RENDER_OTHER_LINES);
}

int render_coloured(const struct render *r, const char *colour, const char *text, struct buf *out)
{
	if (!r->colour || !*colour)
		return buf_append_str(out, text);
	return buf_printf(out, "%s%s%s", colour, text, TERM_RESET);
}

const char *render_more_hint(const struct render *r, uint64_t shown)
{
	if (r->lines && render_fit_rows(r->lines, SIZE_MAX) <= shown)
		return "use -n 0 -a to see all";
	if (r->max_nodes && shown >= r->max_nodes)
		return "use a larger --nodes to see more";
	return "use --all-nodes to see all";
}

const char *render_table_unit(int64_t smallest, int64_t largest, const char *unit)
{
	const char *chosen = units_natural(smallest, unit);

	/* If values are far apart, the smallest may go down to 0.01 of a larger unit. */
	if (strcmp(chosen, units_natural(largest, unit)) != 0 && smallest < largest / 100)
		chosen = units_natural(100 * smallest, unit);
	return *chosen ? chosen : unit;
}

static int render_header_text(const struct render *r, const char *key, uint32_t text,
			      struct buf *out)
{
	int k = buf_append_str(out, key);

	if (k == 0)
		k = render_name(r, text, strlen(key), out);
	return k < 0 ? k : buf_append_byte(out, '\n');
}

/* Binary and comments, as in pprof's report header. */
static int render_header_origin(const struct render *r, struct buf *out)
{
	const struct profile *p = r->profile;
	int k = 0;

	/* The first file could be any process's. */
	if (r->source && r->source->machine)
		k = buf_printf(out, "Machine: %s\n", r->source->machine);
	else if (profile_n_mappings(p) > 0) {
		const struct profile_mapping *m = profile_mapping_at(p, 0);
		const char *file = profile_cstring(p, m->file);
		const char *slash = strrchr(file, '/');

		if (*file) {
			size_t at;

			k = buf_append_str(out, "File: ");
			at = out->len;
			if (k == 0)
				k = buf_printf(out, "%s\n", slash ? slash + 1 : file);
			if (k == 0)
				text_clean((char *)out->data + at, out->len - at - 1);
		}
		if (k == 0 && m->build_id)
			k = render_header_text(r, "Build ID: ", m->build_id, out);
	}
	for (size_t i = 0; k == 0 && i < profile_n_comments(p); i++) {
		uint32_t comment = profile_comment_at(p, i);

		if (*profile_cstring(p, comment) != '#')
			k = render_header_text(r, "", comment, out);
	}
	return k;
}

static int render_header_time(int64_t time_ns, struct buf *out)
{
	time_t seconds = (time_t)(time_ns / (int64_t)NS_PER_SEC);
	struct tm tm;
	char text[64];

	if (!localtime_r(&seconds, &tm) ||
	    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %Z", &tm) == 0)
		return 0;
	return buf_printf(out, "Time: %s\n", text);
}

static int render_header_duration(const struct render *r, int64_t total, const char *unit,
				  struct buf *out)
{
	int64_t duration = profile_header_const(r->profile)->duration_ns;
	char label[UNITS_LABEL_LEN];
	char amount[UNITS_LABEL_LEN];
	char share[UNITS_LABEL_LEN];

	units_label(label, duration, "nanoseconds", "auto");
	units_label(amount, total, r->unit, unit);
	/* Only time can be a share of time. */
	if (strcmp(r->unit, "nanoseconds") != 0 || !total)
		return buf_printf(out, "Duration: %s, Total samples = %s \n", label, amount);
	units_percentage(share, total, duration);
	return buf_printf(out, "Duration: %s, Total samples = %s (%s)\n", label, amount, share);
}

int render_header(const struct render *r, int64_t total, const char *unit, struct buf *out)
{
	const struct profile_header *h = profile_header_const(r->profile);
	int k = render_header_origin(r, out);

	if (k == 0)
		k = buf_printf(out, "Type: %s\n", r->type_name);
	if (k == 0 && h->time_ns)
		k = render_header_time(h->time_ns, out);
	if (k == 0 && h->duration_ns)
		k = render_header_duration(r, total, unit, out);
	return k;
}
