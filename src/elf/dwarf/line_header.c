/* src/elf/dwarf/line_header.c: see line_header.h. */
#include "elf/dwarf/line_header.h"

#include <errno.h>
#include <string.h>

#define DWARF_MAX_FORMATS 32

/*
 *   length | version u16 | (5: address size u8, selector size u8) | header length |
 *   minimum instruction length u8 | (4, 5: operations per instruction u8) | default is_stmt u8 |
 *   line base i8 | line range u8 | opcode base u8 | operands of each opcode u8 ... | tables ...
 */
int elf_dwarf_line_header_read(const struct elf_dwarf_unit *unit, struct elf_dwarf_line_header *ret)
{
	struct elf_dwarf_value at = unit->top.values[ELF_DWARF_STMT_LIST];
	struct elf_dwarf_line_header h = {.encoding = unit->encoding};
	struct elf_dwarf_cursor c;
	uint64_t length;
	bool is64;

	if (!at.form)
		return -ENOENT;
	elf_dwarf_cursor_init(&c, &unit->file->sections[ELF_DWARF_LINE], at.number, UINT64_MAX);
	length = elf_dwarf_initial_length(&c, &is64);
	h.end = elf_dwarf_cursor_off(&c) + length;
	elf_dwarf_cursor_limit(&c, h.end);
	h.encoding.offset_size = is64 ? 8 : 4;
	h.encoding.version = (uint16_t)elf_dwarf_uint(&c, 2);
	if (!c.error && (h.encoding.version < 2 || h.encoding.version > 5))
		return -ENOTSUP;
	if (h.encoding.version >= 5)
		elf_dwarf_cursor_skip(&c, 2);
	length = elf_dwarf_uint(&c, h.encoding.offset_size);
	if (c.error || length > h.end - elf_dwarf_cursor_off(&c))
		return -EBADMSG;
	h.program = elf_dwarf_cursor_off(&c) + length;
	h.min_length = elf_dwarf_u8(&c);
	elf_dwarf_cursor_skip(&c, h.encoding.version >= 4 ? 2 : 1);
	h.line_base = (int8_t)elf_dwarf_u8(&c);
	h.line_range = elf_dwarf_u8(&c);
	h.opcode_base = elf_dwarf_u8(&c);
	for (unsigned int i = 1; i < h.opcode_base; i++)
		h.lengths[i] = elf_dwarf_u8(&c);
	h.tables = elf_dwarf_cursor_off(&c);
	if (c.error || h.line_range == 0 || h.opcode_base == 0 || h.tables > h.program)
		return -EBADMSG;
	*ret = h;
	return 0;
}

/* A row of a table: the location of its path, and the number of its directory. */
struct dwarf_line_item {
	struct elf_dwarf_value path;
	uint64_t folder;
};

/* Versions 2 to 4: strings, for files followed by three numbers, up to an empty one. */
static bool dwarf_old_table(struct elf_dwarf_cursor *c, bool files, uint64_t wanted,
			    struct dwarf_line_item *ret)
{
	bool found = false;

	for (uint64_t i = 1; !c->error; i++) {
		uint64_t off = elf_dwarf_cursor_off(c), folder = 0;

		if (elf_dwarf_u8(c) == 0)
			break;
		elf_dwarf_skip_cstr(c);
		if (files) {
			folder = elf_dwarf_uleb(c);
			(void)elf_dwarf_uleb(c);
			(void)elf_dwarf_uleb(c);
		}
		if (i != wanted || c->error)
			continue;
		*ret = (struct dwarf_line_item){{DW_FORM_string, off}, folder};
		found = true;
		/* Files come last: nothing after them matters. */
		if (files)
			break;
	}
	return found;
}

