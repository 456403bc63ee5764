/*
 * src/store/metrics/stream.h: metrics that docs/API.md also has as streams
 * ("go_runtime:heap_live:bytes"). These were stored as profiles before there were metrics; a window
 * may have both.
 */
#pragma once

#include "base/buf.h"
#include "store/sqlite/day.h"
#include "store/store.h"

struct store_dictionary; /* store/metrics/define.h */

/* A day's numbers of one stream. */
struct store_metrics_stream {
	/* For label sets that match the filters. */
	void (*fn)(void *ctx, int64_t ms, double value);
	void *ctx;
	uint32_t service; /* in the day; 0: that of the window */
	/* Its columns, if they were read already. */
	const struct store_dictionary *columns;
	struct buf times; /* uint32_t, ms in the day: distinct collection times */
	bool snapshot;
};
/* 1 if the day has the stream, otherwise 0. The caller releases times. */
int store_metrics_read_stream(struct store_metrics_stream *s, struct store_day *day,
			      const struct store_window *window, struct err *err);

/* A listing. */
struct store_metrics_listing {
	int64_t from_ns;
	int64_t to_ns;
	int (*stream)(void *ctx, struct view service, const char *type, bool snapshot,
		      int64_t first_ns, int64_t last_ns);
	int (*labelset)(void *ctx, uint32_t labelset, int64_t first_ns, int64_t last_ns);
	void *ctx;
};
/* Calls stream for each stream of the day with numbers in the window. */
int store_metrics_list_streams(struct store_metrics_listing *l, struct store_day *day,
			       struct err *err);
/* Calls labelset for those of the service, perhaps repeatedly. */
int store_metrics_list_labelsets(struct store_metrics_listing *l, struct store_day *day,
				 uint32_t service, struct err *err);
