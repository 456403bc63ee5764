/* src/cpu/unwind/file_headers.h: what is known of an executable file before its tables are loaded.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/image.h"
#include "proc/maps.h"

#define CPU_FILE_SEGMENTS_MAX 16

struct cpu_file_segment {
	uint64_t offset;
	uint64_t size;
	uint64_t vaddr;
};

/* Executable segments. */
struct cpu_file_headers {
	struct cpu_file_segment segments[CPU_FILE_SEGMENTS_MAX];
	size_t n_segments;
};

void cpu_file_headers_read(const struct elf_image *image, struct cpu_file_headers *ret_headers);
/* Address - bias is the link-time address. */
uint64_t cpu_file_headers_bias(const struct cpu_file_headers *headers, const struct proc_map *map);
/* The parts its tables are loaded in, if its code is large: their number, else 0. */
uint32_t cpu_file_headers_parts(const struct cpu_file_headers *headers, uint64_t *ret_first_page);
