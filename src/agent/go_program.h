/*
 * src/agent/go_program.h: one open Go program, shared by the readers of its target and by those who
 * take its last picture (agent/oom.h).
 *
 * It is counted, and has a lock: of what golang/ opened, one thread at a time may read.
 *
 * It reads by pread alone (proc_mem_never_wait): a page fault that the target answers itself then
 * fails instead of waiting. What remains that can hang is the pool's to bear (agent/pool.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/go_sources.h"
#include "golang/goroutines.h"
#include "golang/process.h"

struct go_program; /* opaque */

/* The probe of all readers of Go programs: no to those that are none. */
int go_program_probe(struct source_shares *shares, struct source_target *target,
		     struct source_answer *ret_answer, struct err *err);

/* Opens it unless it is open already. The reference is the caller's. */
int go_program_get(struct source_shares *shares, const struct source_target *target,
		   struct go_program **ret_program, struct err *err);
void go_program_unref(struct go_program *program); /* NULL is fine */

void go_program_lock(struct go_program *program);
bool go_program_try_lock(struct go_program *program);
bool go_program_lock_in_time(struct go_program *program, uint64_t ns);
/* Also gives back what only the next reading needs. */
void go_program_unlock(struct go_program *program);
/* Keeps it: the memory that it was read from may be gone by then. */
void go_program_unlock_last(struct go_program *program);

/* The rest is for those who hold the lock. */
struct golang_process *go_program_process(struct go_program *program);
/* Made when it is first asked for. It stays the program's. */
int go_program_goroutines(struct go_program *program, uint64_t max,
			  struct golang_goroutines **ret_goroutines, struct err *err);
/* How many there are, as far as that is known without reading them; 0: not at all. */
uint64_t go_program_n_goroutines(const struct go_program *program);
void go_program_set_n_goroutines(struct go_program *program, uint64_t n);
