/* src/store/sqlite/events.h: the events of a day file. */
#pragma once

#include "store/store.h"

struct writer;
struct writer_tools;

/* With its profile. -E2BIG: refused, nothing was written. Any other failure: close the writer. */
int events_write(struct writer *w, struct writer_tools *t, const struct store_event *event,
		 struct err *err);
