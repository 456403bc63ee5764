/*
 * src/golang/goroutine/unwind.h: stacks of goroutines that do not run, left frame by frame as the
 * runtime does it (runtime/traceback.go), and kept once each.
 *
 *   saved pc, sp ──► pcsp(pc): how far the return address is above sp ──► next pc, sp ... goexit
 *
 * Most goroutines of a program wait at a few places. Stacks that were walked before are a tree of
 * frames from the leaf outwards, each with the place of its return address: a known stack is
 * followed there, and nothing is looked up.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/intern.h"
#include "base/map.h"
#include "golang/goroutine/vars.h"
#include "golang/process_state.h"

/* More frames than these are not looked at: the rest of the stack is not needed for a profile. */
#define GOLANG_UNWIND_MAX_FRAMES 4096

struct golang_stack;

struct golang_unwind {
	struct golang_process *process;	  /* borrowed */
	const struct golang_g_vars *vars; /* borrowed */
	bool arm64;
	struct map steps; /* pc -> how its frame is left */
	struct map nodes; /* frame and its return address -> struct unwind_node */
	struct arena nodes_arena;
	struct intern physical; /* stacks as pcs; the id is the stack's */
	struct arena arena;
	struct golang_stack *stacks; /* by id */
	size_t stacks_cap;
	bool refreshed; /* plugins were looked for in this reading */
	uint64_t epoch; /* changes when stacks are renumbered */
};

/* A copy of the stack from sp upwards. */
struct golang_stack_copy {
	uint64_t pc;
	uint64_t sp;
	uint64_t top;	 /* where the stack ends; more than copied, perhaps */
	bool exact;	 /* pc is that of the next instruction, not a return address */
	bool is_syscall; /* saved by entersyscall */
	struct view bytes;
};

enum golang_unwound {
	GOLANG_UNWOUND,	    /* to the root */
	GOLANG_UNWIND_MORE, /* a longer copy is needed */
	GOLANG_UNWIND_BAD,
};

void golang_unwind_init(struct golang_unwind *u, struct golang_process *process,
			const struct golang_g_vars *vars);
void golang_unwind_release(struct golang_unwind *u);
/* Before a reading: drops what was kept when that has become too much. */
void golang_unwind_begin(struct golang_unwind *u);

enum golang_unwound golang_unwind_stack(struct golang_unwind *u,
					const struct golang_stack_copy *copy, uint32_t *ret_stack);

/* A stack as it was walked: return addresses, leaf first. */
const uint64_t *golang_unwind_physical(const struct golang_unwind *u, uint32_t stack, size_t *ret_n,
				       bool *ret_exact);
/* The same as the runtime records it: one entry per call, inlined ones too, wrappers left out. */
const uint64_t *golang_unwind_logical(struct golang_unwind *u, uint32_t stack, size_t *ret_n);

/* One function that is active at an address, from the innermost inlined one outwards. */
struct golang_active {
	struct golang_pclntab *tables;
	const struct golang_func *func; /* that holds the code */
	uint64_t pc;			/* of the call */
	uint32_t name;
	uint8_t func_id;
	bool inlined;
};
/*
 * Calls visit for each entry of the stack at pc; true: a wrapper that the runtime leaves out.
 * *callee is the id of what was called from here; 0 at the leaf. False when pc is no code of Go.
 */
bool golang_unwind_expand(struct golang_unwind *u, uint64_t pc, bool exact, uint8_t *callee,
			  void (*visit)(void *arg, const struct golang_active *active), void *arg);
/* Is what called this function at an address of its own choice, not at a call? */
bool golang_unwind_injected(struct golang_unwind *u, uint64_t pc);

/*
 * A thread of a core that handles a signal is on a stack of its own, at the end of which the kernel
 * noted where the thread was. False when this is not so. amd64.
 */
bool golang_unwind_interrupted(struct golang_unwind *u, struct proc_thread *thread);
