/* src/cli/go/goroutines_top.c: goroutines as a table: how many wait where, and who created them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/go/goroutines.h"
#include "cli/render/report.h"
#include "cli/render/units.h"
#include "cli/term.h"

#define TOP_MIN_STATE 7
#define TOP_MIN_PLACE 24
#define TOP_MAX_PLACE 56
#define TOP_MIN_CREATOR 16
/* Count, share, longest wait, and the space between columns. */
#define TOP_NUMBERS 31
#define TOP_CHANGE 10

/* Of the columns whose width depends on their content. */
struct top_widths {
	size_t state;
	size_t place;
	size_t creator; /* 0: no limit */
};

/* "45s", "5m", "3h", "2d"; "-" if unknown. */
static void put_duration(uint64_t ns, char *dst, size_t len)
{
	uint64_t s = ns / NS_PER_SEC;

	if (ns == 0)
		(void)snprintf(dst, len, "-");
	else if (s < 60)
		(void)snprintf(dst, len, "%llus", (unsigned long long)s);
	else if (s < 3600)
		(void)snprintf(dst, len, "%llum", (unsigned long long)(s / 60));
	else if (s < 48 * (uint64_t)3600)
		(void)snprintf(dst, len, "%lluh", (unsigned long long)(s / 3600));
	else
		(void)snprintf(dst, len, "%llud", (unsigned long long)(s / 86400));
}

static int put_summary(const struct goroutines_view *v, struct buf *out)
{
	const struct golang_goroutines_stats *s = golang_goroutines_stats(v->goroutines);
	const char *separator = ": ";
	int r = buf_printf(out, "%llu goroutine%s", (unsigned long long)s->total,
			   s->total == 1 ? "" : "s");

	for (size_t i = 0; i < GOLANG_G_STATES && r == 0; i++) {
		if (!s->states[i])
			continue;
		r = buf_printf(out, "%s%llu %s", separator, (unsigned long long)s->states[i],
			       golang_g_state_name((enum golang_g_state)i));
		separator = ", ";
	}
	if (r == 0 && s->system)
		r = buf_printf(out, "; %llu runtime goroutines omitted",
			       (unsigned long long)s->system);
	if (r == 0 && v->shown != s->total)
		r = buf_printf(out, "; %llu shown", (unsigned long long)v->shown);
	return r < 0 ? r : buf_append_str(out, "\n");
}

static int put_row(const struct goroutines_view *v, const struct goroutines_row *row,
		   const struct top_widths *w, struct buf *out)
{
	_cleanup_(buf_release) struct buf place = {0};
	_cleanup_(buf_release) struct buf creator = {0};
	uint64_t count = goroutines_row_count(v, row);
	char percent[UNITS_LABEL_LEN], longest[32], change[32] = "";
	int r = goroutines_put_place(v->goroutines, row, &place);

	if (r >= 0)
		r = goroutines_put_creator(v->goroutines, row, &creator);
	if (r < 0 || !buf_cstr(&place) || !buf_cstr(&creator))
		return r < 0 ? r : -ENOMEM;
	put_duration(row->longest_ns, longest, sizeof(longest));
	if (v->n_readings > 1)
		(void)snprintf(change, sizeof(change), " %+9lld",
			       (long long)(count - row->counts[0]));
	r = buf_printf(out, "%9llu%s %7s  %-*s %7s  ", (unsigned long long)count, change,
		       units_percentage(percent, (int64_t)count, (int64_t)v->shown), (int)w->state,
		       goroutines_row_state(row), longest);
	if (r == 0 && !w->creator)
		return buf_printf(out, "%-*s  %s\n", (int)w->place, buf_cstr(&place),
				  buf_cstr(&creator));
	if (r == 0)
		r = term_fit(out, buf_cstr(&place), w->place, true);
	if (r == 0)
		r = buf_append_str(out, "  ");
	if (r == 0)
		r = term_shorten(out, buf_cstr(&creator), w->creator);
	return r < 0 ? r : buf_append_byte(out, '\n');
}

/* As wide as the widest shown, within limits, and such that a line fits the terminal. */
static struct top_widths measure(const struct goroutines_view *v,
				 const struct goroutines_row **rows, size_t n, size_t columns)
{
	_cleanup_(buf_release) struct buf place = {0};
	struct top_widths w = {.state = TOP_MIN_STATE, .place = TOP_MIN_PLACE};
	size_t used = TOP_NUMBERS + (v->n_readings > 1 ? TOP_CHANGE : 0), room;

	for (size_t i = 0; i < n; i++) {
		buf_clear(&place);
		w.state = MAX(w.state, strlen(goroutines_row_state(rows[i])));
		if (goroutines_put_place(v->goroutines, rows[i], &place) >= 0)
			w.place = MAX(w.place, MIN(place.len, (size_t)TOP_MAX_PLACE));
	}
	if (!columns)
		return w;
	used += w.state;
	room = MAX(columns, used + TOP_MIN_PLACE + TOP_MIN_CREATOR) - used;
	w.place = MIN(w.place, MAX(room * 3 / 5, (size_t)TOP_MIN_PLACE));
	w.creator = room - w.place;
	return w;
}

static int put_leaks(const struct goroutines_view *v, const struct goroutines_row **rows, size_t n,
		     struct buf *out)
{
	bool any = false;
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++) {
		const struct goroutines_row *row = rows[i];

		if (!goroutines_row_leaks(v, row))
			continue;
		if (!any)
			r = buf_append_str(
				out, "\nLikely leaks (only growing; no goroutine has left):\n");
		any = true;
		if (r == 0)
			r = buf_printf(out, "  %llu -> %llu  %s at ",
				       (unsigned long long)row->counts[0],
				       (unsigned long long)goroutines_row_count(v, row),
				       goroutines_row_state(row));
		if (r == 0)
			r = goroutines_put_place(v->goroutines, row, out);
		if (r >= 0 && row->created_by) {
			r = buf_append_str(out, ", created by ");
			if (r == 0)
				r = goroutines_put_creator(v->goroutines, row, out);
		}
		if (r >= 0)
			r = buf_append_str(out, "\n");
	}
	if (r >= 0 && !any && v->n_readings > 1)
		r = buf_append_str(out, "\nNo likely leaks.\n");
	return r;
}

int goroutines_top(const struct goroutines_view *v, const struct report *report, struct buf *out,
		   struct err *err)
{
	_cleanup_free_ const struct goroutines_row **rows = NULL;
	struct top_widths w;
	size_t n, shown;
	int r = goroutines_view_sorted(v, &rows, &n, err);

	if (r < 0)
		return r;
	shown = render_fit_rows(report->lines,
				report->max_nodes ? MIN(n, (size_t)report->max_nodes) : n);
	w = measure(v, rows, shown, report->columns);
	r = put_summary(v, out);
	if (r == 0)
		r = buf_printf(out, "%9s%s %7s  %-*s %7s  %-*s  %s\n", "COUNT",
			       v->n_readings > 1 ? "    CHANGE" : "", "SHARE", (int)w.state,
			       "STATE", "LONGEST", (int)w.place, "WHERE", "CREATED BY");
	for (size_t i = 0; i < shown && r >= 0; i++)
		r = put_row(v, rows[i], &w, out);
	if (r >= 0 && shown < n)
		r = buf_printf(out, "%zu more rows; use -n 0 to see all\n", n - shown);
	if (r >= 0)
		r = put_leaks(v, rows, n, out);
	return r < 0 ? err_set(err, r, "cannot write the table: %s", strerror(-r)) : 0;
}
