/* src/cpu/unwind/hotspot_flag.c: see hotspot_flag.h. */
#include "cpu/unwind/hotspot_flag.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/symbols.h"

/* Real ones have about 800 rows and 1500 flags. */
#define HOTSPOT_MAX_ROWS 8192U
#define HOTSPOT_MAX_STRIDE 256U
#define HOTSPOT_PAGE 4096U
#define HOTSPOT_BLOCK 16384U
/* In all; real ones take some 350. Who scatters names on purpose does not hold up the sampler. */
#define HOTSPOT_MAX_READS 2048U

/* What is looked for in the tables. */
enum {
	FLAG_LIST, /* address of the pointer to the first flag */
	FLAG_COUNT,
	FLAG_NAME, /* offsets */
	FLAG_VALUE,
	FLAG_SIZE,
	N_WANTED,
};

struct reader {
	struct proc_mem *mem;
	uint32_t n_reads;
	uint64_t at; /* of the window */
	size_t len;
	uint8_t window[2 * HOTSPOT_PAGE];
	uint8_t rows[HOTSPOT_BLOCK];
};

/* The number of bytes read: 0 if there are none, or over the limit. */
static size_t read_some(struct reader *r, uint64_t address, void *dst, size_t size)
{
	ssize_t len = r->n_reads++ < HOTSPOT_MAX_READS
			      ? proc_mem_read_some(r->mem, address, dst, size)
			      : 0;

	return len > 0 ? (size_t)len : 0;
}

/* Names lie close together, so most are in the window that the last one was in. */
static bool text_is(struct reader *r, uint64_t address, const char *text)
{
	size_t n = strlen(text) + 1;

	if (address < r->at || address - r->at > r->len || r->len - (address - r->at) < n) {
		r->at = address & ~(uint64_t)(HOTSPOT_PAGE - 1);
		r->len = read_some(r, r->at, r->window, sizeof(r->window));
		if (r->len < address - r->at || r->len - (address - r->at) < n)
			return false;
	}
	return memcmp(r->window + (address - r->at), text, n) == 0;
}

static bool read_word(struct reader *r, uint64_t address, uint64_t *ret)
{
	return proc_mem_read(r->mem, address, ret, sizeof(*ret), NULL) == 0;
}

/* A word of a row. */
static bool row_word(const uint8_t *row, uint64_t stride, uint64_t offset, uint64_t *ret)
{
	if (offset > stride || stride - offset < sizeof(*ret))
		return false;
	memcpy(ret, row + offset, sizeof(*ret));
	return true;
}

/*
 * Calls take for each row until a name is 0, which ends a table, or take returns false. Returns
 * false if the table is not one.
 */
static bool each_row(struct reader *r, uint64_t table, uint64_t stride,
		     bool (*take)(void *context, struct reader *r, const uint8_t *row),
		     void *context)
{
	uint64_t n = 0, left = 0;

	if (!table || stride < sizeof(uint64_t) || stride > HOTSPOT_MAX_STRIDE)
		return false;
	for (uint64_t i = 0; i < HOTSPOT_MAX_ROWS; i++, left--) {
		if (!left) {
			left = n =
				read_some(r, table + i * stride, r->rows, sizeof(r->rows)) / stride;
			if (!left)
				return false;
		}
		if (!take(context, r, r->rows + (n - left) * stride))
			return true;
	}
	return false;
}

struct search {
	const uint64_t *words; /* enum cpu_hotspot_word, by value */
	uint64_t found[N_WANTED];
};

static bool take_field(void *context, struct reader *r, const uint8_t *row)
{
	static const struct {
		const char *field;
		uint32_t wanted;
		bool is_static;
	} fields[] = {{"flags", FLAG_LIST, true},
		      {"numFlags", FLAG_COUNT, true},
		      {"_name", FLAG_NAME, false},
		      {"_addr", FLAG_VALUE, false}};
	struct search *s = context;
	const uint64_t *w = s->words;
	uint64_t stride = w[CPU_HOTSPOT_STRUCT_STRIDE], type, field, value;

	if (!row_word(row, stride, w[CPU_HOTSPOT_STRUCT_TYPE], &type) || !type ||
	    !row_word(row, stride, w[CPU_HOTSPOT_STRUCT_FIELD], &field))
		return false;
	if (!text_is(r, type, "JVMFlag"))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		uint64_t at = w[fields[i].is_static ? CPU_HOTSPOT_STRUCT_ADDRESS
						    : CPU_HOTSPOT_STRUCT_OFFSET];

		if (text_is(r, field, fields[i].field) && row_word(row, stride, at, &value))
			s->found[fields[i].wanted] = value;
	}
	return true;
}

