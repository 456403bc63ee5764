/* src/proc/text.h: makes names chosen by a target safe for terminals, logs and labels. */
#pragma once

#include <stddef.h>

#include "base/view.h"

/* Copies at most cap - 1 bytes and a NUL; what text_unsafe() finds becomes '?'. */
void proc_text_copy(char *dst, size_t cap, struct view src);
