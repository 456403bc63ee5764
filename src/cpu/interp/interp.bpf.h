/*
 * src/cpu/interp/interp.bpf.h: shared by BPF programs and interpreter steps.
 *
 * Each step is its own object, linked to the sampler's. It is a global function: the verifier
 * checks it once, assuming that its memory may be anything. It may use about 190 bytes of stack, of
 * the 512 that the kernel allows for all active calls.
 */
#pragma once

#include "bpf/program.bpf.h"

#include "cpu/interp/interp_shared.h"

#define INTERP_DECLARE(constant, name)                                                             \
	int interp_##name##_step(struct interp_walk *w, const struct interp_layout *l);
INTERP_KINDS(INTERP_DECLARE)
#undef INTERP_DECLARE

/* Nonzero if there is no such memory. */
#define INTERP_READ(value, address) bpf_probe_read_user(&(value), sizeof(value), (void *)(address))
