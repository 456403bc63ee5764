/* src/cli/top/guard.c: see guard.h. */
#include "cli/top/guard.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/top/live.h"

struct top_guard {
	pthread_t thread;
	int signals; /* borrowed */
	int dismissed;
};

static void *guard_watch(void *arg)
{
	const struct top_guard *g = arg;
	struct pollfd fds[] = {
		{.fd = g->dismissed, .events = POLLIN},
		{.fd = g->signals, .events = POLLIN},
	};

	for (;;) {
		int signal;

		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			return NULL;
		if (fds[0].revents)
			return NULL;
		signal = top_signals_take(g->signals);
		if (signal == SIGTSTP)
			(void)raise(SIGSTOP);
		else if (signal && signal != SIGCONT && signal != SIGWINCH)
			_exit(CLI_OK);
	}
}

int top_guard_new(int signals, struct top_guard **ret_guard, struct err *err)
{
	struct top_guard *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return err_oom(err);
	g->signals = signals;
	g->dismissed = eventfd(0, EFD_CLOEXEC);
	r = g->dismissed < 0 ? errno : pthread_create(&g->thread, NULL, guard_watch, g);
	if (r) {
		closep(&g->dismissed);
		free(g);
		return err_set(err, -r, "cannot start a thread: %s", strerror(r));
	}
	*ret_guard = g;
	return 0;
}

void top_guard_dismiss(struct top_guard *g)
{
	if (!g)
		return;
	(void)eventfd_write(g->dismissed, 1);
	(void)pthread_join(g->thread, NULL);
	closep(&g->dismissed);
	free(g);
}
