/*
 * src/cpu/bpf/walk.h: walks a user stack, one call of cpu_walk_step() per frame.
 *
 * If the mapping has tables, their rule leads to the caller. Text without rules and anonymous
 * memory are unwound by frame pointer. Unless it is known to be kept there, that is a guess: code
 * that uses the register for something else, or not at all, hides its callers. A stack with such a
 * guess in it is shown as cut, wherever it ends. A return address is looked up one byte earlier, as
 * the call may be the last instruction of its function; the innermost frame, and one interrupted by
 * a signal, at the address itself.
 *
 * BPF walks the stack in place (walk.bpf.h), user space a copy of its top
 * (cpu/sampler/deferred_stacks.c), with the same tables and code. Each defines its access:
 * cpu_walk_record() and those after it, which may return NULL, and cpu_walk_read(), which is
 * nonzero if there is no such memory. In BPF the interpreter of the process, if any, is asked about
 * frames without a file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cpu/bpf/shared.h"

struct cpu_walk {
	__u64 pc, sp, fp, hash;
	__u64 map_start, map_end, map_bias;
	__u64 unknown; /* an address in no mapping */
	__u32 map_file, map_generation, first, n;
	__u32 slot;   /* 0: a sample, 1: a wait */
	__u32 record; /* of scratches */
	__u32 n_kernel, n_user, n_interp;
	__u32 end;
	__u32 exact; /* pc is not a return address */
	__u32 fp_lost;
	__u32 wanted; /* file without tables, + 1 */
	__u32 interp; /* enum interp_kind of the process */
	__u32 interp_cut;
	__u32 asked;	/* the frame at pc is not its interpreter's */
	__u32 keeps_fp; /* as in struct cpu_sampler_process */
	__u32 guess;	/* CPU_WALK_GUESSED: how the last frame was left */
	__u32 unsure;	/* an earlier one was left by a guess */
};

/* Addresses that share a hint: most libraries are smaller. */
#define CPU_WALK_HINT_SHIFT 20

#define CPU_WALK_GUESSED 1 /* by a frame pointer that may be something else */
#define CPU_WALK_BEGUN 2   /* the thread may have begun there */

/*
 * A thread may begin in a frame this close to the top of its stack: only the code that starts
 * programs and threads is above. The innermost frame may be a leaf that was just called.
 */
#define CPU_WALK_BEGIN_BYTES 512U
#define CPU_WALK_BEGIN_LEAF_BYTES 32U
#define CPU_WALK_BEGIN_THREAD_BYTES 4096U

static __always_inline struct cpu_sampler_copy *cpu_walk_record(const struct cpu_walk *w);
static __always_inline const struct cpu_sampler_mapping *cpu_walk_mapping(const struct cpu_walk *w,
									  __u32 number);
static __always_inline const struct cpu_sampler_file *cpu_walk_file(const struct cpu_walk *w,
								    __u32 id);
static __always_inline const struct cpu_sampler_chunk *cpu_walk_chunk(const struct cpu_walk *w,
								      __u32 number);
static __always_inline const struct elf_unwind_rule *cpu_walk_rule(const struct cpu_walk *w,
								   __u32 number);
static __always_inline struct cpu_sampler_memo *cpu_walk_memo(const struct cpu_walk *w,
							      __u32 number);
static __always_inline __u64 *cpu_walk_hint(const struct cpu_walk *w, __u32 number);
static __always_inline long cpu_walk_read(struct cpu_walk *w, void *dst, __u32 size, __u64 address);

/* Keeps the compiler from creating a branch, which the verifier would follow both ways. */
#ifndef barrier_var
#define barrier_var(v) asm volatile("" : "+r"(v))
#endif

static __always_inline __u64 cpu_walk_mix(__u64 hash, __u64 value)
{
	hash ^= value;
	hash *= 0x9e3779b97f4a7c15ULL;
	return hash ^ (hash >> 29);
}

/* A multiple of a number without a pattern: its upper bits depend on all of the key's. */
static __always_inline __u32 cpu_walk_slot(__u64 key, __u32 bits)
{
	return (__u32)(key * 0x9e3779b97f4a7c15ULL >> (64 - bits));
}

