/* src/elf/dwarf/line.c: runs line-number programs; see line.h. */
#include "elf/dwarf/line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/dwarf/array.h"
#include "elf/dwarf/line_header.h"

#define DWARF_MARK_SPACING 512U
/* How many sequences to check per address; in a valid file they do not overlap. */
#define DWARF_MAX_OVERLAP 16

/* The state of a line-number program: a row when it emits one. */
struct dwarf_row {
	uint64_t address;
	uint32_t file;
	uint32_t line;
};

struct dwarf_mark {
	struct dwarf_row row;
	uint64_t next; /* the instruction after the row, in .debug_line */
};

struct dwarf_sequence {
	uint64_t low;
	uint64_t high;
	size_t first_mark;
	size_t n_marks;
};

struct elf_dwarf_lines {
	struct elf_dwarf_line_header header;
	struct dwarf_sequence *sequences; /* sorted by low */
	size_t n_sequences;
	size_t cap_sequences;
	struct dwarf_mark *marks;
	size_t n_marks;
	size_t cap_marks;
	size_t max; /* for either */
};

void elf_dwarf_lines_free(struct elf_dwarf_lines *lines)
{
	if (!lines)
		return;
	free(lines->sequences);
	free(lines->marks);
	free(lines);
}

DEFINE_CLEANUP(struct elf_dwarf_lines, elf_dwarf_lines_free)

size_t elf_dwarf_lines_memory(const struct elf_dwarf_lines *lines)
{
	return sizeof(*lines) + lines->cap_sequences * sizeof(*lines->sequences) +
	       lines->cap_marks * sizeof(*lines->marks);
}

enum dwarf_step {
	DWARF_STEP_NONE,
	DWARF_STEP_ROW,
	DWARF_STEP_END,
};

static const struct dwarf_row dwarf_first_row = {.file = 1, .line = 1};

static enum dwarf_step dwarf_step_extended(const struct elf_dwarf_line_header *h,
					   struct elf_dwarf_cursor *c, struct dwarf_row *row)
{
	uint64_t len = elf_dwarf_uleb(c), end = elf_dwarf_cursor_off(c) + len;
	uint8_t op;

	if (len == 0 || len > h->end || c->error)
		return DWARF_STEP_NONE;
	op = elf_dwarf_u8(c);
	if (op == DW_LNE_end_sequence)
		return DWARF_STEP_END;
	if (op == DW_LNE_set_address && (len == 9 || len == 5))
		row->address = elf_dwarf_uint(c, (uint32_t)len - 1);
	elf_dwarf_cursor_seek(c, end);
	return DWARF_STEP_NONE;
}

static void dwarf_advance(const struct elf_dwarf_line_header *h, struct dwarf_row *row, uint64_t n)
{
	row->address += n * h->min_length;
}

static enum dwarf_step dwarf_step_standard(const struct elf_dwarf_line_header *h,
					   struct elf_dwarf_cursor *c, struct dwarf_row *row,
					   uint8_t op)
{
	switch (op) {
	case DW_LNS_copy:
		return DWARF_STEP_ROW;
	case DW_LNS_advance_pc:
		dwarf_advance(h, row, elf_dwarf_uleb(c));
		break;
	case DW_LNS_advance_line:
		row->line += (uint32_t)elf_dwarf_sleb(c);
		break;
	case DW_LNS_set_file:
		row->file = (uint32_t)elf_dwarf_uleb(c);
		break;
	case DW_LNS_const_add_pc:
		dwarf_advance(h, row, (uint64_t)(255 - h->opcode_base) / h->line_range);
		break;
	case DW_LNS_fixed_advance_pc:
		row->address += elf_dwarf_uint(c, 2);
		break;
	default:
		for (unsigned int i = 0; i < h->lengths[op]; i++)
			(void)elf_dwarf_uleb(c);
		break;
	}
	return DWARF_STEP_NONE;
}

/* Runs one instruction. */
static enum dwarf_step dwarf_step(const struct elf_dwarf_line_header *h, struct elf_dwarf_cursor *c,
				  struct dwarf_row *row)
{
	uint8_t op = elf_dwarf_u8(c);

	if (op >= h->opcode_base) {
		uint8_t adjusted = op - h->opcode_base;

		dwarf_advance(h, row, adjusted / h->line_range);
		row->line += (uint32_t)(h->line_base + adjusted % h->line_range);
		return DWARF_STEP_ROW;
	}
	if (op == 0)
		return dwarf_step_extended(h, c, row);
	return dwarf_step_standard(h, c, row, op);
}

static int dwarf_lines_add_mark(struct elf_dwarf_lines *lines, struct dwarf_mark mark)
{
	int r = elf_dwarf_array_reserve(&lines->marks, &lines->cap_marks, lines->n_marks,
					sizeof(mark), lines->max);

	if (r < 0)
		return r;
	lines->marks[lines->n_marks++] = mark;
	return 0;
}

static int dwarf_lines_add_sequence(struct elf_dwarf_lines *lines, struct dwarf_sequence sequence)
{
	int r = elf_dwarf_array_reserve(&lines->sequences, &lines->cap_sequences,
					lines->n_sequences, sizeof(sequence), lines->max);

	if (r < 0)
		return r;
	lines->sequences[lines->n_sequences++] = sequence;
	return 0;
}

