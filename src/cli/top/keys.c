/* src/cli/top/keys.c: the keys of `sonde top`; see ui.h. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/top/ui.h"

#define CTRL(c) ((c)&0x1f)

void top_ui_release(struct top_ui *ui)
{
	top_table_release(&ui->table);
}

struct top_view top_ui_view(const struct top_ui *ui)
{
	return (struct top_view){
		.kind = ui->kind,
		.unit = ui->kind == TOP_CPU ? TOP_BYTES : ui->unit,
		.group = ui->group,
		.by_total = ui->by_total,
		.filter = ui->filter,
		.callers_of = ui->callers_of[0] ? ui->callers_of : NULL,
		.service = ui->service[0] ? ui->service : NULL,
		.pid = ui->pid,
	};
}

static size_t ui_n_rows(const struct top_ui *ui)
{
	return ui->max_rows ? MIN(ui->max_rows, ui->table.len) : ui->table.len;
}

static void ui_scroll(struct top_ui *ui)
{
	size_t n = ui_n_rows(ui), fit = MAX(top_screen_rows(ui), (size_t)1);

	ui->selected = n ? MIN(ui->selected, n - 1) : 0;
	if (ui->selected < ui->offset)
		ui->offset = ui->selected;
	if (ui->selected >= ui->offset + fit)
		ui->offset = ui->selected - fit + 1;
	/* No empty lines below while rows are hidden above. */
	if (ui->offset + fit > n)
		ui->offset = n > fit ? n - fit : 0;
}

void top_ui_take_table(struct top_ui *ui, struct top_table *table)
{
	top_table_release(&ui->table);
	ui->table = *table;
	*table = (struct top_table){};
	if (!ui->pinned[0])
		ui->selected = 0;
	for (size_t i = 0; ui->pinned[0] && i < ui_n_rows(ui); i++) {
		if (strcmp(ui->table.rows[i].name, ui->pinned) == 0) {
			ui->selected = i;
			break;
		}
	}
	ui_scroll(ui);
}

/* The parameter and the last byte after ESC [ or ESC O. */
static int key_of_sequence(int number, uint8_t last)
{
	switch (last) {
	case 'A':
		return TOP_KEY_UP;
	case 'B':
		return TOP_KEY_DOWN;
	case 'C':
		return TOP_KEY_RIGHT;
	case 'D':
		return TOP_KEY_LEFT;
	case 'H':
		return TOP_KEY_HOME;
	case 'F':
		return TOP_KEY_END;
	case 'M':
		return TOP_KEY_ENTER;
	case '~':
		break;
	default:
		return TOP_KEY_NONE;
	}
	switch (number) {
	case 1:
	case 7:
		return TOP_KEY_HOME;
	case 4:
	case 8:
		return TOP_KEY_END;
	case 5:
		return TOP_KEY_PAGE_UP;
	case 6:
		return TOP_KEY_PAGE_DOWN;
	default:
		return TOP_KEY_NONE;
	}
}

size_t top_key_decode(const uint8_t *bytes, size_t len, bool at_end, int *ret_key)
{
	size_t i = 2;
	int number = 0;

	if (len == 0)
		return 0;
	if (bytes[0] != '\033') {
		*ret_key = bytes[0];
		if (bytes[0] == '\r' || bytes[0] == '\n')
			*ret_key = TOP_KEY_ENTER;
		else if (bytes[0] == 0x7f || bytes[0] == '\b')
			*ret_key = TOP_KEY_BACKSPACE;
		return 1;
	}
	if (len == 1 && !at_end)
		return 0;
	*ret_key = TOP_KEY_ESCAPE;
	if (len == 1 || (bytes[1] != '[' && bytes[1] != 'O'))
		return 1;
	for (; i < len && bytes[i] >= 0x20 && bytes[i] < 0x40; i++)
		if (bytes[i] >= '0' && bytes[i] <= '9' && number < 100)
			number = number * 10 + bytes[i] - '0';
	if (i == len) {
		/* Truncated: not a known key. */
		*ret_key = TOP_KEY_NONE;
		return at_end || len > 16 ? len : 0;
	}
	*ret_key = key_of_sequence(number, bytes[i]);
	return i + 1;
}

static unsigned int ui_move(struct top_ui *ui, long by)
{
	size_t n = ui_n_rows(ui);
	long to = (long)ui->selected + by;

	if (!n)
		return 0;
	ui->selected = to < 0 ? 0 : MIN((size_t)to, n - 1);
	/* A selection on the first row stays on the first row. */
	ui->pinned[0] = '\0';
	if (ui->selected)
		(void)snprintf(ui->pinned, sizeof(ui->pinned), "%s",
			       ui->table.rows[ui->selected].name);
	ui_scroll(ui);
	return TOP_DO_DRAW;
}

static unsigned int ui_change(struct top_ui *ui)
{
	ui->pinned[0] = '\0';
	ui->selected = ui->offset = 0;
	return TOP_DO_TABLE | TOP_DO_DRAW;
}

