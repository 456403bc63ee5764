/*
 * src/agent/forced.h: the sampling rates that `--go-heap force` has changed, noted on disk.
 *
 * A note is durable before the rate is written, so that whatever happens to the agent, its next
 * start finds out what to set back. The file has a line for each:
 *
 *   PID START-TICKS ADDRESS-SPACE OLD-RATE OUR-RATE
 *
 * Pid and start time name the process, the address space what it was before an exec. Safe for
 * several threads.
 */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "golang/heap.h"
#include "proc/id.h"
#include "proc/mem.h"

struct forced_rates; /* opaque */

struct forced_rate {
	struct proc_id id;
	uint64_t space; /* forced_space() */
	int64_t old;
	int64_t ours;
};

/* Reads what is noted in dir. A file that makes no sense is set aside as empty. */
int forced_rates_open(const char *dir, struct forced_rates **ret_forced, struct err *err);
void forced_rates_close(struct forced_rates *forced); /* NULL is fine */
DEFINE_CLEANUP(struct forced_rates, forced_rates_close)

/* Durable when it returns. */
int forced_rates_add(struct forced_rates *forced, const struct forced_rate *rate, struct err *err);
int forced_rates_remove(struct forced_rates *forced, const struct proc_id *id, struct err *err);
/*
 * Sets back what an agent that was killed has left: only in the very address space that was noted,
 * and only where the value is still ours. What cannot be set back now stays noted. Returns how many
 * were set back.
 */
int forced_rates_restore(struct forced_rates *forced, struct err *err);

/* Something that differs between any two address spaces, as the kernel randomises them. */
uint64_t forced_space(const struct proc_mem *mem);
/* Sets the old rate back unless the program has changed it since. */
int forced_set_back(struct golang_heap *heap, int64_t old, int64_t ours, struct err *err);
