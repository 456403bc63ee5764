/* src/cli/go/heap_rate.c: see heap_rate.h. */
#include "cli/go/heap_rate.h"

#include <errno.h>
#include <signal.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/stop.h"
#include "cli/term.h"

#define HEAP_WAIT_STEP_NS (200 * NS_PER_MS)

/* A signal, or a broken pipe on our output: see go_rate_force(). */
static bool heap_wait_is_over(void)
{
	sigset_t pending;

	return stop_asked() || (sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1);
}

int heap_rate_wait(const char *what, uint64_t ns, const struct proc_id *id, struct err *err)
{
	uint64_t start = clock_mono_ns();
	int r = 0;

	for (;;) {
		uint64_t done = clock_mono_ns() - start;

		if (heap_wait_is_over())
			r = err_set(err, -EINTR, "interrupted");
		else if (proc_id_gone(id))
			r = err_set(err, -ESRCH, "process %d exited while waiting", (int)id->pid);
		if (r < 0 || done >= ns)
			break;
		term_progress(what, done, ns);
		clock_sleep_ns(MIN(ns - done, HEAP_WAIT_STEP_NS));
	}
	term_status(NULL);
	return r;
}
