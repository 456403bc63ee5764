/*
 * src/proc/aide/rights.h: acts with the rights of a target for a moment: its user and groups on
 * file systems, and no capability. For the calling thread only.
 *
 * Whoever controls what a name means (by links, mounts, or renaming) must not gain by our opening
 * it.
 */
#pragma once

#include "proc/status.h"

struct proc_rights; /* what to return to */

/* -EPERM: we may not become that user. */
int proc_rights_take(const struct proc_status *status, struct proc_rights **ret_own);
/* Always succeeds, or the process ends: going on as another user would be worse. NULL is fine. */
void proc_rights_return(struct proc_rights *own);
