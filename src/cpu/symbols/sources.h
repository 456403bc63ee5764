/*
 * src/cpu/symbols/sources.h: the symbol tables, debug information and Go tables of files.
 *
 * A file is opened when a new address in it is looked up, and closed if not used for a while, or
 * when others need the memory. Private to the symbolizer.
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

/* All may be NULL: an unreadable file has nothing, and Go's names need no symbol tables. */
struct cpu_symbols_source {
	uint32_t id;
	uint32_t generation;
	uint64_t used_ns;
	struct elf_image *image;
	struct elf_image *debug;     /* the separate debug file, while DWARF needs it */
	struct elf_image *alternate; /* shared by several debug files (dwz) */
	struct elf_functions *tables[CPU_SYMBOLS_MAX_TABLES];
	size_t n_tables;
	struct elf_dwarf *dwarf;
	struct golang_program *program;
	bool has_tables; /* they have been loaded, if any */
};

/* Each has up to four descriptors. */
#define CPU_SYMBOLS_MAX_SOURCES 128
/* Files unused for this long are closed when another one is opened. */
#define CPU_SYMBOLS_IDLE_NS (120ULL * 1000000000)

/* Empty if zeroed, except for the first three. */
struct cpu_symbols_sources {
	size_t max_bytes;
	const char *debug_root;
	bool lines;
	struct cpu_symbols_source *list[CPU_SYMBOLS_MAX_SOURCES];
	size_t len;
};

void cpu_symbols_sources_release(struct cpu_symbols_sources *sources);
/*
 * The file with its Go tables. NULL if out of memory or descriptors even after closing all others.
 * Valid until the next call.
 */
struct cpu_symbols_source *cpu_symbols_sources_get(struct cpu_symbols_sources *sources,
						   const struct cpu_file *file, uint64_t now_ns);
/* Loads its symbols and DWARF. -ENOMEM, -EMFILE: incomplete for lack of memory or descriptors. */
int cpu_symbols_source_load_tables(struct cpu_symbols_source *source,
				   const struct cpu_symbols_sources *sources,
				   const struct cpu_file *file);
/* Closes a file, if it is open. */
void cpu_symbols_sources_close(struct cpu_symbols_sources *sources, const struct cpu_file *file);
/* Drops it, as if it had never been opened. */
void cpu_symbols_sources_forget(struct cpu_symbols_sources *sources,
				const struct cpu_symbols_source *source);
/* Closes files until memory is within the limit, except the last used one. */
void cpu_symbols_sources_trim(struct cpu_symbols_sources *sources, uint64_t now_ns);

/* The symbol that covers the address, from the best table; or NULL. Valid until the next lookup. */
const char *cpu_symbols_source_symbol(const struct cpu_symbols_source *source, uint64_t vaddr);
