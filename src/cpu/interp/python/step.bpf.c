/*
 * src/cpu/interp/python/step.bpf.c: finds the Python frames of the current thread in the
 * interpreter's lists (layout.h).
 *
 * The thread's state is found by its pthread_self(). Whether or not the thread holds the GIL,
 * nobody else changes that state while it is interrupted. The program controls all of this memory,
 * so every list is followed for a limited number of steps.
 */
#include "cpu/interp/interp.bpf.h"

#include "cpu/interp/python/layout.h"
#include "cpu/interp/python/python.h"

/* What the walk is looking at. */
enum {
	PYTHON_START,
	PYTHON_THREADS, /* a thread state, searching for the current thread */
	PYTHON_FRAMES,	/* one of its frames */
};

/* In walk->state. */
struct python_state {
	u64 where;
	u64 interpreter;
	u64 at;
	u64 tried; /* threads */
};

/* Steps are for frames as well: with more threads than this, one is not looked for. */
#define PYTHON_TRIED_MAX 512

/* The owner byte of a frame that stands for a call from C. */
#define PYTHON_OWNED_BY_C 3

static __always_inline int python_start(const struct python_layout *l, struct python_state *p,
					const struct interp_walk *w)
{
	u64 runtime = w->addresses[PYTHON_RUNTIME];

	/* NULL before the interpreter is set up and after it is torn down. */
	if (!w->thread || INTERP_READ(p->interpreter, runtime + l->runtime_interpreters) ||
	    !p->interpreter || INTERP_READ(p->at, p->interpreter + l->interpreter_threads))
		return INTERP_END;
	p->where = PYTHON_THREADS;
	return INTERP_AGAIN;
}

/*
 * The next interpreter's threads. A thread may have a state in each: the newest interpreter comes
 * first, and was called by the older one. Threads that never ran Python have no state and no
 * frames.
 */
static __always_inline int python_next_interpreter(const struct python_layout *l,
						   struct python_state *p)
{
	u64 next;

	if (INTERP_READ(next, p->interpreter + l->interpreter_next))
		return INTERP_CUT;
	if (!next)
		return INTERP_END;
	p->where = PYTHON_THREADS;
	p->interpreter = next;
	return INTERP_READ(p->at, next + l->interpreter_threads) ? INTERP_CUT : INTERP_AGAIN;
}

static __always_inline int python_try_thread(const struct python_layout *l, struct python_state *p,
					     const struct interp_walk *w)
{
	u64 id;

	if (!p->at)
		return python_next_interpreter(l, p);
	if (p->tried++ == PYTHON_TRIED_MAX || INTERP_READ(id, p->at + l->thread_id))
		return INTERP_CUT;
	if (id != w->thread)
		return INTERP_READ(p->at, p->at + l->thread_next) ? INTERP_CUT : INTERP_AGAIN;
	p->where = PYTHON_FRAMES;
	if (INTERP_READ(p->at, p->at + l->thread_frame))
		return INTERP_CUT;
	return l->has_cframe && INTERP_READ(p->at, p->at + l->cframe_frame) ? INTERP_CUT
									    : INTERP_AGAIN;
}

/* The index of the instruction that the frame executes. */
static __always_inline u64 python_instr(const struct python_layout *l, u64 frame, u64 code)
{
	u64 pointer = 0;
	s32 number = 0;

	if (l->has_pointer) {
		INTERP_READ(pointer, frame + l->frame_instr);
		pointer = (pointer - code - l->code_instrs) >> 1;
	} else {
		INTERP_READ(number, frame + l->frame_instr);
		pointer = (u64)(s64)(l->minor == PYTHON_MINOR_MIN ? number >> 1 : number);
	}
	return pointer < PYTHON_FRAME_INSTR_MAX ? pointer : PYTHON_FRAME_INSTR_MAX;
}

/* Detects another code object at the same address. */
static __always_inline u64 python_name_hash(const struct python_layout *l, u64 code)
{
	u64 name = 0, hash = 0;

	INTERP_READ(name, code + l->code_name);
	INTERP_READ(hash, name + PYTHON_TEXT_HASH);
	return hash == PYTHON_TEXT_NO_HASH ? name : hash;
}

static __always_inline int python_take_frame(const struct python_layout *l, struct python_state *p,
					     struct interp_walk *w)
{
	u64 code, previous, frame = p->at, instr;
	u8 entry = 1;

	if (!frame)
		return python_next_interpreter(l, p);
	if (INTERP_READ(code, frame + l->frame_code) ||
	    INTERP_READ(previous, frame + l->frame_previous))
		return INTERP_CUT;
	if (l->entry != PYTHON_ENTRY_EACH && INTERP_READ(entry, frame + l->frame_entry))
		return INTERP_CUT;
	p->at = previous;
	if (l->entry == PYTHON_ENTRY_FRAME) {
		if (entry == PYTHON_OWNED_BY_C)
			return INTERP_CALLED;
		entry = 0;
	}
	instr = python_instr(l, frame, code);
	w->frame.id = ((code >> PYTHON_FRAME_CODE_SHIFT) & PYTHON_FRAME_CODE) |
		      instr << PYTHON_FRAME_INSTR_SHIFT;
	if (entry)
		w->frame.id |= INTERP_ENTERED;
	if (instr == PYTHON_FRAME_INSTR_MAX)
		w->frame.id |= INTERP_NOT_BEGUN;
	w->frame.check = python_name_hash(l, code);
	return INTERP_FRAME;
}

__attribute__((noinline)) int interp_python_step(struct interp_walk *w,
						 const struct interp_layout *layout)
{
	const struct python_layout *l = (const void *)layout;
	struct python_state *p;

	if (!w || !layout)
		return INTERP_END;
	/*
	 * These frames are not on the native stack: code without a file is a trampoline, or not
	 * Python.
	 */
	if (w->pc)
		return INTERP_NOT_MINE;
	p = (void *)w->state;
	switch (p->where) {
	case PYTHON_START:
		return python_start(l, p, w);
	case PYTHON_THREADS:
		return python_try_thread(l, p, w);
	default:
		return python_take_frame(l, p, w);
	}
}
