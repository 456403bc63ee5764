/*
 * src/cpu/interp/python/code.c: see code.h. Three reads: the code object, the headers of the three
 * objects it points to, and their contents.
 *
 *   object  references u64 | type u64 | ...
 *   bytes   object | length u64 | hash u64 | bytes ...
 *   str     object | length u64 | hash u64 | state u32 | ... | characters ...
 *
 * The bits of state tell how many bytes a character has, whether the characters directly follow the
 * object (always, except for objects of very old extensions), and whether all are ASCII.
 */
#include "cpu/interp/python/code.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "cpu/interp/python/line.h"
#include "proc/text.h"

#define OBJECT_TYPE 8
#define OBJECT_LENGTH 16
#define BYTES_DATA 32
#define TEXT_STATE 32
#define TEXT_HEAD_BYTES 36

#define STATE_KIND(state) ((state) >> 2 & 7)
#define STATE_COMPACT 0x20U
#define STATE_ASCII 0x40U

/* All fields in a layout are below this offset. */
#define CODE_BYTES 144
#define LINES_MAX ((size_t)64 << 10)

struct code_object {
	uint64_t name;
	uint64_t file;
	uint64_t lines;
	int64_t first_line;
};

/* A str, read only as far as it can be shown. */
struct code_text {
	uint64_t data;	 /* 0: it cannot be read */
	size_t n;	 /* characters */
	size_t n_wanted; /* bytes to read */
	uint64_t hash;
	unsigned int kind;
	uint8_t bytes[PYTHON_TEXT_MAX * 4];
};

static int read_ranges(struct proc_mem *mem, const struct proc_range *ranges, size_t n,
		       struct err *err)
{
	int r = proc_mem_readv(mem, ranges, n, err);

	/* A dangling pointer: not a code object, or no longer one. */
	return r == -EFAULT ? -EBADMSG : r;
}

static int read_object(struct proc_mem *mem, const struct python_layout *layout, uint64_t code_type,
		       uint64_t code, struct code_object *ret, struct err *err)
{
	uint8_t bytes[CODE_BYTES];
	struct view v = view_of(bytes, sizeof(bytes));
	const struct proc_range range = {.addr = code, .dst = bytes, .len = sizeof(bytes)};
	uint64_t references, type;
	int32_t first_line;
	int r = read_ranges(mem, &range, 1, err);

	if (r < 0)
		return r;
	/* A freed object may keep its type; its reference count becomes an allocator link, or 0. */
	if (!view_u64(v, 0, &references) || !view_u64(v, OBJECT_TYPE, &type) || type != code_type ||
	    references == 0 || references > UINT32_MAX)
		return err_set(err, -EBADMSG, "no code object at 0x%" PRIx64, code);
	if (!view_u64(v, layout->code_name, &ret->name) ||
	    !view_u64(v, layout->code_filename, &ret->file) ||
	    !view_u64(v, layout->code_lines, &ret->lines) ||
	    !view_copy(v, layout->code_firstlineno, &first_line, sizeof(first_line)))
		return err_set(err, -EBADMSG, "Python 3.%u is not supported", layout->minor);
	ret->first_line = MAX(first_line, 0);
	return 0;
}

/* From the header of a str at addr: where its characters are, and how many are wanted. */
static void text_locate(const struct python_layout *layout, uint64_t addr, const uint8_t *head,
			struct code_text *text)
{
	struct view v = view_of(head, TEXT_HEAD_BYTES);
	uint64_t length = 0;
	uint32_t state = 0;

	text->data = 0;
	text->n = text->n_wanted = 0;
	text->hash = 0;
	if (!view_u64(v, OBJECT_LENGTH, &length) || !view_u64(v, PYTHON_TEXT_HASH, &text->hash) ||
	    !view_u32(v, TEXT_STATE, &state))
		return;
	text->kind = STATE_KIND(state);
	if (length > INT64_MAX || !(state & STATE_COMPACT) ||
	    (text->kind != 1 && text->kind != 2 && text->kind != 4))
		return;
	text->n = MIN(length, PYTHON_TEXT_MAX);
	text->n_wanted = text->n * text->kind;
	text->data = addr + (state & STATE_ASCII ? layout->text_ascii : layout->text_wide);
}

