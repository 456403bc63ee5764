/*
 * src/cli/stored.h: what services and query have in common: the folder with the profiles, opened
 * for reading, and the window of time.
 */
#pragma once

#include "base/err.h"
#include "store/store.h"

#define STORED_DATA_DIR_HELP                                                                       \
	"where profiles are kept (default /var/lib/sonde for root, ~/.local/share/sonde for "      \
	"others)"

/* dir: NULL for SONDE_DATA_DIR, or the usual place. -ENOENT when there is nothing. */
int stored_open(const char *dir, struct store **ret_store, struct err *err);
/* Texts may be NULL: the last hour. -EINVAL names the option. */
int stored_window(const char *from, const char *to, struct store_window *ret_window,
		  struct err *err);
