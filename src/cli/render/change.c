/*
 * src/cli/render/change.c: two profiles side by side: each function's value before and after, and
 * its share of the total change.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "cli/render/render.h"
#include "cli/render/units.h"
#include "cli/term.h"

/* A table and its index by name. */
struct render_side {
	struct profile_table table;
	struct intern names; /* ids are row indexes: names are unique */
	double total;
};

struct render_sides {
	struct render_side before;
	struct render_side after;
	struct profile_table change;
	const char *unit;
	double grown;
	double shrunk;
};

static void render_sides_release(struct render_sides *s)
{
	profile_table_release(&s->before.table);
	profile_table_release(&s->after.table);
	profile_table_release(&s->change);
	intern_release(&s->before.names);
	intern_release(&s->after.names);
}

static int render_side_build(struct profile *p, size_t type, struct render_side *side,
			     struct err *err)
{
	int k = profile_table_build(p, type, &side->table, err);

	for (size_t i = 0; k == 0 && i < side->table.len; i++) {
		uint32_t id;

		k = intern_add(&side->names, profile_string(p, side->table.rows[i].name), &id);
		side->total += (double)side->table.rows[i].flat;
	}
	return k;
}

static int64_t render_side_flat(const struct render_side *side, struct view name)
{
	uint32_t id;

	return intern_find(&side->names, name, &id) ? side->table.rows[id].flat : 0;
}

static int64_t render_clamp(double v)
{
	if (v >= 9e18)
		return INT64_MAX;
	return v <= -9e18 ? -INT64_MAX : (int64_t)v;
}

static void render_sides_measure(const struct render *r, struct render_sides *s)
{
	double smallest = 0;

	for (size_t i = 0; i < s->change.len; i++) {
		double v = (double)s->change.rows[i].flat;

		if (v > 0)
			s->grown += v;
		else
			s->shrunk -= v;
		v = v < 0 ? -v : v;
		if (v > 0 && (smallest == 0 || v < smallest))
			smallest = v;
	}
	s->unit = render_table_unit(render_clamp(smallest),
				    render_clamp(MAX(s->before.total, s->after.total)), r->unit);
}

/* Growth has a plus sign. */
static const char *render_signed(char dst[static UNITS_LABEL_LEN + 1], int64_t value,
				 const struct render *r, const char *unit)
{
	units_label(dst + 1, value, r->unit, unit);
	if (value <= 0 || strcmp(dst + 1, "0") == 0)
		return dst + 1;
	dst[0] = '+';
	return dst;
}

static int render_change_head(const struct render *r, const struct render_sides *s, struct buf *out)
{
	double net = s->after.total - s->before.total;
	char label[4][UNITS_LABEL_LEN + 1];
	char percent[32] = "";
	int k;

	if (s->before.total > 0)
		(void)snprintf(percent, sizeof(percent), " (%+.2f%%)", net / s->before.total * 100);
	k = buf_printf(out, "Type: %s\nBefore: %s\nAfter: %s\n", r->type_name,
		       units_label(label[0], render_clamp(s->before.total), r->unit, "auto"),
		       units_label(label[1], render_clamp(s->after.total), r->unit, "auto"));
	if (k < 0)
		return k;
	return buf_printf(out, "Change: %s%s; %s grew, %s shrank\n",
			  render_signed(label[0], render_clamp(net), r, "auto"), percent,
			  units_label(label[1], render_clamp(s->grown), r->unit, "auto"),
			  units_label(label[2], render_clamp(s->shrunk), r->unit, "auto"));
}

static int render_change_row(const struct render *r, const struct render_sides *s,
			     const struct profile_row *row, struct buf *out)
{
	struct view name = profile_string(r->profile, row->name);
	char before[UNITS_LABEL_LEN];
	char after[UNITS_LABEL_LEN];
	char change[UNITS_LABEL_LEN + 1];
	char cum[UNITS_LABEL_LEN + 1];
	char share[UNITS_LABEL_LEN];
	char numbers[288];
	const char *colour = row->flat > 0 ? TERM_RED : row->flat < 0 ? TERM_GREEN : "";
	int k;

	units_label(before, render_side_flat(&s->before, name), r->unit, s->unit);
	units_label(after, render_side_flat(&s->after, name), r->unit, s->unit);
	units_percentage(share, row->flat, render_clamp(s->grown + s->shrunk));
	(void)snprintf(numbers, sizeof(numbers), "%10s %10s %10s %6s %10s", before, after,
		       render_signed(change, row->flat, r, s->unit), share,
		       render_signed(cum, row->cum, r, s->unit));
	k = render_coloured(r, colour, numbers, out);
	if (k == 0)
		k = buf_append_str(out, "  ");
	if (k == 0)
		k = render_name(r, row->name, strlen(numbers) + 2, out);
	return k < 0 ? k : buf_append_byte(out, '\n');
}

static int render_change_rows(const struct render *r, const struct render_sides *s, struct buf *out)
{
	double cutoff = r->all_nodes ? 0 : (s->grown + s->shrunk) * RENDER_NODE_FRACTION;
	size_t room = render_fit_rows(r->lines, r->max_nodes ? (size_t)r->max_nodes : SIZE_MAX);
	size_t shown = 0;
	size_t left_out = 0;
	char head[80];
	int k;

	(void)snprintf(head, sizeof(head), "%10s %10s %10s %6s %10s", "before", "after", "change",
		       "share", "cum change");
	k = render_coloured(r, TERM_BOLD, head, out);
	if (k == 0)
		k = buf_append_byte(out, '\n');
	for (size_t i = 0; k == 0 && i < s->change.len; i++) {
		const struct profile_row *row = &s->change.rows[i];
		double cum = row->cum < 0 ? -(double)row->cum : (double)row->cum;
		double flat = row->flat < 0 ? -(double)row->flat : (double)row->flat;

		if (!row->cum && !row->flat)
			continue;
		if (MAX(cum, flat) < cutoff || shown >= room || (r->lines && !row->flat)) {
			left_out++;
			continue;
		}
		shown++;
		k = render_change_row(r, s, row, out);
	}
	if (k == 0 && left_out)
		k = buf_printf(out, "Omitted %zu function%s with smaller changes (%s)\n", left_out,
			       left_out > 1 ? "s" : "", render_more_hint(r, shown));
	return k;
}

int render_change(const struct render *r, struct profile *before, struct profile *after,
		  struct buf *out, struct err *err)
{
	_cleanup_(render_sides_release) struct render_sides s = {};
	int k = render_side_build(before, r->type, &s.before, err);

	if (k == 0)
		k = render_side_build(after, r->type, &s.after, err);
	if (k == 0)
		k = profile_table_build(r->profile, r->type, &s.change, err);
	if (k < 0)
		return k;
	render_sides_measure(r, &s);
	k = render_change_head(r, &s, out);
	return k < 0 ? k : render_change_rows(r, &s, out);
}