static uint32_t text_character(const struct code_text *text, size_t i)
{
	uint32_t c = 0;

	memcpy(&c, text->bytes + i * text->kind, text->kind);
	return c;
}

/*
 * Returns the bytes written to dst (room for 4). Invalid characters, such as surrogates by which
 * Python keeps non-UTF-8 file names, show as '?'.
 */
static size_t utf8_write(uint32_t c, uint8_t *dst)
{
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const uint8_t marks[] = {0, 0, 0xc0, 0xe0, 0xf0};

	if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) {
		dst[0] = '?';
		return 1;
	}
	for (size_t i = n; i-- > 1; c >>= 6)
		dst[i] = (uint8_t)(0x80 | (c & 0x3f));
	dst[0] = (uint8_t)(marks[n] | c);
	return n;
}

/* Truncated between characters, never within one. */
static void text_copy(const struct code_text *text, char dst[PYTHON_TEXT_MAX])
{
	uint8_t utf8[PYTHON_TEXT_MAX + 4];
	size_t len = 0;

	if (!text->data) {
		proc_text_copy(dst, PYTHON_TEXT_MAX, view_str("?"));
		return;
	}
	for (size_t i = 0; i < text->n; i++) {
		size_t n = utf8_write(text_character(text, i), utf8 + len);

		if (len + n >= PYTHON_TEXT_MAX)
			break;
		len += n;
	}
	proc_text_copy(dst, PYTHON_TEXT_MAX, view_of(utf8, len));
}

/*
 * Reads the headers of all three. Without an instruction, no table is needed and *ret_lines_len is
 * 0.
 */
static int read_heads(struct proc_mem *mem, const struct python_layout *layout,
		      const struct code_object *object, struct code_text texts[2],
		      size_t *ret_lines_len, struct err *err)
{
	uint8_t name[TEXT_HEAD_BYTES], file[TEXT_HEAD_BYTES], lines[BYTES_DATA];
	const struct proc_range ranges[] = {
		{.addr = object->name, .dst = name, .len = sizeof(name)},
		{.addr = object->file, .dst = file, .len = sizeof(file)},
		{.addr = object->lines, .dst = lines, .len = sizeof(lines)},
	};
	uint64_t length;
	int r = read_ranges(mem, ranges, ARRAY_SIZE(ranges), err);

	if (r < 0)
		return r;
	text_locate(layout, object->name, name, &texts[0]);
	text_locate(layout, object->file, file, &texts[1]);
	memcpy(&length, lines + OBJECT_LENGTH, sizeof(length));
	*ret_lines_len = length > INT64_MAX ? 0 : MIN(length, LINES_MAX);
	return 0;
}

int python_code_read(struct proc_mem *mem, const struct python_layout *layout, uint64_t code_type,
		     uint64_t code, uint32_t instr, struct python_code *ret_code, struct err *err)
{
	_cleanup_free_ uint8_t *lines = NULL;
	struct code_object object;
	struct code_text texts[2];
	struct proc_range ranges[3];
	size_t lines_len = 0;
	int r = read_object(mem, layout, code_type, code, &object, err);

	if (r < 0)
		return r;
	r = read_heads(mem, layout, &object, texts, &lines_len, err);
	if (r < 0)
		return r;
	if (instr == PYTHON_NOWHERE)
		lines_len = 0;
	lines = malloc(lines_len + 1);
	if (!lines)
		return err_oom(err);
	for (size_t i = 0; i < 2; i++)
		ranges[i] = (struct proc_range){
			.addr = texts[i].data, .dst = texts[i].bytes, .len = texts[i].n_wanted};
	ranges[2] = (struct proc_range){
		.addr = object.lines + BYTES_DATA, .dst = lines, .len = lines_len};
	r = read_ranges(mem, ranges, ARRAY_SIZE(ranges), err);
	if (r < 0)
		return r;
	text_copy(&texts[0], ret_code->name);
	text_copy(&texts[1], ret_code->file);
	ret_code->name_hash = texts[0].hash == PYTHON_TEXT_NO_HASH ? object.name : texts[0].hash;
	ret_code->first_line = object.first_line;
	ret_code->line = python_line(layout->minor, lines, lines_len, object.first_line, instr);
	return 0;
}
