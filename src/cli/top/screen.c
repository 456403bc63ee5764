/*
 * src/cli/top/screen.c: the screen of `sonde top` as bytes; see ui.h.
 *
 * It is drawn over the old screen, line by line, each cleared after its text, in one write: nothing
 * flickers. The terminal does not wrap. Columns disappear in a narrow window, the lines around the
 * table in a low one.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/term.h"
#include "cli/top/ui.h"

#define SCREEN_HOME "\033[H"
#define SCREEN_LINE_END "\033[K"
#define SCREEN_REST_END "\033[J"
#define SCREEN_NEXT "\r\n"
/* A wider window gains nothing. */
#define SCREEN_MAX_COLUMNS 1000

/* Shares from which a row is highlighted. */
#define SHARE_HOT 0.25
#define SHARE_WARM 0.10

/* How the window is divided. */
struct layout {
	size_t columns;
	size_t head; /* lines above the table's own heading */
	size_t rows;
	size_t foot;
	bool flat;
	bool percent;
	bool cum;
	size_t name;  /* columns */
	size_t where; /* 0: none */
};

static size_t layout_foot(const struct top_ui *ui)
{
	if (ui->lines < 6)
		return ui->typing ? 1 : 0;
	if (ui->lines < 10)
		return 1;
	return ui->lines < 14 ? 2 : 3;
}

static struct layout layout_of(const struct top_ui *ui)
{
	struct layout l = {.columns = MIN(ui->columns, (size_t)SCREEN_MAX_COLUMNS)};
	size_t used = 1, rest;

	l.head = ui->lines >= 10 ? 3 : ui->lines >= 5 ? 1 : 0;
	l.foot = layout_foot(ui);
	l.rows = ui->lines > l.head + 1 + l.foot ? ui->lines - l.head - 1 - l.foot : 0;
	l.flat = l.columns >= 20;
	l.cum = l.columns >= 40;
	l.percent = l.columns >= 60;
	used += l.flat ? TOP_VALUE_CELLS + 2 : 0;
	used += l.cum ? 1 + TOP_VALUE_CELLS : 0;
	used += l.percent ? 2 * (1 + TOP_SHARE_CELLS) : 0;
	rest = l.columns > used ? l.columns - used : 0;
	if (l.columns >= 72)
		l.where = MIN(MAX(rest * 3 / 10, (size_t)10), (size_t)32);
	l.name = rest - (l.where ? l.where + 2 : 0);
	return l;
}

size_t top_screen_rows(const struct top_ui *ui)
{
	return layout_of(ui).rows;
}

static int put(struct buf *out, bool colour, const char *code)
{
	return colour ? buf_append_str(out, code) : 0;
}

/*
 * Text cut at the right edge. After a full line there is nothing to clear: it would erase the last
 * character, where the cursor stays.
 */
static int put_text(const struct layout *l, struct buf *out, const char *text)
{
	size_t cells = term_cells(text);
	int r = term_fit(out, text, MIN(cells, l->columns), false);

	return r < 0 || cells >= l->columns ? r : buf_append_str(out, SCREEN_LINE_END);
}

static int put_line(const struct layout *l, struct buf *out, const char *text)
{
	int r = put_text(l, out, text);

	return r < 0 ? r : buf_append_str(out, SCREEN_NEXT);
}

static int put_right(struct buf *out, const char *text, size_t cells)
{
	return buf_printf(out, " %*s", (int)cells, text);
}

/* "a/b/c.(*T).f" becomes "c.(*T).f" if space is short. */
static const char *short_name(const char *name)
{
	size_t len = strcspn(name, "[(");
	const char *start = name;

	for (size_t i = 0; i < len; i++)
		if (name[i] == '/')
			start = name + i + 1;
	return start;
}

static int put_name(struct buf *out, const char *name, size_t cells)
{
	if (term_cells(name) > cells)
		name = short_name(name);
	return term_fit(out, name, cells, true);
}

static const char *row_colour(const struct top_ui *ui, const struct top_row *row)
{
	int64_t value = ui->by_total || ui->callers_of[0] ? row->cum : row->flat;
	double share = ui->table.total ? (double)value / (double)ui->table.total : 0;

	if (share >= SHARE_HOT)
		return TERM_RED;
	return share >= SHARE_WARM ? TERM_YELLOW : "";
}

static int put_value(const struct top_ui *ui, const struct layout *l, int64_t value,
		     const char *colour, struct buf *out)
{
	int r = put(out, ui->colour, colour);

	if (r == 0)
		r = buf_printf(out, "%*s", TOP_VALUE_CELLS,
			       top_value(value, ui->kind, ui->unit).text);
	if (r == 0 && colour[0])
		r = put(out, ui->colour, TERM_RESET);
	if (r == 0 && l->percent)
		r = put_right(out, top_share(value, ui->table.total).text, TOP_SHARE_CELLS);
	return r;
}

