/* src/proc/text.h: names that a target chose, made safe for a terminal, a log or a label. */
#pragma once

#include <stddef.h>

#include "base/view.h"

/* Copies at most cap - 1 bytes and a NUL; control characters (also those of C1) become '?'. */
void proc_text_copy(char *dst, size_t cap, struct view src);
