/*
 * src/cpu/unwind/hotspot_flag.h: whether a HotSpot JVM was started with -XX:+PreserveFramePointer.
 *
 * HotSpot describes its own variables to debuggers, in tables that libjvm exports: rows of
 * (type, field, ...), at strides and offsets that it exports as well. They lead to the list of all
 * flags, wherever a flag was set: command line, environment or file.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "elf/image.h"
#include "proc/mem.h"

/* The exported words, at link-time addresses. */
enum cpu_hotspot_word {
	CPU_HOTSPOT_STRUCTS, /* of fields: the address of the table, then what its rows look like */
	CPU_HOTSPOT_STRUCT_STRIDE,
	CPU_HOTSPOT_STRUCT_TYPE,
	CPU_HOTSPOT_STRUCT_FIELD,
	CPU_HOTSPOT_STRUCT_OFFSET,
	CPU_HOTSPOT_STRUCT_ADDRESS,
	CPU_HOTSPOT_TYPES, /* of types, likewise */
	CPU_HOTSPOT_TYPE_STRIDE,
	CPU_HOTSPOT_TYPE_NAME,
	CPU_HOTSPOT_TYPE_SIZE,
	CPU_HOTSPOT_WORDS,
};

struct cpu_hotspot {
	uint64_t words[CPU_HOTSPOT_WORDS];
};

/* False if the file is not a libjvm. */
bool cpu_hotspot_find(const struct elf_image *image, struct cpu_hotspot *ret_hotspot);
/* The flag of a process that maps it with a bias. -ENOENT: not known, or not known yet. */
int cpu_hotspot_flag(const struct cpu_hotspot *hotspot, struct proc_mem *mem, uint64_t bias,
		     bool *ret_flag);
