/*
 * src/cpu/interp/interp_shared.h: what BPF and user space tell each other of interpreters.
 *
 *   file ─► detect ─► layout: where things lie in this version ─► a row of interp_layouts ─┐
 *                     addresses of its variables ─► entry of the process ─────────────────┤
 *                                                                                         ▼
 *   thread ─► interp_NAME_step(), once per frame ─► struct interp_frame ─► ring buffer ─► name
 *
 * Frames lie either on the machine's own stack, among the native ones, or beside it in lists of the
 * interpreter. The step is called for both: see enum interp_answer.
 */
#pragma once

#include <linux/types.h>

#include "cpu/interp/kinds.h"

#define INTERP_LAYOUTS 64U
#define INTERP_ADDRESSES 2
/* To the list of the thread at hand, and along its frames, of which there may be twice as many as
 * are taken. */
#define INTERP_STEPS (1 + 512 + 2 * 127)

/* Each interpreter has a struct of its own that fits. */
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
 * A frame. Which function, and where in it, is for the interpreter to know: bits 0-61 of id. The
 * check tells another function that has been put in its place since.
 */
struct interp_frame {
	__u64 id;
	__u64 check;
};
#define INTERP_WORDS 2			 /* of a frame */
#define INTERP_ENTERED (1ULL << 63)	 /* native code called it */
#define INTERP_NOT_BEGUN (1ULL << 62)	 /* it is just being entered */
#define INTERP_ID (INTERP_NOT_BEGUN - 1) /* the rest */

/* What a step gives. */
enum interp_answer {
	INTERP_FRAME,	 /* one, in walk->frame; where it is a native frame's, pc and so on are the
			  * caller's now */
	INTERP_AGAIN,	 /* none yet */
	INTERP_CALLED,	 /* none, but native code called the one before */
	INTERP_NOT_MINE, /* the native frame is left as others are */
	INTERP_END,	 /* there are no more */
	INTERP_CUT,	 /* there are more, which cannot be had */
};

/* One thread's stack while it is walked. All but state is written before each step. */
struct interp_walk {
	__u64 pc; /* of a native frame without a file; 0: the native ones are over */
	__u64 sp;
	__u64 fp;
	__u64 exact;  /* pc is no return address */
	__u64 thread; /* what pthread_self() is for it */
	__u64 addresses[INTERP_ADDRESSES];
	__u64 state[4]; /* the interpreter's own, zeroed at first */
	struct interp_frame frame;
	__u32 layout; /* row of interp_layouts */
	__u32 unused;
};
