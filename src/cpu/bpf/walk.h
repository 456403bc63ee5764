/*
 * src/cpu/bpf/walk.h: walks a user stack, one call of walk_step() per frame.
 *
 * If the mapping has tables, their rule leads to the caller; text without rules and anonymous
 * memory are unwound by frame pointer. A return address is looked up one byte earlier, as the call
 * may be the last instruction of its function; the innermost frame, and one interrupted by a
 * signal, at the address itself.
 *
 * BPF walks the stack in place (walk.bpf.h), user space a copy of its top
 * (cpu/sampler/deferred_stacks.c), with the same tables and code. Each defines its access:
 * walk_record() and those after it, which may return NULL, and walk_read(), which is nonzero if
 * there is no such memory. In BPF the interpreter of the process, if any, is asked about frames
 * without a file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cpu/bpf/shared.h"

struct walk {
	__u64 pc, sp, fp, hash;
	__u64 map_start, map_end, map_bias;
	__u64 unknown; /* an address in no mapping */
	__u32 map_file, first, n;
	__u32 slot; /* of scratches */
	__u32 n_kernel, n_user, n_interp;
	__u32 end;
	__u32 exact; /* pc is no return address */
	__u32 fp_lost;
	__u32 wanted; /* file without tables, + 1 */
	__u32 interp; /* enum interp_kind of the process */
	__u32 interp_cut;
	__u32 asked; /* the frame at pc is not its interpreter's */
};

static __always_inline struct sampler_copy *walk_record(const struct walk *w);
static __always_inline const struct sampler_mapping *walk_mapping(const struct walk *w,
								  __u32 number);
static __always_inline const struct sampler_file *walk_file(const struct walk *w, __u32 id);
static __always_inline const struct sampler_chunk *walk_chunk(const struct walk *w, __u32 number);
static __always_inline const struct unwind_rule *walk_rule(const struct walk *w, __u32 number);
static __always_inline long walk_read(struct walk *w, void *dst, __u32 size, __u64 address);

/* Keeps the compiler from making a branch of it, which the verifier would follow both ways. */
#ifndef barrier_var
#define barrier_var(v) asm volatile("" : "+r"(v))
#endif

static __always_inline __u64 mix(__u64 hash, __u64 value)
{
	hash ^= value;
	hash *= 0x9e3779b97f4a7c15ULL;
	return hash ^ (hash >> 29);
}

static __always_inline bool find_mapping(struct walk *w, __u64 pc)
{
	__u32 lo = w->first, hi = w->first + w->n;
	const struct sampler_mapping *m;

	if (pc - w->map_start < w->map_end - w->map_start)
		return true;
	for (int i = 0; i < 13; i++) {
		__u32 mid = (lo + hi) >> 1, below;

		if (lo >= hi)
			break;
		m = walk_mapping(w, mid);
		if (!m)
			return false;
		below = (__u32)((__s64)(pc - m->start) >> 63); /* all ones when pc < start */
		barrier_var(below);
		lo = (lo & below) | ((mid + 1) & ~below);
		hi = (hi & ~below) | (mid & below);
	}
	if (lo == w->first)
		return false;
	lo--;
	m = walk_mapping(w, lo);
	if (!m || pc >= m->end)
		return false;
	w->map_start = m->start;
	w->map_end = m->end;
	w->map_bias = m->bias;
	w->map_file = m->file;
	return true;
}

/* The number of the rule at vaddr: the last row at or before it. */
static __always_inline __u32 search_rows(const struct sampler_chunk *c, __u32 lo, __u32 n,
					 __u64 vaddr)
{
	__u32 offset = vaddr & (SAMPLER_PAGE_SIZE - 1);

	for (int i = 0; i < 13; i++) {
		__u32 half = n >> 1, reached;

		if (n <= 1)
			break;
		reached = SAMPLER_ROW_OFFSET(c->words[(lo + half) & (SAMPLER_CHUNK_WORDS - 1)]);
		reached = ~(__u32)(((__s32)offset - (__s32)reached) >> 31);
		barrier_var(reached);
		lo += half & reached;
		n -= half;
	}
	return SAMPLER_ROW_RULE(c->words[lo & (SAMPLER_CHUNK_WORDS - 1)]);
}

