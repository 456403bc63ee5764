/*
 * src/elf/dwarf/cursor.h: reads numbers and strings of a section in sequence.
 *
 * A cursor has its own buffer, so any number of them can be open while pages come and go. Errors
 * stick: after one, every read returns 0, and the caller checks once, at the end. Loops over a
 * cursor must check it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "elf/dwarf/section.h"

#define ELF_DWARF_CURSOR_BYTES 2048U

struct elf_dwarf_cursor {
	struct elf_dwarf_section *section;
	uint64_t base; /* section offset of bytes[0] */
	uint64_t end;  /* never read at or past this section offset */
	uint32_t pos;
	uint32_t len;
	int error; /* 0 or -errno */
	uint8_t bytes[ELF_DWARF_CURSOR_BYTES];
};

/* Reads [off, end); end is limited to the section. */
void elf_dwarf_cursor_init(struct elf_dwarf_cursor *c, struct elf_dwarf_section *section,
			   uint64_t off, uint64_t end);
void elf_dwarf_cursor_seek(struct elf_dwarf_cursor *c, uint64_t off);
void elf_dwarf_cursor_skip(struct elf_dwarf_cursor *c, uint64_t n);
/* Narrows the end. */
void elf_dwarf_cursor_limit(struct elf_dwarf_cursor *c, uint64_t end);
void elf_dwarf_cursor_fail(struct elf_dwarf_cursor *c, int error);

static inline uint64_t elf_dwarf_cursor_off(const struct elf_dwarf_cursor *c)
{
	return c->base + c->pos;
}

/* Nothing is left, or readable. */
static inline bool elf_dwarf_cursor_done(const struct elf_dwarf_cursor *c)
{
	return c->error || elf_dwarf_cursor_off(c) >= c->end;
}

/* Makes n bytes, at most 16, available at bytes + pos. */
bool elf_dwarf_cursor_fill(struct elf_dwarf_cursor *c, uint32_t n);

static inline bool elf_dwarf_cursor_need(struct elf_dwarf_cursor *c, uint32_t n)
{
	return c->len - c->pos >= n || elf_dwarf_cursor_fill(c, n);
}

static inline uint8_t elf_dwarf_u8(struct elf_dwarf_cursor *c)
{
	return elf_dwarf_cursor_need(c, 1) ? c->bytes[c->pos++] : 0;
}

/* A number of 1 to 8 bytes, little-endian. */
uint64_t elf_dwarf_uint(struct elf_dwarf_cursor *c, uint32_t n_bytes);
uint64_t elf_dwarf_uleb_slow(struct elf_dwarf_cursor *c);
int64_t elf_dwarf_sleb(struct elf_dwarf_cursor *c);

static inline uint64_t elf_dwarf_uleb(struct elf_dwarf_cursor *c)
{
	if (c->pos < c->len && c->bytes[c->pos] < 0x80)
		return c->bytes[c->pos++];
	return elf_dwarf_uleb_slow(c);
}

/* The length that starts a unit: 4 bytes, or 12 in 64-bit DWARF. */
uint64_t elf_dwarf_initial_length(struct elf_dwarf_cursor *c, bool *ret_is64);

void elf_dwarf_skip_cstr(struct elf_dwarf_cursor *c);
/*
 * Appends the string up to its NUL, truncated to max bytes. 0, or the error of the cursor or of
 * buf.
 */
int elf_dwarf_cstr(struct elf_dwarf_cursor *c, struct buf *buf, size_t max);
