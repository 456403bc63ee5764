/*
 * src/cpu/sampler_python_bpf.h: the Python frames of the thread at hand, from the interpreter's own
 * lists (python/layout.h).
 *
 * A thread finds its own state by what pthread_self() is for it: whether it holds the interpreter's
 * lock or not, what that points to is its own, and nobody changes it while it is interrupted. All
 * of it is the program's memory, and may be anything: each list is followed so far and no further.
 */
#pragma once

#include "cpu/sampler_bpf.h"

#include "cpu/sampler_maps_bpf.h"
#include "cpu/sampler_shared.h"
#include "cpu/sampler_walk_bpf.h"

/* Where the walk is. */
enum {
	PYTHON_THREADS, /* at a thread, looking for the one at hand */
	PYTHON_FRAMES,	/* at a frame of its */
	PYTHON_END,
};

struct python_walk {
	u64 interpreter;
	u64 at;
	u64 self;
	u64 hash;
	u32 layout;
	u32 slot;  /* of scratches */
	u32 first; /* among the words of the stack */
	u32 n;
	u32 where;
};

#define PYTHON_READ(value, address) bpf_probe_read_user(&(value), sizeof(value), (void *)(address))
/* The byte of a frame that stands for a call from C. */
#define PYTHON_OWNED_BY_C 3

/*
 * The next interpreter's threads. A thread may have a state in each: the younger interpreter, which
 * comes first, is the one that the older has called.
 */
static __always_inline int python_next_interpreter(const struct python_layout *l,
						   struct python_walk *p)
{
	u64 next;

	if (PYTHON_READ(next, p->interpreter + l->interpreter_next))
		return 1;
	if (!next) {
		p->where = PYTHON_END;
		return 1;
	}
	p->where = PYTHON_THREADS;
	p->interpreter = next;
	return PYTHON_READ(p->at, next + l->interpreter_threads) ? 1 : 0;
}

static __always_inline int python_try_thread(const struct python_layout *l, struct python_walk *p)
{
	u64 id;

	if (!p->at)
		return python_next_interpreter(l, p);
	if (PYTHON_READ(id, p->at + l->thread_id))
		return 1;
	if (id != p->self)
		return PYTHON_READ(p->at, p->at + l->thread_next) ? 1 : 0;
	p->where = PYTHON_FRAMES;
	if (PYTHON_READ(p->at, p->at + l->thread_frame))
		return 1;
	return l->has_cframe && PYTHON_READ(p->at, p->at + l->cframe_frame) ? 1 : 0;
}

/* The number of the instruction that the frame executes. */
static __always_inline u32 python_instr(const struct python_layout *l, u64 frame, u64 code)
{
	u64 pointer = 0;
	s32 number = 0;

	if (l->has_pointer) {
		PYTHON_READ(pointer, frame + l->frame_instr);
		pointer = (pointer - code - l->code_instrs) >> 1;
	} else {
		PYTHON_READ(number, frame + l->frame_instr);
		pointer = (u64)(s64)(l->minor == PYTHON_MINOR_MIN ? number >> 1 : number);
	}
	return pointer < SAMPLER_PYTHON_INSTR_MAX ? pointer : SAMPLER_PYTHON_INSTR_MAX;
}

/* By this another code object is known that has been put in the place of this one. */
static __always_inline u64 python_name_hash(const struct python_layout *l, u64 code)
{
	u64 name = 0, hash = 0;

	PYTHON_READ(name, code + l->code_name);
	PYTHON_READ(hash, name + PYTHON_TEXT_HASH);
	return hash == PYTHON_TEXT_NO_HASH ? name : hash;
}

static __always_inline int python_take_frame(const struct python_layout *l, struct python_walk *p,
					     struct sampler_copy *s)
{
	u64 code, previous, hash, frame = p->at, value;
	u32 word = p->first + 2 * p->n;
	u8 entry = 1;

	if (!frame)
		return python_next_interpreter(l, p);
	if (p->n >= SAMPLER_FRAMES_MAX || PYTHON_READ(code, frame + l->frame_code) ||
	    PYTHON_READ(previous, frame + l->frame_previous))
		return 1;
	if (l->entry != PYTHON_ENTRY_EACH && PYTHON_READ(entry, frame + l->frame_entry))
		return 1;
	p->at = previous;
	if (l->entry == PYTHON_ENTRY_FRAME) {
		if (entry == PYTHON_OWNED_BY_C) {
			if (p->n)
				s->stack.frames[(word - 2) & SAMPLER_FRAME_MASK] |=
					SAMPLER_PYTHON_ENTRY;
			p->hash = mix(p->hash, 1);
			return 0;
		}
		entry = 0;
	}
	value = SAMPLER_PYTHON | ((code >> SAMPLER_PYTHON_CODE_SHIFT) & SAMPLER_PYTHON_CODE);
	value |= (u64)python_instr(l, frame, code) << SAMPLER_PYTHON_INSTR_SHIFT;
	if (entry)
		value |= SAMPLER_PYTHON_ENTRY;
	hash = python_name_hash(l, code);
	s->stack.frames[word & SAMPLER_FRAME_MASK] = value;
	s->stack.frames[(word + 1) & SAMPLER_FRAME_MASK] = hash;
	p->hash = mix(mix(p->hash, value), hash);
	p->n++;
	return 0;
}

/* Not 0 at the end. Global, so that the verifier takes what it finds in p for anything: older ones
 * would take it for what it is at the first step. */
int python_step(struct python_walk *p);
__attribute__((noinline)) int python_step(struct python_walk *p)
{
	const struct python_layout *l;
	struct sampler_copy *s;
	u32 layout, slot;

	if (!p)
		return 1;
	layout = p->layout;
	slot = p->slot;
	l = bpf_map_lookup_elem(&python_layouts, &layout);
	s = bpf_map_lookup_elem(&scratches, &slot);
	if (!l || !s)
		return 1;
	return p->where == PYTHON_THREADS ? python_try_thread(l, p) : python_take_frame(l, p, s);
}

static int python_loop(u32 i, struct python_walk *p)
{
	return python_step(p) ? 1 : 0;
}

/* Of a process that has an interpreter, after the walk of its stack. */
static __always_inline void take_python(struct walk *w, const struct sampler_process *process,
					struct task_struct *task)
{
	struct python_walk p = {.self = TASK_SELF(task),
				.hash = w->hash,
				.layout = process->python_layout,
				.slot = w->slot,
				.first = w->n_kernel + w->n_user};
	u32 layout = p.layout;
	const struct python_layout *l = bpf_map_lookup_elem(&python_layouts, &layout);

	if (!l || !p.self ||
	    PYTHON_READ(p.interpreter, process->python + l->runtime_interpreters) ||
	    !p.interpreter || PYTHON_READ(p.at, p.interpreter + l->interpreter_threads))
		return;
	bpf_loop(SAMPLER_PYTHON_STEPS, python_loop, &p, 0);
	/* Threads that never ran any Python have no state, and no frames. */
	w->n_python = p.n;
	w->python_cut = p.where != PYTHON_END;
	w->hash = mix(p.hash, w->python_cut);
}
