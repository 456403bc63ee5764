/*
 * tests/unit/test_python_code.c: code objects in made-up memory, and tables of lines as the
 * interpreters wrote them.
 */
#include "cpu/interp/python/code.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cpu/interp/python/line.h"
#include "mem_fake.h"

#define NO_LINE 0

/* From an instruction on, until the next. */
struct run {
	uint32_t instr;
	int64_t line; /* NO_LINE: by the table it has none */
};

struct table {
	unsigned int minor;
	uint32_t n_instrs;
	const uint8_t *bytes;
	size_t len;
	int64_t first_line;
	struct run runs[16];
};

/*
 * g has lines that are far from each other, forth and back; h has code without lines. They are the
 * co_lnotab and co_linetable of these functions, with what co_lines() or dis say of them.
 *
 *   def g(a):                   def h(a):
 *       a()                         try:
 *   (300 empty lines)                   a()
 *       a(a,                        except E as e:
 *   (40 empty lines)                    a(
 *     a())                                  e)
 *       return a
 */
static const uint8_t g_39[] = {0x00, 0x01, 0x06, 0x7f, 0x00, 0x7f, 0x00,
			       0x2f, 0x04, 0x29, 0x04, 0xd7, 0x04, 0x2a};
static const uint8_t h_39[] = {0x00, 0x01, 0x02, 0x01, 0x0a, 0x01,
			       0x0e, 0x01, 0x02, 0x01, 0x02, 0xff};
static const uint8_t g_310[] = {0x06, 0x01, 0x00, 0x7f, 0x00, 0x7f, 0x04,
				0x2f, 0x04, 0x29, 0x04, 0xd7, 0x04, 0x2a};
static const uint8_t h_310[] = {0x02, 0x01, 0x0c, 0x01, 0x0e, 0x01, 0x02, 0x01,
				0x02, 0x01, 0x12, 0xff, 0x08, 0x80, 0x02, 0xff};
static const uint8_t g_311[] = {
	0x80, 0x00, 0xd8, 0x04, 0x05, 0x80, 0x41, 0x81, 0x43, 0x84, 0x43, 0x80, 0x43, 0xf0, 0x5a,
	0x09, 0x00, 0x05, 0x06, 0x80, 0x41, 0x80, 0x61, 0xf0, 0x52, 0x01, 0x00, 0x03, 0x04, 0x80,
	0x21, 0x81, 0x23, 0x84, 0x23, 0xf1, 0x53, 0x01, 0x29, 0x05, 0x07, 0xf4, 0x00, 0x29, 0x05,
	0x07, 0xf0, 0x00, 0x29, 0x05, 0x07, 0xf0, 0x54, 0x01, 0x00, 0x0c, 0x0d, 0x80, 0x48};
/* By an interpreter without columns (-X no_debug_ranges). */
static const uint8_t h_311[] = {
	0xe8, 0x00, 0xe8, 0x02, 0xe8, 0x02, 0xe8, 0x00, 0xe9, 0x00, 0xec, 0x00, 0xe8, 0x00, 0xe8,
	0x00, 0xe8, 0x00, 0xf8, 0xed, 0x02, 0xe8, 0x00, 0xe8, 0x00, 0xe8, 0x00, 0xe8, 0x02, 0xe8,
	0x00, 0xe8, 0x02, 0xe9, 0x03, 0xec, 0x00, 0xe8, 0x00, 0xe8, 0x00, 0xe8, 0x00, 0xe8, 0x00,
	0xe8, 0x00, 0xe8, 0x00, 0xe8, 0x00, 0xf8, 0xf8, 0xf8, 0xf8, 0xe8, 0x03, 0xf8, 0xf8, 0xf8};
static const uint8_t g_312[] = {0x80, 0x00, 0xd9, 0x04, 0x05, 0x84, 0x43, 0xf1, 0x5a, 0x09,
				0x00, 0x05, 0x06, 0x80, 0x61, 0xf1, 0x52, 0x01, 0x00, 0x03,
				0x04, 0x83, 0x23, 0xf4, 0x53, 0x01, 0x29, 0x05, 0x07, 0xf0,
				0x54, 0x01, 0x00, 0x0c, 0x0d, 0x80, 0x48};
