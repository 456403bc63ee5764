/* src/store/backend.h: the operations of a kind of store; see store.h for their meanings. */
#pragma once

#include "store/store.h"

struct store_ops {
	int (*write)(struct store *, const struct store_entry *, struct err *);
	int (*write_metrics)(struct store *, const struct store_metrics *, struct err *);
	int (*write_event)(struct store *, const struct store_event *, struct err *);
	int (*commit)(struct store *, struct err *);
	int (*maintain)(struct store *, int64_t now_ns, struct err *);
	void (*close)(struct store *);
	int (*sum)(struct store *, const struct store_window *, struct store_sum *, struct err *);
	int (*series)(struct store *, const struct store_window *,
		      const struct store_series_request *, size_t n, struct err *);
	int (*label_totals)(struct store *, const struct store_window *, const char *key,
			    struct store_label_total **, size_t *, struct err *);
	int (*curve)(struct store *, const struct store_window *, const struct store_function *,
		     const struct store_curve *, struct err *);
	int (*streams)(struct store *, int64_t from_ns, int64_t to_ns, struct store_stream **,
		       size_t *, struct err *);
	int (*labelsets)(struct store *, const char *service, int64_t from_ns, int64_t to_ns,
			 struct store_labelset **, size_t *, struct err *);
	int (*metrics)(struct store *, const struct store_metric_query *,
		       struct store_metric_answer *, struct err *);
	int (*events)(struct store *, const char *service, int64_t from_ns, int64_t to_ns,
		      struct store_events_answer *, struct err *);
	int (*overview)(struct store *, const struct store_overview_query *,
			struct store_overview *, struct err *);
	void (*status)(struct store *, struct store_status *);
};

/* The first member of every kind of store. */
struct store {
	const struct store_ops *ops;
};
