/*
 * src/store/metrics/gather.h: the series of an answer and their points, on the way. Equal series of
 * several days meet by metric, attributes and labels.
 */
#pragma once

#include "base/intern.h"
#include "store/metrics/define.h"
#include "store/metrics/scan.h"
#include "store/store.h"

#define GATHER_MAX_VALUES ((size_t)6 << 20) /* of an answer */

struct gather {
	const struct store_metric_query *query;
	struct store_metric_answer answer;
	struct definition metric; /* the one that was asked for */
	bool has_metric;
	struct buf found;    /* struct found */
	struct intern names; /* of series, as bytes */
	struct buf name;     /* of the one that is looked up */
	size_t n_values;
	struct buf runs; /* struct run: the steps of a batch's times */
	uint64_t times;	 /* whose they are; 0: nobody's */
};
void gather_release(struct gather *g);

/* The series of a column with these labels; made when it is met first. -ENOMEM, -E2BIG. */
int gather_series(struct gather *g, const struct define_column *c, struct view labels,
		  uint32_t *ret_id);
/* That it was there at these times, in ns. */
void gather_span(struct gather *g, uint32_t id, int64_t first_ns, int64_t last_ns);
/* Its numbers, of a day that began at day_ms. */
int gather_add(struct gather *g, uint32_t id, enum define_part part, const struct metrics_batch *b,
	       int64_t day_ms);
/* Hands the answer over. */
int gather_finish(struct gather *g, struct store_metric_answer *ret_answer);
