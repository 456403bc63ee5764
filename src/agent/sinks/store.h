/* src/agent/sinks/store.h: the sink that every agent has: the store. */
#pragma once

#include "base/err.h"
#include "pipeline/sink.h"

/* Writes to the store, commits and maintains it. Borrows the store, a struct store. */
int agent_sink_store_open(void *store, struct sink_row *ret_row, struct err *err);
