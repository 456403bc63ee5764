/*
 * src/cpu/interp/python/symbols.h: whether a file is a CPython interpreter, and the addresses of
 * its variables.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "elf/image.h"

/* Link-time addresses. */
struct python_symbols {
	unsigned int minor; /* of 3.minor; 0: none, or unsupported */
	uint64_t runtime;   /* _PyRuntime */
	uint64_t code_type; /* PyCode_Type */
};

/* By name only ("python3.11", "libpython3.11.so.1.0"): whether to look into it at all. */
bool python_is_named(const char *path);
/* minor is 0 if it is not one. path provides the name. */
void python_symbols_read(const struct elf_image *image, const char *path,
			 struct python_symbols *ret_symbols);
