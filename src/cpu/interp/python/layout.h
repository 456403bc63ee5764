/*
 * src/cpu/interp/python/layout.h: the field offsets of CPython 3.9 to 3.13, in bytes.
 *
 *   _PyRuntime.interpreters.head ─► interpreter ─► thread ─► thread ─► ...
 *                                        │            │
 *                                   next ◄┘            └► frame ─► previous ─► ...
 *                                                            └► code: name, file, lines
 *
 * A thread is found by its thread_id, which equals its pthread_self().
 */
#pragma once

#include <linux/types.h>

#define PYTHON_MINOR_MIN 9
#define PYTHON_MINOR_MAX 13

/* How to detect that C called a frame: the interpreter loop was entered again for it. */
enum python_entry {
	PYTHON_ENTRY_EACH,  /* up to 3.10: for every frame */
	PYTHON_ENTRY_FLAG,  /* 3.11: the byte at frame_entry is not 0 */
	PYTHON_ENTRY_FRAME, /* since 3.12: a separate frame follows, whose byte there is 3 */
};

/* Where a str keeps its hash, and its value before first use. */
#define PYTHON_TEXT_HASH 24
#define PYTHON_TEXT_NO_HASH 0xffffffffffffffffULL

struct python_layout {
	__u32 runtime_interpreters; /* in _PyRuntime */
	__u32 interpreter_next;
	__u32 interpreter_threads;
	__u32 thread_next;
	__u32 thread_id;
	__u32 thread_frame; /* the innermost frame; with has_cframe, what points to it */
	__u32 cframe_frame;
	__u32 frame_code;
	__u32 frame_previous;
	__u32 frame_instr; /* __s32, in units of 2 bytes (3.9: of 1), or a pointer */
	__u32 frame_entry;
	__u32 code_instrs; /* what frame_instr, if it is a pointer, points into */
	__u32 code_name;   /* co_qualname if it exists */
	__u32 code_filename;
	__u32 code_firstlineno;
	__u32 code_lines; /* co_linetable, or co_lnotab */
	__u8 minor;
	__u8 entry;	  /* enum python_entry */
	__u8 has_cframe;  /* 3.11, 3.12 */
	__u8 has_pointer; /* frame_instr is one: since 3.11 */
	__u16 text_ascii; /* where the characters of a str begin, if all are ASCII */
	__u16 text_wide;  /* and if they are not */
};

/* NULL for an unsupported version. */
const struct python_layout *python_layout(unsigned int minor);
