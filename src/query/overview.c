/* src/query/overview.c: see overview.h. */
#include "query/overview.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

enum { CPU, MEMORY, MACHINE_CPU, MACHINE_MEMORY };

#define CPU_TYPE "cpu:cpu:nanoseconds"

/* Sources of one interval write within moments. */
#define SAME_COLLECTION_NS ((int64_t)5 * (int64_t)NS_PER_SEC)
/* Where only what ran is known, of which some is written later. */
#define SAME_TIME_NS ((int64_t)30 * (int64_t)NS_PER_SEC)
#define LONG_AGO_NS ((int64_t)120 * (int64_t)NS_PER_SEC)

static int read_covered(struct store *store, const struct store_overview_query *q,
			struct query_overview *o, struct err *err)
{
	struct query_covered covered = {0};
	int r = query_covered_read_times(store, q->from_ns, q->to_ns, q->step_ns, o->totals.n_steps,
					 &covered, err);

	if (r < 0)
		return r;
	o->step_covered_ns = calloc(o->totals.n_steps + 1, sizeof(*o->step_covered_ns));
	for (size_t i = 0; o->step_covered_ns && i < o->totals.n_steps; i++) {
		o->step_covered_ns[i] = (int64_t)query_covered_ns(&covered, CPU_TYPE, i);
		o->covered_ns += o->step_covered_ns[i];
	}
	query_covered_release(&covered);
	return o->step_covered_ns ? 0 : err_oom(err);
}

int query_overview_read(struct store *store, int64_t from_ns, int64_t to_ns, int64_t step_ns,
			struct query_overview *ret_overview, struct err *err)
{
	const struct store_overview_query q = {
		.from_ns = from_ns,
		.to_ns = to_ns,
		.step_ns = step_ns,
		.types = {[CPU] = CPU_TYPE,
			  [MEMORY] = "process:memory:bytes",
			  [MACHINE_CPU] = "system:cpu_busy:nanoseconds",
			  [MACHINE_MEMORY] = "system:memory_used:bytes"},
	};
	struct query_overview o = {0};
	int r = store_overview(store, &q, &o.totals, err);

	if (r == 0)
		r = read_covered(store, &q, &o, err);
	if (r < 0) {
		query_overview_release(&o);
		return r;
	}
	for (size_t i = 0; i < o.totals.len; i++) {
		const struct store_overview_service *s = &o.totals.services[i];

		o.newest_ns = MAX(o.newest_ns, s->last_ns);
		o.memory_newest_ns = MAX(o.memory_newest_ns, s->last_of_ns[MEMORY]);
		if (strcmp(s->name, QUERY_OVERVIEW_MACHINE) == 0)
			o.machine = s;
	}
	*ret_overview = o;
	return 0;
}

void query_overview_release(struct query_overview *o)
{
	store_overview_release(&o->totals);
	free(o->step_covered_ns);
	*o = (struct query_overview){0};
}

static const struct store_overview_cell *cell_of(const struct query_overview *o,
						 const struct store_overview_service *s,
						 unsigned int type, size_t step)
{
	const struct store_overview_cell *cells;

	cells = s->cells[s == o->machine ? type + MACHINE_CPU : type];
	return cells && cells[step].times > 0 ? &cells[step] : NULL;
}

int64_t query_overview_cpu_ns(const struct query_overview *o,
			      const struct store_overview_service *s, size_t step)
{
	const struct store_overview_cell *cell = cell_of(o, s, CPU, step);

	if (cell)
		return MAX(cell->sum, 0);
	return s != o->machine && o->step_covered_ns[step] > 0 ? 0 : QUERY_OVERVIEW_GAP;
}

int64_t query_overview_memory_bytes(const struct query_overview *o,
				    const struct store_overview_service *s, size_t step)
{
	const struct store_overview_cell *cell = cell_of(o, s, MEMORY, step);

	return cell ? MAX(cell->sum, 0) / cell->times : QUERY_OVERVIEW_GAP;
}

bool query_overview_span(const struct query_overview *o, const struct store_overview_service *s,
			 size_t *ret_first, size_t *ret_end)
{
	size_t first = 0, end = o->totals.n_steps;

	while (first < end && !cell_of(o, s, CPU, first) && !cell_of(o, s, MEMORY, first))
		first++;
	while (end > first && !cell_of(o, s, CPU, end - 1) && !cell_of(o, s, MEMORY, end - 1))
		end--;
	*ret_first = first;
	*ret_end = end;
	return first < end;
}

bool query_overview_is_there(const struct query_overview *o, const struct store_overview_service *s,
			     int64_t now_ns)
{
	int64_t newest = o->memory_newest_ns ? o->memory_newest_ns : o->newest_ns;

	if (newest < now_ns - LONG_AGO_NS)
		return false;
	/* Memory is read from each process that is there; CPU time also from those that ended. */
	if (o->memory_newest_ns)
		return s->last_of_ns[MEMORY] > newest - SAME_COLLECTION_NS;
	return s->last_ns > newest - SAME_TIME_NS;
}
