/* src/cli/term.c: see term.h. */
#include "cli/term.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define TERM_DEFAULT_WIDTH 80
#define TERM_DEFAULT_HEIGHT 24
#define TERM_BAR_CELLS 30

size_t term_width(int fd)
{
	struct winsize ws;

	if (!isatty(fd))
		return 0;
	if (ioctl(fd, TIOCGWINSZ, &ws) < 0 || ws.ws_col == 0)
		return TERM_DEFAULT_WIDTH;
	return ws.ws_col;
}

size_t term_height(int fd)
{
	struct winsize ws;

	if (!isatty(fd))
		return 0;
	if (ioctl(fd, TIOCGWINSZ, &ws) < 0 || ws.ws_row == 0)
		return TERM_DEFAULT_HEIGHT;
	return ws.ws_row;
}

bool term_is_screen(int fd)
{
	const char *term = getenv("TERM");

	return term && *term && strcmp(term, "dumb") != 0 && isatty(fd);
}

bool term_wants_colour(int fd)
{
	const char *no_color = getenv("NO_COLOR");

	return !(no_color && *no_color) && term_is_screen(fd);
}

struct term_range {
	uint32_t first;
	uint32_t last;
};

static bool term_in(const struct term_range *ranges, size_t n, uint32_t c)
{
	for (size_t i = 0; i < n; i++)
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	return false;
}

/* Columns of a character; 0 if it must not reach the terminal. */
static size_t term_char_cells(uint32_t c)
{
	/* Combining marks, joiners, directions, separators, variations, surrogates, private use. */
	static const struct term_range none[] = {
		{0x0, 0x1f},	  {0x7f, 0x9f},	    {0xad, 0xad},     {0x300, 0x36f},
		{0x483, 0x489},	  {0x591, 0x5c7},   {0x600, 0x605},   {0x610, 0x61c},
		{0x64b, 0x65f},	  {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
		{0x20d0, 0x20f0}, {0x302a, 0x302f}, {0xd800, 0xf8ff}, {0xfe00, 0xfe0f},
		{0xfe20, 0xfe2f}, {0xfeff, 0xfeff}, {0xfff0, 0xffff}, {0xe0000, 0x10ffff},
	};
	static const struct term_range wide[] = {
		{0x1100, 0x115f},   {0x2e80, 0xa4cf},	{0xa960, 0xa97f}, {0xac00, 0xd7a3},
		{0xf900, 0xfaff},   {0xfe30, 0xfe6f},	{0xff01, 0xff60}, {0xffe0, 0xffe6},
		{0x1f300, 0x1faff}, {0x20000, 0x3fffd},
	};

	if (c >= 0x20 && c < 0x7f)
		return 1;
	if (term_in(none, ARRAY_SIZE(none), c))
		return 0;
	return term_in(wide, ARRAY_SIZE(wide), c) ? 2 : 1;
}

/* One character and how many columns it takes. */
struct term_char {
	const char *bytes;
	size_t len; /* bytes in the text */
	size_t cells;
	bool bad; /* to be shown as '?' */
};

/* The length of a character by its first byte; 0 if invalid. */
static size_t term_utf8_len(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first < 0xe0)
		return 2;
	if (first >= 0xe0 && first < 0xf0)
		return 3;
	return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

static struct term_char term_char_at(const char *text)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	struct term_char c = {.bytes = text, .len = 1, .cells = 1, .bad = true};
	size_t len = term_utf8_len((unsigned char)text[0]);
	uint32_t code = (unsigned char)text[0];

	if (len == 0)
		return c;
	if (len > 1)
		code &= 0x7fU >> len;
	for (size_t i = 1; i < len; i++) {
		/* The end of the text is not a continuation byte either. */
		if ((text[i] & 0xc0) != 0x80)
			return c;
		code = code << 6 | (text[i] & 0x3f);
	}
	c.len = len;
	if (code < smallest[len] || term_char_cells(code) == 0)
		return c;
	c.cells = term_char_cells(code);
	c.bad = false;
	return c;
}

size_t term_cells(const char *text)
{
	size_t cells = 0;

	while (*text) {
		struct term_char c = term_char_at(text);

		cells += c.cells;
		text += c.len;
	}
	return cells;
}

static int term_put(struct buf *out, const struct term_char *c)
{
	return c->bad ? buf_append_byte(out, '?') : buf_append(out, c->bytes, c->len);
}

/* Appends what fits into this many columns; their number is added to *used. */
static int term_put_start(struct buf *out, const char *text, size_t cells, size_t *used)
{
	int r = 0;

	while (*text && r == 0) {
		struct term_char c = term_char_at(text);

		if (c.cells > cells)
			break;
		r = term_put(out, &c);
		cells -= c.cells;
		*used += c.cells;
		text += c.len;
	}
	return r;
}

/* The part at the end that fits into this many columns. */
static const char *term_end_of(const char *text, size_t cells)
{
	size_t width = term_cells(text);

	while (width > cells) {
		struct term_char c = term_char_at(text);

		width -= c.cells;
		text += c.len;
	}
	return text;
}

int term_fit(struct buf *out, const char *text, size_t cells, bool keep_end)
{
	bool cut = term_cells(text) > cells;
	size_t used = cut;
	int r = 0;

	if (cells == 0)
		return 0;
	if (cut && keep_end) {
		r = buf_append_str(out, TERM_ELLIPSIS);
		text = term_end_of(text, cells - 1);
	}
	if (r == 0)
		r = term_put_start(out, text, cells - cut, &used);
	if (cut && !keep_end && r == 0)
		r = buf_append_str(out, TERM_ELLIPSIS);
	for (; used < cells && r == 0; used++)
		r = buf_append_byte(out, ' ');
	return r;
}

int term_shorten(struct buf *out, const char *text, size_t cells)
{
	size_t used = 0;
	int r;

	if (term_cells(text) <= cells || cells == 0)
		return term_put_start(out, text, cells, &used);
	/* The end of a qualified name says more than its start. */
	r = term_put_start(out, text, (cells - 1) / 3, &used);
	if (r == 0)
		r = buf_append_str(out, TERM_ELLIPSIS);
	cells -= used + 1;
	return r < 0 ? r : term_put_start(out, term_end_of(text, cells), cells, &used);
}

void term_status(const char *what)
{
	if (!term_is_screen(STDERR_FILENO))
		return;
	(void)fprintf(stderr, "\r%s%s\033[K", what ? what : "", what ? " ..." : "");
	(void)fflush(stderr);
}

void term_progress(const char *what, uint64_t done_ns, uint64_t total_ns)
{
	char bar[TERM_BAR_CELLS + 1];
	size_t cells = (size_t)((double)done_ns / (double)total_ns * TERM_BAR_CELLS);

	if (!term_is_screen(STDERR_FILENO))
		return;
	for (size_t i = 0; i < TERM_BAR_CELLS; i++)
		bar[i] = i < cells ? '#' : '.';
	bar[TERM_BAR_CELLS] = '\0';
	(void)fprintf(stderr, "\r%s [%s] %.0f/%g s\033[K", what, bar,
		      floor((double)done_ns / NS_PER_SEC), (double)total_ns / NS_PER_SEC);
	(void)fflush(stderr);
}
