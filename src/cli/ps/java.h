/* src/cli/ps/java.h: which JVM a process runs, and whether it can be profiled, for `sonde ps`. */
#pragma once

#include "cli/ps/list.h"
#include "proc/maps.h"

/* Sets runtime, version, reason and remedy of a Java process; leaves others unchanged. */
void ps_java_describe(const struct proc_maps *maps, struct ps_entry *entry);
