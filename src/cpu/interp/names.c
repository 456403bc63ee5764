/* src/cpu/interp/names.c: see names.h. */
#include "cpu/interp/names.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "proc/stat.h"

static void names_interps_drop(struct names_interps *interps, size_t i)
{
	proc_mem_close(interps->list[i].mem);
	interps->list[i] = interps->list[--interps->len];
}

void names_interps_release(struct names_interps *interps)
{
	while (interps->len > 0)
		names_interps_drop(interps, interps->len - 1);
}

void names_interps_forget(struct names_interps *interps, uint64_t generation)
{
	for (size_t i = 0; i < interps->len; i++)
		if (interps->list[i].generation == generation) {
			names_interps_drop(interps, i);
			return;
		}
}

/* The sampled process, not another one with a reused pid. NULL if it has exited. */
static struct proc_mem *names_interp_open(const struct cpu_process *process)
{
	uint64_t tick_ns = NS_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct proc_stat stat;

	if (proc_mem_open_bare(process->pid, &mem, NULL) < 0 ||
	    proc_stat_read(process->pid, &stat, NULL) < 0 ||
	    stat.start_ticks != process->start_ns / tick_ns)
		return NULL;
	return TAKE_PTR(mem);
}

static struct names_interp *names_interps_get(struct names_interps *interps,
					      const struct cpu_process *process)
{
	size_t oldest = 0;

	for (size_t i = 0; i < interps->len; i++) {
		if (interps->list[i].generation == process->generation)
			return &interps->list[i];
		if (interps->list[i].used_ns < interps->list[oldest].used_ns)
			oldest = i;
	}
	if (interps->len == NAMES_MAX_INTERPS)
		names_interps_drop(interps, oldest);
	interps->list[interps->len] = (struct names_interp){.generation = process->generation,
							    .mem = names_interp_open(process)};
	return &interps->list[interps->len++];
}

int names_interps_read(struct names_interps *interps, const struct cpu_process *process,
		       const struct interp_frame *frame, uint64_t now_ns)
{
	struct names_interp *p = names_interps_get(interps, process);

	p->used_ns = now_ns;
	if (!p->mem)
		return -ESRCH;
	if (now_ns - p->since_ns >= NAMES_INTERP_READS_NS) {
		p->since_ns = now_ns;
		p->reads = 0;
	}
	if (++p->reads > NAMES_INTERP_READS)
		return -EBUSY;
	return interp_ops(process->interp.kind)
		->name(p->mem, &process->interp, frame, interps->names, INTERP_NAMES_MAX);
}
