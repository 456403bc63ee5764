/* src/cpu/profiler.c: see profiler.h. */
#include "cpu/profiler.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "cpu/builder.h"
#include "cpu/symbols/symbolizer.h"
#include "cpu/unwind/shares.h"
#include "proc/aide/aides.h"
#include "proc/info.h"

/* How often the kernel's tables are drained, and names looked up. */
#define PROFILER_DRAIN_NS (5 * NS_PER_SEC)
#define PROFILER_MAX_PROCESSES 16384
#define PROFILER_NICE (-10)
#define PROFILER_PATIENCE_NS (200 * NS_PER_MS)

/* A process sampled in this interval or the previous one. */
struct cpu_tracked {
	uint64_t generation;
	uid_t owner; /* who has it in its share */
	struct proc_info info;
	struct cpu_allowance allowance;
	bool sampled;			/* in this interval */
	struct cpu_builder builders[2]; /* on- and off-CPU; without a profile if unused */
};

struct cpu_profiler {
	struct cpu_profiler_options options;
	struct cpu_sampler *sampler;
	struct cpu_symbolizer *names;
	struct cpu_budget *budget; /* NULL: there is none */
	struct cpu_tracked **tracked;
	size_t n_tracked;
	size_t cap_tracked;
	struct cpu_shares shares; /* of them */
	struct map by_generation;
	uint64_t drained_ns;
	uint64_t collected_ns;
	int64_t collected_unix_ns;
	void (*on_event)(void *context, const struct cpu_event *event); /* by the last poll */
	void *context;
	struct err *err;	 /* of the drain in progress */
	uint64_t lost_processes; /* samples of processes beyond the limit */
};

static void tracked_free(struct cpu_tracked *t)
{
	if (!t)
		return;
	cpu_builder_release(&t->builders[0]);
	cpu_builder_release(&t->builders[1]);
	free(t);
}

