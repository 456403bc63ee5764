/* src/cli/go/heap_target.h: the target of `sonde heap`. */
#pragma once

#include "base/err.h"
#include "cli/go/target.h"
#include "golang/heap/heap.h"

struct heap_target {
	struct go_target go;
	struct golang_heap *heap;
	struct golang_heap_stats stats; /* of the last read, once done */
};

/* asked: parsed, not open. Release it even after a failure. -ENOTSUP if it cannot be profiled. */
int heap_target_open(const struct go_target *asked, struct heap_target *target, struct err *err);
void heap_target_release(struct heap_target *target);

/* After the last read: keeps its statistics and frees its memory before anything is drawn. */
void heap_target_finish(struct heap_target *target);

/* One line: which program, which Go, how it was found, its sampling rate. */
void heap_target_describe(const struct heap_target *target);
/* Reports losses of the last read, if any. */
void heap_target_report_losses(const struct heap_target *target);
