/* src/bpf/events.h: attaches a BPF program to a perf event on each online CPU. */
#pragma once

#include <linux/perf_event.h>

#include "base/cleanup.h"
#include "base/err.h"

struct bpf_events; /* opaque */
struct bpf_program;

/*
 * Borrows the program. -EPERM, -ENOTSUP with cause and remedy; -EINVAL if the frequency exceeds the
 * kernel's limit.
 */
int bpf_events_open(struct bpf_program *program, const struct perf_event_attr *attr,
		    struct bpf_events **ret_events, struct err *err);
void bpf_events_close(struct bpf_events *events); /* NULL is fine */
DEFINE_CLEANUP(struct bpf_events, bpf_events_close)

/*
 * Opens events on new CPUs, closes those of CPUs gone offline. The kernel drops the event of a CPU
 * that goes offline; call this now and then for those that come online.
 */
int bpf_events_update(struct bpf_events *events, struct err *err);
