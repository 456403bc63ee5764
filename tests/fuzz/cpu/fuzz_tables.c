/*
 * tests/fuzz/cpu/fuzz_tables.c: any rows that the unwind information of a file may come to, laid
 * out where BPF reads them: what it finds there is the rule of each row. A second table, of a part
 * of them, lies beside.
 *
 *   distance (u8, whose lowest bits say: of bytes up to many pages) | a rule (8)
 */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cpu/unwind/file_rows.h"
#include "cpu/unwind/tables.h"

#define TEXT ((uint64_t)0x1000)
#define ROWS_MAX 4096
#define ROW_BYTES (1 + sizeof(struct elf_unwind_rule))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct elf_unwind_rule *rules;
static struct cpu_tables *tables;
static struct elf_unwind_row rows[ROWS_MAX];
static size_t n_rows;

static void make_rows(const uint8_t *data, size_t size)
{
	static const unsigned int shifts[] = {0, 3, 8, 14};
	uint64_t vaddr = TEXT;

	for (n_rows = 0; n_rows < ROWS_MAX && size >= ROW_BYTES; n_rows++) {
		vaddr += (uint64_t)(data[0] >> 2) << shifts[data[0] & 3];
		memcpy(&rows[n_rows].rule, data + 1, sizeof(rows[n_rows].rule));
		rows[n_rows].vaddr = vaddr;
		data += ROW_BYTES;
		size -= ROW_BYTES;
	}
}

static int hand_out(void *context, const struct elf_unwind_sink *sink)
{
	const struct elf_unwind_range *range = context;
	struct cpu_file_clip clip = {.range = range, .sink = sink};
	int r = 0;

	for (size_t i = 0, n = 1; r >= 0 && i < n_rows; i += n, n = n * 2 + 1)
		r = range ? cpu_file_clip_rows(&clip, rows + i, MIN(n, n_rows - i))
			  : sink->rows(sink->context, rows + i, MIN(n, n_rows - i));
	return r < 0 || !range ? r : cpu_file_clip_finish(&clip);
}

static uint32_t word_at(uint32_t word)
{
	const uint32_t *chunk = cpu_tables_chunk(tables, word >> CPU_SAMPLER_CHUNK_BITS);

	assert(chunk);
	return chunk[word & (CPU_SAMPLER_CHUNK_WORDS - 1)];
}

/* As walk_step() does. */
static struct elf_unwind_rule look_up(const struct cpu_table *t, uint64_t vaddr)
{
	uint64_t page = (vaddr >> CPU_SAMPLER_PAGE_BITS) - t->first_page;
	uint32_t first, n, found = 0;

	if (page >= t->n_pages)
		return (struct elf_unwind_rule){0};
	first = word_at(t->index + 2 * (uint32_t)page);
	n = word_at(t->index + 2 * (uint32_t)page + 1);
	assert(n > 0 &&
	       first >> CPU_SAMPLER_CHUNK_BITS == (first + n - 1) >> CPU_SAMPLER_CHUNK_BITS);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t row = word_at(first + i);

		if (CPU_SAMPLER_ROW_OFFSET(row) > (vaddr & (CPU_SAMPLER_PAGE_SIZE - 1)))
			break;
		found = CPU_SAMPLER_ROW_RULE(row);
	}
	if (!(found & CPU_SAMPLER_RULE_SHORT)) {
		assert(found < CPU_SAMPLER_RULES);
		return rules[found];
	}
	n = CPU_SAMPLER_SHORT_FP(found);
	return (struct elf_unwind_rule){.cfa = ELF_UNWIND_SP,
					.fp = n ? ELF_UNWIND_FP_SAVED : ELF_UNWIND_FP_SAME,
					.fp_off = n ? (int16_t)(-8 * (int)(n + 1)) : 0,
					.cfa_off = (int32_t)CPU_SAMPLER_SHORT_CFA(found)};
}

/* Padding, which never runs, may have any. */
static bool is_padding(size_t i)
{
	return rows[i].rule.cfa == ELF_UNWIND_NONE;
}

static void check(const struct cpu_table *t, const struct elf_unwind_range *range)
{
	for (size_t i = 0; i < n_rows; i++) {
		struct elf_unwind_rule found;

		if (is_padding(i) || rows[i].vaddr < range->from || rows[i].vaddr >= range->to)
			continue;
		found = look_up(t, rows[i].vaddr);
		assert(memcmp(&found, &rows[i].rule, sizeof(found)) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct elf_unwind_range all = {.to = UINT64_MAX};
	struct elf_unwind_range part = {.from = TEXT + 0x123, .to = TEXT + 0x12345};
	struct cpu_table whole = {0}, piece = {0};
	int r;

	if (!rules) {
		rules = calloc(CPU_SAMPLER_RULES, sizeof(*rules));
		assert(rules && cpu_tables_new(rules, -1, &tables, NULL) == 0);
	}
	make_rows(data, size);
	r = cpu_tables_add(tables, 0, hand_out, NULL, &whole);
	assert(r == 0 || r == -EBADMSG || r == -E2BIG || r == -ENOENT);
	if (r == 0)
		check(&whole, &all);
	if (r == 0 && cpu_tables_add(tables, 0, hand_out, &part, &piece) == 0) {
		check(&piece, &part);
		check(&whole, &all);
		cpu_tables_remove(tables, &piece);
	}
	if (r == 0)
		cpu_tables_remove(tables, &whole);
	cpu_tables_trim(tables);
	return 0;
}
