/*
 * src/cpu/interp/python/code.h: names a code object of a Python process, from its memory.
 *
 * Everything read was written by the process and may be anything: sizes are limited, texts are
 * sanitized, and anything that is not, or no longer, a code object is refused.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "cpu/interp/python/layout.h"
#include "proc/mem.h"

/* Longer ones are truncated. */
#define PYTHON_TEXT_MAX 256
/* The instruction of a frame, if unknown. */
#define PYTHON_NOWHERE UINT32_MAX

struct python_code {
	uint64_t name_hash; /* as Python keeps it; or the name's address, if there is none */
	char name[PYTHON_TEXT_MAX]; /* "Shop.checkout", up to 3.10 "checkout" */
	char file[PYTHON_TEXT_MAX];
	int64_t first_line;
	int64_t line; /* of the instruction; first_line if unknown */
};

/*
 * code is the object's address, code_type that of PyCode_Type, instr the index of the instruction
 * in units of two bytes. -ESRCH: the process has exited; -EBADMSG: not a code object.
 */
int python_code_read(struct proc_mem *mem, const struct python_layout *layout, uint64_t code_type,
		     uint64_t code, uint32_t instr, struct python_code *ret_code, struct err *err);
