/*
 * src/bpf/kernel.h: whether this kernel lets us load BPF programs; if not, why, and what would
 * help.
 *
 * Each error has its remedy and its cause (base/err.h).
 */
#pragma once

#include "base/err.h"

/* The kernel's type information, without which none of our programs can be loaded. */
int bpf_kernel_check_btf(struct err *err);
/* bpf() or perf_event_open(), as call, gave the code. -EPERM or -ENOTSUP. */
int bpf_kernel_explain(const char *call, int code, struct err *err);