static __always_inline bool cpu_walk_use_mapping(struct cpu_walk *w, __u32 number, __u64 pc)
{
	const struct cpu_sampler_mapping *m = cpu_walk_mapping(w, number);

	if (!m || pc - m->start >= m->end - m->start)
		return false;
	w->map_start = m->start;
	w->map_end = m->end;
	w->map_bias = m->bias;
	w->map_file = m->file;
	w->map_generation = m->generation;
	return true;
}

static __always_inline bool cpu_walk_find_mapping(struct cpu_walk *w, __u64 pc)
{
	__u32 lo = w->first, hi = w->first + w->n;
	const struct cpu_sampler_mapping *m;
	__u64 *hint, number;

	if (pc - w->map_start < w->map_end - w->map_start)
		return true;
	hint = cpu_walk_hint(w, cpu_walk_slot((__u64)w->first << 32 | pc >> CPU_WALK_HINT_SHIFT,
					      CPU_SAMPLER_HINT_BITS));
	if (hint) {
		number = *hint;
		barrier_var(number); /* not read again: it may change */
		if (number - w->first < w->n && cpu_walk_use_mapping(w, (__u32)number, pc))
			return true;
	}
	for (int i = 0; i < 13; i++) {
		__u32 mid = (lo + hi) >> 1, below;

		if (lo >= hi)
			break;
		m = cpu_walk_mapping(w, mid);
		if (!m)
			return false;
		below = (__u32)((__s64)(pc - m->start) >> 63); /* all ones if pc < start */
		barrier_var(below);
		lo = (lo & below) | ((mid + 1) & ~below);
		hi = (hi & ~below) | (mid & below);
	}
	if (lo == w->first)
		return false;
	lo--;
	if (!cpu_walk_use_mapping(w, lo, pc))
		return false;
	if (hint)
		*hint = lo;
	return true;
}

/* The number of the rule at vaddr: the last row at or before it. */
static __always_inline __u32 cpu_walk_search_rows(const struct cpu_sampler_chunk *c, __u32 lo,
						  __u32 n, __u64 vaddr)
{
	__u32 offset = vaddr & (CPU_SAMPLER_PAGE_SIZE - 1);

	for (int i = 0; i <= CPU_SAMPLER_PAGE_BITS; i++) {
		__u32 half = n >> 1, reached;

		if (n <= 1)
			break;
		reached = CPU_SAMPLER_ROW_OFFSET(
			c->words[(lo + half) & (CPU_SAMPLER_CHUNK_WORDS - 1)]);
		reached = ~(__u32)(((__s32)offset - (__s32)reached) >> 31);
		barrier_var(reached);
		lo += half & reached;
		n -= half;
	}
	return CPU_SAMPLER_ROW_RULE(c->words[lo & (CPU_SAMPLER_CHUNK_WORDS - 1)]);
}

/* A rule that is in its row. */
static __always_inline struct elf_unwind_rule cpu_walk_short_rule(__u32 number)
{
	__u32 fp = CPU_SAMPLER_SHORT_FP(number);

	return (struct elf_unwind_rule){
		.cfa = ELF_UNWIND_SP,
		.fp = fp ? ELF_UNWIND_FP_SAVED : ELF_UNWIND_FP_SAME,
		.fp_off = fp ? (__s16)(-8 * (__s32)(fp + 1)) : 0,
		.cfa_off = (__s32)CPU_SAMPLER_SHORT_CFA(number),
	};
}

/* Sets w->end and returns false if the walk must stop. */
static __always_inline bool cpu_walk_find_rule(struct cpu_walk *w, __u64 vaddr,
					       struct elf_unwind_rule *ret)
{
	const struct cpu_sampler_chunk *c;
	const struct elf_unwind_rule *rule;
	const struct cpu_sampler_file *f;
	__u32 id = w->map_file, number, first, n, word;
	__u64 page;