/* Version 5: a description of the columns, then that many rows. */
static bool dwarf_new_table(struct elf_dwarf_cursor *c, struct elf_dwarf_encoding encoding,
			    uint64_t wanted, struct dwarf_line_item *ret)
{
	struct elf_dwarf_spec formats[DWARF_MAX_FORMATS];
	size_t n_formats = elf_dwarf_u8(c);
	bool found = false;
	uint64_t n;

	if (n_formats > DWARF_MAX_FORMATS) {
		elf_dwarf_cursor_fail(c, -EBADMSG);
		return false;
	}
	for (size_t i = 0; i < n_formats; i++) {
		uint64_t content = elf_dwarf_uleb(c), form = elf_dwarf_uleb(c);

		formats[i] = (struct elf_dwarf_spec){.at = (uint16_t)MIN(content, UINT16_MAX),
						     .form = (uint16_t)MIN(form, UINT16_MAX)};
	}
	n = elf_dwarf_uleb(c);
	/* Rows of a forged table may take no bytes: do not count to 2^64. */
	if (c->error || n > c->end - elf_dwarf_cursor_off(c))
		elf_dwarf_cursor_fail(c, -EBADMSG);
	for (uint64_t row = 0; row < n && !c->error; row++) {
		struct dwarf_line_item item = {0};

		for (size_t i = 0; i < n_formats && !c->error; i++) {
			struct elf_dwarf_value value = elf_dwarf_form_read(c, formats[i], encoding);

			if (formats[i].at == DW_LNCT_path)
				item.path = value;
			else if (formats[i].at == DW_LNCT_directory_index)
				item.folder = value.number;
		}
		if (row == wanted && !c->error) {
			*ret = item;
			found = true;
		}
	}
	return found;
}

/* Directories, then files; a number that does not exist skips either table. */
static bool dwarf_line_tables(const struct elf_dwarf_unit *unit,
			      const struct elf_dwarf_line_header *h, bool files, uint64_t wanted,
			      struct dwarf_line_item *ret)
{
	struct elf_dwarf_cursor c;
	bool found;

	elf_dwarf_cursor_init(&c, &unit->file->sections[ELF_DWARF_LINE], h->tables, h->program);
	if (h->encoding.version >= 5) {
		found = dwarf_new_table(&c, h->encoding, files ? UINT64_MAX : wanted, ret);
		return files ? dwarf_new_table(&c, h->encoding, wanted, ret) : found;
	}
	found = dwarf_old_table(&c, false, files ? UINT64_MAX : wanted, ret);
	return files ? dwarf_old_table(&c, true, wanted, ret) : found;
}

static int dwarf_append_comp_dir(const struct elf_dwarf_unit *unit, struct buf *buf)
{
	struct elf_dwarf_value dir = unit->top.values[ELF_DWARF_COMP_DIR];

	if (!dir.form)
		return 0;
	return elf_dwarf_unit_string(unit, dir, &unit->file->sections[ELF_DWARF_INFO], buf);
}

static bool dwarf_is_absolute(const struct buf *buf, size_t start)
{
	return buf->len > start && buf->data[start] == '/';
}

/* Inserts `before` and a slash in front of what was appended since start. */
static int dwarf_prepend(struct buf *buf, size_t start, const struct buf *before)
{
	size_t n = before->len;
	int r;

	if (n == 0)
		return 0;
	r = buf_reserve(buf, n + 1);
	if (r < 0)
		return r;
	memmove(buf->data + start + n + 1, buf->data + start, buf->len - start);
	memcpy(buf->data + start, before->data, n);
	buf->data[start + n] = '/';
	buf->len += n + 1;
	return 0;
}

static int dwarf_prepend_folder(const struct elf_dwarf_unit *unit,
				const struct elf_dwarf_line_header *h, uint64_t folder,
				struct buf *buf, size_t start)
{
	_cleanup_(buf_release) struct buf before = {0};
	struct elf_dwarf_section *in = &unit->file->sections[ELF_DWARF_LINE];
	struct dwarf_line_item item;
	int r = 0;

	/* Before version 5 the compilation directory had number 0 and no row. */
	if ((h->encoding.version >= 5 || folder > 0) &&
	    dwarf_line_tables(unit, h, false, folder, &item))
		r = elf_dwarf_unit_string(unit, item.path, in, &before);
	if (r == 0)
		r = dwarf_prepend(buf, start, &before);
	if (r < 0 || dwarf_is_absolute(buf, start))
		return r;
	buf_clear(&before);
	r = dwarf_append_comp_dir(unit, &before);
	return r < 0 ? r : dwarf_prepend(buf, start, &before);
}

int elf_dwarf_line_header_path(const struct elf_dwarf_unit *unit,
			       const struct elf_dwarf_line_header *h, uint64_t number,
			       struct buf *buf)
{
	struct elf_dwarf_section *in = &unit->file->sections[ELF_DWARF_LINE];
	struct dwarf_line_item item = {0};
	size_t start = buf->len;
	int r;

	if (!dwarf_line_tables(unit, h, true, number, &item))
		return -ENOENT;
	r = elf_dwarf_unit_string(unit, item.path, in, buf);
	if (r < 0 || dwarf_is_absolute(buf, start))
		return r;
	return dwarf_prepend_folder(unit, h, item.folder, buf, start);
}
