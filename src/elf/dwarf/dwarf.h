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
 * Borrows the image. The limit is at least ELF_DWARF_MIN_BYTES: large units do not fit in less, and
 * those that do not fit stay unknown. -ENOENT: there is no DWARF. -ENOTSUP: unsupported DWARF
 * (split, of an object file, newer than version 5).
 */
#define ELF_DWARF_MIN_BYTES ((size_t)4 << 20)
int elf_dwarf_open(const struct elf_image *image, size_t max_bytes, struct elf_dwarf **ret_dwarf,
		   struct err *err);
void elf_dwarf_close(struct elf_dwarf *dwarf); /* NULL is fine */
DEFINE_CLEANUP(struct elf_dwarf, elf_dwarf_close)

/*
 * dwz moves what several files have in common into a shared file, which .gnu_debugaltlink names by
 * its path, relative to the file's directory, and its build id in lower-case hex. -ENOENT: no such
 * link; -EBADMSG: it is damaged, or too long.
 */
int elf_dwarf_alternate_link(const struct elf_image *image, char *path, size_t path_len,
			     char *build_id, size_t build_id_len);
/*
 * Borrows the image of the shared file. Without it, the functions it describes have no name.
 * -EBADMSG if it is not the one the link names.
 */
int elf_dwarf_set_alternate(struct elf_dwarf *dwarf, const struct elf_image *image,
			    struct err *err);

/* Views are valid until the next call. */
struct elf_dwarf_frame {
	struct view name; /* the linkage name if there is one: not demangled; may be empty */
	struct view file; /* with its directory if DWARF has it */
	int64_t line;	  /* 0 if unknown */
	int64_t start_line;
};

#define ELF_DWARF_MAX_FRAMES 64

/*
 * Calls emit for each function at the link-time address, innermost inlined one first, the function
 * that contains the code last; stops if emit returns a negative value, and returns it. Returns how
 * many; 0 if the address is unknown. Damaged data, or data too expensive for one lookup, counts as
 * unknown.
 */
int elf_dwarf_frames(struct elf_dwarf *dwarf, uint64_t vaddr,
		     int (*emit)(void *context, const struct elf_dwarf_frame *frame), void *context,
		     struct err *err);

size_t elf_dwarf_memory(const struct elf_dwarf *dwarf);