	f = cpu_walk_file(w, id);
	if (f && f->state == CPU_SAMPLER_FILE_PARTS) {
		page = (vaddr >> CPU_SAMPLER_PAGE_BITS) - f->first_page;
		if (page >= f->n_pages)
			return true;
		id = f->index + (__u32)(page >> CPU_SAMPLER_PART_BITS);
		f = cpu_walk_file(w, id);
	}
	if (!f)
		return true;
	if (f->keeps_fp)
		ret->cfa = ELF_UNWIND_CHAIN;
	if (f->state == CPU_SAMPLER_FILE_CHAIN)
		return true;
	if (f->state != CPU_SAMPLER_FILE_TABLE) {
		w->wanted = id + 1;
		w->end = CPU_SAMPLER_END_NOT_LOADED;
		return false;
	}
	page = (vaddr >> CPU_SAMPLER_PAGE_BITS) - f->first_page;
	if (page >= f->n_pages)
		return true;
	word = f->index + 2 * (__u32)page;
	c = cpu_walk_chunk(w, word >> CPU_SAMPLER_CHUNK_BITS);
	if (!c)
		return true;
	first = c->words[word & (CPU_SAMPLER_CHUNK_WORDS - 1)];
	n = c->words[(word + 1) & (CPU_SAMPLER_CHUNK_WORDS - 1)];
	/* Mostly the index and its rows are close together. */
	if ((first ^ word) >> CPU_SAMPLER_CHUNK_BITS)
		c = cpu_walk_chunk(w, first >> CPU_SAMPLER_CHUNK_BITS);
	if (!c)
		return true;
	number = cpu_walk_search_rows(c, first, n, vaddr);
	if (number & CPU_SAMPLER_RULE_SHORT) {
		*ret = cpu_walk_short_rule(number);
		return true;
	}
	rule = cpu_walk_rule(w, number);
	if (rule && rule->cfa != ELF_UNWIND_NONE)
		*ret = *rule;
	return true;
}

/* The same, and remembers the rules of return addresses: there are few, and they recur. */
static __always_inline bool cpu_walk_recall_rule(struct cpu_walk *w, __u64 vaddr, __u32 exact,
						 struct elf_unwind_rule *ret)
{
	__u64 key = (__u64)w->map_generation << 32 | vaddr, bits;
	struct cpu_sampler_memo *memo = NULL;

	if (!exact && !(vaddr >> 32))
		memo = cpu_walk_memo(w, cpu_walk_slot(key, CPU_SAMPLER_MEMO_BITS));
	if (memo) {
		bits = memo->rule;
		barrier_var(bits);
		if ((memo->check ^ bits) == key) {
			__builtin_memcpy(ret, &bits, sizeof(*ret));
			return true;
		}
	}
	if (!cpu_walk_find_rule(w, vaddr, ret))
		return false;
	/* Frame pointers may just stand in for a table that is not there yet. */
	if (memo && ret->cfa != ELF_UNWIND_NONE && ret->cfa != ELF_UNWIND_CHAIN) {
		__builtin_memcpy(&bits, ret, sizeof(bits));
		memo->check = key ^ bits;
		memo->rule = bits;
	}
	return true;
}

static __always_inline int cpu_walk_stop(struct cpu_walk *w, __u32 end)
{
	w->end = end == CPU_SAMPLER_END_ROOT && w->unsure ? CPU_SAMPLER_END_NO_RULE : end;
	return 1;
}

static __always_inline int cpu_walk_leave_signal(struct cpu_walk *w)
{
	__u64 regs[CPU_SAMPLER_SIGNAL_N];

	if (cpu_walk_read(w, regs, sizeof(regs), w->sp + CPU_SAMPLER_SIGNAL_REGS))
		return cpu_walk_stop(w, CPU_SAMPLER_END_UNREADABLE);
	w->fp = regs[CPU_SAMPLER_SIGNAL_FP];
	w->sp = regs[CPU_SAMPLER_SIGNAL_SP];
	w->pc = regs[CPU_SAMPLER_SIGNAL_PC];
	w->exact = 1;
	w->fp_lost = 0;
	return w->pc ? 0 : cpu_walk_stop(w, CPU_SAMPLER_END_ROOT);
}

static __always_inline bool cpu_walk_may_begin(const struct cpu_walk *w,
					       const struct cpu_sampler_copy *s, __u32 exact)
{
	__u64 above = exact ? CPU_WALK_BEGIN_LEAF_BYTES : CPU_WALK_BEGIN_BYTES;

	/* The very first instructions may have taken something off the stack. */
	return s->start_stack + CPU_WALK_BEGIN_LEAF_BYTES - w->sp <
		       above + CPU_WALK_BEGIN_LEAF_BYTES ||
	       (!exact && s->self - w->sp < CPU_WALK_BEGIN_THREAD_BYTES);
}