/* Sets w->end and returns false where the walk has to stop. */
static __always_inline bool find_rule(struct walk *w, __u64 vaddr, struct unwind_rule *ret)
{
	const struct sampler_chunk *c;
	const struct unwind_rule *rule;
	const struct sampler_file *f;
	__u32 id = w->map_file, number, first, n, word;
	__u64 page;

	ret->cfa = UNWIND_CHAIN;
	f = walk_file(w, id);
	if (!f || f->state == SAMPLER_FILE_CHAIN)
		return true;
	if (f->state != SAMPLER_FILE_TABLE) {
		w->wanted = id + 1;
		w->end = SAMPLER_END_NOT_LOADED;
		return false;
	}
	page = (vaddr >> SAMPLER_PAGE_BITS) - f->first_page;
	if (page >= f->n_pages)
		return true;
	word = f->index + 2 * (__u32)page;
	c = walk_chunk(w, word >> SAMPLER_CHUNK_BITS);
	if (!c)
		return true;
	first = c->words[word & (SAMPLER_CHUNK_WORDS - 1)];
	n = c->words[(word + 1) & (SAMPLER_CHUNK_WORDS - 1)];
	c = walk_chunk(w, first >> SAMPLER_CHUNK_BITS);
	if (!c)
		return true;
	number = search_rows(c, first, n, vaddr);
	rule = walk_rule(w, number);
	if (!rule)
		return true;
	*ret = *rule;
	if (ret->cfa == UNWIND_NONE)
		ret->cfa = UNWIND_CHAIN;
	return true;
}

static __always_inline int stop(struct walk *w, __u32 end)
{
	w->end = end;
	return 1;
}

static __always_inline int leave_signal(struct walk *w)
{
	__u64 regs[SAMPLER_SIGNAL_N];

	if (walk_read(w, regs, sizeof(regs), w->sp + SAMPLER_SIGNAL_REGS))
		return stop(w, SAMPLER_END_UNREADABLE);
	w->fp = regs[SAMPLER_SIGNAL_FP];
	w->sp = regs[SAMPLER_SIGNAL_SP];
	w->pc = regs[SAMPLER_SIGNAL_PC];
	w->exact = 1;
	w->fp_lost = 0;
	return w->pc ? 0 : stop(w, SAMPLER_END_ROOT);
}

static __always_inline int leave_chain(struct walk *w)
{
	__u64 saved[2];

	if (w->fp_lost)
		return stop(w, SAMPLER_END_NO_RULE);
	/* No thread begins in code that was made up at run time: there 0 is just a number. */
	if (!w->fp)
		return stop(w, w->map_file == SAMPLER_NO_FILE ? SAMPLER_END_NO_RULE
							      : SAMPLER_END_ROOT);
	if (walk_read(w, saved, sizeof(saved), w->fp) || saved[0] == w->fp)
		return stop(w, SAMPLER_END_NO_RULE);
	w->sp = w->fp + 16;
	w->fp = saved[0];
	w->pc = saved[1];
	return w->pc ? 0 : stop(w, SAMPLER_END_ROOT);
}

static __always_inline int leave_by_cfa(struct walk *w, const struct unwind_rule *rule, __u64 cfa)
{
	__u64 saved[2];

	if (rule->fp == UNWIND_FP_SAVED && rule->fp_off == -16) {
		if (walk_read(w, saved, sizeof(saved), cfa - 16))
			return stop(w, SAMPLER_END_UNREADABLE);
		w->fp = saved[0];
		w->pc = saved[1];
		w->fp_lost = 0;
	} else {
		if (walk_read(w, &w->pc, sizeof(w->pc), cfa - 8))
			return stop(w, SAMPLER_END_UNREADABLE);
		if (rule->fp == UNWIND_FP_SAVED || rule->fp == UNWIND_FP_AT_FP) {
			__u64 at = rule->fp == UNWIND_FP_SAVED ? cfa : w->fp;

			if (walk_read(w, &w->fp, sizeof(w->fp), at + rule->fp_off))
				return stop(w, SAMPLER_END_UNREADABLE);
			w->fp_lost = 0;
		} else if (rule->fp == UNWIND_FP_LOST) {
			w->fp_lost = 1;
		}
	}
	w->sp = cfa;
	return w->pc ? 0 : stop(w, SAMPLER_END_ROOT);
}

