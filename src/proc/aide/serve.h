/* src/proc/aide/serve.h: the work of an aide, in its own process. */
#pragma once

#include "proc/aide/wire.h"

/* Answers requests until the socket ends. */
void proc_aide_serve(int sock, struct proc_aide_shared *shared);