static const uint8_t h_312[] = {0x80, 0x00, 0xf0, 0x02, 0x04, 0x05, 0x0f, 0xd9, 0x08, 0x09, 0x8d,
				0x03, 0xf8, 0xdc, 0x0b, 0x0c, 0xf2, 0x00, 0x02, 0x05, 0x0f, 0xd9,
				0x08, 0x09, 0xd8, 0x0c, 0x0d, 0xf7, 0x03, 0x01, 0x09, 0x0f, 0xf1,
				0x00, 0x01, 0x09, 0x0f, 0xfb, 0xf0, 0x03, 0x02, 0x05, 0x0f, 0xfa};
static const uint8_t h_313[] = {0x80, 0x00, 0xf0, 0x02, 0x04, 0x05, 0x0f, 0xd9, 0x08, 0x09, 0x8d,
				0x03, 0xf8, 0xdc, 0x0b, 0x0c, 0xf3, 0x00, 0x02, 0x05, 0x0f, 0xd9,
				0x08, 0x09, 0xd8, 0x0c, 0x0d, 0xf7, 0x03, 0x01, 0x09, 0x0f, 0xf1,
				0x00, 0x01, 0x09, 0x0f, 0xfb, 0xf0, 0x03, 0x02, 0x05, 0x0f, 0xfa};

#define TABLE(bytes) (bytes), sizeof(bytes)

static const struct table tables[] = {
	{9, 11, TABLE(g_39), 1, {{0, 2}, {3, 303}, {5, 344}, {7, 303}, {9, 345}}},
	{9, 30, TABLE(h_39), 4, {{0, 5}, {1, 6}, {6, 7}, {13, 8}, {14, 9}, {15, 8}}},
	{10, 11, TABLE(g_310), 1, {{0, 2}, {3, 303}, {5, 344}, {7, 303}, {9, 345}}},
	{10,
	 30,
	 TABLE(h_310),
	 4,
	 {{0, 5}, {1, 6}, {7, 7}, {14, 8}, {15, 9}, {16, 8}, {25, NO_LINE}, {29, 7}}},
	{11, 33, TABLE(g_311), 1, {{0, 1}, {1, 2}, {11, 303}, {14, 344}, {23, 303}, {31, 345}}},
	{11,
	 49,
	 TABLE(h_311),
	 4,
	 {{0, 4},
	  {1, 5},
	  {2, 6},
	  {14, NO_LINE},
	  {15, 7},
	  {24, 8},
	  {26, 9},
	  {27, 8},
	  {41, NO_LINE},
	  {45, 7},
	  {46, NO_LINE}}},
	{12, 24, TABLE(g_312), 1, {{0, 1}, {1, 2}, {8, 303}, {11, 344}, {17, 303}, {22, 345}}},
	{12,
	 40,
	 TABLE(h_312),
	 4,
	 {{0, 4},
	  {1, 5},
	  {2, 6},
	  {10, NO_LINE},
	  {11, 7},
	  {19, 8},
	  {21, 9},
	  {22, 8},
	  {32, NO_LINE},
	  {36, 7},
	  {37, NO_LINE}}},
	{13,
	 41,
	 TABLE(h_313),
	 4,
	 {{0, 4},
	  {1, 5},
	  {2, 6},
	  {10, NO_LINE},
	  {11, 7},
	  {20, 8},
	  {22, 9},
	  {23, 8},
	  {33, NO_LINE},
	  {37, 7},
	  {38, NO_LINE}}},
};

static int64_t table_line(const struct table *t, uint32_t instr)
{
	size_t i = 0;

	while (i + 1 < ARRAY_SIZE(t->runs) && t->runs[i + 1].instr && t->runs[i + 1].instr <= instr)
		i++;
	return t->runs[i].line == NO_LINE ? t->first_line : t->runs[i].line;
}

static void lines_are_those_that_python_gives(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		const struct table *t = &tables[i];

		for (uint32_t instr = 0; instr < t->n_instrs; instr++)
			assert_int_equal(
				python_line(t->minor, t->bytes, t->len, t->first_line, instr),
				table_line(t, instr));
	}
}

