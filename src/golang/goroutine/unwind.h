/*
 * src/golang/goroutine/unwind.h: unwinds the stacks of goroutines that are not running, like the
 * runtime (runtime/traceback.go), and stores each distinct one once.
 *
 *   saved pc, sp ──► pcsp(pc): how far the return address is above sp ──► next pc, sp ... goexit
 *
 * Most goroutines of a program wait at a few places. Known stacks form a tree of frames from the
 * leaf outwards, each with the location of its return address: following a known stack needs no
 * lookups.
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

/* Stops after this many frames: a profile does not need the rest. */
#define GOLANG_UNWIND_MAX_FRAMES 4096

struct golang_stack;

struct golang_unwind {
	struct golang_process *process;	  /* borrowed */
	const struct golang_g_vars *vars; /* borrowed */
	bool arm64;
	struct map steps; /* pc -> how to unwind its frame */
	struct map nodes; /* frame and its return address -> struct unwind_node */
	struct arena nodes_arena;
	struct intern physical; /* stacks as pcs; the id is the stack */
	struct arena arena;
	struct golang_stack *stacks; /* by id */
	size_t stacks_cap;
	bool refreshed; /* plugins were searched in this read */
	uint64_t epoch; /* changes when stacks are renumbered */
};

/* A copy of the stack from sp upwards. */
struct golang_stack_copy {
	uint64_t pc;
	uint64_t sp;
	uint64_t top;	 /* the end of the stack; may be beyond the copy */
	bool exact;	 /* pc is the next instruction, not a return address */
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
/* Call before a read: drops the stored stacks if there are too many. */
void golang_unwind_begin(struct golang_unwind *u);

enum golang_unwound golang_unwind_stack(struct golang_unwind *u,
					const struct golang_stack_copy *copy, uint32_t *ret_stack);

/* A stack as walked: return addresses, leaf first. */
const uint64_t *golang_unwind_physical(const struct golang_unwind *u, uint32_t stack, size_t *ret_n,
				       bool *ret_exact);
/*
 * The same as the runtime records it: one entry per call, including inlined ones, without wrappers.
 */
const uint64_t *golang_unwind_logical(struct golang_unwind *u, uint32_t stack, size_t *ret_n);

/* A function active at an address, innermost inlined one first. */
struct golang_active {
	struct golang_pclntab *tables;
	const struct golang_func *func; /* that contains the code */
	uint64_t pc;			/* of the call */
	uint32_t name;
	uint8_t func_id;
	bool inlined;
};
/*
 * Calls visit for each entry of the stack at pc; true: a wrapper that the runtime omits. *callee is
 * the id of the function called from here; 0 at the leaf. False if pc is not Go code.
 */
bool golang_unwind_expand(struct golang_unwind *u, uint64_t pc, bool exact, uint8_t *callee,
			  void (*visit)(void *arg, const struct golang_active *active), void *arg);
/* Was this function entered from an arbitrary address, not by a call? */
bool golang_unwind_injected(struct golang_unwind *u, uint64_t pc);

/*
 * A core's thread that handles a signal is on a separate stack, at the end of which the kernel
 * saved the thread's context. False if it is not. amd64.
 */
bool golang_unwind_interrupted(struct golang_unwind *u, struct proc_thread *thread);
