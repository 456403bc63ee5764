/*
 * src/cpu/interp/interp_bpf.h: what BPF programs and the steps of interpreters have in common.
 *
 * Each step is an object of its own, which is linked to the sampler's. It is a global function: the
 * verifier looks at it once, and takes what it finds in memory for anything. It may have some 190
 * bytes on the stack, of the 512 that kernels give to all that is being called.
 */
#pragma once

#include "bpf/program.h"

#include "cpu/interp/interp_shared.h"

#define INTERP_DECLARE(constant, name)                                                             \
	int interp_##name##_step(struct interp_walk *w, const struct interp_layout *l);
INTERP_KINDS(INTERP_DECLARE)
#undef INTERP_DECLARE

/* Not 0 where there is no such memory. */
#define INTERP_READ(value, address) bpf_probe_read_user(&(value), sizeof(value), (void *)(address))