static void an_instruction_past_the_table_has_the_first_line(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		const struct table *t = &tables[i];

		/* The last pair of 3.9 has no end. */
		if (t->minor > 9)
			assert_int_equal(python_line(t->minor, t->bytes, t->len, 7, t->n_instrs),
					 7);
		assert_int_equal(python_line(t->minor, t->bytes, t->len, 7, PYTHON_NOWHERE), 7);
		assert_int_equal(python_line(t->minor, t->bytes, 0, 7, 3), 7);
		assert_int_equal(python_line(t->minor, NULL, 0, 7, 3), 7);
	}
	assert_int_equal(python_line(8, TABLE(g_39), 7, 3), 7);
	assert_int_equal(python_line(14, TABLE(g_312), 7, 3), 7);
}

static void a_table_that_is_cut_gives_a_true_line_or_the_first(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		const struct table *t = &tables[i];

		for (size_t len = 0; t->minor > 9 && len < t->len; len++)
			for (uint32_t instr = 0; instr < t->n_instrs; instr++) {
				int64_t line =
					python_line(t->minor, t->bytes, len, t->first_line, instr);

				assert_true(line == t->first_line || line == table_line(t, instr));
			}
	}
}

static void lines_that_no_source_has_are_none(void **state)
{
	static const uint8_t back_39[] = {0, 0x80};
	static const uint8_t back_310[] = {2, 0x81};
	static const uint8_t back_311[] = {0xe8, 0x0b};
	static const uint8_t far[] = {0xe8, 0x7e, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x07};
	static const uint8_t endless[] = {0xe8, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f,
					  0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x01};
	static const uint8_t broken[] = {0xe8, 0x42, 0xe8, 0x02};

	(void)state;
	assert_int_equal(python_line(9, TABLE(back_39), 5, 0), 5);
	assert_int_equal(python_line(10, TABLE(back_310), 5, 0), 5);
	assert_int_equal(python_line(11, TABLE(back_311), 5, 0), 0);
	assert_int_equal(python_line(11, TABLE(back_311), 4, 0), 4);
	assert_int_equal(python_line(12, TABLE(far), 5, 0), 5);
	assert_int_equal(python_line(12, TABLE(endless), 5, 0), 5);
	assert_int_equal(python_line(13, TABLE(broken), 5, 0), 5);
	assert_int_equal(python_line(13, TABLE(broken), 5, 1), 5);
}

enum {
	CODE_AT = 0x10000,
	NAME_AT = 0x200000,
	FILE_AT = 0x300000,
	LINES_AT = 0x400000,
	TYPE_AT = 0x500000,
	CODE_BYTES = 144,
	TEXT_BYTES = 72 + 4 * 400,
	LINES_BYTES = 32 + (80 << 10),
};

#define COMPACT 0x20U
#define ASCII 0x40U
#define KIND(n) ((uint32_t)(n) << 2)

/* A code object and what it points to, each no longer than it has to be. */
struct world {
	const struct python_layout *layout;
	uint8_t code[CODE_BYTES];
	uint8_t name[TEXT_BYTES];
	size_t name_len;
	uint8_t file[TEXT_BYTES];
	size_t file_len;
	uint8_t lines[LINES_BYTES];
	size_t lines_len;
};

static void put(uint8_t *at, uint64_t value, size_t len)
{
	memcpy(at, &value, len);
}

/* Returns the length of the whole object. */
static size_t put_text(const struct world *w, uint8_t *at, const void *chars, size_t n,
		       uint32_t state)
{
	size_t kind = state >> 2 & 7;
	size_t data = state & ASCII ? w->layout->text_ascii : w->layout->text_wide;

	memset(at, 0xa5, data);
	put(at + 16, n, 8);
	put(at + 32, state, 4);
	memcpy(at + data, chars, n * kind);
	return data + n * kind;
}

static void put_ascii(struct world *w, const char *name, const char *file)
{
	w->name_len = put_text(w, w->name, name, strlen(name), COMPACT | ASCII | KIND(1));
	w->file_len = put_text(w, w->file, file, strlen(file), COMPACT | ASCII | KIND(1));
}

static void put_lines(struct world *w, const uint8_t *bytes, size_t len)
{
	memset(w->lines, 0xa5, 32);
	put(w->lines + 16, len, 8);
	memcpy(w->lines + 32, bytes, len);
	w->lines_len = 32 + len;
}

