/* src/elf/dwarf/cursor.c: see cursor.h. */
#include "elf/dwarf/cursor.h"

#include <errno.h>
#include <string.h>

#define DWARF_LENGTH_64 0xffffffffU
#define DWARF_LENGTH_RESERVED 0xfffffff0U

void elf_dwarf_cursor_init(struct elf_dwarf_cursor *c, struct elf_dwarf_section *section,
			   uint64_t off, uint64_t end)
{
	c->section = section;
	c->base = off;
	c->end = MIN(end, section->size);
	c->pos = 0;
	c->len = 0;
	c->error = off > c->end ? -EBADMSG : 0;
}

void elf_dwarf_cursor_fail(struct elf_dwarf_cursor *c, int error)
{
	if (!c->error)
		c->error = error;
	c->len = c->pos = 0;
}

void elf_dwarf_cursor_seek(struct elf_dwarf_cursor *c, uint64_t off)
{
	if (c->error)
		return;
	if (off > c->end) {
		elf_dwarf_cursor_fail(c, -EBADMSG);
	} else if (off >= c->base && off - c->base <= c->len) {
		c->pos = (uint32_t)(off - c->base);
	} else {
		c->base = off;
		c->pos = c->len = 0;
	}
}

void elf_dwarf_cursor_skip(struct elf_dwarf_cursor *c, uint64_t n)
{
	if (n <= c->len - c->pos)
		c->pos += (uint32_t)n;
	else if (!c->error && n > c->end - elf_dwarf_cursor_off(c))
		elf_dwarf_cursor_fail(c, -EBADMSG);
	else
		elf_dwarf_cursor_seek(c, elf_dwarf_cursor_off(c) + n);
}

void elf_dwarf_cursor_limit(struct elf_dwarf_cursor *c, uint64_t end)
{
	uint64_t off = elf_dwarf_cursor_off(c);

	c->end = MIN(c->end, end);
	if (off > c->end)
		elf_dwarf_cursor_fail(c, -EBADMSG);
	else if (c->base + c->len > c->end)
		c->len = (uint32_t)(c->end - c->base);
}

bool elf_dwarf_cursor_fill(struct elf_dwarf_cursor *c, uint32_t n)
{
	uint64_t off = elf_dwarf_cursor_off(c);
	uint32_t len;
	int r;

	if (c->error)
		return false;
	len = (uint32_t)MIN(c->end - off, ELF_DWARF_CURSOR_BYTES);
	if (len < n) {
		elf_dwarf_cursor_fail(c, -EBADMSG);
		return false;
	}
	c->base = off;
	c->pos = c->len = 0;
	r = elf_dwarf_section_read(c->section, off, c->bytes, len);
	if (r < 0) {
		elf_dwarf_cursor_fail(c, r);
		return false;
	}
	c->len = len;
	return true;
}

uint64_t elf_dwarf_uint(struct elf_dwarf_cursor *c, uint32_t n_bytes)
{
	uint64_t value = 0;

	if (!elf_dwarf_cursor_need(c, n_bytes))
		return 0;
	memcpy(&value, c->bytes + c->pos, n_bytes);
	c->pos += n_bytes;
	return value;
}

uint64_t elf_dwarf_uleb_slow(struct elf_dwarf_cursor *c)
{
	uint64_t value = 0;

	/* Padding past the tenth byte is legal as long as it adds no bits. */
	for (unsigned int shift = 0; shift < 16 * 7; shift += 7) {
		uint8_t byte = elf_dwarf_u8(c);
		uint64_t bits = byte & 0x7f;

		if (shift < 64)
			value |= bits << shift;
		if ((shift == 63 && bits > 1) || (shift > 63 && bits))
			break;
		if (byte < 0x80)
			return value;
	}
	elf_dwarf_cursor_fail(c, -EBADMSG);
	return 0;
}

int64_t elf_dwarf_sleb(struct elf_dwarf_cursor *c)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 16 * 7; shift += 7) {
		uint8_t byte = elf_dwarf_u8(c);

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			if (byte & 0x40 && shift + 7 < 64)
				value |= ~(uint64_t)0 << (shift + 7);
			return (int64_t)value;
		}
	}
	elf_dwarf_cursor_fail(c, -EBADMSG);
	return 0;
}

uint64_t elf_dwarf_initial_length(struct elf_dwarf_cursor *c, bool *ret_is64)
{
	uint64_t length = elf_dwarf_uint(c, 4);

	*ret_is64 = length == DWARF_LENGTH_64;
	if (*ret_is64)
		length = elf_dwarf_uint(c, 8);
	else if (length >= DWARF_LENGTH_RESERVED)
		elf_dwarf_cursor_fail(c, -EBADMSG);
	/* The caller adds it to an offset within the section. */
	if (!c->error && length > c->end - elf_dwarf_cursor_off(c))
		elf_dwarf_cursor_fail(c, -EBADMSG);
	return c->error ? 0 : length;
}

static size_t dwarf_cstr_piece(const struct elf_dwarf_cursor *c, bool *ret_ends)
{
	const uint8_t *nul = memchr(c->bytes + c->pos, 0, c->len - c->pos);

	*ret_ends = nul != NULL;
	return nul ? (size_t)(nul - (c->bytes + c->pos)) : c->len - c->pos;
}

int elf_dwarf_cstr(struct elf_dwarf_cursor *c, struct buf *buf, size_t max)
{
	bool ends = false;

	while (!ends && elf_dwarf_cursor_need(c, 1)) {
		size_t n = dwarf_cstr_piece(c, &ends), take = MIN(n, max);
		int r = buf ? buf_append(buf, c->bytes + c->pos, take) : 0;

		if (r < 0)
			return r;
		max -= take;
		c->pos += (uint32_t)(n + ends);
	}
	return c->error;
}

void elf_dwarf_skip_cstr(struct elf_dwarf_cursor *c)
{
	(void)elf_dwarf_cstr(c, NULL, 0);
}