static int put_row(const struct top_ui *ui, const struct layout *l, size_t i, struct buf *out)
{
	const struct top_row *row = &ui->table.rows[i];
	bool selected = i == ui->selected, by_cum = ui->by_total || ui->callers_of[0];
	/* Colours inside would interrupt the bar. */
	const char *colour = selected ? "" : row_colour(ui, row);
	int r = selected ? put(out, ui->colour, TERM_REVERSE) : 0;

	if (r == 0)
		r = buf_append_byte(out, selected ? '>' : ' ');
	if (r == 0 && l->flat)
		r = put_value(ui, l, row->flat, by_cum ? "" : colour, out);
	if (r == 0 && l->cum)
		r = buf_append_byte(out, ' ');
	if (r == 0 && l->cum)
		r = put_value(ui, l, row->cum, by_cum ? colour : "", out);
	if (r == 0 && l->flat)
		r = buf_append_str(out, "  ");
	if (r == 0)
		r = put_name(out, row->name, l->name);
	if (r == 0 && l->where)
		r = buf_append_str(out, "  ");
	if (r == 0 && l->where && !selected)
		r = put(out, ui->colour, TERM_DIM);
	if (r == 0 && l->where)
		r = term_fit(out, row->where, l->where, false);
	if (r == 0)
		r = put(out, ui->colour, TERM_RESET);
	return r < 0 ? r : buf_append_str(out, SCREEN_NEXT);
}

static int put_heading(const struct top_ui *ui, const struct layout *l, struct buf *out)
{
	static const char *const names[TOP_GROUPS] = {"FUNCTION", "SERVICE", "PROCESS"};
	int r = put(out, ui->colour, TERM_BOLD);

	if (r == 0 && !l->flat)
		r = buf_append_byte(out, ' ');
	if (r == 0 && l->flat)
		r = put_right(out, top_column(ui->kind, false), TOP_VALUE_CELLS);
	if (r == 0 && l->percent)
		r = put_right(out, "FLAT%", TOP_SHARE_CELLS);
	if (r == 0 && l->cum)
		r = put_right(out, top_column(ui->kind, true), TOP_VALUE_CELLS);
	if (r == 0 && l->percent)
		r = put_right(out, "CUM%", TOP_SHARE_CELLS);
	if (r == 0 && l->flat)
		r = buf_append_str(out, "  ");
	if (r == 0)
		r = term_fit(out, ui->callers_of[0] ? "CALLER" : names[ui->group], l->name, false);
	if (r == 0 && l->where)
		r = buf_append_str(out, "  ");
	if (r == 0 && l->where)
		r = term_fit(out, "WHERE", l->where, false);
	if (r == 0)
		r = put(out, ui->colour, TERM_RESET);
	return r < 0 ? r : buf_append_str(out, SCREEN_NEXT);
}

/* "Live heap by function, flat first, of service api, matching 'json'". */
static int put_title(const struct top_ui *ui, const struct layout *l, struct buf *out)
{
	static const char *const groups[TOP_GROUPS] = {"function", "service", "process"};
	_cleanup_(buf_release) struct buf text = {};
	/* CPU is shown in cores, whatever the unit of the others. */
	enum top_unit unit = ui->kind == TOP_CPU ? TOP_BYTES : ui->unit;
	int r = buf_printf(&text, "%s by ", top_type(ui->kind, unit)->title);

	if (r == 0 && ui->callers_of[0])
		r = buf_printf(&text, "callers of %s", short_name(ui->callers_of));
	else if (r == 0)
		r = buf_printf(&text, "%s, %s first", groups[ui->group],
			       ui->by_total ? "cum" : "flat");
	if (r == 0 && ui->service[0])
		r = buf_printf(&text, ", service %s", ui->service);
	if (r == 0 && ui->pid)
		r = buf_printf(&text, ", process %d", (int)ui->pid);
	if (r == 0 && ui->filter[0])
		r = buf_printf(&text, ", matching '%s': %zu of %zu", ui->filter, ui->table.len,
			       ui->table.len + ui->table.hidden);
	if (r < 0 || !buf_cstr(&text))
		return -ENOMEM;
	return put_line(l, out, buf_cstr(&text));
}

static int put_head(const struct top_ui *ui, const struct layout *l, struct buf *out)
{
	_cleanup_(buf_release) struct buf sums = {};
	char line[192];
	int r = 0;

	if (l->head > 1) {
		(void)snprintf(line, sizeof(line), "sonde top  %s  every %gs%s%s", ui->clock,
			       (double)ui->interval_ns / (double)NS_PER_SEC,
			       ui->paused ? "  PAUSED (p resumes)" : "",
			       top_describe_cost(&ui->status).text);
		r = put(out, ui->colour, TERM_BOLD);
		if (r == 0)
			r = put_line(l, out, line);
		if (r == 0)
			r = put(out, ui->colour, TERM_RESET);
		if (r == 0)
			r = top_describe_sums(&ui->status, &sums);
		if (r == 0)
			r = buf_cstr(&sums) ? put_line(l, out, buf_cstr(&sums)) : -ENOMEM;
	}
	if (r == 0 && l->head)
		r = put_title(ui, l, out);
	return r;
}