static void put_name(struct world *w, const void *chars, size_t n, uint32_t state)
{
	w->name_len = put_text(w, w->name, chars, n, state);
}

static void world_make(struct world *w, unsigned int minor)
{
	const struct python_layout *l = python_layout(minor);

	assert_non_null(l);
	w->layout = l;
	memset(w->code, 0xa5, sizeof(w->code));
	put(w->code, 3, 8);
	put(w->code + 8, TYPE_AT, 8);
	put(w->code + l->code_name, NAME_AT, 8);
	put(w->code + l->code_filename, FILE_AT, 8);
	put(w->code + l->code_lines, LINES_AT, 8);
	put(w->code + l->code_firstlineno, 40, 4);
	put_ascii(w, "Shop.checkout", "/srv/shop.py");
	put_lines(w, TABLE(g_312));
}

static int world_read(const struct world *w, uint32_t instr, struct python_code *ret)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct err err = {0};
	int r;

	assert_int_equal(proc_mem_open_fake(&mem, &err), 0);
	assert_int_equal(proc_mem_fake_add(mem, CODE_AT, w->code, sizeof(w->code)), 0);
	assert_int_equal(proc_mem_fake_add(mem, NAME_AT, w->name, w->name_len), 0);
	assert_int_equal(proc_mem_fake_add(mem, FILE_AT, w->file, w->file_len), 0);
	assert_int_equal(proc_mem_fake_add(mem, LINES_AT, w->lines, w->lines_len), 0);
	r = python_code_read(mem, w->layout, TYPE_AT, CODE_AT, instr, ret, &err);
	assert_true(r == 0 || err.text[0]);
	return r;
}

static void expect_name(const struct world *w, const char *expected)
{
	struct python_code code;

	assert_int_equal(world_read(w, 0, &code), 0);
	assert_string_equal(code.name, expected);
	assert_string_equal(code.file, "/srv/shop.py");
}

static void expect_refused(const struct world *w)
{
	struct python_code code = {.name = "before", .line = 77};

	assert_int_equal(world_read(w, 0, &code), -EBADMSG);
	assert_string_equal(code.name, "before");
	assert_int_equal(code.line, 77);
}

static void every_version_is_known_and_no_other(void **state)
{
	(void)state;
	for (unsigned int minor = 0; minor < 20; minor++) {
		const struct python_layout *l = python_layout(minor);

		assert_int_equal(l != NULL, minor >= PYTHON_MINOR_MIN && minor <= PYTHON_MINOR_MAX);
		if (l)
			assert_int_equal(l->minor, minor);
	}
}

static void a_code_object_of_every_version_is_read(void **state)
{
	static struct world w;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		const struct table *t = &tables[i];
		struct python_code code;

		world_make(&w, t->minor);
		put_lines(&w, t->bytes, t->len);
		put(w.code + w.layout->code_firstlineno, (uint64_t)t->first_line, 4);
		for (uint32_t instr = 0; instr < t->n_instrs; instr++) {
			assert_int_equal(world_read(&w, instr, &code), 0);
			assert_string_equal(code.name, "Shop.checkout");
			assert_string_equal(code.file, "/srv/shop.py");
			assert_int_equal(code.first_line, t->first_line);
			assert_int_equal(code.line, table_line(t, instr));
		}
		assert_int_equal(world_read(&w, PYTHON_NOWHERE, &code), 0);
		assert_int_equal(code.line, t->first_line);
	}
}

static void characters_of_every_size_become_utf8(void **state)
{
	static const uint8_t latin[] = {'n', 'a', 0xef, 'v', 'e', 0xff};
	static const uint16_t two[] = {0x6f22, 'x', 0x5b57, 0xe9, 0xffff};
	static const uint32_t four[] = {0x1d518, 0x6f22, 0x10ffff, 'z'};
	static struct world w;

	(void)state;
	for (unsigned int minor = PYTHON_MINOR_MIN; minor <= PYTHON_MINOR_MAX; minor++) {
		world_make(&w, minor);
		put_name(&w, latin, ARRAY_SIZE(latin), COMPACT | KIND(1));
		expect_name(&w, "na\u00efve\u00ff");
		put_name(&w, two, ARRAY_SIZE(two), COMPACT | KIND(2));
		expect_name(&w, "\u6f22x\u5b57\u00e9\uffff");
		put_name(&w, four, ARRAY_SIZE(four), COMPACT | KIND(4));
		expect_name(&w, "\U0001d518\u6f22\U0010ffff"
				"z");
		put_name(&w, "", 0, COMPACT | ASCII | KIND(1));
		expect_name(&w, "");
	}
}

