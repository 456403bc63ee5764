/*
 * src/bpf/kernel.h: whether this kernel lets us load BPF programs; if not, the reason and the fix.
 *
 * Each error has a remedy and a cause (base/err.h).
 */
#pragma once

#include "base/err.h"

/* The kernel's type information, which all our BPF programs need. */
int bpf_kernel_check_btf(struct err *err);
/* Explains why call, bpf() or perf_event_open(), failed with code. Returns -EPERM or -ENOTSUP. */
int bpf_kernel_explain(const char *call, int code, struct err *err);
