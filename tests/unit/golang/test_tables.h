/*
 * tests/unit/golang/test_tables.h: a small Go program's tables, made up in all three formats.
 *
 *   function        addresses            line  file
 *   runtime.main    text + 0x00 .. 0x40     5  proc.go
 *   main.main       text + 0x40 .. 0x60    10  main.go
 *     main.inner    text + 0x60 .. 0x70    20  inner.go    inlined
 *       main.leaf   text + 0x70 .. 0x78    30  inner.go    inlined into main.inner
 *     main.inner    text + 0x78 .. 0x80    21  inner.go
 *                   text + 0x80 .. 0x100   11  main.go
 *   runtime.goexit  text + 0x100 .. 0x140   7  proc.go
 *
 * Addresses on arm64 are four times as far apart.
 */
#pragma once

#include <stdint.h>
#include <string.h>

#include "golang/binary/layout.h"
#include "golang/binary/module.h"

enum {
	TABLES_BASE = 0x10000,
	TABLES_TEXT = 0x401000,
	TABLES_HEADER = 0x400, /* offsets from the base; the module data are at 0 */
	TABLES_NAMES = 0x480,
	TABLES_UNITS = 0x580,
	TABLES_FILES = 0x5c0,
	TABLES_PCTAB = 0x640,
	TABLES_FUNCTIONS = 0x700,
	TABLES_TREE = 0xa00,
	TABLES_DATA = 0xc00,
	TABLES_BYTES = 0x1000,
	TABLES_N_FUNCTIONS = 3,
	TABLES_START_LINE = 100, /* of main.main; those inlined follow */
};

struct tables {
	_Alignas(16) uint8_t bytes[TABLES_BYTES];
	const struct golang_layout *layout;
	unsigned int quantum;
	uint32_t record_at[TABLES_N_FUNCTIONS]; /* offsets in bytes, for tests that do damage */
	size_t pctab_len;
};

static inline void tables_u32(struct tables *t, size_t off, uint32_t value)
{
	memcpy(t->bytes + off, &value, sizeof(value));
}

static inline void tables_u64(struct tables *t, size_t off, uint64_t value)
{
	memcpy(t->bytes + off, &value, sizeof(value));
}

static inline void tables_slice(struct tables *t, size_t off, size_t at, uint64_t len)
{
	tables_u64(t, off, TABLES_BASE + at);
	tables_u64(t, off + 8, len);
	tables_u64(t, off + 16, len);
}

static inline void tables_varint(struct tables *t, uint32_t value)
{
	for (; value >= 0x80; value >>= 7)
		t->bytes[TABLES_PCTAB + t->pctab_len++] = (uint8_t)(value | 0x80);
	t->bytes[TABLES_PCTAB + t->pctab_len++] = (uint8_t)value;
}

struct tables_step {
	uint32_t until; /* from the function's entry */
	int32_t value;
};

/* Appends a pc-value table; its offset. The last step has until 0. */
static inline uint32_t tables_pc_values(struct tables *t, const struct tables_step *steps)
{
	uint32_t start = (uint32_t)t->pctab_len;
	uint32_t pc = 0;
	int32_t value = -1;

	for (; steps->until; steps++) {
		int32_t delta = steps->value - value;

		tables_varint(t, delta < 0 ? ~((uint32_t)delta << 1) : (uint32_t)delta << 1);
		tables_varint(t, steps->until - pc);
		value = steps->value;
		pc = steps->until;
	}
	tables_varint(t, 0);
	return start;
}

/* The offset of a string in a table of strings that starts at `at`. */
static inline uint32_t tables_string(const struct tables *t, size_t at, const char *s)
{
	size_t off = at;

	while (strcmp((const char *)t->bytes + off, s) != 0)
		off += strlen((const char *)t->bytes + off) + 1;
	return (uint32_t)(off - at);
}

static inline uint32_t tables_name(const struct tables *t, const char *name)
{
	return tables_string(t, TABLES_NAMES, name);
}

struct tables_func {
	const char *name;
	uint32_t entry;
	uint32_t pcfile;
	uint32_t pcln;
	uint32_t inline_index;
	bool has_tree;
};

