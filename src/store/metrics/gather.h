/*
 * src/store/metrics/gather.h: collects the series of a result and their points. Series of several
 * days are matched by metric, attributes and labels.
 */
#pragma once

#include "base/intern.h"
#include "store/metrics/define.h"
#include "store/metrics/scan.h"
#include "store/store.h"

#define STORE_GATHER_MAX_VALUES ((size_t)6 << 20) /* of a result */

struct store_gather {
	const struct store_metric_query *query;
	struct store_metric_answer answer;
	struct store_definition metric; /* the requested one */
	bool has_metric;
	struct buf found;    /* struct found */
	struct intern names; /* of series, as bytes */
	struct buf name;     /* of the one being looked up */
	size_t n_values;
	struct buf runs; /* struct run: the steps of a batch's times */
	uint64_t times;	 /* the batch they belong to; 0: none */
};
void store_gather_release(struct store_gather *g);

/* The series of a column with these labels; created on first use. -ENOMEM, -E2BIG. */
int store_gather_series(struct store_gather *g, const struct store_define_column *c,
			struct view labels, uint32_t *ret_id);
/* Extends its first and last time, in ns. */
void store_gather_span(struct store_gather *g, uint32_t id, int64_t first_ns, int64_t last_ns);
/* Adds its numbers of a day that started at day_ms. */
int store_gather_add(struct store_gather *g, uint32_t id, enum store_define_part part,
		     const struct store_metrics_batch *b, int64_t day_ms);
/* Hands over the result. */
int store_gather_finish(struct store_gather *g, struct store_metric_answer *ret_answer);