static __always_inline int leave_frame(struct walk *w, const struct unwind_rule *rule,
				       const __u64 *regs, __u64 pc)
{
	__u64 cfa;

	switch (rule->cfa) {
	case UNWIND_SP:
		cfa = w->sp + rule->cfa_off;
		break;
	case UNWIND_FP:
		if (w->fp_lost)
			return stop(w, SAMPLER_END_UNSUPPORTED);
		cfa = w->fp + rule->cfa_off;
		break;
	case UNWIND_PLT:
		cfa = w->sp + 8 + ((__s32)(pc & 15) >= rule->cfa_off ? 8 : 0);
		break;
	case UNWIND_FP_DEREF:
	case UNWIND_SP_DEREF:
		if (w->fp_lost && rule->cfa == UNWIND_FP_DEREF)
			return stop(w, SAMPLER_END_UNSUPPORTED);
		cfa = rule->cfa == UNWIND_FP_DEREF ? w->fp : w->sp;
		if (walk_read(w, &cfa, sizeof(cfa), cfa + (__s16)rule->cfa_off))
			return stop(w, SAMPLER_END_UNREADABLE);
		cfa += rule->cfa_off >> 16;
		break;
	case UNWIND_REG:
		if (w->n_user != 1)
			return stop(w, SAMPLER_END_UNSUPPORTED);
		cfa = regs[rule->reg & (SAMPLER_REGS - 1)] + rule->cfa_off;
		break;
	case UNWIND_SIGNAL:
		return leave_signal(w);
	case UNWIND_END:
		return stop(w, SAMPLER_END_ROOT);
	case UNWIND_CHAIN:
		return leave_chain(w);
	default:
		return stop(w, SAMPLER_END_UNSUPPORTED);
	}
	return leave_by_cfa(w, rule, cfa);
}

static __always_inline void note_word(struct walk *w, struct sampler_stack *s, __u32 at, __u64 word)
{
	s->frames[at & SAMPLER_FRAME_MASK] = word;
	w->hash = mix(w->hash, word);
}

/* The word after everything recorded. */
static __always_inline __u32 next_word(const struct walk *w)
{
	return w->n_kernel + w->n_user + INTERP_WORDS * w->n_interp;
}

static __always_inline void note_interp(struct walk *w, struct sampler_stack *s,
					const struct interp_frame *frame)
{
	__u32 at = next_word(w);

	note_word(w, s, at, frame->id);
	note_word(w, s, at + 1, frame->check);
	w->n_interp++;
}

/* Nothing was done: ask the interpreter first. */
#define WALK_ASK 2

/* Records the frame at pc and moves to its caller; WALK_ASK, or 1 at the end of the stack. */
int walk_step(struct walk *w);
__attribute__((noinline)) int walk_step(struct walk *w)
{
	struct unwind_rule rule = {};
	struct sampler_copy *s;
	bool known, has_file;
	__u64 pc, frame;
	__u32 exact;

	if (!w)
		return 1;
	s = walk_record(w);
	if (!s)
		return 1;
	pc = w->pc;
	exact = w->exact;
	known = find_mapping(w, exact ? pc : pc - 1);
	if (!known) {
		w->unknown = pc;
		w->end = SAMPLER_END_NOT_LOADED;
		if (w->n_user)
			return 1; /* may well be nonsense */
	}
	has_file = known && w->map_file != SAMPLER_NO_FILE;
	if (known && !has_file && w->interp && !w->asked)
		return WALK_ASK;
	frame = (has_file ? pc - w->map_bias : pc) & SAMPLER_FRAME_ADDRESS;
	if (has_file)
		frame |= (__u64)(w->map_file + 1) << SAMPLER_FRAME_FILE_SHIFT;
	if (exact)
		frame |= SAMPLER_FRAME_EXACT;
	note_word(w, &s->stack, next_word(w), frame);
	w->n_user++;
	w->asked = 0;
	if (!known)
		return 1;
	rule.cfa = UNWIND_CHAIN;
	if (has_file && !find_rule(w, pc - w->map_bias - !exact, &rule))
		return 1;
	w->exact = 0;
	return leave_frame(w, &rule, s->regs, pc);
}
