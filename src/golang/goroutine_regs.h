/*
 * src/golang/goroutine_regs.h: where the threads of a core file were: NT_PRSTATUS notes.
 *
 * A note is a struct elf_prstatus: pr_pid u32 @32, the general registers @112. amd64 has rip as
 * number 16, rsp as 19; arm64 sp as 31, pc as 32.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/map.h"

/* A zeroed struct golang_regs has no threads. */
struct golang_regs {
	struct golang_thread *threads;
	size_t len, cap;
	struct map by_tid;
};

struct golang_thread {
	uint64_t pc;
	uint64_t sp;
};

int golang_regs_read(struct golang_regs *regs, const char *core_path, struct err *err);
void golang_regs_release(struct golang_regs *regs);
/* NULL when there is none. */
const struct golang_thread *golang_regs_of(const struct golang_regs *regs, uint64_t tid);
