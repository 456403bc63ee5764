/*
 * src/elf/minidebug.h: mini debug info: a small ELF file with the stripped symbols, xz-compressed
 * in the section .gnu_debugdata. Fedora uses it to name functions without debug packages.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "elf/image.h"

/*
 * The bytes of the inner file, at most ELF_MINIDEBUG_MAX_BYTES; the caller releases them. -ENOENT:
 * no such section. -EBADMSG: damaged. -E2BIG: too large.
 */
#define ELF_MINIDEBUG_MAX_BYTES ((size_t)32 << 20)
int elf_minidebug_read(const struct elf_image *image, struct buf *ret_bytes, struct err *err);