static void what_cannot_be_shown_is_a_question_mark(void **state)
{
	static const uint16_t two[] = {'a', 0xd800, 0xdcff, 0x1b, 0x9b, '\n', 0x7f, 'b'};
	static const uint32_t four[] = {0x110000, UINT32_MAX, 0xdfff, 0, 'c'};
	static const uint8_t no_ascii[] = {'d', 0xc2, 0x9b};
	static struct world w;

	(void)state;
	world_make(&w, 12);
	/* The control of C1 has two bytes. */
	put_name(&w, two, ARRAY_SIZE(two), COMPACT | KIND(2));
	expect_name(&w, "a???"
			"??"
			"??"
			"b");
	put_name(&w, four, ARRAY_SIZE(four), COMPACT | KIND(4));
	expect_name(&w, "????c");
	/* A forged one: two characters, and no escape sequence. */
	put_name(&w, no_ascii, ARRAY_SIZE(no_ascii), COMPACT | ASCII | KIND(1));
	expect_name(&w, "d\u00c2??");
}

static void long_texts_are_cut_between_characters(void **state)
{
	static uint16_t chars[400];
	static char text[401], expected[PYTHON_TEXT_MAX] = "x";
	static struct world w;

	(void)state;
	world_make(&w, 11);
	memset(text, 'x', 400);
	put_name(&w, text, 400, COMPACT | ASCII | KIND(1));
	text[PYTHON_TEXT_MAX - 1] = 0;
	expect_name(&w, text);
	for (size_t i = 0; i < ARRAY_SIZE(chars); i++)
		chars[i] = i == 0 ? 'x' : 0x6f22;
	put_name(&w, chars, ARRAY_SIZE(chars), COMPACT | KIND(2));
	for (size_t len = 1; len + 3 < PYTHON_TEXT_MAX; len += 3)
		(void)snprintf(expected + len, sizeof(expected) - len, "\u6f22");
	assert_int_equal(strlen(expected), 253);
	expect_name(&w, expected);
}

static void texts_of_other_layouts_are_not_read(void **state)
{
	static const uint32_t states[] = {
		0,
		ASCII | KIND(1),
		KIND(1),
		COMPACT | KIND(0),
		COMPACT | ASCII | KIND(0),
		COMPACT | KIND(3),
		COMPACT | KIND(5),
		COMPACT | KIND(7),
	};
	static struct world w;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		world_make(&w, 10);
		put_name(&w, "", 0, states[i]);
		put(w.name + 16, 5, 8);
		expect_name(&w, "?");
	}
	world_make(&w, 10);
	put(w.name + 16, UINT64_MAX, 8);
	expect_name(&w, "?");
	put(w.name + 16, 1ULL << 63, 8);
	expect_name(&w, "?");
}

static void what_has_another_type_is_refused(void **state)
{
	static struct world w;

	(void)state;
	world_make(&w, 11);
	put(w.code + 8, TYPE_AT + 8, 8);
	expect_refused(&w);
	put(w.code + 8, 0, 8);
	expect_refused(&w);
}

static void what_was_freed_is_refused(void **state)
{
	static struct world w;
	struct python_code code;

	(void)state;
	world_make(&w, 12);
	put(w.code, 0, 8);
	expect_refused(&w);
	/* The next free block. */
	put(w.code, 0x7f0012345670, 8);
	expect_refused(&w);
	/* An object that lives as long as the interpreter. */
	put(w.code, UINT32_MAX, 8);
	assert_int_equal(world_read(&w, 0, &code), 0);
}

