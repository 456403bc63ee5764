/* src/cpu/interleave.c: see interleave.h. */
#include "cpu/interleave.h"

#include <string.h>

#include "base/cleanup.h"

/* Python frames from the first on, up to and with the next that C called. */
static uint16_t run_length(const struct cpu_stack *s, uint16_t first)
{
	uint16_t end = first;

	while (end < s->n_python && !s->python[end++].is_entry)
		;
	return end - first;
}

static uint16_t count_runs(const struct cpu_stack *s)
{
	uint16_t n = 0;

	for (uint16_t at = 0; at < s->n_python; at += run_length(s, at))
		n++;
	return n;
}

uint16_t cpu_interleave(const struct cpu_stack *s, const bool *is_loop, uint16_t *ret_n)
{
	bool whole = s->end == CPU_STACK_ROOT && !s->python_cut;
	uint16_t runs = count_runs(s), loops = 0, at = 0;
	uint16_t more_runs, more_loops;

	memset(ret_n, 0, s->n_user * sizeof(ret_n[0]));
	for (uint16_t i = 0; i < s->n_user; i++)
		loops += is_loop[i];
	if (!loops)
		return 0;
	/* Those that are too many are the innermost, unless an outer end is missing. */
	more_runs = whole && runs > loops ? runs - loops : 0;
	more_loops = whole && loops > runs ? loops - runs : 0;
	for (uint16_t i = 0; i < s->n_user && at < s->n_python; i++) {
		if (!is_loop[i])
			continue;
		if (more_loops) {
			more_loops--;
			continue;
		}
		for (uint16_t run = 0; run <= more_runs; run++) {
			uint16_t n = run_length(s, at);

			ret_n[i] += n;
			at += n;
		}
		more_runs = 0;
	}
	return s->n_python - at;
}
