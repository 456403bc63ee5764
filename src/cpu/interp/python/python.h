/*
 * src/cpu/interp/python/python.h: a Python frame as BPF sends it.
 *
 * Bits 0-43 of its id: the address of its code object without the lowest three bits, which are 0;
 * bits 44-61: the index of its instruction. The check is the hash of its name (name_hash in
 * code.h).
 */
#pragma once

#include "cpu/interp/interp_shared.h"

#define PYTHON_FRAME_CODE ((1ULL << 44) - 1)
#define PYTHON_FRAME_CODE_SHIFT 3
#define PYTHON_FRAME_INSTR_SHIFT 44
/* This or more, or unknown: it has not started. */
#define PYTHON_FRAME_INSTR_MAX ((1U << 18) - 1)

/* Of struct interp. */
enum { PYTHON_RUNTIME, PYTHON_CODE_TYPE };
