/*
 * src/cpu/interp/python/line.c: finds the line of an instruction in the table of its code object.
 * All three formats list ranges of instructions in order, each with the difference to the previous
 * line, counting from a first line.
 *
 *   3.9    pairs: bytes u8 | lines s8, applied when the bytes are passed (Objects/lnotab_notes.txt)
 *   3.10   pairs: bytes u8 | lines s8; -128: the range has no line (PEP 626)
 *   3.11+  entries of several bytes, of which only the first has its highest bit set
 *          (Objects/locations.md):
 *
 *          1 | kind 4 | units - 1, 3 | ...       kinds: 0-9  the line of the range before
 *                                                       10-12 0, 1, 2 lines further
 *                                                       13, 14 a varint says how many
 *                                                       15 none
 *
 * The program controls the tables, so any byte may have any value.
 */
#include "cpu/interp/python/line.h"

#include "base/cleanup.h"
#include "base/view.h"
#include "cpu/interp/python/code.h"

#define UNIT_BYTES 2
#define NO_LINE INT8_MIN

#define KIND_ONE_LINE 10
#define KIND_NO_COLUMNS 13
#define KIND_LONG 14
#define KIND_NONE 15
/* More bits than any line needs. */
#define VARINT_BITS_MAX 60

/* An impossible line is unknown. */
static int64_t checked_line(uint64_t line, int64_t first_line)
{
	return line <= INT32_MAX ? (int64_t)line : first_line;
}

/* Differences wrap modulo 2^64: a forged table may leave every range and come back. */
static int64_t line_lnotab(struct view table, int64_t first_line, uint64_t target)
{
	uint64_t line = (uint64_t)first_line, at = 0;
	uint8_t bytes, lines;

	for (uint64_t i = 0; view_u8(table, i, &bytes) && view_u8(table, i + 1, &lines); i += 2) {
		at += bytes;
		if (at > target)
			break;
		line += (uint64_t)(int8_t)lines;
	}
	return checked_line(line, first_line);
}

static int64_t line_pairs(struct view table, int64_t first_line, uint64_t target)
{
	uint64_t line = (uint64_t)first_line, end = 0;
	uint8_t bytes, lines;

	for (uint64_t i = 0; view_u8(table, i, &bytes) && view_u8(table, i + 1, &lines); i += 2) {
		bool has_line = (int8_t)lines != NO_LINE;

		if (has_line)
			line += (uint64_t)(int8_t)lines;
		end += bytes;
		if (end > target)
			return has_line ? checked_line(line, first_line) : first_line;
	}
	return first_line;
}

/*
 * Six bits per byte, lowest first; the seventh bit continues. The lowest bit of the number is its
 * sign. False if the table ends early, or an entry starts.
 */
static bool signed_varint(struct view table, uint64_t at, uint64_t *ret)
{
	uint64_t value = 0;
	uint8_t byte;

	for (unsigned int shift = 0; shift < VARINT_BITS_MAX; shift += 6) {
		if (!view_u8(table, at++, &byte) || byte & 0x80)
			return false;
		value |= (uint64_t)(byte & 0x3f) << shift;
		if (!(byte & 0x40)) {
			*ret = value & 1 ? -(value >> 1) : value >> 1;
			return true;
		}
	}
	return false;
}

/* The line difference of the entry that starts before `at`. */
static bool line_delta(struct view table, uint64_t at, unsigned int kind, uint64_t *ret)
{
	if (kind == KIND_NO_COLUMNS || kind == KIND_LONG)
		return signed_varint(table, at, ret);
	*ret = kind >= KIND_ONE_LINE && kind != KIND_NONE ? kind - KIND_ONE_LINE : 0;
	return true;
}

static int64_t line_locations(struct view table, int64_t first_line, uint64_t target)
{
	uint64_t line = (uint64_t)first_line, end = 0, at = 0, delta;
	uint8_t head;

	while (view_u8(table, at++, &head)) {
		unsigned int kind = head >> 3 & 15;

		/* Skips the rest of an entry: columns are not needed. */
		if (!(head & 0x80))
			continue;
		if (!line_delta(table, at, kind, &delta))
			break;
		line += delta;
		end += (head & 7U) + 1;
		if (end > target)
			return kind == KIND_NONE ? first_line : checked_line(line, first_line);
	}
	return first_line;
}

int64_t python_line(unsigned int minor, const uint8_t *table, size_t len, int64_t first_line,
		    uint32_t instr)
{
	struct view v = view_of(table, len);

	if (instr == PYTHON_NOWHERE || minor < PYTHON_MINOR_MIN || minor > PYTHON_MINOR_MAX)
		return first_line;
	if (minor >= 11)
		return line_locations(v, first_line, instr);
	if (minor == 10)
		return line_pairs(v, first_line, (uint64_t)instr * UNIT_BYTES);
	return line_lnotab(v, first_line, (uint64_t)instr * UNIT_BYTES);
}
