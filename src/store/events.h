/* src/store/events.h: events of a day file: what happened, to whom, and when. */
#pragma once

#include "store/store.h"

struct writer;
struct writer_tools;

/* With its profile. -E2BIG: refused, and nothing was written. Any other failure: close the writer.
 */
int events_write(struct writer *w, struct writer_tools *t, const struct store_event *event,
		 struct err *err);
