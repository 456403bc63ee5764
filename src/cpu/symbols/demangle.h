/*
 * src/cpu/symbols/demangle.h: names of C++ and Rust functions as people write them.
 *
 * Shown as perf and `c++filt -p -i` do: with template arguments, without parameters, return types
 * and marks of parts of a function (".cold"), and of Rust names without the hash. Names come from
 * files of targets: input, output and depth have limits, and nothing is allocated.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Longer names are left as they are. */
#define CPU_DEMANGLE_MAX_INPUT 1024

/*
 * Writes the name for people to dst (of more than 8 bytes) and returns true. False when it is not
 * mangled or cannot be demangled; dst is then "". What does not fit ends in "...".
 */
bool cpu_demangle(const char *name, char *dst, size_t cap);
