/*
 * src/cli/term.h: writing to a terminal: width, colours, progress, and control characters in names
 * chosen by targets.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Columns of the terminal behind fd; 0 if it is not a terminal: do not truncate anything. */
size_t term_width(int fd);
/* Likewise its lines. */
size_t term_height(int fd);
/* A terminal with cursor control: TERM is set and not "dumb". */
bool term_is_screen(int fd);
/* The same, and NO_COLOR unset or empty. */
bool term_wants_colour(int fd);

/*
 * Text in terminal columns, for sanitized text. Characters that are invalid, have no width or
 * change the direction show as '?'; East Asian wide characters take two columns.
 */
size_t term_cells(const char *text);
/*
 * Appends the text in exactly this many columns: padded or cut on the right; with keep_end, cut on
 * the left. An ellipsis marks a cut.
 */
int term_fit(struct buf *out, const char *text, size_t cells, bool keep_end);
/* Appends the text in at most this many columns: one that is too long loses part of its middle. */
int term_shorten(struct buf *out, const char *text, size_t cells);

/*
 * On stderr, if that is a screen: what is going on, and with a total also how far it is. The line
 * replaces the one before; NULL erases it.
 */
void term_status(const char *what);
void term_progress(const char *what, uint64_t done_ns, uint64_t total_ns);

#define TERM_ELLIPSIS "\342\200\246"
#define TERM_BOLD "\033[1m"
#define TERM_DIM "\033[2m"
#define TERM_REVERSE "\033[7m"
#define TERM_RED "\033[31m"
#define TERM_GREEN "\033[32m"
#define TERM_YELLOW "\033[33m"
#define TERM_RESET "\033[0m"
