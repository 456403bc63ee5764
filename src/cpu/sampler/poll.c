/* src/cpu/sampler/poll.c: handles the requests and notices of BPF between drains. */
#include <sched.h>
#include <string.h>

#include "bpf/rings.h"
#include "cpu/sampler/state.h"

static void tell(struct cpu_sampler *s, const struct cpu_sampler_notice *notice, int kind)
{
	struct cpu_event event = {.kind = kind, .pid = (pid_t)notice->thread.tgid};

	if (!s->options.events || !s->on_event)
		return;
	memcpy(event.comm, notice->thread.name, sizeof(event.comm));
	event.comm[sizeof(event.comm) - 1] = 0;
	s->on_event(s->context, &event);
}

/* Its mappings were read, so it is alive. */
static void tell_sampled(struct cpu_sampler *s, const struct cpu_sampler_thread *thread)
{
	struct cpu_process *process = cpu_processes_get(s->processes, thread);
	struct cpu_event event = {.kind = CPU_EVENT_SAMPLED, .process = process};

	if (!process || !s->on_event)
		return;
	event.pid = process->pid;
	if (!process->comm[0])
		memcpy(process->comm, thread->name, sizeof(process->comm));
	s->on_event(s->context, &event);
}

int cpu_sampler_on_notice(void *context, void *data, size_t len)
{
	const struct cpu_sampler_notice *notice = data;
	struct cpu_sampler *s = context;

	if (len < sizeof(*notice))
		return 0;
	switch (notice->kind) {
	case CPU_SAMPLER_NOTICE_PROCESS:
	case CPU_SAMPLER_NOTICE_ADDRESS:
		/* If the process has exited, its stacks stay as they are. */
		if (cpu_processes_load(s->processes, &notice->thread, notice->value) == 0)
			tell_sampled(s, &notice->thread);
		break;
	case CPU_SAMPLER_NOTICE_FILE:
		cpu_files_want(s->files, (uint32_t)notice->value);
		break;
	case CPU_SAMPLER_NOTICE_EXEC:
		cpu_processes_end(s->processes, &notice->thread, true);
		tell(s, notice, CPU_EVENT_EXEC);
		break;
	case CPU_SAMPLER_NOTICE_EXIT:
		cpu_processes_end(s->processes, &notice->thread, false);
		tell(s, notice, CPU_EVENT_EXIT);
		break;
	default:
		break;
	}
	return 0;
}

static void tell_frames(struct cpu_sampler *s, const struct cpu_sampler_stack *stack)
{
	struct cpu_process *process = cpu_processes_get(s->processes, &stack->thread);
	struct cpu_event event = {.kind = CPU_EVENT_FRAMES,
				  .process = process,
				  .interp_kind = stack->interp,
				  .interp = s->interp,
				  .n_interp = stack->n_interp};

	if (!process || !s->on_event)
		return;
	event.pid = process->pid;
	(void)cpu_stacks_split(stack, s->user, s->interp);
	s->on_event(s->context, &event);
}

int cpu_sampler_on_stack(void *context, void *data, size_t len)
{
	const struct cpu_sampler_stack *stack = data;
	struct cpu_sampler *s = context;
	struct cpu_stacks *stacks;

	if (len < sizeof(stack->thread))
		return 0;
	stacks = stack->offcpu ? &s->waiting : &s->running[stack->epoch & 1];
	/* A stack that cannot be kept is missing in the drain, and counted there. */
	if (cpu_stacks_add(stacks, data, len, cpu_files_generation(s->files)) == 0 &&
	    stack->n_interp)
		tell_frames(s, stack);
	return 0;
}

void cpu_sampler_set_urgent(struct cpu_sampler *s, bool urgent)
{
	const struct sched_param param = {.sched_priority = urgent ? 1 : 0};

	if (!s->options.urgent || s->is_urgent == urgent)
		return;
	s->is_urgent = urgent;
	if (sched_setscheduler(0, (urgent ? SCHED_RR : SCHED_OTHER) | SCHED_RESET_ON_FORK, &param))
		s->options.urgent = false;
}

void cpu_sampler_on_pause(void *context)
{
	struct cpu_sampler *s = context;

	(void)bpf_rings_read(s->rings, CPU_SAMPLER_RING_NOTICES, NULL);
}

void cpu_sampler_on_close(void *context, const struct cpu_file *file)
{
	const struct cpu_event event = {.kind = CPU_EVENT_CLOSE, .file = file};
	struct cpu_sampler *s = context;

	if (s->on_event)
		s->on_event(s->context, &event);
}

void cpu_sampler_on_gone(void *context, const struct cpu_process *process)
{
	const struct cpu_event event = {
		.kind = CPU_EVENT_GONE, .pid = process->pid, .process = process};
	struct cpu_sampler *s = context;

	if (s->on_event)
		s->on_event(s->context, &event);
}

int cpu_sampler_consume(struct cpu_sampler *s, struct err *err)
{
	int r = bpf_rings_read(s->rings, CPU_SAMPLER_RING_NOTICES, err);

	while (r == 0 && cpu_files_is_wanted(s->files)) {
		cpu_sampler_set_urgent(s, false);
		(void)cpu_files_load_next(s->files, &s->pause);
		r = bpf_rings_read(s->rings, CPU_SAMPLER_RING_NOTICES, err);
	}
	if (r == 0)
		r = bpf_rings_read(s->rings, CPU_SAMPLER_RING_STACKS, err);
	if (r == 0)
		r = bpf_rings_read(s->rings, CPU_SAMPLER_RING_COPIES, err);
	return r;
}

int cpu_sampler_poll(struct cpu_sampler *s, int timeout_ms,
		     void (*on_event)(void *context, const struct cpu_event *event), void *context,
		     struct err *err)
{
	int n;

	s->on_event = on_event;
	s->context = context;
	cpu_sampler_set_urgent(s, true);
	n = bpf_rings_wait(s->rings, timeout_ms, err);
	if (n < 0)
		return n;
	/* No stacks to walk for now: mapped tables count as our memory. */
	if (n == 0)
		cpu_tables_unmap(s->tables);
	/* Not every notice wakes us. */
	return n > 0 ? cpu_sampler_consume(s, err)
		     : bpf_rings_read(s->rings, CPU_SAMPLER_RING_NOTICES, err);
}
