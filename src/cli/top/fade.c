/* src/cli/top/fade.c: samples of allocations that fade; see model.h. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "cli/top/readings.h"

/* Less than this is left of a sample: nothing. */
#define TOP_FADED 0.5

void top_samples_take(struct top_samples *to, struct top_samples *from)
{
	struct top_sample *fit =
		reallocarray(from->at, MAX(from->len, (size_t)1), sizeof(*from->at));

	free(to->at);
	*to = (struct top_samples){.at = fit ? fit : from->at, .len = from->len};
	*from = (struct top_samples){};
}

static int compare_stacks(const void *a, const void *b)
{
	const struct top_sample *x = a, *y = b;

	return (x->stack > y->stack) - (x->stack < y->stack);
}

/* Samples of one stack become one; both lists are sorted by stack. */
static size_t samples_merge(const struct top_samples *old, double keep,
			    const struct top_samples *new, struct top_sample *to)
{
	size_t len = 0, i = 0, k = 0;

	while (i < old->len || k < new->len) {
		bool from_old =
			k == new->len || (i < old->len && old->at[i].stack <= new->at[k].stack);
		struct top_sample s = from_old ? old->at[i++] : new->at[k++];

		for (size_t u = 0; from_old && u < TOP_UNITS; u++)
			s.values[u] *= keep;
		if (len && to[len - 1].stack == s.stack)
			for (size_t u = 0; u < TOP_UNITS; u++)
				to[len - 1].values[u] += s.values[u];
		else if (s.values[TOP_OBJECTS] >= TOP_FADED || s.values[TOP_BYTES] >= TOP_FADED)
			to[len++] = s;
	}
	return len;
}

void top_process_fade(struct top_process *p, struct top_samples *deltas, double keep)
{
	struct top_samples *known = &p->kinds[TOP_ALLOC];
	struct top_samples merged = {
		.at = calloc(known->len + deltas->len + 1, sizeof(*merged.at))};

	if (deltas->len)
		qsort(deltas->at, deltas->len, sizeof(*deltas->at), compare_stacks);
	if (merged.at) {
		merged.len = samples_merge(known, keep, deltas, merged.at);
		top_samples_take(known, &merged);
	} else {
		top_samples_take(known, deltas);
	}
	p->sampled = 0;
	for (size_t i = 0; i < known->len; i++)
		p->sampled += known->at[i].values[TOP_BYTES];
}
