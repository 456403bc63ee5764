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

struct agent_go_program; /* opaque */

/* The probe of all Go sources: no if it is not a Go program. */
int agent_go_program_probe(struct source_shares *shares, struct source_target *target,
			   struct source_answer *ret_answer, struct err *err);

/* Opens it unless already open. The caller owns the reference. */
int agent_go_program_get(struct source_shares *shares, const struct source_target *target,
			 struct agent_go_program **ret_program, struct err *err);
void agent_go_program_unref(struct agent_go_program *program); /* NULL is fine */

void agent_go_program_lock(struct agent_go_program *program);
bool agent_go_program_try_lock(struct agent_go_program *program);
bool agent_go_program_lock_in_time(struct agent_go_program *program, uint64_t ns);
/* Also frees what only the next read needs. */
void agent_go_program_unlock(struct agent_go_program *program);
/* Keeps it: the memory it was read from may be gone by then. */
void agent_go_program_unlock_last(struct agent_go_program *program);

/* With the lock held: */
struct golang_process *agent_go_program_process(struct agent_go_program *program);
/* Created on first use; owned by the program. */
int agent_go_program_goroutines(struct agent_go_program *program, uint64_t max,
				struct golang_goroutines **ret_goroutines, struct err *err);
/* How many there are, if known without reading them; 0: unknown. */
uint64_t agent_go_program_n_goroutines(const struct agent_go_program *program);
void agent_go_program_set_n_goroutines(struct agent_go_program *program, uint64_t n);
