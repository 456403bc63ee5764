/*
 * src/query/overview.h: CPU time and memory of all services and of the machine, in steps of whole
 * minutes, from the totals of the store.
 */
#pragma once

#include <stdbool.h>

#include "query/covered.h"
#include "store/store.h"

#define QUERY_OVERVIEW_MACHINE "(machine)" /* the service of what is the machine's */
#define QUERY_OVERVIEW_GAP (-1)		   /* was not collected */

struct query_overview {
	struct store_overview totals;
	const struct store_overview_service *machine; /* NULL: nothing of it is stored */
	/* The last time of everything collected in the window, and of memory; 0: nothing was. */
	int64_t newest_ns;
	int64_t memory_newest_ns;
	/* For how long CPUs were sampled, by step; there, CPU time that is missing is 0. */
	int64_t *step_covered_ns;
	int64_t covered_ns; /* in sum */
};

/* Times and step in whole minutes. */
int query_overview_read(struct store *store, int64_t from_ns, int64_t to_ns, int64_t step_ns,
			struct query_overview *ret_overview, struct err *err);
void query_overview_release(struct query_overview *o);

/* Of a service, or of the machine, in a step; or QUERY_OVERVIEW_GAP. */
int64_t query_overview_cpu_ns(const struct query_overview *o,
			      const struct store_overview_service *s, size_t step);
int64_t query_overview_memory_bytes(const struct query_overview *o,
				    const struct store_overview_service *s, size_t step);
/* The steps [first, end) outside of which it has neither; false if it has none at all. */
bool query_overview_span(const struct query_overview *o, const struct store_overview_service *s,
			 size_t *ret_first, size_t *ret_end);
/* Whether a process of it was there at the last collection, not long before now. */
bool query_overview_is_there(const struct query_overview *o, const struct store_overview_service *s,
			     int64_t now_ns);
