/* src/cli/stop.h: signals that end a wait rather than the process, so work can be finished. */
#pragma once

#include <stdbool.h>

/* From here on SIGINT, SIGQUIT, SIGTERM and SIGHUP only raise a flag. */
void stop_catch_signals(void);
bool stop_asked(void);
/* How many came. */
unsigned int stop_count(void);
