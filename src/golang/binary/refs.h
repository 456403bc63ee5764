/*
 * src/golang/binary/refs.h: which global variables a function accesses, without a disassembler.
 *
 * amd64: every RIP-relative operand (ModRM mod 00, r/m 101) of a known opcode. arm64: ADRP followed
 * within four instructions by ADD, LDR or STR on the same register, and ADR. Targets outside the
 * program's data are not references; with the opcode filter there has never been a false one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/view.h"
#include "golang/binary/module.h"

enum golang_ref_kind {
	GOLANG_REF_LOAD,
	GOLANG_REF_STORE,
	GOLANG_REF_ADDRESS, /* the address is taken; up to 1.19 arm64 has nothing else */
	GOLANG_REF_COMPARE, /* or arithmetic with an immediate */
	GOLANG_REF_OTHER,
};

struct golang_ref {
	uint64_t pc;
	uint64_t target;
	enum golang_ref_kind kind;
	unsigned int width; /* bytes */
};

#define GOLANG_REFS_MAX 512

struct golang_refs {
	struct golang_ref refs[GOLANG_REFS_MAX];
	size_t len;
};

/* Decodes the code of one function, which starts at addr. Ignores references beyond the maximum. */
void golang_refs_decode(struct view code, uint64_t addr, uint16_t machine,
			const struct golang_module *module, struct golang_refs *ret_refs);
/* Reads and decodes the function's code; none for a missing function. */
void golang_refs_of(const struct golang_module *module, struct proc_mem *mem,
		    const struct golang_func *func, struct golang_refs *ret_refs);
bool golang_refs_has(const struct golang_refs *refs, uint64_t target);
