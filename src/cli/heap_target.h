/* src/cli/heap_target.h: the program that `sonde heap` reads: a live process, or a core file. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "golang/heap.h"
#include "golang/process.h"
#include "proc/info.h"

struct heap_target {
	struct proc_info info; /* of a live process */
	const char *core;      /* NULL for a live process; borrowed */
	struct golang_process *process;
	struct golang_heap *heap;
	struct golang_heap_stats stats; /* of the last reading, once it is over */
};

/* pid counts when core is NULL. -ENOTSUP when the program cannot be profiled. */
int heap_target_open(pid_t pid, const char *core, const struct golang_options *options,
		     struct heap_target *ret_target, struct err *err);
void heap_target_release(struct heap_target *target);

/* After the last reading: keeps its figures and gives its memory back before anything is drawn. */
void heap_target_finish(struct heap_target *target);

/* One line for the person: which program, which Go, how it was found, how it samples. */
void heap_target_describe(const struct heap_target *target);
/* What the last reading lost, if anything. */
void heap_target_report_losses(const struct heap_target *target);