/* guess: CPU_WALK_GUESSED and so on; 0 if a frame pointer is known to be there. */
static __always_inline int cpu_walk_leave_chain(struct cpu_walk *w, __u32 guess)
{
	__u64 saved[2];

	w->guess = guess;
	if (!w->fp_lost && w->fp && !cpu_walk_read(w, saved, sizeof(saved), w->fp) &&
	    saved[0] != w->fp) {
		w->sp = w->fp + 16;
		w->fp = saved[0];
		w->pc = saved[1];
		if (w->pc)
			return 0;
		return cpu_walk_stop(w, guess == CPU_WALK_GUESSED ? CPU_SAMPLER_END_NO_RULE
								  : CPU_SAMPLER_END_ROOT);
	}
	/* Code generated at run time always has a caller, so 0 there is just a number. */
	if (guess & CPU_WALK_BEGUN ||
	    (!guess && !w->fp_lost && !w->fp && w->map_file != CPU_SAMPLER_NO_FILE))
		return cpu_walk_stop(w, CPU_SAMPLER_END_ROOT);
	return cpu_walk_stop(w, CPU_SAMPLER_END_NO_RULE);
}

static __always_inline int cpu_walk_leave_by_cfa(struct cpu_walk *w,
						 const struct elf_unwind_rule *rule, __u64 cfa)
{
	__u64 saved[2];

	if (rule->fp == ELF_UNWIND_FP_SAVED && rule->fp_off == -16) {
		if (cpu_walk_read(w, saved, sizeof(saved), cfa - 16))
			return cpu_walk_stop(w, CPU_SAMPLER_END_UNREADABLE);
		w->fp = saved[0];
		w->pc = saved[1];
		w->fp_lost = 0;
	} else {
		if (cpu_walk_read(w, &w->pc, sizeof(w->pc), cfa - 8))
			return cpu_walk_stop(w, CPU_SAMPLER_END_UNREADABLE);
		if (rule->fp == ELF_UNWIND_FP_SAVED || rule->fp == ELF_UNWIND_FP_AT_FP) {
			__u64 at = rule->fp == ELF_UNWIND_FP_SAVED ? cfa : w->fp;

			if (cpu_walk_read(w, &w->fp, sizeof(w->fp), at + rule->fp_off))
				return cpu_walk_stop(w, CPU_SAMPLER_END_UNREADABLE);
			w->fp_lost = 0;
		} else if (rule->fp == ELF_UNWIND_FP_LOST) {
			w->fp_lost = 1;
		}
	}
	w->sp = cfa;
	return w->pc ? 0 : cpu_walk_stop(w, CPU_SAMPLER_END_ROOT);
}

static __always_inline int cpu_walk_leave_frame(struct cpu_walk *w,
						const struct elf_unwind_rule *rule,
						const struct cpu_sampler_copy *s, __u64 pc,
						__u32 exact)
{
	__u64 cfa;

	switch (rule->cfa) {
	case ELF_UNWIND_SP:
		cfa = w->sp + rule->cfa_off;
		break;
	case ELF_UNWIND_FP:
		if (w->fp_lost)
			return cpu_walk_stop(w, CPU_SAMPLER_END_UNSUPPORTED);
		cfa = w->fp + rule->cfa_off;
		break;
	case ELF_UNWIND_PLT:
		cfa = w->sp + 8 + ((__s32)(pc & 15) >= rule->cfa_off ? 8 : 0);
		break;
	case ELF_UNWIND_FP_DEREF:
	case ELF_UNWIND_SP_DEREF:
		if (w->fp_lost && rule->cfa == ELF_UNWIND_FP_DEREF)
			return cpu_walk_stop(w, CPU_SAMPLER_END_UNSUPPORTED);
		cfa = rule->cfa == ELF_UNWIND_FP_DEREF ? w->fp : w->sp;
		if (cpu_walk_read(w, &cfa, sizeof(cfa), cfa + (__s16)rule->cfa_off))
			return cpu_walk_stop(w, CPU_SAMPLER_END_UNREADABLE);
		cfa += rule->cfa_off >> 16;
		break;
	case ELF_UNWIND_REG:
		if (w->n_user != 1)
			return cpu_walk_stop(w, CPU_SAMPLER_END_UNSUPPORTED);
		cfa = s->regs[rule->reg & (CPU_SAMPLER_REGS - 1)] + rule->cfa_off;
		break;
	case ELF_UNWIND_SIGNAL:
		return cpu_walk_leave_signal(w);
	case ELF_UNWIND_END:
		return cpu_walk_stop(w, CPU_SAMPLER_END_ROOT);
	case ELF_UNWIND_CHAIN:
	case ELF_UNWIND_NONE:
		return cpu_walk_leave_chain(w, rule->cfa == ELF_UNWIND_CHAIN ? 0
					       : cpu_walk_may_begin(w, s, exact)
						       ? CPU_WALK_GUESSED | CPU_WALK_BEGUN
						       : CPU_WALK_GUESSED);
	default:
		return cpu_walk_stop(w, CPU_SAMPLER_END_UNSUPPORTED);
	}
	return cpu_walk_leave_by_cfa(w, rule, cfa);
}

