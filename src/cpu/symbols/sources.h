/*
 * src/cpu/symbols/sources.h: the symbol tables, debug information and Go tables of files.
 *
 * Opened when an address of the file is looked up that was not asked for before, and dropped when
 * nothing more was asked for a while or memory is needed for others. For the files of names only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpu/unwind/files.h"
#include "elf/dwarf/dwarf.h"
#include "elf/symbols.h"
#include "golang/binary/program.h"

#define CPU_SYMBOLS_MAX_TABLES 3

/* All may be NULL: a file that cannot be read has nothing, and what Go names needs no tables. */
struct cpu_symbols_source {
	uint32_t id;
	uint32_t generation;
	uint64_t used_ns;
	struct elf_image *image;
	struct elf_image *debug;     /* the separate debug file, while DWARF needs it */
	struct elf_image *alternate; /* what several debug files share, by dwz */
	struct elf_functions *tables[CPU_SYMBOLS_MAX_TABLES];
	size_t n_tables;
	struct elf_dwarf *dwarf;
	struct golang_program *program;
	bool has_tables; /* they were looked for */
};

/* Each has up to four descriptors. */
#define CPU_SYMBOLS_MAX_SOURCES 128
/* What was not used for that long is dropped when another file is opened. */
#define CPU_SYMBOLS_IDLE_NS (120ULL * 1000000000)

/* Zeroed is empty, but for the three first. */
struct cpu_symbols_sources {
	size_t max_bytes;
	const char *debug_root;
	bool lines;
	struct cpu_symbols_source *list[CPU_SYMBOLS_MAX_SOURCES];
	size_t len;
};

void cpu_symbols_sources_release(struct cpu_symbols_sources *sources);
/*
 * The file with its Go tables. NULL when out of memory or descriptors, even without all others.
 * Lives until the next call.
 */
struct cpu_symbols_source *cpu_symbols_sources_get(struct cpu_symbols_sources *sources,
						   const struct cpu_file *file, uint64_t now_ns);
/* Its symbols and DWARF. -ENOMEM, -EMFILE: not all of them, for want of memory or descriptors. */
int cpu_symbols_source_load_tables(struct cpu_symbols_source *source,
				   const struct cpu_symbols_sources *sources,
				   const struct cpu_file *file);
/* As if it had never been asked for. */
void cpu_symbols_sources_forget(struct cpu_symbols_sources *sources,
				const struct cpu_symbols_source *source);
/* Drops files until memory is within the limit; what was used last stays. */
void cpu_symbols_sources_trim(struct cpu_symbols_sources *sources, uint64_t now_ns);

/* The symbol that covers the address, of the best table; NULL. Lives until the next lookup. */
const char *cpu_symbols_source_symbol(const struct cpu_symbols_source *source, uint64_t vaddr);
