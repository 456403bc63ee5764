/*
 * src/agent/sources/go_program.h: one open Go process, shared by the sources of its target and by
 * OOM snapshots (agent/sources/oom.h).
 *
 * It is reference-counted and has a lock: one thread at a time may read through golang/.
 *
 * It reads by pread only (proc_mem_never_wait): a page fault that the target handles itself fails
 * instead of waiting. What can still hang is left to the pool (agent/schedule/pool.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/sources/go.h"
#include "golang/goroutine/goroutines.h"
#include "golang/process.h"

struct go_program; /* opaque */

/* The probe of all Go sources: no if it is not a Go program. */
int go_program_probe(struct source_shares *shares, struct source_target *target,
		     struct source_answer *ret_answer, struct err *err);

/* Opens it unless already open. The caller owns the reference. */
int go_program_get(struct source_shares *shares, const struct source_target *target,
		   struct go_program **ret_program, struct err *err);
void go_program_unref(struct go_program *program); /* NULL is fine */

void go_program_lock(struct go_program *program);
bool go_program_try_lock(struct go_program *program);
bool go_program_lock_in_time(struct go_program *program, uint64_t ns);
/* Also frees what only the next read needs. */
void go_program_unlock(struct go_program *program);
/* Keeps it: the memory it was read from may be gone by then. */
void go_program_unlock_last(struct go_program *program);

/* With the lock held: */
struct golang_process *go_program_process(struct go_program *program);
/* Created on first use; owned by the program. */
int go_program_goroutines(struct go_program *program, uint64_t max,
			  struct golang_goroutines **ret_goroutines, struct err *err);
/* How many there are, if known without reading them; 0: unknown. */
uint64_t go_program_n_goroutines(const struct go_program *program);
void go_program_set_n_goroutines(struct go_program *program, uint64_t n);
