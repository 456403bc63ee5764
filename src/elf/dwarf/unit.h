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

/* The attributes that we look at, each with its place in an entry. */
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
	const struct elf_dwarf_abbrev *abbrev; /* NULL for the end of siblings */
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
	bool has_lines; /* they were asked for, and these are all that can be had */
	struct elf_dwarf_abbrevs *abbrevs; /* NULL between lookups */
	uint64_t abbrevs_off;
	struct elf_dwarf_entry top;
	uint64_t low_pc;
	uint64_t addr_base;
	uint64_t str_offsets_base;
	uint64_t rnglists_base;
	struct elf_dwarf_code *code;   /* NULL: not asked for */
	struct elf_dwarf_lines *lines; /* NULL: none */
	struct elf_dwarf_unit *next;   /* used longer ago */
};

#define ELF_DWARF_MAX_CODE 8

struct elf_dwarf_file {
	const struct elf_image *image;
	struct elf_segment code[ELF_DWARF_MAX_CODE]; /* what can be executed; n_code 0: not known */
	size_t n_code;
	struct elf_dwarf_pool *pool;
	struct elf_dwarf_section sections[ELF_DWARF_N_SECTIONS];
	struct elf_dwarf_file *alternate; /* NULL: not at hand */
	struct elf_dwarf_abbrevs *abbrevs;
	struct elf_dwarf_unit *units; /* the last used first */
	size_t n_units;
	size_t max_bytes;  /* of all units */
	uint64_t *offsets; /* of all units, ascending */
	size_t n_offsets;
	bool is_listed;
};

/* Borrows image and pool; any section may be missing. To be closed also after an error. */
int elf_dwarf_file_open(struct elf_dwarf_file *file, const struct elf_image *image,
			struct elf_dwarf_pool *pool, size_t max_bytes, struct err *err);
void elf_dwarf_file_close(struct elf_dwarf_file *file);
size_t elf_dwarf_file_memory(const struct elf_dwarf_file *file);
/* Drops abbreviations, and units until they take less than they may. */
void elf_dwarf_file_trim(struct elf_dwarf_file *file);
/* Whether code can lie there. What a linker threw away is said to lie at 0, or at the end. */
bool elf_dwarf_file_has_code(const struct elf_dwarf_file *file, uint64_t vaddr);

/* The unit that starts at off. -EBADMSG, -ENOTSUP, -E2BIG, -ENOMEM. */
int elf_dwarf_file_unit(struct elf_dwarf_file *file, uint64_t off,
			struct elf_dwarf_unit **ret_unit);
/* Fills offsets; what comes behind a damaged unit is left out. */
int elf_dwarf_file_list(struct elf_dwarf_file *file);
/* The unit that an offset lies in. */
int elf_dwarf_file_unit_at(struct elf_dwarf_file *file, uint64_t off,
			   struct elf_dwarf_unit **ret_unit);

/* Reads an entry and the attributes that we look at; the cursor is then behind it. */
void elf_dwarf_entry_read(struct elf_dwarf_cursor *c, const struct elf_dwarf_unit *unit,
			  struct elf_dwarf_entry *ret);
/* Reads the code only; the cursor is then at the values. NULL for the end of siblings. */
const struct elf_dwarf_abbrev *elf_dwarf_entry_abbrev(struct elf_dwarf_cursor *c,
						      const struct elf_dwarf_unit *unit);
void elf_dwarf_entry_values(struct elf_dwarf_cursor *c, const struct elf_dwarf_unit *unit,
			    const struct elf_dwarf_abbrev *abbrev, struct elf_dwarf_entry *ret);

/* What values of attributes mean. False when they are not there or make no sense. */
bool elf_dwarf_unit_address(const struct elf_dwarf_unit *unit, struct elf_dwarf_value value,
			    uint64_t *ret);
bool elf_dwarf_unit_addrx(const struct elf_dwarf_unit *unit, uint64_t index, uint64_t *ret);
bool elf_dwarf_unit_reference(const struct elf_dwarf_unit *unit, struct elf_dwarf_value value,
			      struct elf_dwarf_file **ret_file, uint64_t *ret_off);
/* Appends a string; `in` is the section of strings that stand in place. */
int elf_dwarf_unit_string(const struct elf_dwarf_unit *unit, struct elf_dwarf_value value,
			  struct elf_dwarf_section *in, struct buf *buf);

/* Before any entry of the unit is read. */
int elf_dwarf_unit_load_abbrevs(struct elf_dwarf_unit *unit);
size_t elf_dwarf_unit_memory(const struct elf_dwarf_unit *unit);
