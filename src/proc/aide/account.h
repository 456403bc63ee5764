/* src/proc/aide/account.h: whom aides that hang are charged to; private to this folder. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Whether a process, in a user namespace of its own, may take any of many ids. Never waits. */
bool proc_aide_account_has_ids(pid_t pid);
/* Who answers for one that may: whoever made the outermost namespace. May hang. */
int proc_aide_account(pid_t pid, uid_t *ret_uid);
/* Whether this, a uid_map file, names more than one id, and not all of them. */
bool proc_aide_account_maps_ids(const char *uid_map);
