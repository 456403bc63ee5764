/*
 * src/cpu/bpf/walk.bpf.h: the walk in BPF, with the maps prepared by user space; then the
 * frames that an interpreter keeps outside the stack.
 */
#pragma once

#include "cpu/bpf/kernel.bpf.h"

#include "cpu/bpf/maps.bpf.h"
#include "cpu/bpf/shared.h"
#include "cpu/bpf/walk.h"
#include "cpu/interp/interp.bpf.h"

static __always_inline struct cpu_sampler_copy *cpu_walk_record(const struct cpu_walk *w)
{
	u32 record = w->record;

	return bpf_map_lookup_elem(&scratches, &record);
}

static __always_inline const struct cpu_sampler_mapping *cpu_walk_mapping(const struct cpu_walk *w,
									  u32 number)
{
	return bpf_map_lookup_elem(&mappings, &number);
}

static __always_inline const struct cpu_sampler_file *cpu_walk_file(const struct cpu_walk *w,
								    u32 id)
{
	return bpf_map_lookup_elem(&files, &id);
}

static __always_inline const struct cpu_sampler_chunk *cpu_walk_chunk(const struct cpu_walk *w,
								      u32 number)
{
	void *chunk = bpf_map_lookup_elem(&chunks, &number);
	u32 zero = 0;

	return chunk ? bpf_map_lookup_elem(chunk, &zero) : NULL;
}

static __always_inline const struct elf_unwind_rule *cpu_walk_rule(const struct cpu_walk *w,
								   u32 number)
{
	return bpf_map_lookup_elem(&rules, &number);
}

static __always_inline struct cpu_sampler_memo *cpu_walk_memo(const struct cpu_walk *w, u32 number)
{
	return bpf_map_lookup_elem(&memos, &number);
}

static __always_inline __u64 *cpu_walk_hint(const struct cpu_walk *w, u32 number)
{
	return bpf_map_lookup_elem(&hints, &number);
}

static __always_inline long cpu_walk_read(struct cpu_walk *w, void *dst, u32 size, u64 address)
{
	return bpf_probe_read_user(dst, size, (void *)address);
}

static __always_inline int interp_step(const struct cpu_walk *w, struct interp_walk *i)
{
	u32 row = i->layout;
	const struct interp_layout *l = bpf_map_lookup_elem(&interp_layouts, &row);

	if (!l)
		return INTERP_END;
	switch (w->interp) {
#define STEP(constant, name)                                                                       \
	case INTERP_##constant:                                                                    \
		return interp_##name##_step(i, l);
		INTERP_KINDS(STEP)
#undef STEP
	default:
		return INTERP_END;
	}
}

/*
 * For the frame at pc, which has no file. CPU_WALK_ASK: unwind it like any other. Not part of
 * cpu_walk_step(): the stack of interpreter steps would add to its own, and all programs together
 * have 512 bytes.
 */
int interp_ask(struct cpu_walk *w);
__attribute__((noinline)) int interp_ask(struct cpu_walk *w)
{
	struct interp_walk *i;
	struct cpu_sampler_copy *s;
	u32 slot, answer;
	u64 frame;

	if (!w)
		return 1;
	slot = w->slot;
	i = bpf_map_lookup_elem(&interp_walks, &slot);
	s = cpu_walk_record(w);
	if (!i || !s)
		return 1;
	w->asked = 1;
	frame = (w->pc & CPU_SAMPLER_FRAME_ADDRESS) | (w->exact ? CPU_SAMPLER_FRAME_EXACT : 0);
	i->pc = w->pc;
	i->sp = w->sp;
	i->fp = w->fp;
	i->exact = w->exact;
	answer = interp_step(w, i);
	if (answer != INTERP_FRAME && answer != INTERP_CUT)
		return CPU_WALK_ASK;
	if (answer == INTERP_FRAME)
		frame |= CPU_SAMPLER_FRAME_INTERP << CPU_SAMPLER_FRAME_FILE_SHIFT;
	cpu_note_word(w, &s->stack, cpu_next_word(w), frame);
	w->n_user++;
	w->asked = 0;
	if (answer == INTERP_CUT)
		return cpu_walk_stop(w, CPU_SAMPLER_END_NO_RULE);
	i->frame.id |= INTERP_ENTERED; /* each has its own native frame */
	cpu_note_interp(w, &s->stack, &i->frame);
	w->pc = i->pc;
	w->sp = i->sp;
	w->fp = i->fp;
	w->exact = i->exact;
	w->fp_lost = 0;
	return w->pc ? 0 : cpu_walk_stop(w, CPU_SAMPLER_END_ROOT);
}

static int walk_loop(u32 number, struct cpu_walk *w)
{
	int r = cpu_walk_step(w);

	if (r == CPU_WALK_ASK)
		r = interp_ask(w);
	if (r == CPU_WALK_ASK)
		r = cpu_walk_step(w);
	return r ? 1 : 0;
}

/* Native code called the last frame. */
static __always_inline void mark_entered(struct cpu_walk *w, struct cpu_sampler_stack *s)
{
	if (w->n_interp)
		s->frames[(cpu_next_word(w) - INTERP_WORDS) & CPU_SAMPLER_FRAME_MASK] |=
			INTERP_ENTERED;
	w->hash = cpu_walk_mix(w->hash, 1);
}

/*
 * Nonzero at the end. Global, so that the verifier assumes nothing about w: older ones would assume
 * the values of the first step.
 */
int interp_take(struct cpu_walk *w);
__attribute__((noinline)) int interp_take(struct cpu_walk *w)
{
	struct interp_walk *i;
	struct cpu_sampler_copy *s;
	u32 slot;

	if (!w)
		return 1;
	slot = w->slot;
	i = bpf_map_lookup_elem(&interp_walks, &slot);
	s = cpu_walk_record(w);
	if (!i || !s)
		return 1;
	i->pc = 0;
	switch (interp_step(w, i)) {
	case INTERP_FRAME:
		if (w->n_interp >= CPU_SAMPLER_FRAMES_MAX)
			return 1;
		cpu_note_interp(w, &s->stack, &i->frame);
		return 0;
	case INTERP_CALLED:
		mark_entered(w, &s->stack);
		return 0;
	case INTERP_AGAIN:
		return 0;
	case INTERP_END:
		w->interp_cut = 0;
		return 1;
	default:
		return 1;
	}
}

static int interp_loop(u32 number, struct cpu_walk *w)
{
	return interp_take(w) ? 1 : 0;
}

/* Before the walk of a process with an interpreter. */
static __always_inline void interp_begin(struct cpu_walk *w, const struct interp_process *process,
					 struct task_struct *task)
{
	u32 slot = w->slot;
	struct interp_walk *i = bpf_map_lookup_elem(&interp_walks, &slot);

	if (!i)
		return;
	*i = (struct interp_walk){.thread = TASK_SELF(task), .layout = process->layout};
	for (int n = 0; n < INTERP_ADDRESSES; n++)
		i->addresses[n] = process->addresses[n];
	w->interp = process->kind;
}

/* After the walk. */
static __always_inline void interp_end(struct cpu_walk *w)
{
	if (!w->interp || w->n_interp)
		return;
	w->interp_cut = 1;
	bpf_loop(INTERP_STEPS, interp_loop, w, 0);
	w->hash = cpu_walk_mix(w->hash, w->interp_cut);
}
