/* src/cli/waits_rate.c: see waits_rate.h. */
#include "cli/waits_rate.h"

#include "base/cleanup.h"
#include "cli/cli.h"
#include "golang/force.h"

int waits_rate_lock(struct waits_rate *rate, const struct proc_id *id, struct err *err)
{
	return golang_force_lock(id, &rate->lock, err);
}

int waits_rate_hold(struct waits_rate *rate, struct golang_contention *contention, int64_t old,
		    int64_t ours, struct err *err)
{
	sigset_t sigpipe;
	int r;

	(void)sigemptyset(&sigpipe);
	(void)sigaddset(&sigpipe, SIGPIPE);
	(void)sigprocmask(SIG_BLOCK, &sigpipe, &rate->mask);
	r = golang_contention_set_rate(contention, ours, err);
	if (r < 0) {
		(void)sigprocmask(SIG_SETMASK, &rate->mask, NULL);
		return r;
	}
	rate->contention = contention;
	rate->old = old;
	rate->ours = ours;
	return 0;
}

static void waits_rate_set_back(struct waits_rate *rate)
{
	struct err err = {};
	int64_t now;
	int r = golang_contention_rate(rate->contention, &now, &err);

	if (r == 0 && now != rate->ours) {
		cli_note("The program has changed its rate to %lld itself: left as it is.",
			 (long long)now);
		return;
	}
	if (r == 0)
		r = golang_contention_set_rate(rate->contention, rate->old, &err);
	if (r == 0)
		cli_note("The rate is back at %lld.", (long long)rate->old);
	/* A program that ended needs no rate. */
	if (r < 0 && r != -ESRCH)
		cli_note("Could not set the rate back to %lld: %s", (long long)rate->old, err.text);
}

void waits_rate_release(struct waits_rate *rate)
{
	if (rate->contention) {
		waits_rate_set_back(rate);
		(void)sigprocmask(SIG_SETMASK, &rate->mask, NULL);
	}
	closep(&rate->lock);
	*rate = WAITS_RATE_NONE;
}