/* Writes a function's record at off; where the next may go. */
static inline uint32_t tables_record(struct tables *t, uint32_t off, const struct tables_func *f)
{
	bool old = t->layout->pcln == GOLANG_PCLN_116;
	uint32_t p = off + (old ? 8 : 4);
	uint64_t tree = TABLES_BASE + TABLES_TREE;

	if (old)
		tables_u64(t, off, TABLES_TEXT + f->entry);
	else
		tables_u32(t, off, f->entry);
	tables_u32(t, p, tables_name(t, f->name));
	tables_u32(t, p + 16, f->pcfile);
	tables_u32(t, p + 20, f->pcln);
	tables_u32(t, p + 24, 3); /* pcdata tables; the compilation unit is 0 */
	p += 32;
	if (t->layout->pcln == GOLANG_PCLN_120) {
		tables_u32(t, p, TABLES_START_LINE);
		p += 4;
	}
	t->bytes[p] = (uint8_t)(f->has_tree ? 0 : 1);
	t->bytes[p + 3] = 4; /* funcdata */
	tables_u32(t, p + 4 + 8, f->inline_index);
	p += 4 + 12;
	if (old) {
		p = (p + 7) & ~7U;
		tables_u64(t, p + 24, f->has_tree ? tree : 0);
		return p + 32;
	}
	/* Relative to gofunc, which is 0x100 before the tree. */
	tables_u32(t, p + 12, f->has_tree ? 0x100 : UINT32_MAX);
	return p + 16;
}

static inline void tables_inlined(struct tables *t, unsigned int i, const char *name,
				  uint32_t parent_pc)
{
	bool new = t->layout->pcln == GOLANG_PCLN_120;
	size_t at = TABLES_TREE + i * (new ? 16 : 20);

	t->bytes[at + (new ? 0 : 2)] = (uint8_t)(t->layout->id_wrapper + 1 + i);
	tables_u32(t, at + (new ? 4 : 12), tables_name(t, name));
	tables_u32(t, at + (new ? 8 : 16), parent_pc * t->quantum);
	if (new)
		tables_u32(t, at + 12, TABLES_START_LINE + 10 + i);
}

static inline void tables_functions(struct tables *t)
{
	static const struct tables_step main_file[] = {{0x20, 0}, {0x40, 1}, {0xc0, 0}, {0}};
	static const struct tables_step main_line[] = {{0x20, 10}, {0x30, 20}, {0x38, 30},
						       {0x40, 21}, {0xc0, 11}, {0}};
	static const struct tables_step main_inline[] = {{0x20, -1}, {0x30, 0},	 {0x38, 1},
							 {0x40, 0},  {0xc0, -1}, {0}};
	static const struct tables_step file[] = {{0x40, 2}, {0}};
	static const struct tables_step line5[] = {{0x40, 5}, {0}}, line7[] = {{0x40, 7}, {0}};
	bool old = t->layout->pcln == GOLANG_PCLN_116;
	uint32_t entry_bytes = old ? 16 : 8;
	uint32_t at = TABLES_FUNCTIONS + (TABLES_N_FUNCTIONS + 1) * entry_bytes;
	struct tables_func funcs[TABLES_N_FUNCTIONS];

	t->pctab_len = 1; /* offset 0 stands for no table */
	funcs[0] = (struct tables_func){.name = "runtime.main",
					.pcfile = tables_pc_values(t, file),
					.pcln = tables_pc_values(t, line5)};
	funcs[1] = (struct tables_func){.name = "main.main",
					.entry = 0x40,
					.pcfile = tables_pc_values(t, main_file),
					.pcln = tables_pc_values(t, main_line),
					.inline_index = tables_pc_values(t, main_inline),
					.has_tree = true};
	funcs[2] = (struct tables_func){.name = "runtime.goexit",
					.entry = 0x100,
					.pcfile = funcs[0].pcfile,
					.pcln = tables_pc_values(t, line7)};
	for (unsigned int i = 0; i <= TABLES_N_FUNCTIONS; i++) {
		uint32_t entry = (i < TABLES_N_FUNCTIONS ? funcs[i].entry : 0x140) * t->quantum;
		uint32_t functab = TABLES_FUNCTIONS + i * entry_bytes;

		if (old)
			tables_u64(t, functab, TABLES_TEXT + entry);
		else
			tables_u32(t, functab, entry);
		if (i == TABLES_N_FUNCTIONS)
			break;
		if (old)
			tables_u64(t, functab + 8, at - TABLES_FUNCTIONS);
		else
			tables_u32(t, functab + 4, at - TABLES_FUNCTIONS);
		t->record_at[i] = at;
		funcs[i].entry = entry;
		at = tables_record(t, at, &funcs[i]);
	}
	/* main.inner was called at main.main's first line, main.leaf at main.inner's. */
	tables_inlined(t, 0, "main.inner", 0x18);
	tables_inlined(t, 1, "main.leaf", 0x28);
	tables_slice(t, 104, TABLES_FUNCTIONS, at - TABLES_FUNCTIONS);
	tables_slice(t, 128, TABLES_FUNCTIONS, TABLES_N_FUNCTIONS + 1);
}