static __always_inline void cpu_note_word(struct cpu_walk *w, struct cpu_sampler_stack *s, __u32 at,
					  __u64 word)
{
	s->frames[at & CPU_SAMPLER_FRAME_MASK] = word;
	w->hash = cpu_walk_mix(w->hash, word);
}

/* The word after everything recorded. */
static __always_inline __u32 cpu_next_word(const struct cpu_walk *w)
{
	return w->n_kernel + w->n_user + INTERP_WORDS * w->n_interp;
}

static __always_inline void cpu_note_interp(struct cpu_walk *w, struct cpu_sampler_stack *s,
					    const struct interp_frame *frame)
{
	__u32 at = cpu_next_word(w);

	cpu_note_word(w, s, at, frame->id);
	cpu_note_word(w, s, at + 1, frame->check);
	w->n_interp++;
}

/* Nothing was done: ask the interpreter first. */
#define CPU_WALK_ASK 2

/* Records the frame at pc and moves to its caller; CPU_WALK_ASK, or 1 at the end of the stack. */
int cpu_walk_step(struct cpu_walk *w);
__attribute__((noinline)) int cpu_walk_step(struct cpu_walk *w)
{
	struct elf_unwind_rule rule = {};
	struct cpu_sampler_copy *s;
	bool known, has_file;
	__u64 pc, frame;
	__u32 exact;

	if (!w)
		return 1;
	s = cpu_walk_record(w);
	if (!s)
		return 1;
	pc = w->pc;
	exact = w->exact;
	known = cpu_walk_find_mapping(w, exact ? pc : pc - 1);
	/* The guess was wrong: that was no caller. */
	if (!known && (w->guess & CPU_WALK_BEGUN))
		return cpu_walk_stop(w, CPU_SAMPLER_END_ROOT);
	w->unsure |= w->guess;
	w->guess = 0;
	if (!known) {
		w->unknown = pc;
		w->end = CPU_SAMPLER_END_NOT_LOADED;
		if (w->n_user)
			return 1; /* may well be nonsense */
	}
	has_file = known && w->map_file != CPU_SAMPLER_NO_FILE;
	if (known && !has_file && w->interp && !w->asked)
		return CPU_WALK_ASK;
	frame = (has_file ? pc - w->map_bias : pc) & CPU_SAMPLER_FRAME_ADDRESS;
	if (has_file)
		frame |= (__u64)(w->map_file + 1) << CPU_SAMPLER_FRAME_FILE_SHIFT;
	if (exact)
		frame |= CPU_SAMPLER_FRAME_EXACT;
	cpu_note_word(w, &s->stack, cpu_next_word(w), frame);
	w->n_user++;
	w->asked = 0;
	if (!known)
		return 1;
	if (!has_file && w->keeps_fp)
		rule.cfa = ELF_UNWIND_CHAIN;
	if (has_file && !cpu_walk_recall_rule(w, pc - w->map_bias - !exact, exact, &rule))
		return 1;
	w->exact = 0;
	return cpu_walk_leave_frame(w, &rule, s, pc, exact);
}
