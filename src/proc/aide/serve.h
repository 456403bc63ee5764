/* src/proc/aide/serve.h: the work of an aide, in its own process. */
#pragma once

#include "proc/aide/wire.h"

/* Answers requests of its kind until the socket ends. */
void proc_aide_serve(int sock, enum proc_aide_kind kind, struct proc_aide_shared *shared);
