/* src/proc/aide/account.h: whom aides that hang are charged to; private to this folder. */
#pragma once

#include <sys/types.h>

/*
 * The user who answers for a process of this user id. In a user namespace of its own a process may
 * take any of many ids: then it is whoever made the outermost namespace.
 */
uid_t proc_aide_account(pid_t pid, uid_t uid);
