/*
 * src/golang/symbols/cgo.h: names for addresses outside Go code, from ELF symbols: C functions that
 * a cgo traceback put into a stack.
 */
#pragma once

#include <stdint.h>

#include "base/view.h"
#include "proc/mem.h"

struct golang_cgo_file;

/* Files are opened on the first lookup of an address in them, and kept open. */
struct golang_cgo {
	struct proc_mem *mem; /* borrowed */
	struct golang_cgo_file *files;
	size_t len;
	uint64_t bytes; /* approximate size of their symbols */
};

/* The function's name, borrowed from native until release; empty if unknown. */
struct view golang_cgo_name(struct golang_cgo *cgo, uint64_t pc);
void golang_cgo_release(struct golang_cgo *cgo);
