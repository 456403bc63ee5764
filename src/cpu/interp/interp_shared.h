/*
 * src/cpu/interp/interp_shared.h: what BPF and user space share about interpreters.
 *
 *   file ─► detect ─► layout: the offsets of this version ─────► a row of interp_layouts ─┐
 *                     addresses of its variables ─► entry of the process ─────────────────┤
 *                                                                                         ▼
 *   thread ─► interp_NAME_step(), once per frame ─► struct interp_frame ─► ring buffer ─► name
 *
 * Frames are either on the native stack, among native frames, or in the interpreter's own lists.
 * The step is called for both: see enum interp_answer.
 */
#pragma once

#include <linux/types.h>

#include "cpu/interp/kinds.h"

#define INTERP_LAYOUTS 64U
#define INTERP_ADDRESSES 2
/* To the list of the current thread, then along its frames, up to twice as many as are taken. */
#define INTERP_STEPS (1 + 512 + 2 * 512)

/* Each interpreter has its own struct, which fits. */
struct interp_layout {
	__u32 words[64];
};

/* Of a process, for BPF. */
struct interp_process {
	__u32 kind;
	__u32 layout;
	__u64 addresses[INTERP_ADDRESSES];
};

/*
 * A frame. Bits 0-61 of id identify the function and the place in it, for the interpreter only. The
 * check detects another function put in its place since.
 */
struct interp_frame {
	__u64 id;
	__u64 check;
};
#define INTERP_WORDS 2			 /* of a frame */
#define INTERP_ENTERED (1ULL << 63)	 /* native code called it */
#define INTERP_NOT_BEGUN (1ULL << 62)	 /* just being entered */
#define INTERP_ID (INTERP_NOT_BEGUN - 1) /* the rest */

/* The result of a step. */
enum interp_answer {
	INTERP_FRAME,	 /* one, in walk->frame; if it has a native frame, pc and so on are now the
			    caller's */
	INTERP_AGAIN,	 /* none yet */
	INTERP_CALLED,	 /* none, but native code called the previous one */
	INTERP_NOT_MINE, /* not the interpreter's: a native frame like others */
	INTERP_END,	 /* no more */
	INTERP_CUT,	 /* there are more, but they cannot be read */
};

/* The stack of one thread during a walk. All but state is set before each step. */
struct interp_walk {
	__u64 pc; /* of a native frame without a file; 0: no more native frames */
	__u64 sp;
	__u64 fp;
	__u64 exact;  /* pc is not a return address */
	__u64 thread; /* its pthread_self() */
	__u64 addresses[INTERP_ADDRESSES];
	__u64 state[4]; /* the interpreter's own, zeroed at first */
	struct interp_frame frame;
	__u32 layout; /* row of interp_layouts */
	__u32 unused;
};
