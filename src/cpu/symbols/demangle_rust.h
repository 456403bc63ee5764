/*
 * src/cpu/symbols/demangle_rust.h: Rust's names of version 0 ("_R..."), as rustc writes them since
 * 1.37 when asked to and by default lately; RFC 2603 has the grammar. For demangle.c only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * False when it is no such name. Crates' hashes are left out. *ret_is_cut: only the first cap - 1
 * bytes are there. A name without end stops at a limit of steps.
 */
bool cpu_demangle_rust(const char *name, char *dst, size_t cap, bool *ret_is_cut);