static bool take_type(void *context, struct reader *r, const uint8_t *row)
{
	struct search *s = context;
	const uint64_t *w = s->words;
	uint64_t stride = w[CPU_HOTSPOT_TYPE_STRIDE], name;

	if (!row_word(row, stride, w[CPU_HOTSPOT_TYPE_NAME], &name) || !name)
		return false;
	if (!text_is(r, name, "JVMFlag"))
		return true;
	(void)row_word(row, stride, w[CPU_HOTSPOT_TYPE_SIZE], &s->found[FLAG_SIZE]);
	return false;
}

struct flag_search {
	const struct search *search;
	uint64_t left;
	uint64_t value; /* its address */
};

static bool take_flag(void *context, struct reader *r, const uint8_t *row)
{
	struct flag_search *f = context;
	const uint64_t *found = f->search->found;
	uint64_t name;

	if (!f->left-- || !row_word(row, found[FLAG_SIZE], found[FLAG_NAME], &name))
		return false;
	if (!name || !text_is(r, name, "PreserveFramePointer"))
		return true;
	(void)row_word(row, found[FLAG_SIZE], found[FLAG_VALUE], &f->value);
	return false;
}

bool cpu_hotspot_find(const struct elf_image *image, struct cpu_hotspot *ret_hotspot)
{
	struct elf_symbol symbols[CPU_HOTSPOT_WORDS] = {
		[CPU_HOTSPOT_STRUCTS] = {.name = "gHotSpotVMStructs"},
		[CPU_HOTSPOT_STRUCT_STRIDE] = {.name = "gHotSpotVMStructEntryArrayStride"},
		[CPU_HOTSPOT_STRUCT_TYPE] = {.name = "gHotSpotVMStructEntryTypeNameOffset"},
		[CPU_HOTSPOT_STRUCT_FIELD] = {.name = "gHotSpotVMStructEntryFieldNameOffset"},
		[CPU_HOTSPOT_STRUCT_OFFSET] = {.name = "gHotSpotVMStructEntryOffsetOffset"},
		[CPU_HOTSPOT_STRUCT_ADDRESS] = {.name = "gHotSpotVMStructEntryAddressOffset"},
		[CPU_HOTSPOT_TYPES] = {.name = "gHotSpotVMTypes"},
		[CPU_HOTSPOT_TYPE_STRIDE] = {.name = "gHotSpotVMTypeEntryArrayStride"},
		[CPU_HOTSPOT_TYPE_NAME] = {.name = "gHotSpotVMTypeEntryTypeNameOffset"},
		[CPU_HOTSPOT_TYPE_SIZE] = {.name = "gHotSpotVMTypeEntrySizeOffset"},
	};

	if (elf_symbols_find_exported(image, symbols, ARRAY_SIZE(symbols), NULL) !=
	    (int)ARRAY_SIZE(symbols))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(symbols); i++)
		ret_hotspot->words[i] = symbols[i].value;
	return true;
}

int cpu_hotspot_flag(const struct cpu_hotspot *hotspot, struct proc_mem *mem, uint64_t bias,
		     bool *ret_flag)
{
	struct reader r = {.mem = mem};
	uint64_t words[CPU_HOTSPOT_WORDS], list;
	struct search s = {.words = words};
	struct flag_search f = {.search = &s};
	uint8_t value;

	for (size_t i = 0; i < CPU_HOTSPOT_WORDS; i++)
		if (!read_word(&r, hotspot->words[i] + bias, &words[i]))
			return -ENOENT;
	if (!each_row(&r, words[CPU_HOTSPOT_STRUCTS], words[CPU_HOTSPOT_STRUCT_STRIDE], take_field,
		      &s) ||
	    !each_row(&r, words[CPU_HOTSPOT_TYPES], words[CPU_HOTSPOT_TYPE_STRIDE], take_type, &s))
		return -ENOENT;
	if (!s.found[FLAG_LIST] || !s.found[FLAG_COUNT] || !s.found[FLAG_SIZE] ||
	    s.found[FLAG_NAME] == s.found[FLAG_VALUE] ||
	    !read_word(&r, s.found[FLAG_LIST], &list) ||
	    !read_word(&r, s.found[FLAG_COUNT], &f.left))
		return -ENOENT;
	if (!each_row(&r, list, s.found[FLAG_SIZE], take_flag, &f) || !f.value ||
	    proc_mem_read(mem, f.value, &value, sizeof(value), NULL) < 0 || value > 1)
		return -ENOENT;
	*ret_flag = value;
	return 0;
}