static inline void tables_header(struct tables *t)
{
	static const uint32_t magics[] = {[GOLANG_PCLN_116] = 0xfffffffa,
					  [GOLANG_PCLN_118] = 0xfffffff0,
					  [GOLANG_PCLN_120] = 0xfffffff1};
	size_t at = TABLES_HEADER + (t->layout->pcln == GOLANG_PCLN_116 ? 24 : 32);

	tables_u32(t, TABLES_HEADER, magics[t->layout->pcln]);
	t->bytes[TABLES_HEADER + 6] = (uint8_t)t->quantum;
	t->bytes[TABLES_HEADER + 7] = 8;
	tables_u64(t, TABLES_HEADER + 8, TABLES_N_FUNCTIONS);
	tables_u64(t, TABLES_HEADER + 16, 3);
	tables_u64(t, at, TABLES_NAMES - TABLES_HEADER);
	tables_u64(t, at + 8, TABLES_UNITS - TABLES_HEADER);
	tables_u64(t, at + 16, TABLES_FILES - TABLES_HEADER);
	tables_u64(t, at + 24, TABLES_PCTAB - TABLES_HEADER);
	tables_u64(t, at + 32, TABLES_FUNCTIONS - TABLES_HEADER);
}

/* The tables of a program of Go 1.minor. */
static inline void tables_build(struct tables *t, unsigned int minor, unsigned int quantum)
{
	static const char names[] = "\0main.main\0main.inner\0main.leaf\0runtime.main\0"
				    "runtime.goexit\0";
	static const char files[] = "main.go\0inner.go\0proc.go\0";

	memset(t, 0, sizeof(*t));
	(void)golang_layout_for(minor, &t->layout, NULL);
	t->quantum = quantum;
	memcpy(t->bytes + TABLES_NAMES, names, sizeof(names));
	memcpy(t->bytes + TABLES_FILES, files, sizeof(files));
	tables_u32(t, TABLES_UNITS, tables_string(t, TABLES_FILES, "main.go"));
	tables_u32(t, TABLES_UNITS + 4, tables_string(t, TABLES_FILES, "inner.go"));
	tables_u32(t, TABLES_UNITS + 8, tables_string(t, TABLES_FILES, "proc.go"));
	tables_header(t);
	tables_functions(t);
	tables_u64(t, 0, TABLES_BASE + TABLES_HEADER);
	tables_slice(t, 8, TABLES_NAMES, sizeof(names));
	tables_slice(t, 32, TABLES_UNITS, 3);
	tables_slice(t, 56, TABLES_FILES, sizeof(files));
	tables_slice(t, 80, TABLES_PCTAB, t->pctab_len);
	tables_u64(t, 160, TABLES_TEXT);
	tables_u64(t, 168, TABLES_TEXT + 0x140 * quantum);
	tables_u64(t, 176, TABLES_TEXT);
	tables_u64(t, 192, TABLES_BASE + TABLES_DATA);
	tables_u64(t, 208, TABLES_BASE + TABLES_DATA);
	tables_u64(t, 232, TABLES_BASE + TABLES_BYTES);
	tables_u64(t, 248, TABLES_BASE + TABLES_BYTES);
	if (t->layout->md_gofunc)
		tables_u64(t, t->layout->md_gofunc, TABLES_BASE + TABLES_TREE - 0x100);
}
