/* src/cli/top_live.h: `sonde top` on a terminal, and its plain form for pipes. */
#pragma once

#include <signal.h>

#include "cli/top_feed.h"
#include "cli/top_ui.h"

/*
 * The signals that end, stop or resize a terminal program, as a descriptor to be polled. They are
 * blocked from then on, in all threads that begin after it. Returns it, or -errno.
 */
int top_signals_open(struct err *err);
/* The signal that has come, or 0 for none. */
int top_signals_take(int signals);

/* Until q, a signal, or the end of the processes that are asked for. The terminal is given back. */
int top_live_run(struct top_feed *feed, struct top_ui *ui, int signals, struct err *err);

struct top_batch {
	struct top_view view;
	bool json;
	uint64_t max_rows; /* 0: all */
	uint64_t count;	   /* of refreshes; 0: without end */
};
int top_batch_run(struct top_feed *feed, const struct top_batch *batch, int signals,
		  struct err *err);

/*
 * Waits for the first readings: until all processes were looked at, but for those that do not
 * answer; for rates until the second interval is over. -EINTR after a signal.
 */
int top_wait_first(struct top_feed *feed, enum top_kind kind, int signals,
		   struct top_status *ret_status, struct err *err);