static uint64_t start_ticks(const struct cpu_process *process)
{
	return process->start_ns / (NS_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* Whether the pid still belongs to the sampled process. */
static bool is_same(const struct proc_info *info, const struct cpu_process *process)
{
	return info->id.start_ticks == start_ticks(process);
}

/* By now it may run another program, whose name this is; what it called itself tells. */
static bool is_program(const struct cpu_profiler *p, const struct cpu_process *process,
		       const struct proc_info *info)
{
	return is_same(info, process) &&
	       (cpu_sampler_is_current(p->sampler, process) ||
		strncmp(info->comm, process->comm, sizeof(process->comm) - 1) == 0);
}

static void identify(const struct cpu_profiler *p, const struct cpu_process *process,
		     struct proc_info *info)
{
	if (proc_info_read_shallow(process->pid, info, NULL) == 0 && is_program(p, process, info)) {
		/* Kernel threads have no program; listing each by name would add dozens. */
		if (info->kernel_thread) {
			(void)snprintf(info->service, sizeof(info->service), "[kernel]");
			info->rank = PROC_RANK_PROVEN;
		}
		return;
	}
	proc_info_of_exited(process->pid, process->comm, process->uid, process->cgroup, info);
	info->id.start_ticks = start_ticks(process);
}

/* Whether it is tracked, or its owner may have one more. */
static bool has_room(const struct cpu_profiler *p, const struct cpu_process *process)
{
	return map_get(&p->by_generation, process->generation, &(uint64_t){0}) ||
	       cpu_shares_allow(&p->shares, process->owner, 1);
}

static struct cpu_tracked *track(struct cpu_profiler *p, const struct cpu_process *process)
{
	struct cpu_tracked *t;
	uint64_t at;

	if (map_get(&p->by_generation, process->generation, &at))
		return p->tracked[at];
	if (p->n_tracked == p->cap_tracked) {
		size_t cap = p->cap_tracked * 2 + 64;
		struct cpu_tracked **grown =
			reallocarray(p->tracked, cap, sizeof(struct cpu_tracked *));

		if (!grown)
			return NULL;
		p->tracked = grown;
		p->cap_tracked = cap;
	}
	t = calloc(1, sizeof(*t));
	if (!t || map_put(&p->by_generation, process->generation, p->n_tracked) < 0) {
		free(t);
		return NULL;
	}
	t->generation = process->generation;
	t->owner = process->owner;
	cpu_shares_take(&p->shares, t->owner, 1);
	identify(p, process, &t->info);
	p->tracked[p->n_tracked++] = t;
	return t;
}

static int take_stack(void *context, const struct cpu_stack *stack)
{
	struct cpu_profiler *p = context;
	struct cpu_builder_options options = {
		.offcpu = stack->offcpu,
		.label_threads = p->options.label_threads,
		.label_process = p->options.label_process,
		.root_process = p->options.root_process,
		.hz = p->options.sampler.hz,
		.budget = p->budget,
		.now_ns = p->drained_ns,
	};
	struct cpu_builder *b;
	struct cpu_tracked *t;
	int r = 0;

	if (!has_room(p, stack->process)) {
		p->lost_processes += stack->count;
		return 0;
	}
	t = track(p, stack->process);
	if (!t)
		return err_oom(p->err);
	t->sampled = true;
	if (!t->info.elder)
		t->info.elder = stack->process->elder;
	options.owner = (struct cpu_owner){.process = &t->allowance, .uid = stack->process->owner};
	b = &t->builders[stack->offcpu];
	if (!b->profile)
		r = cpu_builder_init(b, &options, &t->info, p->err);
	if (r == 0)
		r = cpu_builder_add(b, p->names, stack);
	return r == -ENOMEM ? err_oom(p->err) : r;
}

static int drain(struct cpu_profiler *p, struct err *err)
{
	p->drained_ns = clock_mono_ns();
	p->err = err;
	return cpu_sampler_drain(p->sampler, take_stack, p, err);
}

void cpu_profiler_hurry(void)
{
	(void)setpriority(PRIO_PROCESS, 0, PROFILER_NICE);
	/* Samples wait in ring buffers meanwhile. */
	proc_aides_set_patience(PROFILER_PATIENCE_NS);
}

/* Looks names up now, to have them cached for the drain. */
static void name_frames(struct cpu_profiler *p, const struct cpu_event *event)
{
	const struct cpu_name *names;
	size_t n;

	for (size_t i = 0; i < event->n_interp; i++)
		(void)cpu_symbolizer_interp(p->names, event->process, event->interp_kind,
					    &event->interp[i], &names, &n);
}

static void hear_event(void *context, const struct cpu_event *event)
{
	struct cpu_profiler *p = context;
	struct cpu_tracked *t = NULL;

	switch (event->kind) {
	case CPU_EVENT_FRAMES:
		name_frames(p, event);
		break;
	case CPU_EVENT_SAMPLED:
		/* Identify it while it is alive. */
		if (has_room(p, event->process))
			t = track(p, event->process);
		if (t)
			t->sampled = true;
		break;
	case CPU_EVENT_GONE:
		cpu_symbolizer_forget_process(p->names, event->process->generation);
		break;
	case CPU_EVENT_CLOSE:
		cpu_symbolizer_forget_file(p->names, event->file);
		break;
	default:
		if (p->on_event)
			p->on_event(p->context, event);
		break;
	}
}

int cpu_profiler_poll(struct cpu_profiler *p, int timeout_ms,
		      void (*on_event)(void *context, const struct cpu_event *event), void *context,
		      struct err *err)
{
	int r;

	p->on_event = on_event;
	p->context = context;
	r = cpu_sampler_poll(p->sampler, timeout_ms, hear_event, p, err);
	if (r == 0 && clock_mono_ns() - p->drained_ns >= PROFILER_DRAIN_NS)
		r = drain(p, err);
	return r;
}

static int finish(struct cpu_profiler *p, struct cpu_tracked *t, bool offcpu,
		  int (*emit)(void *context, struct cpu_profile *profile), void *context,
		  struct err *err)
{
	struct cpu_builder *b = &t->builders[offcpu];
	struct cpu_profile out = {
		.info = &t->info, .offcpu = offcpu, .lost = b->lost, .other = b->other};
	struct profile_header *h;
	int r;

	if (!b->profile)
		return 0;
	r = cpu_builder_finish(b, &t->info, &out.profile, err);
	cpu_builder_release(b);
	if (r < 0)
		return r;
	h = profile_header(out.profile);
	h->time_ns = p->collected_unix_ns;
	h->duration_ns = (int64_t)(p->drained_ns - p->collected_ns);
	return emit(context, &out);
}

/* Keeps those of this interval for the next one, so that they need not be identified again. */
static void forget_idle(struct cpu_profiler *p)
{
	size_t len = 0;

	map_release(&p->by_generation);
	for (size_t i = 0; i < p->n_tracked; i++) {
		struct cpu_tracked *t = p->tracked[i];

		/* If out of memory for the table, it is identified again. */
		if (t->sampled && map_put(&p->by_generation, t->generation, len) == 0) {
			t->sampled = false;
			p->tracked[len++] = t;
			continue;
		}
		cpu_symbolizer_forget_process(p->names, t->generation);
		cpu_shares_give(&p->shares, t->owner, 1);
		tracked_free(t);
	}
	p->n_tracked = len;
}

int cpu_profiler_collect(struct cpu_profiler *p,
			 int (*emit)(void *context, struct cpu_profile *profile), void *context,
			 struct err *err)
{
	int r = drain(p, err);

	for (size_t i = 0; r == 0 && i < p->n_tracked; i++) {
		r = finish(p, p->tracked[i], false, emit, context, err);
		if (r == 0)
			r = finish(p, p->tracked[i], true, emit, context, err);
	}
	forget_idle(p);
	p->collected_ns = p->drained_ns;
	p->collected_unix_ns = (int64_t)clock_unix_ns();
	return r;
}

void cpu_profiler_losses(const struct cpu_profiler *p, struct cpu_losses *ret_losses)
{
	cpu_sampler_losses(p->sampler, ret_losses);
	ret_losses->lost_table += p->lost_processes;
}

int cpu_profiler_open(const struct cpu_profiler_options *options,
		      struct cpu_profiler **ret_profiler, struct err *err)
{
	const struct cpu_symbolizer_options names = {.lines = options->lines};
	_cleanup_(cpu_profiler_closep) struct cpu_profiler *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return err_oom(err);
	p->options = *options;
	p->options.sampler.urgent = true;
	p->shares.max = PROFILER_MAX_PROCESSES;
	if (options->budgets) {
		p->budget = cpu_budget_new();
		if (!p->budget)
			return err_oom(err);
	}
	r = cpu_symbolizer_new(&names, &p->names, err);
	if (r == 0)
		r = cpu_sampler_open(&p->options.sampler, &p->sampler, err);
	if (r < 0)
		return r;
	p->drained_ns = p->collected_ns = clock_mono_ns();
	p->collected_unix_ns = (int64_t)clock_unix_ns();
	*ret_profiler = TAKE_PTR(p);
	return 0;
}

void cpu_profiler_close(struct cpu_profiler *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n_tracked; i++)
		tracked_free(p->tracked[i]);
	free(p->tracked);
	map_release(&p->by_generation);
	cpu_sampler_close(p->sampler);
	cpu_symbolizer_free(p->names);
	cpu_budget_free(p->budget);
	free(p);
}
