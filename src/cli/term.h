/*
 * src/cli/term.h: what is special about writing to a terminal: width, colours, progress, and
 * control characters that a target may have put into its names.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Columns of the terminal behind fd; 0 when it is none, which means: do not fit anything. */
size_t term_width(int fd);
/* A terminal that can be drawn on: TERM is set, and not "dumb". */
bool term_is_screen(int fd);
/* The same, and NO_COLOR unset or empty. */
bool term_wants_colour(int fd);

/* Replaces control characters, C1 ones in UTF-8 too, by '?'; newlines as well. */
void term_sanitize(char *text, size_t len);

/*
 * Text in columns of a terminal. Takes text that is sanitized; what is not UTF-8, has no width, or
 * turns the direction of writing is shown as '?', and East Asian wide characters take two columns.
 */
size_t term_cells(const char *text);
/*
 * Appends the text in exactly so many columns: padded on the right, or cut there; with keep_end cut
 * on the left. Where something is missing there is a '~'.
 */
int term_fit(struct buf *out, const char *text, size_t cells, bool keep_end);

/* A bar on stderr, only where that is a terminal. Call with done == total to wipe it. */
void term_progress(const char *what, uint64_t done_ns, uint64_t total_ns);

#define TERM_BOLD "\033[1m"
#define TERM_DIM "\033[2m"
#define TERM_REVERSE "\033[7m"
#define TERM_RED "\033[31m"
#define TERM_GREEN "\033[32m"
#define TERM_YELLOW "\033[33m"
#define TERM_RESET "\033[0m"
