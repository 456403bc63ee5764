/*
 * src/features/probe.h: tries what features need: loads BPF programs, opens perf events, reads
 * kernel symbols and memory. Leaves nothing behind, and no process notices.
 */
#pragma once

#include "features/features.h"

/* Tries all of them, with the store in data_dir (NULL: none). Takes some tenths of a second. */
void features_probe(const char *data_dir, struct features *ret_features);
/* Tries those that sampler, OOM watch and store do not find out themselves. Milliseconds. */
void features_probe_host(struct features *features);