static void pointers_to_nowhere_are_refused(void **state)
{
	static const uint64_t nowhere[] = {0, 1, 0x700000, NAME_AT - 1, 1ULL << 63, UINT64_MAX};
	static struct world w;
	struct python_code code;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(nowhere); i++) {
		world_make(&w, 13);
		put(w.code + w.layout->code_name, nowhere[i], 8);
		expect_refused(&w);
		world_make(&w, 13);
		put(w.code + w.layout->code_filename, nowhere[i], 8);
		expect_refused(&w);
		world_make(&w, 13);
		put(w.code + w.layout->code_lines, nowhere[i], 8);
		expect_refused(&w);
	}
	for (size_t i = 0; i < ARRAY_SIZE(nowhere); i++) {
		_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;

		assert_int_equal(proc_mem_open_fake(&mem, NULL), 0);
		assert_int_equal(
			python_code_read(mem, w.layout, TYPE_AT, nowhere[i], 0, &code, NULL),
			-EBADMSG);
	}
}

static void what_ends_too_early_is_refused(void **state)
{
	static struct world w;

	(void)state;
	world_make(&w, 9);
	w.name_len--;
	expect_refused(&w);
	world_make(&w, 9);
	w.lines_len--;
	expect_refused(&w);
	world_make(&w, 9);
	put(w.name + 16, INT64_MAX, 8);
	expect_refused(&w);
	world_make(&w, 9);
	put(w.lines + 16, INT64_MAX, 8);
	expect_refused(&w);
}

static void a_table_of_negative_length_is_none(void **state)
{
	static struct world w;
	struct python_code code;

	(void)state;
	world_make(&w, 9);
	put(w.lines + 16, UINT64_MAX, 8);
	assert_int_equal(world_read(&w, 5, &code), 0);
	assert_int_equal(code.line, 40);
}

static void a_long_table_is_read_up_to_its_limit(void **state)
{
	static uint8_t bytes[LINES_BYTES - 32];
	static struct world w;
	struct python_code code;

	(void)state;
	world_make(&w, 10);
	/* Each pair is an instruction that is a line further. */
	for (size_t i = 0; i < sizeof(bytes); i += 2) {
		bytes[i] = 2;
		bytes[i + 1] = 1;
	}
	put_lines(&w, bytes, sizeof(bytes));
	assert_int_equal(world_read(&w, 32767, &code), 0);
	assert_int_equal(code.line, 40 + 32768);
	assert_int_equal(world_read(&w, 32768, &code), 0);
	assert_int_equal(code.line, 40);
	/* What lies behind is not even looked at. */
	w.lines_len = 32 + (64 << 10);
	assert_int_equal(world_read(&w, 0, &code), 0);
	assert_int_equal(code.line, 41);
}

static void a_first_line_below_zero_is_zero(void **state)
{
	static struct world w;
	struct python_code code;

	(void)state;
	world_make(&w, 11);
	put(w.code + w.layout->code_firstlineno, (uint64_t)-5, 4);
	assert_int_equal(world_read(&w, PYTHON_NOWHERE, &code), 0);
	assert_int_equal(code.first_line, 0);
	assert_int_equal(code.line, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_those_that_python_gives),
		cmocka_unit_test(an_instruction_past_the_table_has_the_first_line),
		cmocka_unit_test(a_table_that_is_cut_gives_a_true_line_or_the_first),
		cmocka_unit_test(lines_that_no_source_has_are_none),
		cmocka_unit_test(every_version_is_known_and_no_other),
		cmocka_unit_test(a_code_object_of_every_version_is_read),
		cmocka_unit_test(characters_of_every_size_become_utf8),
		cmocka_unit_test(what_cannot_be_shown_is_a_question_mark),
		cmocka_unit_test(long_texts_are_cut_between_characters),
		cmocka_unit_test(texts_of_other_layouts_are_not_read),
		cmocka_unit_test(what_has_another_type_is_refused),
		cmocka_unit_test(what_was_freed_is_refused),
		cmocka_unit_test(pointers_to_nowhere_are_refused),
		cmocka_unit_test(what_ends_too_early_is_refused),
		cmocka_unit_test(a_table_of_negative_length_is_none),
		cmocka_unit_test(a_long_table_is_read_up_to_its_limit),
		cmocka_unit_test(a_first_line_below_zero_is_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
