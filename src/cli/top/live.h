/* src/cli/top/live.h: `sonde top` on a terminal, and its plain form for pipes. */
#pragma once

#include <signal.h>

#include "cli/top/feed.h"
#include "cli/top/ui.h"

/*
 * Returns a descriptor to poll for signals that end, stop or resize a terminal program, or -errno.
 * Blocks them in this thread and all threads started later.
 */
int top_signals_open(struct err *err);
/* The pending signal, or 0. */
int top_signals_take(int signals);

/* Runs until q, a signal, or the exit of the selected processes. Restores the terminal. */
int top_live_run(struct top_feed *feed, struct top_ui *ui, int signals, struct err *err);

struct top_batch {
	struct top_view view;
	bool json;
	uint64_t max_rows; /* 0: all */
	uint64_t count;	   /* of refreshes; 0: unlimited */
};
/* With a count, -ETIMEDOUT if there is nothing to show for a minute. */
int top_batch_run(struct top_feed *feed, const struct top_batch *batch, int signals,
		  struct err *err);

/*
 * Waits for first data, but not long: until all responding processes were examined; for rates,
 * until the second interval is over. -EINTR after a signal.
 */
int top_wait_first(struct top_feed *feed, enum top_kind kind, int signals,
		   struct top_status *ret_status, struct err *err);
