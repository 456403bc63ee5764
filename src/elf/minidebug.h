/*
 * src/elf/minidebug.h: mini debug info: a small ELF file with the symbols that were stripped, in
 * the section .gnu_debugdata, compressed by xz. Fedora's way of naming functions without debug
 * packages.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "elf/image.h"

/*
 * The bytes of the inner file, at most ELF_MINIDEBUG_MAX_BYTES, for the caller to release. -ENOENT:
 * there is no such section. -EBADMSG: damaged. -E2BIG: too large.
 */
#define ELF_MINIDEBUG_MAX_BYTES ((size_t)32 << 20)
int elf_minidebug_read(const struct elf_image *image, struct buf *ret_bytes, struct err *err);
