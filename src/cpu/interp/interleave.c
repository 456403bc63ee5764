/* src/cpu/interp/interleave.c: see interleave.h. */
#include "cpu/interp/interleave.h"

#include <string.h>

/* The runs of an interpreter's frames. */
struct runs {
	const struct cpu_stack *stack;
	bool first_alone; /* the innermost frame is a separate run */
};

/* Number of frames from first up to and including the next one called by native code. */
static uint16_t run_length(const struct runs *runs, uint16_t first)
{
	const struct cpu_stack *s = runs->stack;
	uint16_t end = first;

	if (first == 0 && runs->first_alone)
		return 1;
	while (end < s->n_interp && !(s->interp[end++].id & INTERP_ENTERED))
		;
	return end - first;
}

static uint16_t count_runs(const struct runs *runs)
{
	uint16_t n = 0;

	for (uint16_t at = 0; at < runs->stack->n_interp; at += run_length(runs, at))
		n++;
	return n;
}

uint16_t cpu_interleave(const struct cpu_stack *s, const bool *is_loop, uint16_t *ret_n)
{
	bool whole = s->end == CPU_STACK_ROOT && !s->interp_cut;
	uint16_t n_loops = 0, n_runs, more_runs, more_loops, at = 0;
	struct runs runs = {.stack = s};

	memset(ret_n, 0, s->n_user * sizeof(ret_n[0]));
	for (uint16_t i = 0; i < s->n_user; i++)
		n_loops += is_loop[i];
	if (!n_loops || !s->n_interp)
		return 0;
	n_runs = count_runs(&runs);
	runs.first_alone = whole && n_loops > n_runs && (s->interp[0].id & INTERP_NOT_BEGUN);
	n_runs = count_runs(&runs);
	/* The surplus ones are innermost, unless the outer end is missing. */
	more_runs = whole && n_runs > n_loops ? n_runs - n_loops : 0;
	more_loops = whole && n_loops > n_runs ? n_loops - n_runs : 0;
	for (uint16_t i = 0; i < s->n_user && at < s->n_interp; i++) {
		if (!is_loop[i])
			continue;
		if (more_loops) {
			more_loops--;
			continue;
		}
		for (uint16_t run = 0; run <= more_runs; run++) {
			uint16_t n = run_length(&runs, at);

			ret_n[i] += n;
			at += n;
		}
		more_runs = 0;
	}
	return s->n_interp - at;
}
