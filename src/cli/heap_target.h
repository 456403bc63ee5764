/* src/cli/heap_target.h: the program that `sonde heap` reads. */
#pragma once

#include "base/err.h"
#include "cli/go_target.h"
#include "golang/heap.h"

struct heap_target {
	struct go_target go;
	struct golang_heap *heap;
	struct golang_heap_stats stats; /* of the last reading, once it is over */
};

/* asked: parsed, not open. Release it also after a failure. -ENOTSUP when the program cannot be
 * profiled. */
int heap_target_open(const struct go_target *asked, struct heap_target *target, struct err *err);
void heap_target_release(struct heap_target *target);

/* After the last reading: keeps its figures and gives its memory back before anything is drawn. */
void heap_target_finish(struct heap_target *target);

/* One line for the person: which program, which Go, how it was found, how it samples. */
void heap_target_describe(const struct heap_target *target);
/* What the last reading lost, if anything. */
void heap_target_report_losses(const struct heap_target *target);
