/*
 * src/elf/dwarf/unit.h: the units of a file's DWARF, and what their entries refer to.
 *
 * A unit is decoded on demand: first its header and top entry; then its code (code.h); then
 * its lines (line.h). Least recently used units are dropped, and all abbreviations too, but
 * only between lookups (dwarf_file_trim): a pointer to a unit is valid until the lookup ends.
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

enum dwarf_section_index {
	DWARF_INFO,
	DWARF_ABBREV,
	DWARF_LINE,
	DWARF_LINE_STR,
	DWARF_STR,
	DWARF_STR_OFFSETS,
	DWARF_ADDR,
	DWARF_RANGES,
	DWARF_RNGLISTS,
	DWARF_ARANGES,
	DWARF_N_SECTIONS,
};

/* The attributes that we look at, each with its place in an entry. */
enum dwarf_slot {
	DWARF_SIBLING,
	DWARF_NAME,
	DWARF_LINKAGE_NAME,
	DWARF_LOW_PC,
	DWARF_HIGH_PC,
	DWARF_RANGE_LIST,
	DWARF_ORIGIN,
	DWARF_SPECIFICATION,
	DWARF_DECL_LINE,
	DWARF_EXTERNAL,
	DWARF_CALL_FILE,
	DWARF_CALL_LINE,
	/* of top entries only */
	DWARF_STMT_LIST,
	DWARF_COMP_DIR,
	DWARF_LANGUAGE,
	DWARF_STR_OFFSETS_BASE,
	DWARF_ADDR_BASE,
	DWARF_RNGLISTS_BASE,
	DWARF_DWO_NAME,
	DWARF_N_SLOTS,
};

struct dwarf_entry {
	uint64_t off;
	const struct dwarf_abbrev *abbrev; /* NULL for the end of siblings */
	struct dwarf_value values[DWARF_N_SLOTS];
};

struct dwarf_code;
struct dwarf_file;
struct dwarf_lines;

struct dwarf_unit {
	struct dwarf_file *file;
	uint64_t off; /* in .debug_info */
	uint64_t end;
	uint64_t first; /* the top entry */
	struct dwarf_encoding encoding;
	uint8_t type;
	bool is_split;
	bool has_lines;		       /* they were asked for, and these are all that can be had */
	struct dwarf_abbrevs *abbrevs; /* NULL between lookups */
	uint64_t abbrevs_off;
	struct dwarf_entry top;
	uint64_t low_pc;
	uint64_t addr_base;
	uint64_t str_offsets_base;
	uint64_t rnglists_base;
	struct dwarf_code *code;   /* NULL: not asked for */
	struct dwarf_lines *lines; /* NULL: none */
	struct dwarf_unit *next;   /* used longer ago */
};

#define DWARF_MAX_CODE 8

struct dwarf_file {
	const struct elf_image *image;
	struct elf_segment code[DWARF_MAX_CODE]; /* what can be executed; n_code 0: not known */
	size_t n_code;
	struct dwarf_pool *pool;
	struct dwarf_section sections[DWARF_N_SECTIONS];
	struct dwarf_file *alternate; /* NULL: not at hand */
	struct dwarf_abbrevs *abbrevs;
	struct dwarf_unit *units; /* the last used first */
	size_t n_units;
	size_t max_bytes;  /* of all units */
	uint64_t *offsets; /* of all units, ascending */
	size_t n_offsets;
	bool is_listed;
};

/* Borrows image and pool; any section may be missing. To be closed also after an error. */
int dwarf_file_open(struct dwarf_file *file, const struct elf_image *image, struct dwarf_pool *pool,
		    size_t max_bytes, struct err *err);
void dwarf_file_close(struct dwarf_file *file);
size_t dwarf_file_memory(const struct dwarf_file *file);
/* Drops abbreviations, and units until they take less than they may. */
void dwarf_file_trim(struct dwarf_file *file);
/* Whether code can lie there. What a linker threw away is said to lie at 0, or at the end. */
bool dwarf_file_has_code(const struct dwarf_file *file, uint64_t vaddr);

/* The unit that starts at off. -EBADMSG, -ENOTSUP, -E2BIG, -ENOMEM. */
int dwarf_file_unit(struct dwarf_file *file, uint64_t off, struct dwarf_unit **ret_unit);
/* Fills offsets; what comes behind a damaged unit is left out. */
int dwarf_file_list(struct dwarf_file *file);
/* The unit that an offset lies in. */
int dwarf_file_unit_at(struct dwarf_file *file, uint64_t off, struct dwarf_unit **ret_unit);

/* Reads an entry and the attributes that we look at; the cursor is then behind it. */
void dwarf_entry_read(struct dwarf_cursor *c, const struct dwarf_unit *unit,
		      struct dwarf_entry *ret);
/* Reads the code only; the cursor is then at the values. NULL for the end of siblings. */
const struct dwarf_abbrev *dwarf_entry_abbrev(struct dwarf_cursor *c,
					      const struct dwarf_unit *unit);
void dwarf_entry_values(struct dwarf_cursor *c, const struct dwarf_unit *unit,
			const struct dwarf_abbrev *abbrev, struct dwarf_entry *ret);

/* What values of attributes mean. False when they are not there or make no sense. */
bool dwarf_unit_address(const struct dwarf_unit *unit, struct dwarf_value value, uint64_t *ret);
bool dwarf_unit_addrx(const struct dwarf_unit *unit, uint64_t index, uint64_t *ret);
bool dwarf_unit_reference(const struct dwarf_unit *unit, struct dwarf_value value,
			  struct dwarf_file **ret_file, uint64_t *ret_off);
/* Appends a string; `in` is the section of strings that stand in place. */
int dwarf_unit_string(const struct dwarf_unit *unit, struct dwarf_value value,
		      struct dwarf_section *in, struct buf *buf);

/* Before any entry of the unit is read. */
int dwarf_unit_load_abbrevs(struct dwarf_unit *unit);
size_t dwarf_unit_memory(const struct dwarf_unit *unit);
