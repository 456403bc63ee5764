/* src/cli/stop.c: see stop.h. */
#include "cli/stop.h"

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

/* A signal handler needs a global. */
static volatile sig_atomic_t stop_signals;

static void stop_on_signal(int signal)
{
	(void)signal;
	stop_signals = stop_signals < SIG_ATOMIC_MAX ? stop_signals + 1 : 1;
}

void stop_catch_signals(void)
{
	static const int signals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = stop_on_signal};

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		struct sigaction old;

		/* A signal ignored at startup, as under nohup, stays ignored. */
		if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			(void)sigaction(signals[i], &action, NULL);
	}
}

bool stop_asked(void)
{
	return stop_signals != 0;
}

unsigned int stop_count(void)
{
	return (unsigned int)stop_signals;
}
