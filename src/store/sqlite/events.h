/* src/store/sqlite/events.h: the events of a day file. */
#pragma once

#include "store/store.h"

struct store_writer;
struct store_writer_tools;

/* With its profile. -E2BIG: refused, nothing was written. Any other failure: close the writer. */
int store_events_write(struct store_writer *w, struct store_writer_tools *t,
		       const struct store_event *event, struct err *err);
