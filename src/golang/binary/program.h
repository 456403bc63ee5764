/*
 * src/golang/binary/program.h: a Go program's file, without a process: how to unwind its frames
 * (pclntab's pcsp) and symbolize its addresses, inlined calls included.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/view.h"
#include "elf/unwind/unwind.h"

struct golang_program; /* opaque; for one thread at a time */

/* Duplicates fd. -ENOTSUP: not a Go program, or tables of an unsupported version. */
int golang_program_open(int fd, struct golang_program **ret_program, struct err *err);
void golang_program_close(struct golang_program *program); /* NULL is fine */
DEFINE_CLEANUP(struct golang_program, golang_program_close)

/* Rows for Go's own text; if there is .eh_frame as well (cgo), the caller merges both. */
int golang_program_unwind(struct golang_program *program, struct elf_unwind_table *ret_table,
			  struct err *err);

/* One function at an address; views are valid until the next call on the program. */
struct golang_program_frame {
	struct view name;
	struct view file;
	int64_t line;
	int64_t start_line; /* 0 if the version does not have it */
};

#define GOLANG_PROGRAM_MAX_FRAMES 64

/*
 * Calls emit for each function at the link-time address, innermost inlined first. Returns how many;
 * 0 if the address is not in Go text.
 */
int golang_program_frames(struct golang_program *program, uint64_t vaddr,
			  int (*emit)(void *context, const struct golang_program_frame *frame),
			  void *context, struct err *err);
