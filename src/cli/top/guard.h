/*
 * src/cli/top/guard.h: heeds signals in the place of a thread that cannot.
 *
 * `sonde top` has blocked them, and takes them between two looks at its data. Before that it loads
 * programs into the kernel, which takes seconds, and on a busy machine a minute.
 */
#pragma once

#include "base/err.h"

struct top_guard; /* opaque */

/* Until it is dismissed, a signal that ends programs ends this one at once: nothing is saved. */
int top_guard_new(int signals, struct top_guard **ret_guard, struct err *err);
void top_guard_dismiss(struct top_guard *guard); /* NULL is fine */
