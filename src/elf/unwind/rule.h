/*
 * src/elf/unwind/rule.h: how to unwind one frame, in a form that BPF reads as well.
 *
 * The return address is always at CFA - 8. Only the stack pointer, the frame pointer and the
 * program counter are tracked; a rule that needs more is UNSUPPORTED.
 *
 * For a frame left by a call, use the rule at its return address - 1: the call may be the last
 * instruction of a function. Signal frames are encoded the same way.
 */
#pragma once

#include <linux/types.h>

enum elf_unwind_cfa {
	ELF_UNWIND_NONE,     /* no rule: code without unwind information */
	ELF_UNWIND_SP,	     /* CFA = stack pointer + cfa_off */
	ELF_UNWIND_FP,	     /* CFA = frame pointer + cfa_off */
	ELF_UNWIND_FP_DEREF, /* CFA = *(frame pointer + low 16 bits) + high 16 bits, both signed */
	ELF_UNWIND_SP_DEREF, /* CFA = *(stack pointer + low 16 bits) + high 16 bits, both signed */
	ELF_UNWIND_PLT,	     /* CFA = stack pointer + 8, and 8 more if pc % 16 >= cfa_off */
	ELF_UNWIND_SIGNAL,   /* a signal frame: all registers are on the stack */
	ELF_UNWIND_END,	     /* the outermost frame */
	ELF_UNWIND_CHAIN,    /* no table: follow frame pointers */
	ELF_UNWIND_REG,	     /* CFA = the register reg + cfa_off */
	ELF_UNWIND_UNSUPPORTED, /* there is a rule, but we do not support it */
};

enum elf_unwind_fp {
	ELF_UNWIND_FP_SAME,  /* the caller's frame pointer is still in its register */
	ELF_UNWIND_FP_SAVED, /* it is at CFA + fp_off */
	ELF_UNWIND_FP_LOST,  /* unknown */
	ELF_UNWIND_FP_AT_FP, /* at this frame's frame pointer + fp_off (realigned stacks) */
};

struct elf_unwind_rule {
	__u8 cfa;     /* enum elf_unwind_cfa */
	__u8 fp : 2;  /* enum elf_unwind_fp */
	__u8 reg : 6; /* DWARF number, for ELF_UNWIND_REG: known in the innermost frame only */
	__s16 fp_off;
	__s32 cfa_off;
};
