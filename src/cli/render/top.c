/* src/cli/render/top.c: the function table, line by line as printed by `go tool pprof -top`. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/render/render.h"
#include "cli/render/units.h"
#include "cli/term.h"

struct render_selection {
	struct profile_table table; /* visible rows come first */
	size_t shown;
	size_t n_dropped; /* below the fraction */
	size_t n_callers; /* not shown for lack of a value of their own */
	int64_t flat_sum; /* of all rows */
	int64_t shown_flat;
	const char *unit;
	uint8_t *marks; /* by string id: see render_mark_inlined() */
};

static void render_selection_release(struct render_selection *s)
{
	profile_table_release(&s->table);
	free(s->marks);
}

/* Values are hostile, so INT64_MIN happens. */
static int64_t render_abs(int64_t v)
{
	if (v == INT64_MIN)
		return INT64_MAX;
	return v < 0 ? -v : v;
}

/* Sums of hostile values saturate. */
static int64_t render_add(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return a < 0 ? INT64_MIN : INT64_MAX;
	return sum;
}

static int64_t render_fraction(int64_t total, double fraction)
{
	return render_abs((int64_t)((double)total * fraction));
}

static int render_compare_cum(const void *a, const void *b)
{
	const struct profile_row *x = a, *y = b;
	int64_t cum_x = render_abs(x->cum), cum_y = render_abs(y->cum);

	if (cum_x != cum_y)
		return cum_x < cum_y ? 1 : -1;
	return x->name < y->name ? -1 : x->name > y->name;
}

/*
 * Rows are sorted by flat: bare callers come last. They are left out, unless there are so few other
 * rows that these say little: of allocations by class, waits by lock, or time off the CPU.
 */
static void render_select_fitting(const struct render *r, struct render_selection *s)
{
	size_t room = render_fit_rows(r->lines, SIZE_MAX);
	size_t all = s->shown, own = all;

	while (own > 0 && s->table.rows[own - 1].flat == 0)
		own--;
	s->shown = MIN(own < room / 2 ? all : own, room);
	/* They have been in the order of their names. */
	if (s->shown > own)
		qsort(s->table.rows + own, all - own, sizeof(*s->table.rows), render_compare_cum);
	s->n_callers = all - MAX(own, s->shown);
}

/* Drops the rows below the cut-off, keeping the order. */
static void render_select_rows(const struct render *r, struct render_selection *s)
{
	struct profile_row *rows = s->table.rows;
	int64_t cutoff;

	for (size_t i = 0; i < s->table.len; i++)
		s->flat_sum = render_add(s->flat_sum, rows[i].flat);
	cutoff = r->all_nodes ? 0 : render_fraction(s->flat_sum, RENDER_NODE_FRACTION);
	for (size_t i = 0; i < s->table.len; i++) {
		if (render_abs(rows[i].cum) < cutoff)
			s->n_dropped++;
		else
			rows[s->shown++] = rows[i];
	}
	if (r->max_nodes && s->shown > r->max_nodes)
		s->shown = (size_t)r->max_nodes;
	if (r->lines)
		render_select_fitting(r, s);
}

/* One unit for all: pprof chooses it such that the smallest visible value is readable. */
static void render_select_unit(const struct render *r, struct render_selection *s)
{
	int64_t smallest = 0;

	for (size_t i = 0; i < s->shown; i++) {
		const struct profile_row *row = &s->table.rows[i];
		int64_t v = render_abs(row->flat ? row->flat : row->cum);

		if (v && (!smallest || v < smallest))
			smallest = v;
		s->shown_flat = render_add(s->shown_flat, row->flat);
	}
	s->unit = render_table_unit(smallest ? smallest : s->table.total, s->table.total, r->unit);
}

static int render_select_marks(const struct render *r, struct render_selection *s, struct err *err)
{
	int64_t cutoff = r->all_nodes ? 0 : render_fraction(s->flat_sum, RENDER_EDGE_FRACTION);

	s->marks = calloc(profile_n_strings(r->profile) + 1, 1);
	if (!s->marks)
		return err_oom(err);
	for (size_t i = 0; i < s->shown; i++)
		s->marks[s->table.rows[i].name] |= RENDER_KEPT;
	return render_mark_inlined(r, (uint64_t)cutoff, s->marks, err);
}

static int render_top_summary(const struct render *r, const struct render_selection *s,
			      struct buf *out)
{
	int64_t total = s->table.total;
	size_t kept = s->table.len - s->n_dropped;
	char shown_label[UNITS_LABEL_LEN];
	char label[UNITS_LABEL_LEN];
	char share[UNITS_LABEL_LEN];
	int k;

