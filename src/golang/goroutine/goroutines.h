/*
 * src/golang/goroutine/goroutines.h: the goroutines of a Go program from outside, without stopping
 * it.
 *
 *   runtime.allgs ──► g: status, saved registers, wait reason, creation site, labels
 *                      └──► its stack, unwound by pclntab's pcsp as the runtime does
 *
 * The program keeps running. A goroutine's context and stack are copied, its g is read again, and
 * the copy is accepted only if nothing has changed; unverified ones are counted. A running
 * goroutine has no saved context: it is counted as running, with the sites of its start and
 * creation, and never shown with an old stack. A core has its registers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "golang/process.h"
#include "profile/profile.h"

struct golang_goroutines; /* opaque */

enum golang_g_state {
	GOLANG_G_RUNNABLE,
	GOLANG_G_RUNNING,
	GOLANG_G_SYSCALL,
	GOLANG_G_WAITING,
	GOLANG_G_PREEMPTED,
	GOLANG_G_STATES,
};

struct golang_goroutines_options {
	bool system;	/* include the runtime's own */
	uint64_t max;	/* 0: all; else a sample of about this many stacks, and all states */
	uint64_t limit; /* 0: none; else -E2BIG for a longer list */
	bool labels;	/* pprof labels */
};

/* What one read saw and lost. */
struct golang_goroutines_stats {
	uint64_t total; /* live user goroutines (and system ones on request) */
	uint64_t states[GOLANG_G_STATES];
	uint64_t system;      /* the runtime's own, omitted */
	uint64_t unverified;  /* changed in every attempt: counted without a stack */
	uint64_t incomplete;  /* stacks that did not unwind to the root: not shown */
	uint64_t bad;	      /* invalid records */
	uint64_t sampled;     /* stacks read if limited by max; else 0 */
	uint64_t retries;     /* goroutines read again */
	uint64_t cut;	      /* in the last profile: stacks deeper than runtime/pprof shows */
	uint64_t folded;      /* in the last profile by state: those in "(other)" */
	uint64_t depth;	      /* which is this many frames (GODEBUG=profstackdepth) */
	uint64_t labels_lost; /* label sets that could not be read */
	uint64_t epoch;	      /* changes when stacks are renumbered */
};

#define GOLANG_NO_STACK UINT32_MAX

/* One goroutine; views and arrays are valid until the next read. */
struct golang_goroutine {
	uint64_t id;
	uint64_t parent_id;  /* 0 before 1.21 */
	uint64_t created_by; /* return address of the go statement; 0 for the main one */
	uint64_t start_pc;
	/*
	 * How long, as far as the runtime knows; 0: unknown. In a core: until the last known start
	 * of a wait.
	 */
	uint64_t wait_ns;
	const char *wait_reason; /* as the runtime prints it; "" if not waiting */
	uint32_t stack;		 /* equal stacks have equal numbers; GOLANG_NO_STACK if running */
	uint32_t labels;	 /* index of its label set, 0 for none */
	enum golang_g_state state;
	bool locked_to_thread;
	bool leaked; /* detected by the garbage collector of 1.26+ */
	bool unverified;
	bool unsampled; /* without a stack because of max */
};

/* Borrows process, which must outlive it. -ENOTSUP: variables not found. */
int golang_goroutines_new(struct golang_process *process,
			  const struct golang_goroutines_options *options,
			  struct golang_goroutines **ret_goroutines, struct err *err);
void golang_goroutines_free(struct golang_goroutines *goroutines);
DEFINE_CLEANUP(struct golang_goroutines, golang_goroutines_free)

/* -ESRCH if the target exited or exec'd. */
int golang_goroutines_read(struct golang_goroutines *goroutines, struct err *err);
/*
 * Frees what only the next read needs: for readers of many programs. Invalidates the last read;
 * stacks keep their numbers.
 */
void golang_goroutines_trim(struct golang_goroutines *goroutines);
size_t golang_goroutines_count(const struct golang_goroutines *goroutines);
const struct golang_goroutine *golang_goroutine_at(const struct golang_goroutines *goroutines,
						   size_t i);
/* Label pairs of a set, as flat {key, value} strings; NULL-terminated. */
const char *const *golang_goroutine_labels(const struct golang_goroutines *goroutines,
					   uint32_t set);
const struct golang_goroutines_stats *
golang_goroutines_stats(const struct golang_goroutines *goroutines);
/* "waiting", "running", ... */
const char *golang_g_state_name(enum golang_g_state state);
/* How the variables were found: "symbol table", "code references". */
const char *golang_goroutines_how(const struct golang_goroutines *goroutines);

/*
 * The last read as a profile of type goroutine/count, as runtime/pprof would write it (pprof labels
 * included). Running goroutines appear as "[running]", called by their entry function; unverified
 * ones as "[unverified]". With details, samples also have the labels state, wait_reason and
 * created_by. keep, if given, selects goroutines. If limited by max, each stack read stands for
 * several.
 */
int golang_goroutines_profile(struct golang_goroutines *goroutines, bool details,
			      bool (*keep)(void *context, const struct golang_goroutine *g),
			      void *context, struct profile **ret_profile, struct err *err);

/*
 * The same by state, for readers of many programs: the types goroutine, waiting, runnable, running
 * and syscall, without labels and mappings. The outermost frame of a stack that was cut says so.
 * Of very many stacks, those with few goroutines become one, "(other)".
 */
int golang_goroutines_by_state(struct golang_goroutines *goroutines, struct profile **ret_profile,
			       struct err *err);

/* One frame for a goroutine dump; names are valid until the next frame. */
struct golang_goroutine_frame {
	struct view function; /* the full name */
	struct view file;
	int64_t line;
	uint64_t pc;	/* return address */
	uint64_t entry; /* of the function that contains it */
	bool inlined;
	uint8_t func_id; /* internal/abi.FuncID */
};
typedef int (*golang_goroutine_frame_fn)(void *context, const struct golang_goroutine_frame *frame);
/* All frames of a stack, leaf first. A negative return of emit ends the walk and is returned. */
int golang_goroutines_frames(struct golang_goroutines *goroutines, uint32_t stack,
			     golang_goroutine_frame_fn emit, void *context);
/*
 * The function at created_by (a return address) or start_pc; without inlined calls, as the runtime
 * prints it. Returns 1, or 0 if there is none.
 */
int golang_goroutines_site(struct golang_goroutines *goroutines, uint64_t pc,
			   golang_goroutine_frame_fn emit, void *context);
