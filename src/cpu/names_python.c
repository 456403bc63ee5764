/* src/cpu/names_python.c: see names_python.h. */
#include "cpu/names_python.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "proc/stat.h"

static void names_pythons_drop(struct names_pythons *pythons, size_t i)
{
	proc_mem_close(pythons->list[i].mem);
	pythons->list[i] = pythons->list[--pythons->len];
}

void names_pythons_release(struct names_pythons *pythons)
{
	while (pythons->len > 0)
		names_pythons_drop(pythons, pythons->len - 1);
}

void names_pythons_forget(struct names_pythons *pythons, uint64_t generation)
{
	for (size_t i = 0; i < pythons->len; i++)
		if (pythons->list[i].generation == generation) {
			names_pythons_drop(pythons, i);
			return;
		}
}

/* The process that was sampled, not one that has its number by now. NULL when it is gone. */
static struct proc_mem *names_python_open(const struct cpu_process *process)
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

static struct names_python *names_pythons_get(struct names_pythons *pythons,
					      const struct cpu_process *process)
{
	size_t oldest = 0;

	for (size_t i = 0; i < pythons->len; i++) {
		if (pythons->list[i].generation == process->generation)
			return &pythons->list[i];
		if (pythons->list[i].used_ns < pythons->list[oldest].used_ns)
			oldest = i;
	}
	if (pythons->len == NAMES_MAX_PYTHONS)
		names_pythons_drop(pythons, oldest);
	pythons->list[pythons->len] = (struct names_python){.generation = process->generation,
							    .mem = names_python_open(process)};
	return &pythons->list[pythons->len++];
}

int names_pythons_read(struct names_pythons *pythons, const struct cpu_process *process,
		       const struct cpu_python_frame *frame, uint64_t now_ns,
		       struct python_code *ret_code)
{
	struct names_python *p = names_pythons_get(pythons, process);
	int r;

	p->used_ns = now_ns;
	if (!p->mem)
		return -ESRCH;
	if (now_ns - p->since_ns >= NAMES_PYTHON_READS_NS) {
		p->since_ns = now_ns;
		p->reads = 0;
	}
	if (++p->reads > NAMES_PYTHON_READS)
		return -EBUSY;
	r = python_code_read(p->mem, python_layout(process->python.minor),
			     process->python.code_type, frame->code, frame->instr, ret_code, NULL);
	/* Another one has been put in its place since. */
	return r == 0 && ret_code->name_hash != frame->name_hash ? -EBADMSG : r;
}
