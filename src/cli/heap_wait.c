/* src/cli/heap_wait.c: see heap_wait.h. */
#include "cli/heap_wait.h"

#include <errno.h>
#include <signal.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/stop.h"
#include "cli/term.h"
#include "golang/force.h"

#define HEAP_WAIT_STEP_NS (200 * NS_PER_MS)

/* A signal has come, or nobody reads what we say: see heap_rate_hold(). */
static bool heap_wait_is_over(void)
{
	sigset_t pending;

	return stop_asked() || (sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1);
}

int heap_wait(const char *what, uint64_t ns, const struct proc_id *id, struct err *err)
{
	uint64_t start = clock_mono_ns();
	int r = 0;

	for (;;) {
		uint64_t done = clock_mono_ns() - start;

		if (heap_wait_is_over())
			r = err_set(err, -EINTR, "interrupted");
		else if (!proc_id_alive(id))
			r = err_set(err, -ESRCH, "process %d ended while we waited", (int)id->pid);
		if (r < 0 || done >= ns)
			break;
		term_progress(what, done, ns);
		clock_sleep_ns(MIN(ns - done, HEAP_WAIT_STEP_NS));
	}
	term_progress(what, ns, ns);
	return r;
}

int heap_rate_lock(struct heap_rate *rate, const struct proc_id *id, struct err *err)
{
	return golang_force_lock(id, &rate->lock, err);
}

int heap_rate_hold(struct heap_rate *rate, struct golang_heap *heap, int64_t old, int64_t ours,
		   struct err *err)
{
	sigset_t sigpipe;
	int r = golang_heap_set_rate(heap, ours, err);

	if (r < 0)
		return r;
	rate->heap = heap;
	rate->old = old;
	rate->ours = ours;
	rate->held = true;
	(void)sigemptyset(&sigpipe);
	(void)sigaddset(&sigpipe, SIGPIPE);
	(void)sigprocmask(SIG_BLOCK, &sigpipe, &rate->mask);
	golang_heap_scale_by(heap, ours);
	return 0;
}

static void heap_rate_set_back(struct heap_rate *rate)
{
	struct err err = {};
	int64_t now;
	int r = golang_heap_rate(rate->heap, &now, &err);

	if (r == 0 && now != rate->ours) {
		cli_note("The program has changed its sampling rate to %lld itself: left as it is.",
			 (long long)now);
		return;
	}
	if (r == 0)
		r = golang_heap_set_rate(rate->heap, rate->old, &err);
	if (r == 0)
		cli_note("The sampling rate is back at %lld.", (long long)rate->old);
	/* A program that ended needs no rate. */
	if (r < 0 && r != -ESRCH)
		cli_note("Could not set the sampling rate back to %lld: %s", (long long)rate->old,
			 err.text);
}

void heap_rate_release(struct heap_rate *rate)
{
	if (rate->heap) {
		if (rate->held)
			heap_rate_set_back(rate);
		(void)sigprocmask(SIG_SETMASK, &rate->mask, NULL);
	}
	closep(&rate->lock);
	*rate = HEAP_RATE_NONE;
}
