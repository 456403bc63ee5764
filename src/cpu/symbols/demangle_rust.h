/*
 * src/cpu/symbols/demangle_rust.h: Rust's names of version 0 ("_R..."), which rustc writes on
 * request since 1.37 and lately by default; for the grammar see RFC 2603. Private to demangle.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * False if it is not such a name. Omits the hashes of crates. *ret_is_cut: only the first cap - 1
 * bytes were written. Endless names stop at a limit of steps.
 */
bool cpu_demangle_rust(const char *name, char *dst, size_t cap, bool *ret_is_cut);