	units_percentage(share, s->shown_flat, total);
	k = buf_printf(out, "Showing nodes accounting for %s, %s of %s total\n",
		       units_label(shown_label, s->shown_flat, r->unit, s->unit),
		       share + strspn(share, " "), units_label(label, total, r->unit, s->unit));
	if (k == 0 && total && s->n_dropped) {
		int64_t cutoff = render_fraction(total, RENDER_NODE_FRACTION);

		k = buf_printf(out, "Dropped %zu node%s (cum <= %s)\n", s->n_dropped,
			       s->n_dropped > 1 ? "s" : "",
			       units_label(label, cutoff, r->unit, s->unit));
	}
	if (k == 0 && !r->lines && total && s->shown && s->shown < kept)
		k = buf_printf(out, "Showing top %zu nodes out of %zu\n", s->shown, kept);
	return k;
}

static const char *render_row_colour(const struct profile_row *row, int64_t total)
{
	double share = total ? (double)render_abs(row->flat) / (double)total : 0;

	if (share >= 0.10)
		return TERM_RED;
	return share >= 0.02 ? TERM_YELLOW : "";
}

static int render_top_row(const struct render *r, const struct render_selection *s,
			  const struct profile_row *row, int64_t flat_sum, struct buf *out)
{
	uint8_t mark = s->marks[row->name];
	const char *inlined = !(mark & RENDER_INLINE) ? ""
			      : mark & RENDER_CALLED  ? " (partial-inline)"
						      : " (inline)";
	char flat[UNITS_LABEL_LEN];
	char cum[UNITS_LABEL_LEN];
	char shares[3][UNITS_LABEL_LEN];
	char numbers[256];
	int k;

	units_label(flat, row->flat, r->unit, s->unit);
	units_label(cum, row->cum, r->unit, s->unit);
	units_percentage(shares[0], row->flat, s->table.total);
	units_percentage(shares[1], flat_sum, s->table.total);
	units_percentage(shares[2], row->cum, s->table.total);
	(void)snprintf(numbers, sizeof(numbers), "%10s %s %s %10s %s", flat, shares[0], shares[1],
		       cum, shares[2]);
	k = render_coloured(r, render_row_colour(row, s->table.total), numbers, out);
	if (k == 0)
		k = buf_append_str(out, "  ");
	if (k == 0)
		k = render_name(r, row->name, strlen(numbers) + 2 + strlen(inlined), out);
	if (k == 0)
		k = buf_append_str(out, inlined);
	return k < 0 ? k : buf_append_byte(out, '\n');
}

static int render_top_rows(const struct render *r, const struct render_selection *s,
			   struct buf *out)
{
	char head[80];
	int64_t flat_sum = 0;
	int k;

	(void)snprintf(head, sizeof(head), "%10s %5s%% %5s%% %10s %5s%%", "flat", "flat", "sum",
		       "cum", "cum");
	k = render_coloured(r, TERM_BOLD, head, out);
	if (k == 0)
		k = buf_append_byte(out, '\n');
	for (size_t i = 0; k == 0 && i < s->shown; i++) {
		const struct profile_row *row = &s->table.rows[i];

		flat_sum = render_add(flat_sum, row->flat);
		k = render_top_row(r, s, row, flat_sum, out);
	}
	return k;
}

/* On a terminal: what the screen has no room for. */
static int render_top_more(const struct render *r, const struct render_selection *s,
			   struct buf *out)
{
	size_t more = s->table.len - s->n_dropped - s->shown;
	char callers[64] = "";

	if (!r->lines || !more)
		return 0;
	if (s->n_callers == more)
		(void)snprintf(callers, sizeof(callers), " with a flat of 0");
	else if (s->n_callers)
		(void)snprintf(callers, sizeof(callers), ", %zu of them with a flat of 0",
			       s->n_callers);
	return buf_printf(out, "%zu more function%s%s; use -n 0 to see all\n", more,
			  more > 1 ? "s" : "", callers);
}

int render_top(const struct render *r, struct buf *out, struct err *err)
{
	_cleanup_(render_selection_release) struct render_selection s = {};
	int k;

	k = profile_table_build(r->profile, r->type, &s.table, err);
	if (k < 0)
		return k;
	render_select_rows(r, &s);
	render_select_unit(r, &s);
	k = render_select_marks(r, &s, err);
	if (k == 0)
		k = render_header(r, s.table.total, s.unit, out);
	if (k == 0)
		k = render_top_summary(r, &s, out);
	if (k == 0)
		k = render_top_rows(r, &s, out);
	return k < 0 ? k : render_top_more(r, &s, out);
}
