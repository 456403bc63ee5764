/*
 * src/elf/dwarf/unit.h: the units of a file's DWARF, and what their entries refer to.
 *
 * A unit is decoded on demand: first its header and top entry; then its code (code.h); then
 * its lines (line.h). Least recently used units are dropped, and all abbreviations too, but
 * only between lookups (elf_dwarf_file_trim): a pointer to a unit is valid until the lookup ends.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "elf/dwarf/abbrev.h"
#include "elf/dwarf/const.h"
#include "elf/dwarf/cursor.h"
#include "elf/dwarf/form.h"
#include "elf/dwarf/section.h"

enum elf_dwarf_section_index {
	ELF_DWARF_INFO,
	ELF_DWARF_ABBREV,
	ELF_DWARF_LINE,
	ELF_DWARF_LINE_STR,
	ELF_DWARF_STR,
	ELF_DWARF_STR_OFFSETS,
	ELF_DWARF_ADDR,
	ELF_DWARF_RANGES,
	ELF_DWARF_RNGLISTS,
	ELF_DWARF_ARANGES,
	ELF_DWARF_N_SECTIONS,
};

/* The attributes we use, each with its slot in an entry. */
enum elf_dwarf_slot {
	ELF_DWARF_SIBLING,
	ELF_DWARF_NAME,
	ELF_DWARF_LINKAGE_NAME,
	ELF_DWARF_LOW_PC,
	ELF_DWARF_HIGH_PC,
	ELF_DWARF_RANGE_LIST,
	ELF_DWARF_ORIGIN,
	ELF_DWARF_SPECIFICATION,
	ELF_DWARF_DECL_LINE,
	ELF_DWARF_EXTERNAL,
	ELF_DWARF_CALL_FILE,
	ELF_DWARF_CALL_LINE,
	/* of top entries only */
	ELF_DWARF_STMT_LIST,
	ELF_DWARF_COMP_DIR,
	ELF_DWARF_LANGUAGE,
	ELF_DWARF_STR_OFFSETS_BASE,
	ELF_DWARF_ADDR_BASE,
	ELF_DWARF_RNGLISTS_BASE,
	ELF_DWARF_DWO_NAME,
	ELF_DWARF_N_SLOTS,
};

struct elf_dwarf_entry {
	uint64_t off;
	const struct elf_dwarf_abbrev *abbrev; /* NULL at the end of siblings */
	struct elf_dwarf_value values[ELF_DWARF_N_SLOTS];
};

struct elf_dwarf_code;
struct elf_dwarf_file;
struct elf_dwarf_lines;

struct elf_dwarf_unit {
	struct elf_dwarf_file *file;
	uint64_t off; /* in .debug_info */
	uint64_t end;
	uint64_t first; /* the top entry */
	struct elf_dwarf_encoding encoding;
	uint8_t type;
	bool is_split;
	bool has_lines;			   /* they were loaded, as far as possible */
	struct elf_dwarf_abbrevs *abbrevs; /* NULL between lookups */
	uint64_t abbrevs_off;
	struct elf_dwarf_entry top;
	uint64_t low_pc;
	uint64_t addr_base;
	uint64_t str_offsets_base;
	uint64_t rnglists_base;
	struct elf_dwarf_code *code;   /* NULL: not loaded */
	struct elf_dwarf_lines *lines; /* NULL: none */
	struct elf_dwarf_unit *next;   /* less recently used */
};

#define ELF_DWARF_MAX_CODE 8

struct elf_dwarf_file {
	const struct elf_image *image;
	struct elf_segment code[ELF_DWARF_MAX_CODE]; /* executable segments; n_code 0: unknown */
	size_t n_code;
	struct elf_dwarf_pool *pool;
	struct elf_dwarf_section sections[ELF_DWARF_N_SECTIONS];
	struct elf_dwarf_file *alternate; /* NULL: not available */
	struct elf_dwarf_abbrevs *abbrevs;
	struct elf_dwarf_unit *units; /* most recently used first */
	size_t n_units;
	size_t max_bytes;  /* of all units */
	uint64_t *offsets; /* of all units, ascending */
	size_t n_offsets;
	bool is_listed;
};

/* Borrows image and pool; any section may be missing. Must be closed even after an error. */
int elf_dwarf_file_open(struct elf_dwarf_file *file, const struct elf_image *image,
			struct elf_dwarf_pool *pool, size_t max_bytes, struct err *err);
void elf_dwarf_file_close(struct elf_dwarf_file *file);
size_t elf_dwarf_file_memory(const struct elf_dwarf_file *file);
/* Drops abbreviations, and units until they are within the limit. */
void elf_dwarf_file_trim(struct elf_dwarf_file *file);
/* Whether code can be there. Discarded code is marked with address 0, or the highest ones. */
bool elf_dwarf_file_has_code(const struct elf_dwarf_file *file, uint64_t vaddr);

/* The unit starting at off. -EBADMSG, -ENOTSUP, -E2BIG, -ENOMEM. */
int elf_dwarf_file_unit(struct elf_dwarf_file *file, uint64_t off,
			struct elf_dwarf_unit **ret_unit);
/* Fills offsets, up to the first damaged unit. */
int elf_dwarf_file_list(struct elf_dwarf_file *file);
/* The unit that contains an offset. */
int elf_dwarf_file_unit_at(struct elf_dwarf_file *file, uint64_t off,
			   struct elf_dwarf_unit **ret_unit);

/* Reads an entry and the attributes we use, and moves the cursor past it. */
void elf_dwarf_entry_read(struct elf_dwarf_cursor *c, const struct elf_dwarf_unit *unit,
			  struct elf_dwarf_entry *ret);
/* Reads only the code, and moves the cursor to the values. NULL at the end of siblings. */
const struct elf_dwarf_abbrev *elf_dwarf_entry_abbrev(struct elf_dwarf_cursor *c,
						      const struct elf_dwarf_unit *unit);
void elf_dwarf_entry_values(struct elf_dwarf_cursor *c, const struct elf_dwarf_unit *unit,
			    const struct elf_dwarf_abbrev *abbrev, struct elf_dwarf_entry *ret);

/* Interpret attribute values. False if absent or invalid. */
bool elf_dwarf_unit_address(const struct elf_dwarf_unit *unit, struct elf_dwarf_value value,
			    uint64_t *ret);
bool elf_dwarf_unit_addrx(const struct elf_dwarf_unit *unit, uint64_t index, uint64_t *ret);
bool elf_dwarf_unit_reference(const struct elf_dwarf_unit *unit, struct elf_dwarf_value value,
			      struct elf_dwarf_file **ret_file, uint64_t *ret_off);
/* Appends a string; `in` is the section that holds inline strings. */
int elf_dwarf_unit_string(const struct elf_dwarf_unit *unit, struct elf_dwarf_value value,
			  struct elf_dwarf_section *in, struct buf *buf);

/* Call before reading any entry of the unit. */
int elf_dwarf_unit_load_abbrevs(struct elf_dwarf_unit *unit);
size_t elf_dwarf_unit_memory(const struct elf_dwarf_unit *unit);