static unsigned int ui_enter(struct top_ui *ui)
{
	const struct top_row *row;

	if (ui->selected >= ui_n_rows(ui))
		return 0;
	row = &ui->table.rows[ui->selected];
	if (ui->group == TOP_FUNCTIONS || ui->callers_of[0]) {
		/* Names in brackets are not functions. */
		if (row->name[0] == '(')
			return 0;
		(void)snprintf(ui->callers_of, sizeof(ui->callers_of), "%s", row->name);
		ui->filter[0] = '\0';
		return ui_change(ui);
	}
	ui->group_before = ui->group;
	if (ui->group == TOP_PROCESSES)
		ui->pid = row->pid;
	else
		(void)snprintf(ui->service, sizeof(ui->service), "%s", row->service);
	ui->filter[0] = '\0';
	ui->group = TOP_FUNCTIONS;
	return ui_change(ui);
}

/* One step back. */
static unsigned int ui_escape(struct top_ui *ui)
{
	if (ui->filter[0]) {
		ui->filter[0] = '\0';
	} else if (ui->callers_of[0]) {
		ui->callers_of[0] = '\0';
	} else if (ui->service[0] || ui->pid) {
		ui->service[0] = '\0';
		ui->pid = 0;
		ui->group = ui->group_before;
	} else {
		return 0;
	}
	return ui_change(ui);
}

static unsigned int ui_type(struct top_ui *ui, int key)
{
	size_t len = strlen(ui->filter);

	if (key == TOP_KEY_ENTER || key == TOP_KEY_ESCAPE) {
		ui->typing = false;
		if (key == TOP_KEY_ESCAPE)
			memcpy(ui->filter, ui->filter_before, sizeof(ui->filter));
		return ui_change(ui);
	}
	if (key == CTRL('U')) {
		ui->filter[0] = '\0';
	} else if (key == TOP_KEY_BACKSPACE) {
		/* Removes all bytes of a character. */
		while (len && (ui->filter[len - 1] & 0xc0) == 0x80)
			len--;
		ui->filter[len ? len - 1 : 0] = '\0';
	} else if (key >= ' ' && key < 256 && len + 1 < sizeof(ui->filter)) {
		ui->filter[len] = (char)key;
		ui->filter[len + 1] = '\0';
	} else {
		return 0;
	}
	return ui_change(ui);
}

static unsigned int ui_interval(struct top_ui *ui, bool longer)
{
	static const unsigned int steps_ms[] = {500, 1000, 2000, 5000, 10000, 15000, 30000, 60000};
	uint64_t now_ms = ui->interval_ns / NS_PER_MS, to_ms = 0;

	for (size_t i = 0; i < ARRAY_SIZE(steps_ms); i++) {
		if (longer && steps_ms[i] > now_ms && !to_ms)
			to_ms = steps_ms[i];
		if (!longer && steps_ms[i] < now_ms)
			to_ms = steps_ms[i];
	}
	if (!to_ms)
		return 0;
	ui->interval_ns = to_ms * NS_PER_MS;
	return TOP_DO_INTERVAL | TOP_DO_DRAW;
}

static unsigned int ui_navigate(struct top_ui *ui, int key)
{
	long page = (long)MAX(top_screen_rows(ui), (size_t)1);

	switch (key) {
	case TOP_KEY_UP:
	case 'k':
		return ui_move(ui, -1);
	case TOP_KEY_DOWN:
	case 'j':
		return ui_move(ui, 1);
	case TOP_KEY_PAGE_UP:
		return ui_move(ui, -page);
	case TOP_KEY_PAGE_DOWN:
	case ' ':
		return ui_move(ui, page);
	case TOP_KEY_HOME:
		return ui_move(ui, -(long)ui->table.len);
	case TOP_KEY_END:
		return ui_move(ui, (long)ui->table.len);
	case TOP_KEY_ENTER:
	case TOP_KEY_RIGHT:
		return ui_enter(ui);
	case TOP_KEY_ESCAPE:
	case TOP_KEY_LEFT:
	case TOP_KEY_BACKSPACE:
		return ui_escape(ui);
	default:
		return 0;
	}
}

static unsigned int ui_choose(struct top_ui *ui, int key)
{
	switch (key) {
	case 'c':
		ui->kind = TOP_CPU;
		break;
	case 'a':
		ui->kind = TOP_ALLOC;
		break;
	case 'l':
		ui->kind = TOP_LIVE;
		break;
	case 'o':
		ui->unit = ui->unit == TOP_BYTES ? TOP_OBJECTS : TOP_BYTES;
		break;
	case 's':
		ui->by_total = !ui->by_total;
		break;
	case 'g':
		ui->callers_of[0] = '\0';
		ui->group = (ui->group + 1) % TOP_GROUPS;
		break;
	default:
		return ui_navigate(ui, key);
	}
	return ui_change(ui);
}

unsigned int top_ui_press(struct top_ui *ui, int key)
{
	if (ui->typing)
		return ui_type(ui, key);
	if (ui->help) {
		ui->help = false;
		return TOP_DO_DRAW;
	}
	switch (key) {
	case 'q':
	case 'Q':
		return TOP_DO_QUIT;
	case 'h':
	case '?':
		ui->help = true;
		return TOP_DO_DRAW;
	case 'p':
		ui->paused = !ui->paused;
		return TOP_DO_PAUSE | TOP_DO_TABLE | TOP_DO_DRAW;
	case '/':
		ui->typing = true;
		memcpy(ui->filter_before, ui->filter, sizeof(ui->filter_before));
		return TOP_DO_DRAW;
	case CTRL('L'):
		return TOP_DO_CLEAR | TOP_DO_DRAW;
	case '+':
	case '-':
		return ui_interval(ui, key == '+');
	default:
		return ui_choose(ui, key);
	}
}
