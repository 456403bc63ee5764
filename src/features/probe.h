/*
 * src/features/probe.h: tries what features need: loads the BPF programs, opens perf events, reads
 * kernel names and memory. Nothing of it stays, and no process notices.
 */
#pragma once

#include "features/features.h"

/* All of them, for the store in data_dir (NULL: none is wanted). Some tenths of a second. */
void features_probe(const char *data_dir, struct features *ret_features);
/* Those that whoever samples, watches and stores does not find out by itself. Milliseconds. */
void features_probe_host(struct features *features);
