/*
 * src/elf/unwind/eh_frame.h: the entries of .eh_frame and .debug_frame, and the programs in them.
 * For the files of this room only.
 *
 * entry      length u32, or 0xffffffff and u64 | id | ...
 * CIE        version u8, augmentation "zPLRS", [v4: address and segment size u8], code alignment
 *            uleb, data alignment sleb, return address column, [z: uleb length, data], program
 * FDE        start, size, [z: uleb length, data], program
 *
 * A CIE is what many functions have in common; an FDE is one function, and its id says where its
 * CIE is. A program describes how the rules change from the start of the function to its end.
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

/* Bytes that are read one after the other. Past the end everything is 0 and bad is set. */
struct eh_cursor {
	struct view bytes;
	uint64_t vaddr; /* of the first byte: addresses are relative to where they stand */
	size_t pos;
	bool bad;
};

static inline uint8_t eh_u8(struct eh_cursor *c)
{
	uint8_t v = 0;

	if (view_u8(c->bytes, c->pos, &v))
		c->pos++;
	else
		c->bad = true;
	return v;
}

/* n is 2, 4 or 8. */
uint64_t eh_uint(struct eh_cursor *c, unsigned int n);
uint64_t eh_uleb(struct eh_cursor *c);
int64_t eh_sleb(struct eh_cursor *c);
/* The next n bytes, stepped over. */
struct view eh_bytes(struct eh_cursor *c, uint64_t n);

/* A part of the file, of which no more is in memory than is being looked at. */
struct eh_section {
	const struct elf_image *image; /* borrowed */
	uint64_t off;		       /* in the file */
	uint64_t size;
	uint64_t vaddr;	 /* of the first byte */
	bool is_debug;	 /* .debug_frame: other ids, plain addresses */
	bool ends_at_0;	 /* a length of 0 ends it; else what follows is another object's */
	uint64_t lo, hi; /* the text; functions outside of it are none */

	uint8_t *window;
	size_t window_cap;
	uint64_t window_at; /* in the section */
	size_t window_len;
	size_t ahead; /* what is read beyond what is asked for */
};

/* An address in the encoding (DW_EH_PE_*) of its CIE. */
uint64_t eh_address(struct eh_cursor *c, uint8_t encoding);

enum eh_cfa {
	EH_CFA_NONE,
	EH_CFA_REG,
	EH_CFA_DEREF, /* *(reg + low 16 bits) + high 16 bits */
	EH_CFA_PLT,
	EH_CFA_OTHER,
};

enum eh_ra {
	EH_RA_OTHER,
	EH_RA_SAVED, /* where the call put it */
	EH_RA_UNDEFINED,
};

/* The rules at one address, as far as we follow them. */
struct eh_state {
	enum eh_cfa cfa;
	enum eh_ra ra;
	enum unwind_fp fp;
	uint64_t reg;
	int64_t cfa_off;
	int64_t fp_off;
};

struct eh_cie {
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra_column;
	uint8_t encoding;
	bool is_augmented;
	bool is_signal;
	bool is_usable;
	struct eh_state initial;
};

/* Where a function begins, and its entry. */
struct eh_place {
	uint32_t start; /* from the lowest text */
	uint32_t entry; /* from the start of the section */
};

struct eh_fde {
	uint64_t start;
	uint64_t size;
	const struct eh_cie *cie;
	struct eh_cursor program;
};

/* A zeroed one is empty. */
struct eh_frame {
	struct eh_section section;
	struct eh_cie *cies;
	size_t n_cies, cies_cap;
	struct map cie_at;     /* offset -> index */
	struct eh_place *fdes; /* by address */
	size_t n_fdes, fdes_cap;
	uint64_t n_damaged;
};

/*
 * Finds all functions. frame->section is to be set. sink: to be called now and then, without rows;
 * NULL is fine. -E2BIG, -ENOMEM, what the sink answers.
 */
int eh_frame_load(struct eh_frame *frame, const struct unwind_sink *sink);
/* One of them, until the next call. -EBADMSG: the file is no longer what it was; -ENOMEM. */
int eh_frame_fde(struct eh_frame *frame, const struct eh_place *place, struct eh_fde *ret_fde);
void eh_frame_release(struct eh_frame *frame);

/* Runs the program of a CIE; false if invalid or unsupported. */
bool eh_program_initial(struct eh_cie *cie, const struct eh_cursor *program);
/* Rows from the function's start to end. Counts in the builder what is beyond us. */
int eh_program_rows(const struct eh_fde *fde, uint64_t end, struct unwind_builder *b);