/* Ends the sequence whose marks start at first; drops the marks if its code does not exist. */
static int dwarf_lines_end_sequence(struct elf_dwarf_lines *lines,
				    const struct elf_dwarf_file *file, size_t first, uint64_t high)
{
	struct dwarf_sequence sequence = {
		.high = high, .first_mark = first, .n_marks = lines->n_marks - first};

	if (sequence.n_marks)
		sequence.low = lines->marks[first].row.address;
	if (sequence.low >= high || !elf_dwarf_file_has_code(file, sequence.low)) {
		lines->n_marks = first;
		return 0;
	}
	return dwarf_lines_add_sequence(lines, sequence);
}

/* The first run, which collects sequences and marks. */
static int dwarf_lines_run(struct elf_dwarf_lines *lines, struct elf_dwarf_file *file)
{
	const struct elf_dwarf_line_header *h = &lines->header;
	struct dwarf_row row = dwarf_first_row;
	uint64_t last = 0;
	size_t first = 0;
	struct elf_dwarf_cursor c;
	int r = 0;

	elf_dwarf_cursor_init(&c, &file->sections[ELF_DWARF_LINE], h->program, h->end);
	while (r == 0 && !elf_dwarf_cursor_done(&c)) {
		enum dwarf_step step = dwarf_step(h, &c, &row);
		uint64_t off = elf_dwarf_cursor_off(&c);

		if (c.error)
			break;
		if (step == DWARF_STEP_END) {
			r = dwarf_lines_end_sequence(lines, file, first, row.address);
			row = dwarf_first_row;
			first = lines->n_marks;
		} else if (step == DWARF_STEP_ROW &&
			   (lines->n_marks == first || off - last >= DWARF_MARK_SPACING)) {
			r = dwarf_lines_add_mark(lines, (struct dwarf_mark){row, off});
			last = off;
		}
	}
	return r;
}

static int dwarf_sequence_compare(const void *a, const void *b)
{
	const struct dwarf_sequence *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	return x->first_mark < y->first_mark ? -1 : x->first_mark > y->first_mark;
}

int elf_dwarf_unit_load_lines(struct elf_dwarf_unit *unit)
{
	_cleanup_(elf_dwarf_lines_freep) struct elf_dwarf_lines *lines = NULL;

	if (unit->has_lines)
		return 0;
	lines = calloc(1, sizeof(*lines));
	if (!lines)
		return -ENOMEM;
	lines->max = unit->file->max_bytes / 4 / sizeof(struct dwarf_mark);
	unit->has_lines = true;
	if (elf_dwarf_line_header_read(unit, &lines->header) < 0)
		return 0;
	if (dwarf_lines_run(lines, unit->file) == -ENOMEM)
		return -ENOMEM;
	/* Anything before the damage is valid. */
	if (lines->n_sequences)
		qsort(lines->sequences, lines->n_sequences, sizeof(*lines->sequences),
		      dwarf_sequence_compare);
	elf_dwarf_array_shrink(&lines->sequences, &lines->cap_sequences, lines->n_sequences,
			       sizeof(*lines->sequences));
	elf_dwarf_array_shrink(&lines->marks, &lines->cap_marks, lines->n_marks,
			       sizeof(*lines->marks));
	unit->lines = TAKE_PTR(lines);
	return 0;
}

static const struct dwarf_sequence *dwarf_lines_sequence(const struct elf_dwarf_lines *lines,
							 uint64_t vaddr)
{
	size_t lo = 0, hi = lines->n_sequences;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (lines->sequences[mid].low <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (size_t i = 0; i < DWARF_MAX_OVERLAP && lo > 0; i++, lo--)
		if (vaddr < lines->sequences[lo - 1].high)
			return &lines->sequences[lo - 1];
	return NULL;
}

bool elf_dwarf_lines_find(const struct elf_dwarf_unit *unit, uint64_t vaddr, uint64_t *ret_file,
			  uint64_t *ret_line)
{
	const struct elf_dwarf_lines *lines = unit->lines;
	const struct dwarf_sequence *s = lines ? dwarf_lines_sequence(lines, vaddr) : NULL;
	size_t lo = 0, hi = s ? s->n_marks : 0;
	struct dwarf_row row, found;
	struct elf_dwarf_cursor c;

	if (!s)
		return false;
	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (lines->marks[s->first_mark + mid].row.address <= vaddr)
			lo = mid;
		else
			hi = mid;
	}
	row = found = lines->marks[s->first_mark + lo].row;
	elf_dwarf_cursor_init(&c, &unit->file->sections[ELF_DWARF_LINE],
			      lines->marks[s->first_mark + lo].next, lines->header.end);
	while (!elf_dwarf_cursor_done(&c)) {
		enum dwarf_step step = dwarf_step(&lines->header, &c, &row);

		if (c.error || step == DWARF_STEP_END)
			break;
		if (step != DWARF_STEP_ROW)
			continue;
		if (row.address > vaddr)
			break;
		found = row;
	}
	*ret_file = found.file;
	*ret_line = found.line;
	return true;
}

int elf_dwarf_lines_path(const struct elf_dwarf_unit *unit, uint64_t number, struct buf *buf)
{
	if (!unit->lines)
		return -ENOENT;
	return elf_dwarf_line_header_path(unit, &unit->lines->header, number, buf);
}
