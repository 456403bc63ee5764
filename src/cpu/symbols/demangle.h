/*
 * src/cpu/symbols/demangle.h: readable names of C++ and Rust functions.
 *
 * Shown as by perf and `c++filt -p -i`: with template arguments, without parameters, return types
 * and suffixes for parts of a function (".cold"), and Rust names without the hash. Names come from
 * targets' files: input, output and depth are limited, and nothing is allocated.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Longer names stay unchanged. */
#define CPU_DEMANGLE_MAX_INPUT 1024

/*
 * Writes the readable name to dst (of more than 8 bytes) and returns true. False if it is not
 * mangled or cannot be demangled; dst is then "". A name that does not fit ends in "...".
 */
bool cpu_demangle(const char *name, char *dst, size_t cap);
