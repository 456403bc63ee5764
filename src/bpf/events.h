/*
 * src/bpf/events.h: a BPF program on a perf event of each CPU that is on line.
 */
#pragma once

#include <linux/perf_event.h>

#include "base/cleanup.h"
#include "base/err.h"

struct bpf_events; /* opaque */
struct bpf_program;

/*
 * The program is borrowed. -EPERM, -ENOTSUP with cause and remedy; -EINVAL for a frequency that is
 * more than the kernel allows.
 */
int bpf_events_open(struct bpf_program *program, const struct perf_event_attr *attr,
		    struct bpf_events **ret_events, struct err *err);
void bpf_events_close(struct bpf_events *events); /* NULL is fine */
DEFINE_CLEANUP(struct bpf_events, bpf_events_close)

/*
 * Events for CPUs that came, none for those that went. The kernel drops the event of a CPU that
 * goes; for one that comes this is to be called now and then.
 */
int bpf_events_update(struct bpf_events *events, struct err *err);
