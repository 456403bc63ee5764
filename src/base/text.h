/*
 * src/base/text.h: text chosen by strangers, made safe to show.
 *
 * Control characters steer a terminal; marks of direction, line ends of other scripts and what
 * nobody sees make a page or a terminal show a name as another one. The joiners U+200C and U+200D
 * stay: scripts need them.
 */
#pragma once

#include <stddef.h>

#include "base/view.h"

/* How many bytes of the text at v[at] are such a character; 0: none. */
size_t text_unsafe(struct view v, size_t at);
/* Replaces each byte of them by '?'. */
void text_clean(char *text, size_t len);
