/*
 * src/cli/stored.h: the folder with the profiles; and what services and query have in common: that
 * folder opened for reading, and the window of time.
 */
#pragma once

#include "base/err.h"
#include "store/store.h"

#define STORED_DATA_DIR_HELP                                                                       \
	"where profiles are kept (default /var/lib/sonde for root, ~/.local/share/sonde for "      \
	"others)"

/* The folder: what is given, or SONDE_DATA_DIR, or the usual place. The text is the caller's. */
int stored_dir(const char *dir, char **ret_dir, struct err *err);
/* Makes it and those above it; what it holds is nobody else's business. */
int stored_make_dir(const char *dir, struct err *err);
/* dir: as above. -ENOENT when there is nothing. */
int stored_open(const char *dir, struct store **ret_store, struct err *err);
/* Texts may be NULL: the last hour. -EINVAL names the option. */
int stored_window(const char *from, const char *to, struct store_window *ret_window,
		  struct err *err);
