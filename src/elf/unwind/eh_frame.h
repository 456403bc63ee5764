/*
 * src/elf/unwind/eh_frame.h: the entries of .eh_frame and .debug_frame, and the programs in them.
 * Private to this folder.
 *
 * entry      length u32, or 0xffffffff and u64 | id | ...
 * CIE        version u8, augmentation "zPLRS", [v4: address and segment size u8], code alignment
 *            uleb, data alignment sleb, return address column, [z: uleb length, data], program
 * FDE        start, size, [z: uleb length, data], program
 *
 * A CIE holds what many functions have in common; an FDE is one function, and its id locates its
 * CIE. A program describes how the rules change from the start of the function to its end.
 *
 * Sources: DWARF 5, 6.4; System V ABI for AMD64, 3.7; LSB Core, 10.6.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/view.h"
#include "elf/image.h"
#include "elf/unwind/builder.h"

/* Reads bytes in sequence. Past the end everything is 0 and bad is set. */
struct elf_eh_cursor {
	struct view bytes;
	uint64_t vaddr; /* of the first byte: addresses are relative to their own location */
	size_t pos;
	bool bad;
};

static inline uint8_t elf_eh_u8(struct elf_eh_cursor *c)
{
	uint8_t v = 0;

	if (view_u8(c->bytes, c->pos, &v))
		c->pos++;
	else
		c->bad = true;
	return v;
}

/* n is 2, 4 or 8. */
uint64_t elf_eh_uint(struct elf_eh_cursor *c, unsigned int n);
uint64_t elf_eh_uleb(struct elf_eh_cursor *c);
int64_t elf_eh_sleb(struct elf_eh_cursor *c);
/* The next n bytes, which it skips. */
struct view elf_eh_bytes(struct elf_eh_cursor *c, uint64_t n);

/* A part of the file, of which only the current window is in memory. */
struct elf_eh_section {
	const struct elf_image *image; /* borrowed */
	uint64_t off;		       /* in the file */
	uint64_t size;
	uint64_t vaddr;	   /* of the first byte */
	bool is_debug;	   /* .debug_frame: other ids, plain addresses */
	bool ends_at_0;	   /* a length of 0 ends it; otherwise another object's entries follow */
	uint64_t lo, hi;   /* the text; functions outside it are ignored */
	uint64_t from, to; /* functions that do not reach into this are not wanted */

	uint8_t *window;
	size_t window_cap;
	uint64_t window_at; /* in the section */
	size_t window_len;
	size_t ahead; /* how much to read ahead */
};

/* An address in the encoding (DW_EH_PE_*) of its CIE. */
uint64_t elf_eh_address(struct elf_eh_cursor *c, uint8_t encoding);

enum elf_eh_cfa {
	ELF_EH_CFA_NONE,
	ELF_EH_CFA_REG,
	ELF_EH_CFA_DEREF, /* *(reg + low 16 bits) + high 16 bits */
	ELF_EH_CFA_PLT,
	ELF_EH_CFA_OTHER,
};

enum elf_eh_ra {
	ELF_EH_RA_OTHER,
	ELF_EH_RA_SAVED, /* where the call put it */
	ELF_EH_RA_UNDEFINED,
};

/* The rules at one address, as far as we track them. */
struct elf_eh_state {
	enum elf_eh_cfa cfa;
	enum elf_eh_ra ra;
	enum elf_unwind_fp fp;
	uint64_t reg;
	int64_t cfa_off;
	int64_t fp_off;
};

struct elf_eh_cie {
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra_column;
	uint8_t encoding;
	bool is_augmented;
	bool is_signal;
	bool is_usable;
	struct elf_eh_state initial;
};

/* The start of a function, and its entry. */
struct elf_eh_place {
	uint32_t start; /* from the lowest text */
	uint32_t entry; /* from the start of the section */
};

struct elf_eh_fde {
	uint64_t start;
	uint64_t size;
	const struct elf_eh_cie *cie;
	struct elf_eh_cursor program;
};

/* Empty if zeroed. */
struct elf_eh_frame {
	struct elf_eh_section section;
	struct elf_eh_cie *cies;
	size_t n_cies, cies_cap;
	struct map cie_at;	   /* offset -> index */
	struct elf_eh_place *fdes; /* by address */
	size_t n_fdes, fdes_cap;
	uint64_t read_bytes; /* of entries */
	uint64_t n_damaged;
};

/* Functions of a file, or of a part of it. */
#define ELF_EH_MAX_FDES ((size_t)1 << 20)

/*
 * The functions that begin between the addresses, and one before, from the search table. take gets
 * the addresses of a function and of its entry; a negative result ends it. -ENOENT: there is no
 * such table. -E2BIG: it has more than ELF_EH_MAX_FDES rows for them.
 */
int elf_eh_entries(const struct elf_image *image, uint64_t from, uint64_t to,
		   int (*take)(void *context, uint64_t start, uint64_t entry), void *context);

/*
 * Finds all wanted functions. frame->section must be set. sink: called from time to time, without
 * rows; NULL is fine. -E2BIG, -ENOMEM, or the sink's error.
 */
int elf_eh_frame_load(struct elf_eh_frame *frame, const struct elf_unwind_sink *sink);
/*
 * One of them, valid until the next call. -EBADMSG: the file has changed; -E2BIG: too much was
 * read; -ENOMEM.
 */
int elf_eh_frame_fde(struct elf_eh_frame *frame, const struct elf_eh_place *place,
		     struct elf_eh_fde *ret_fde);
/* The same by the search table, without reading the rest. -ENOENT: there is none. */
int elf_eh_frame_load_indexed(struct elf_eh_frame *frame);
void elf_eh_frame_release(struct elf_eh_frame *frame);

/* Runs the program of a CIE; false if invalid or unsupported. */
bool elf_eh_program_initial(struct elf_eh_cie *cie, const struct elf_eh_cursor *program);
/* Rows from the function's start to end. Counts unsupported rules in the builder. */
int elf_eh_program_rows(const struct elf_eh_fde *fde, uint64_t end, struct elf_unwind_builder *b);
