/*
 * src/cli/data_dir.h: the data directory, and what services and query share: the store opened for
 * reading, and the time window.
 */
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "store/store.h"

#define DATA_DIR_HELP "data directory (default /var/lib/sonde; ~/.local/share/sonde if not root)"

/* The directory: as given, or SONDE_DATA_DIR, or the default. The caller frees the text. */
int data_dir_path(const char *dir, char **ret_dir, struct err *err);
/* Creates it and its parents, private to the user. */
int data_dir_make(const char *dir, struct err *err);
/*
 * For the one agent that may use it, or a repair, until data_dir_unlockp(). -EBUSY. ret_killed, if
 * not NULL: the process that held it before and never came to unlock it, or 0.
 */
int data_dir_lock(const char *dir, int *ret_fd, pid_t *ret_killed, struct err *err);
/* For _cleanup_; -1 is fine. */
void data_dir_unlockp(const int *fd);
/* Says on stderr what is missing from what was read so far. */
void data_dir_tell_damage(struct store *store);
/* dir: as above. -ENOENT if there is no store. */
int data_dir_open(const char *dir, struct store **ret_store, struct err *err);
/* NULL texts mean the last hour. -EINVAL names the option. */
int data_dir_window(const char *from, const char *to, struct store_window *ret_window,
		    struct err *err);