static int put_table(const struct top_ui *ui, const struct layout *l, struct buf *out)
{
	size_t n = ui->max_rows ? MIN(ui->max_rows, ui->table.len) : ui->table.len;
	const struct top_view view = top_ui_view(ui);
	char nothing[160];
	int r = put_heading(ui, l, out);

	for (size_t line = 0; line < l->rows && r == 0; line++) {
		nothing[0] = '\0';
		if (line == 0 && n == 0)
			top_describe_nothing(&view, &ui->status, &ui->table, nothing,
					     sizeof(nothing));
		if (ui->offset + line < n)
			r = put_row(ui, l, ui->offset + line, out);
		else
			r = put_line(l, out, nothing);
	}
	return r;
}

/* As many of the sentences as fit into this many lines. */
static int put_status(const struct top_ui *ui, const struct layout *l, size_t lines,
		      struct buf *out)
{
	_cleanup_(buf_release) struct buf text = {};
	char sentence[512];
	int r = 0;

	for (size_t i = 0; top_describe_status(&ui->status, i, sentence, sizeof(sentence)); i++) {
		size_t used = buf_cstr(&text) ? term_cells(buf_cstr(&text)) : 0;

		text_clean(sentence, strlen(sentence));
		if (used && lines > 1 && used + 3 + strlen(sentence) > l->columns) {
			r = put_line(l, out, buf_cstr(&text));
			buf_clear(&text);
			used = 0;
			lines--;
		}
		if (r == 0)
			r = buf_printf(&text, "%s%s", used ? " | " : "", sentence);
		if (r < 0)
			return r;
	}
	if (!buf_cstr(&text))
		return -ENOMEM;
	for (; lines && r == 0; lines--) {
		r = put_line(l, out, buf_cstr(&text));
		buf_clear(&text);
	}
	return r;
}

static int put_keys(const struct top_ui *ui, const struct layout *l, struct buf *out)
{
	/* The longest that fits. */
	static const char *const keys[] = {
		("c/a/l cpu/alloc/live  o objects  s sort  g group  / filter  Enter callers  "
		 "p pause  ? help  q quit"),
		"c/a/l cpu/alloc/live  s sort  g group  / filter  Enter callers  ? help",
		"c/a/l cpu/alloc/live  s sort  g group  ? help",
		"c a l s g / Enter  ? help",
	};
	char text[128];
	size_t i = 0;

	while (i + 1 < ARRAY_SIZE(keys) && strlen(keys[i]) > l->columns)
		i++;
	if (ui->typing)
		(void)snprintf(text, sizeof(text), "Filter: %s_", ui->filter);
	else
		(void)snprintf(text, sizeof(text), "%s", keys[i]);
	return put_text(l, out, text);
}

static int put_foot(const struct top_ui *ui, const struct layout *l, struct buf *out)
{
	int r = 0;

	if (!l->foot)
		return 0;
	if (l->foot > 1)
		r = put(out, ui->colour, ui->status.trouble[0] ? TERM_RED : TERM_DIM);
	if (r == 0 && l->foot > 1)
		r = put_status(ui, l, l->foot - 1, out);
	if (r == 0)
		r = put(out, ui->colour, TERM_RESET);
	return r < 0 ? r : put_keys(ui, l, out);
}

static int put_help(const struct top_ui *ui, const struct layout *l, struct buf *out)
{
	static const char *const lines[] = {
		"c            CPU time, in cores: all languages, kernel included",
		"a            allocations per second",
		"l            live memory",
		"o            objects or bytes",
		"s            sort by flat (function itself) or cum (including callees)",
		"g            group by function, service or process",
		"Enter        callers of a function; functions of a service or process",
		"Esc          back",
		"/            filter by name; Esc clears the filter",
		"p            pause the display; collection continues",
		"+ -          longer, shorter interval",
		"arrows, PgUp, PgDn, Home, End     move",
		"h ?          this help",
		"q            quit",
		"",
		"How much a Go process allocates is counted by its runtime; by which function,",
		"is known from samples of the last seconds.",
	};
	int r = put_line(l, out, "sonde top keys; press any key to return");

	for (size_t i = 0; i < ARRAY_SIZE(lines) && i + 2 < ui->lines && r == 0; i++)
		r = put_line(l, out, lines[i]);
	return r;
}

int top_screen_draw(struct top_ui *ui, struct buf *out)
{
	const struct layout l = layout_of(ui);
	int r = buf_append_str(out, SCREEN_HOME);

	if (r == 0 && ui->help) {
		r = put_help(ui, &l, out);
		return r < 0 ? r : buf_append_str(out, SCREEN_REST_END);
	}
	if (r == 0)
		r = put_head(ui, &l, out);
	if (r == 0)
		r = put_table(ui, &l, out);
	if (r == 0)
		r = put_foot(ui, &l, out);
	/* The window is full; one more line would scroll it. */
	if (r == 0 && out->len >= strlen(SCREEN_NEXT) && !l.foot)
		out->len -= strlen(SCREEN_NEXT);
	return r;
}
