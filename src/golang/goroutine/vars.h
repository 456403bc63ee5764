/*
 * src/golang/goroutine/vars.h: the runtime's variables and functions for goroutines.
 *
 * As in golang/binary/vars.h: by name with a symbol table, otherwise by the references of known
 * functions, then verified by contents: the first goroutine of a program has id 1 and starts at
 * runtime.main; the second wait reason is "GC assist marking".
 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "golang/goroutine/layout.h"
#include "golang/process_state.h"

struct golang_g_vars {
	uint64_t allgs;
	uint64_t wait_reasons; /* waitReasonStrings; 0 if not found */
	uint64_t fing;	       /* fingStatus, fingRunning up to 1.19; 0 if not found */
	uint64_t stack_depth;  /* debug.profstackdepth, since 1.23; 0 if not found */
	const char *how;       /* "symbol table", "code references" */

	/* Entries of functions; 0 if the program does not have them. */
	uint64_t main;
	uint64_t corostart;
	uint64_t handle_async_event;
	uint64_t run_finalizers;
	uint64_t run_cleanups;
	uint64_t sigtramp;
	uint64_t async_preempt;
	uint64_t debug_call;
	uint64_t cgocallback;
	uint64_t systemstack_switch;
};

/* ignore_symbols: as if the program were stripped. -ENOTSUP if allgs was not found. */
int golang_g_vars_find(struct golang_process *process, const struct golang_g_layout *layout,
		       bool ignore_symbols, struct golang_g_vars *ret_vars, struct err *err);
