/*
 * src/elf/debugfile.h: finds the debug file of a stripped one: by build id, else by name and
 * checksum in .gnu_debuglink.
 *
 * Only one directory of this machine is searched (/usr/lib/debug). A container's file cannot direct
 * us anywhere else. A debug file must prove that it belongs, and everybody may read it.
 */
#pragma once

#include "base/err.h"
#include "elf/image.h"

#define ELF_DEBUG_ROOT "/usr/lib/debug"

/*
 * path: the stripped file's path as its process sees it, for the debug link. -ENOENT: there is
 * none.
 */
int elf_debugfile_open(const char *root, const char *path, const struct elf_image *image,
		       struct elf_image **ret_image, struct err *err);

/*
 * The file shared by several debug files, as named by elf_dwarf_alternate_link(): by build id, or
 * by the part of its path after ".dwz/". The caller must verify it.
 */
int elf_debugfile_open_alternate(const char *root, const char *path, const char *build_id,
				 struct elf_image **ret_image, struct err *err);
