/*
 * src/elf/dwarf.h: source lines and inlined calls from DWARF 2 to 5, by our own bounded reader: the
 * file may be a container's, and it is root who reads it.
 *
 * Units are found once (.debug_aranges, else a pass over unit headers and their top entries); a
 * unit's lines and inlined calls are decoded when an address in it is first asked for, and kept
 * within a limit of memory.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/view.h"
#include "elf/image.h"

struct elf_dwarf; /* opaque; for one thread at a time */

/* Borrows the image. -ENOENT: there is no DWARF in it. -ENOTSUP: none that we read (split, ...). */
int elf_dwarf_open(const struct elf_image *image, size_t max_bytes, struct elf_dwarf **ret_dwarf,
		   struct err *err);
void elf_dwarf_close(struct elf_dwarf *dwarf); /* NULL is fine */
DEFINE_CLEANUP(struct elf_dwarf, elf_dwarf_close)

/* Views live until the next call. */
struct elf_dwarf_frame {
	struct view name; /* the linkage name where there is one: not demangled; may be empty */
	struct view file; /* with its folder where DWARF has it */
	int64_t line;	  /* 0 when unknown */
	int64_t start_line;
};

#define ELF_DWARF_MAX_FRAMES 64

/*
 * Calls emit for each function at the link-time address, the innermost inlined one first, the
 * function that holds the code last. Returns how many; 0 when nothing is known of the address.
 */
int elf_dwarf_frames(struct elf_dwarf *dwarf, uint64_t vaddr,
		     int (*emit)(void *context, const struct elf_dwarf_frame *frame), void *context,
		     struct err *err);

size_t elf_dwarf_memory(const struct elf_dwarf *dwarf);
