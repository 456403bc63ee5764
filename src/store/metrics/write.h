/*
 * src/store/metrics/write.h: writes the metrics of a day file; tracks its columns and active
 * series, so that nobody can flood the store with names.
 *
 * A series is active in an hour in which it was written. Over the limit of its service, or the
 * total, points of further series are refused and counted.
 */
#pragma once

#include <stdint.h>

#include "base/map.h"
#include "store/sqlite/ids.h"
#include "store/store.h"

struct store_writer;
struct store_writer_tools;

struct store_metrics_writer {
	bool loaded;
	struct map metrics;	  /* hash of the definition, to its id */
	struct store_ids columns; /* hash of service, metric, part and attributes, to the column */
	struct map n_columns;	  /* by service */
	struct store_ids active;  /* hash of service, label set and column */
	struct map n_active;	  /* by service */
	uint32_t n_active_in_all; /* in the hour */
	int64_t hour;		  /* since 1970 */
	uint32_t next_metric;
	uint64_t points; /* in the open transaction */
};
void store_metrics_writer_release(struct store_metrics_writer *m);
size_t store_metrics_writer_memory(const struct store_metrics_writer *m);

/* -E2BIG: refused, nothing was written. Any other failure: close the writer. */
int store_metrics_write(struct store_writer *w, struct store_writer_tools *t,
			const struct store_metrics *metrics, uint64_t *ret_refused,
			struct err *err);
