/*
 * src/elf/dwarf/dwarf.h: source lines and inlined calls from DWARF 2 to 5, by our own bounded
 * reader: the file may come from a container, and root reads it.
 *
 * Units are found once (.debug_aranges, else a pass over unit headers and top entries). A unit's
 * lines and inlined calls are decoded when an address in it is first looked up, and kept within a
 * memory limit.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/view.h"
#include "elf/image.h"

struct elf_dwarf; /* opaque; for one thread at a time */

/*
 * Borrows the image. At least ELF_DWARF_MIN_BYTES are taken as the limit: large units do not fit in
 * less, and what does not fit is not known. -ENOENT: there is no DWARF in it. -ENOTSUP: none that
 * we read (split, of an object file, newer than version 5).
 */
#define ELF_DWARF_MIN_BYTES ((size_t)4 << 20)
int elf_dwarf_open(const struct elf_image *image, size_t max_bytes, struct elf_dwarf **ret_dwarf,
		   struct err *err);
void elf_dwarf_close(struct elf_dwarf *dwarf); /* NULL is fine */
DEFINE_CLEANUP(struct elf_dwarf, elf_dwarf_close)

/*
 * What dwz found in several files it moved to one that they share, and which .gnu_debugaltlink
 * names by its path, relative to the folder of the file, and its build id in lower-case hex.
 * -ENOENT: there is no such link; -EBADMSG: it is damaged, or longer than there is room for.
 */
int elf_dwarf_alternate_link(const struct elf_image *image, char *path, size_t path_len,
			     char *build_id, size_t build_id_len);
/*
 * Borrows the image of the shared file. Without it the functions that it describes have no name.
 * -EBADMSG when it is not the one that the link names.
 */
int elf_dwarf_set_alternate(struct elf_dwarf *dwarf, const struct elf_image *image,
			    struct err *err);

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
 * function that holds the code last; stops when emit returns something negative, which is then
 * returned. Returns how many; 0 when nothing is known of the address. What is damaged, or would
 * take more work than a lookup may, is not known.
 */
int elf_dwarf_frames(struct elf_dwarf *dwarf, uint64_t vaddr,
		     int (*emit)(void *context, const struct elf_dwarf_frame *frame), void *context,
		     struct err *err);

size_t elf_dwarf_memory(const struct elf_dwarf *dwarf);
