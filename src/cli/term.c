/* src/cli/term.c: see term.h. */
#include "cli/term.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"

#define TERM_DEFAULT_WIDTH 80
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

bool term_wants_colour(int fd)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	if (no_color && *no_color)
		return false;
	if (!term || !*term || strcmp(term, "dumb") == 0)
		return false;
	return isatty(fd);
}

void term_sanitize(char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c < 0x20 || c == 0x7f) {
			text[i] = '?';
		} else if (c == 0xc2 && i + 1 < len && (text[i + 1] & 0xe0) == 0x80) {
			/* U+0080 to U+009F: some terminals obey them like ESC sequences. */
			text[i] = '?';
			text[i + 1] = '?';
		}
	}
}

void term_progress(const char *what, uint64_t done_ns, uint64_t total_ns)
{
	char bar[TERM_BAR_CELLS + 1];
	size_t cells;

	if (!isatty(STDERR_FILENO))
		return;
	if (done_ns >= total_ns) {
		(void)fputs("\r\033[K", stderr);
		return;
	}
	cells = (size_t)((double)done_ns / (double)total_ns * TERM_BAR_CELLS);
	for (size_t i = 0; i < TERM_BAR_CELLS; i++)
		bar[i] = i < cells ? '#' : '.';
	bar[TERM_BAR_CELLS] = '\0';
	(void)fprintf(stderr, "\r%s [%s] %.0fs left \033[K", what, bar,
		      (double)(total_ns - done_ns) / NS_PER_SEC);
	(void)fflush(stderr);
}
