/* src/cli/go/rate.c: see rate.h. */
#include "cli/go/rate.h"

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/data_dir.h"

int go_rate_prepare(struct go_rate *rate, struct err *err)
{
	_cleanup_free_ char *dir = NULL;
	int r = data_dir_path(NULL, &dir, err);

	if (r == 0)
		r = data_dir_make(dir, err);
	if (r < 0)
		err_write_remedy(err, ERR_CAUSE_DISK, "%s", GOLANG_RATE_JOURNAL_REMEDY);
	if (r == 0)
		r = golang_rate_journal_open(dir, &rate->journal, err);
	if (r == 0)
		r = golang_rates_restore(rate->journal, err);
	return r < 0 ? r : 0;
}

int go_rate_force(struct go_rate *rate, struct golang_rate_of of, const struct proc_id *id,
		  int64_t ours, struct err *err)
{
	sigset_t sigpipe;
	int r;

	(void)sigemptyset(&sigpipe);
	(void)sigaddset(&sigpipe, SIGPIPE);
	(void)sigprocmask(SIG_BLOCK, &sigpipe, &rate->mask);
	r = golang_rate_hold(&rate->hold, rate->journal, of, id, ours, err);
	if (r < 0)
		(void)sigprocmask(SIG_SETMASK, &rate->mask, NULL);
	return r;
}

static void set_back(struct go_rate *rate)
{
	int64_t old = rate->hold.note.old, now = 0;
	char line[ERR_LINE_MAX];
	struct err err = {};
	int r = golang_rate_release(&rate->hold, &now, &err);

	if (r > 0)
		cli_note("The program itself has changed its %s to %lld; not restored.", rate->name,
			 (long long)now);
	else if (r == 0)
		cli_note("Restored the %s to %lld.", rate->name, (long long)old);
	else if (r != -ESRCH)
		cli_note("Could not restore the %s to %lld; the next sonde tries again: %s",
			 rate->name, (long long)old, err_describe(&err, r, line));
}

void go_rate_release(struct go_rate *rate)
{
	if (rate->hold.lock >= 0) {
		if (rate->keep)
			golang_rate_keep(&rate->hold);
		else
			set_back(rate);
		(void)sigprocmask(SIG_SETMASK, &rate->mask, NULL);
	}
	golang_rate_journal_close(TAKE_PTR(rate->journal));
}

bool go_rates_are_noted(const char *dir)
{
	_cleanup_(golang_rate_journal_closep) struct golang_rate_journal *journal = NULL;
	_cleanup_free_ struct golang_rate_note *notes = NULL;
	size_t n = 0;

	return golang_rate_journal_open(dir, &journal, NULL) == 0 &&
	       golang_rate_journal_read(journal, &notes, &n, NULL) == 0 && n > 0;
}

int go_rates_restore(const char *dir, struct err *err)
{
	_cleanup_(golang_rate_journal_closep) struct golang_rate_journal *journal = NULL;
	int r = golang_rate_journal_open(dir, &journal, err);

	return r < 0 ? r : golang_rates_restore(journal, err);
}
