/*
 * src/cpu/sampler/deferred_stacks.c: walks stacks that BPF could not, for lack of mappings or
 * tables, from a copy that BPF made.
 *
 * A process keeps running while its mappings are read for the first time, and many exit before the
 * next sample. So the copy is walked here as soon as mappings and tables are available, and then
 * joins the stacks that BPF walked. If the process exited too soon, its stack stays truncated.
 */
#include <string.h>

#include "bpf/rings.h"
#include "cpu/bpf/walk.h"
#include "cpu/sampler/state.h"

/* Past the end of the copy, but within this distance: stack that was not copied. */
#define STACK_MAX_BYTES ((uint64_t)8 << 20)

struct copy_walk {
	struct cpu_walk walk; /* first, so that pointers convert */
	struct cpu_sampler *sampler;
	bool beyond; /* the stack is deeper than the copy */
};

static struct cpu_sampler *walk_sampler(const struct cpu_walk *w)
{
	return ((const struct copy_walk *)w)->sampler;
}

static struct cpu_sampler_copy *cpu_walk_record(const struct cpu_walk *w)
{
	return &walk_sampler(w)->copy;
}

static const struct cpu_sampler_mapping *cpu_walk_mapping(const struct cpu_walk *w, __u32 number)
{
	const struct cpu_sampler *s = walk_sampler(w);

	return number < s->n_mappings ? &s->mappings[number] : NULL;
}

static const struct cpu_sampler_file *cpu_walk_file(const struct cpu_walk *w, __u32 id)
{
	return id < CPU_SAMPLER_FILES ? &walk_sampler(w)->shared_files[id] : NULL;
}

static const struct cpu_sampler_chunk *cpu_walk_chunk(const struct cpu_walk *w, __u32 number)
{
	return (const struct cpu_sampler_chunk *)cpu_tables_chunk(walk_sampler(w)->tables, number);
}

static const struct elf_unwind_rule *cpu_walk_rule(const struct cpu_walk *w, __u32 number)
{
	return number < CPU_SAMPLER_RULES ? &walk_sampler(w)->rules[number] : NULL;
}

/* Here the tables are in the caches. */
static struct cpu_sampler_memo *cpu_walk_memo(const struct cpu_walk *w, __u32 number)
{
	(void)w;
	(void)number;
	return NULL;
}

static __u64 *cpu_walk_hint(const struct cpu_walk *w, __u32 number)
{
	(void)w;
	(void)number;
	return NULL;
}

static long cpu_walk_read(struct cpu_walk *w, void *dst, __u32 size, __u64 address)
{
	const struct cpu_sampler_copy *c = cpu_walk_record(w);
	uint64_t at = address - c->start;

	if (at < c->n_bytes && size <= c->n_bytes - at) {
		memcpy(dst, c->bytes + at, size);
		return 0;
	}
	((struct copy_walk *)w)->beyond |= at < STACK_MAX_BYTES;
	return -1;
}

/* One attempt; returns the file whose tables are missing, or CPU_FILE_NONE. */
static uint32_t walk_copy(struct cpu_sampler *s, struct cpu_range mappings)
{
	struct cpu_sampler_copy *c = &s->copy;
	struct copy_walk cw = {
		.walk = {.pc = c->pc,
			 .sp = c->regs[CPU_SAMPLER_SP],
			 .fp = c->regs[CPU_SAMPLER_FP],
			 .first = mappings.first,
			 .n = mappings.n,
			 .n_kernel = c->stack.n_kernel,
			 .keeps_fp = cpu_processes_keeps_fp(s->processes, &c->stack.thread),
			 .exact = 1,
			 .end = CPU_SAMPLER_END_TRUNCATED},
		.sampler = s,
	};
	struct cpu_walk *w = &cw.walk;

	for (int i = 0; i < CPU_SAMPLER_FRAMES_MAX; i++)
		if (cpu_walk_step(w))
			break;
	c->stack.n_user = (uint16_t)w->n_user;
	c->stack.end = (uint8_t)w->end;
	if (cw.beyond &&
	    (w->end == CPU_SAMPLER_END_UNREADABLE || w->end == CPU_SAMPLER_END_NO_RULE))
		c->stack.end = CPU_SAMPLER_END_NOT_LOADED;
	return w->wanted ? w->wanted - 1 : CPU_FILE_NONE;
}

/* Each attempt needs at most one more file; files without tables fall back to frame pointers. */
static void walk_loading(struct cpu_sampler *s, struct cpu_range mappings)
{
	for (int i = 0; i < CPU_SAMPLER_FRAMES_MAX; i++) {
		uint32_t wanted = walk_copy(s, mappings);

		if (wanted == CPU_FILE_NONE)
			return;
		cpu_files_want(s->files, wanted);
		if (!cpu_files_is_wanted(s->files))
			return;
		cpu_sampler_set_urgent(s, false);
		/* Without a pause: the process might exit meanwhile, and its pid be reused. */
		while (cpu_files_load_next(s->files, NULL))
			;
	}
}

static struct cpu_range find_mappings(struct cpu_sampler *s, const struct cpu_sampler_copy *c)
{
	const struct cpu_layout layout = {.parent = (pid_t)c->parent,
					  .uid = c->stack.uid,
					  .start_code = c->start_code,
					  .start_stack = c->start_stack};
	struct cpu_range found = cpu_processes_mappings(s->processes, &c->stack.thread);

	/* Notices that arrived before the copy. */
	if (!found.n && bpf_rings_read(s->rings, CPU_SAMPLER_RING_NOTICES, NULL) == 0)
		found = cpu_processes_mappings(s->processes, &c->stack.thread);
	if (!found.n && c->parent)
		found = cpu_processes_inherit(s->processes, &c->stack.thread, &layout);
	return found;
}

static void walk_again(struct cpu_sampler *s, struct cpu_range mappings)
{
	struct cpu_sampler_stack *stack = &s->copy.stack;
	uint16_t n_inlined = cpu_stacks_split(stack, s->user, s->interp);

	walk_loading(s, mappings);
	/* Interpreter frames kept elsewhere follow those walked now. */
	stack->n_interp -= n_inlined;
	memcpy(&stack->frames[stack->n_kernel + stack->n_user], &s->interp[n_inlined],
	       stack->n_interp * sizeof(s->interp[0]));
}

int cpu_sampler_on_copy(void *context, void *data, size_t len)
{
	const size_t header = offsetof(struct cpu_sampler_copy, bytes);
	struct cpu_sampler *s = context;
	struct cpu_sampler_stack *stack = &s->copy.stack;
	struct cpu_range mappings;
	uint32_t end;

	if (len < header || len > sizeof(s->copy))
		return 0;
	memcpy(&s->copy, data, len);
	if (s->copy.n_bytes > len - header || !cpu_stacks_is_sound(stack, sizeof(*stack)))
		return 0;
	mappings = find_mappings(s, &s->copy);
	if (mappings.n)
		walk_again(s, mappings);
	end = cpu_sampler_stack_end(stack);
	s->copy_ends[end < CPU_SAMPLER_END_N ? end : CPU_SAMPLER_END_NOT_LOADED]++;
	return cpu_sampler_on_stack(s, stack, cpu_stacks_bytes(stack));
}
