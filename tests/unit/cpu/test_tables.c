/* tests/unit/cpu/test_tables.c: unwind tables as BPF reads them, without BPF. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "cpu/unwind/file_rows.h"
#include "cpu/unwind/file_tables.h"
#include "cpu/unwind/ranges.h"
#include "cpu/unwind/rules.h"
#include "cpu/unwind/tables.h"
#include "elf/image.h"
#include "proc/maps.h"
#include "unwind_table.h"

struct fixture {
	struct elf_unwind_rule *rules;
	struct cpu_tables *tables;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->rules = calloc(CPU_SAMPLER_RULES, sizeof(*f->rules));
	assert_non_null(f->rules);
	assert_int_equal(cpu_tables_new(f->rules, -1, &f->tables, NULL), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	cpu_tables_free(f->tables);
	free(f->rules);
	free(f);
	return 0;
}

static uint32_t word_at(const struct fixture *f, uint32_t word)
{
	const uint32_t *chunk = cpu_tables_chunk(f->tables, word >> CPU_SAMPLER_CHUNK_BITS);

	assert_non_null(chunk);
	return chunk[word & (CPU_SAMPLER_CHUNK_WORDS - 1)];
}

/* What walk_step() does, step by step. */
static struct elf_unwind_rule lookup(const struct fixture *f, const struct cpu_table *t,
				     uint64_t vaddr)
{
	uint64_t page = (vaddr >> CPU_SAMPLER_PAGE_BITS) - t->first_page;
	uint32_t first, n, found = 0;

	if (page >= t->n_pages)
		return (struct elf_unwind_rule){0};
	first = word_at(f, t->index + 2 * (uint32_t)page);
	n = word_at(f, t->index + 2 * (uint32_t)page + 1);
	assert_true(n > 0);
	/* One chunk holds all rows of a page. */
	assert_int_equal(first >> CPU_SAMPLER_CHUNK_BITS,
			 (first + n - 1) >> CPU_SAMPLER_CHUNK_BITS);
	assert_int_equal(CPU_SAMPLER_ROW_OFFSET(word_at(f, first)), 0);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t row = word_at(f, first + i);

		if (CPU_SAMPLER_ROW_OFFSET(row) > (vaddr & (CPU_SAMPLER_PAGE_SIZE - 1)))
			break;
		found = CPU_SAMPLER_ROW_RULE(row);
	}
	return f->rules[found];
}

struct some_rows {
	const struct elf_unwind_row *rows;
	size_t n;
};

/* In batches of odd sizes. */
static int hand_out(void *context, const struct elf_unwind_sink *sink)
{
	const struct some_rows *some = context;
	int r = 0;

	for (size_t i = 0, n = 1; r >= 0 && i < some->n; i += n, n = n * 2 + 1)
		r = sink->rows(sink->context, some->rows + i, MIN(n, some->n - i));
	return r;
}

static int add(struct fixture *f, const struct elf_unwind_row *rows, size_t n,
	       struct cpu_table *ret)
{
	struct some_rows some = {.rows = rows, .n = n};

	return cpu_tables_add(f->tables, hand_out, &some, ret);
}

static struct elf_unwind_rule sp_rule(int32_t offset)
{
	return (struct elf_unwind_rule){.cfa = ELF_UNWIND_SP, .cfa_off = offset};
}

static void assert_rule(struct elf_unwind_rule rule, enum elf_unwind_cfa cfa, int32_t offset)
{
	assert_int_equal(rule.cfa, cfa);
	assert_int_equal(rule.cfa_off, offset);
}

static void table_gives_the_rule_of_each_address(void **state)
{
	struct fixture *f = *state;
	struct cpu_table t = {0};
	const struct elf_unwind_row rows[] = {
		{.vaddr = 0x1100, .rule = sp_rule(8)},
		{.vaddr = 0x1104, .rule = sp_rule(16)},
		/* Holds over the whole of the pages at 0x2000 and 0x3000. */
		{.vaddr = 0x1ff0, .rule = sp_rule(32)},
		{.vaddr = 0x4000, .rule = {.cfa = ELF_UNWIND_FP, .cfa_off = 16}},
		{.vaddr = 0x4800, .rule = {.cfa = ELF_UNWIND_NONE}},
	};

	assert_int_equal(add(f, rows, ARRAY_SIZE(rows), &t), 0);
	assert_rule(lookup(f, &t, 0xfff), ELF_UNWIND_NONE, 0);
	assert_rule(lookup(f, &t, 0x10ff), ELF_UNWIND_NONE, 0);
	assert_rule(lookup(f, &t, 0x1100), ELF_UNWIND_SP, 8);
	assert_rule(lookup(f, &t, 0x1103), ELF_UNWIND_SP, 8);
	assert_rule(lookup(f, &t, 0x1104), ELF_UNWIND_SP, 16);
	assert_rule(lookup(f, &t, 0x2000), ELF_UNWIND_SP, 32);
	assert_rule(lookup(f, &t, 0x3fff), ELF_UNWIND_SP, 32);
	assert_rule(lookup(f, &t, 0x4000), ELF_UNWIND_FP, 16);
	assert_rule(lookup(f, &t, 0x47ff), ELF_UNWIND_FP, 16);
	assert_rule(lookup(f, &t, 0x4800), ELF_UNWIND_NONE, 0);
	assert_rule(lookup(f, &t, 0x5000), ELF_UNWIND_NONE, 0);
	cpu_tables_remove(f->tables, &t);
}

static void table_joins_functions_over_padding(void **state)
{
	struct fixture *f = *state;
	struct cpu_table t = {0};
	const struct elf_unwind_row rows[] = {
		{.vaddr = 0x1000, .rule = sp_rule(8)},
		{.vaddr = 0x1050, .rule = {.cfa = ELF_UNWIND_NONE}},
		{.vaddr = 0x1058, .rule = sp_rule(8)},
		{.vaddr = 0x1100, .rule = {.cfa = ELF_UNWIND_NONE}},
		{.vaddr = 0x1200, .rule = sp_rule(8)},
	};

	assert_int_equal(add(f, rows, ARRAY_SIZE(rows), &t), 0);
	assert_rule(lookup(f, &t, 0x1054), ELF_UNWIND_SP, 8);
	assert_rule(lookup(f, &t, 0x1180), ELF_UNWIND_NONE, 0);
	/* {0, sp}, {0x100, none}, {0x200, sp} */
	assert_int_equal(word_at(f, t.index + 1), 3);
	cpu_tables_remove(f->tables, &t);
}

/* One row per byte, over more than a chunk: the most that a page can have. */
static void table_larger_than_a_chunk_is_whole(void **state)
{
	struct fixture *f = *state;
	const size_t n = CPU_SAMPLER_CHUNK_WORDS + 50000;
	struct elf_unwind_row *rows = calloc(n, sizeof(*rows));
	struct cpu_table t = {0};

	assert_non_null(rows);
	for (size_t i = 0; i < n; i++)
		rows[i] = (struct elf_unwind_row){.vaddr = 0x401007 + i,
						  .rule = sp_rule((int32_t)(8 + i % 1000))};
	assert_int_equal(add(f, rows, n, &t), 0);
	assert_true(t.n_pieces >= 2);
	for (size_t i = 0; i < n; i += 61)
		assert_rule(lookup(f, &t, 0x401007 + i), ELF_UNWIND_SP, (int32_t)(8 + i % 1000));
	cpu_tables_remove(f->tables, &t);
	free(rows);
}

/* How many there are. */
static size_t chunks(struct fixture *f)
{
	size_t n = 0;

	for (uint32_t i = 0; i < CPU_SAMPLER_CHUNKS; i++)
		n += cpu_tables_chunk(f->tables, i) != NULL;
	return n;
}

static void removed_tables_leave_room_for_others(void **state)
{
	struct fixture *f = *state;
	const size_t n = 200000; /* not quite a chunk */
	struct elf_unwind_row *rows = calloc(n, sizeof(*rows));

	assert_non_null(rows);
	for (size_t i = 0; i < n; i++)
		rows[i] = (struct elf_unwind_row){.vaddr = 0x1000 + i,
						  .rule = sp_rule((int32_t)(8 + 8 * (i % 2)))};
	for (size_t i = 0; i < 4 * CPU_SAMPLER_CHUNKS; i++) {
		struct cpu_table t = {0};

		assert_int_equal(add(f, rows, n, &t), 0);
		cpu_tables_remove(f->tables, &t);
	}
	assert_in_range(chunks(f), 1, 2);
	free(rows);
}

static void tables_refuse_past_their_limit_and_give_chunks_back(void **state)
{
	struct fixture *f = *state;
	const size_t n = 250000;
	struct elf_unwind_row *rows = calloc(n, sizeof(*rows));
	struct cpu_table tables[CPU_SAMPLER_CHUNKS + 1] = {0};
	size_t added = 0;
	int r = 0;

	assert_non_null(rows);
	for (size_t i = 0; i < n; i++)
		rows[i] = (struct elf_unwind_row){.vaddr = 0x1000 + i,
						  .rule = sp_rule((int32_t)(8 + 8 * (i % 2)))};
	while (r >= 0 && added <= CPU_SAMPLER_CHUNKS) {
		r = add(f, rows, n, &tables[added]);
		added += r >= 0;
	}
	assert_int_equal(r, -ENOSPC);
	assert_true(added >= CPU_SAMPLER_CHUNKS - 1);
	assert_int_equal(chunks(f), CPU_SAMPLER_CHUNKS);
	for (size_t i = 0; i < added; i++)
		cpu_tables_remove(f->tables, &tables[i]);
	cpu_tables_trim(f->tables);
	assert_int_equal(chunks(f), 1);
	free(rows);
}

static void forged_rows_are_refused(void **state)
{
	struct fixture *f = *state;
	struct cpu_table t = {0};
	const struct elf_unwind_row wide[] = {{.vaddr = 0x1000, .rule = sp_rule(8)},
					      {.vaddr = UINT64_MAX - 1, .rule = sp_rule(16)}};
	const struct elf_unwind_row unsorted[] = {{.vaddr = 0x2000, .rule = sp_rule(8)},
						  {.vaddr = 0x1000, .rule = sp_rule(16)}};

	assert_int_equal(add(f, wide, 2, &t), -E2BIG);
	assert_int_equal(add(f, unsorted, 2, &t), -EBADMSG);
	assert_int_equal(add(f, wide, 0, &t), -ENOENT);
	assert_null(t.pieces);
}

static void one_file_cannot_use_up_all_rules(void **state)
{
	struct fixture *f = *state;
	struct elf_unwind_row *rows = calloc(CPU_SAMPLER_RULES, sizeof(*rows));
	const struct elf_unwind_row honest[] = {{.vaddr = 0x1000, .rule = sp_rule(-8)}};
	struct cpu_table t = {0};

	assert_non_null(rows);
	for (size_t i = 0; i < CPU_SAMPLER_RULES; i++)
		rows[i] = (struct elf_unwind_row){.vaddr = 0x1000 + i, .rule = sp_rule((int32_t)i)};
	for (int i = 0; i < 8; i++)
		assert_int_equal(add(f, rows, CPU_SAMPLER_RULES, &t), -E2BIG);
	assert_int_equal(add(f, honest, 1, &t), 0);
	assert_rule(lookup(f, &t, 0x1000), ELF_UNWIND_SP, -8);
	cpu_tables_remove(f->tables, &t);
	free(rows);
}

static void rules_are_shared_and_their_numbers_used_again(void **state)
{
	struct elf_unwind_rule *shared = calloc(CPU_SAMPLER_RULES, sizeof(*shared));
	_cleanup_(cpu_rules_freep) struct cpu_rules *rules = cpu_rules_new(shared);
	struct elf_unwind_rule a = sp_rule(8), b = sp_rule(16), c = sp_rule(24), none = {0};
	uint16_t n[4];

	(void)state;
	assert_non_null(rules);
	assert_int_equal(cpu_rules_take(rules, &a, &n[0]), 0);
	assert_int_equal(cpu_rules_take(rules, &b, &n[1]), 0);
	assert_int_equal(cpu_rules_take(rules, &a, &n[2]), 0);
	assert_int_equal(n[0], n[2]);
	assert_int_not_equal(n[0], n[1]);
	/* In use until the last user gives it back, and then anybody's. */
	cpu_rules_give(rules, n[0]);
	assert_rule(shared[n[2]], ELF_UNWIND_SP, 8);
	assert_int_equal(cpu_rules_take(rules, &c, &n[3]), 0);
	assert_int_not_equal(n[3], n[2]);
	cpu_rules_give(rules, n[3]);
	cpu_rules_give(rules, n[2]);
	assert_int_equal(cpu_rules_take(rules, &c, &n[3]), 0);
	assert_int_equal(n[3], n[2]);
	assert_rule(shared[n[3]], ELF_UNWIND_SP, 24);
	cpu_rules_give(rules, n[3]);
	assert_int_equal(cpu_rules_take(rules, &none, &n[0]), 0);
	assert_int_equal(n[0], 0);
	for (int32_t i = 1; i < (int32_t)CPU_SAMPLER_RULES - 1; i++) {
		struct elf_unwind_rule rule = sp_rule(1000 + i);

		assert_int_equal(cpu_rules_take(rules, &rule, &n[0]), 0);
	}
	assert_int_equal(cpu_rules_take(rules, &a, &n[0]), -ENOSPC);
	free(shared);
}

static void ranges_join_what_comes_back(void **state)
{
	struct cpu_ranges r = {0};
	uint32_t a, b, c, d;

	(void)state;
	assert_int_equal(cpu_ranges_take(&r, 1, 0, &a), -ENOSPC);
	assert_int_equal(cpu_ranges_give(&r, 0, 100), 0);
	assert_int_equal(cpu_ranges_take(&r, 30, 0, &a), 0);
	assert_int_equal(cpu_ranges_take(&r, 30, 0, &b), 0);
	assert_int_equal(cpu_ranges_take(&r, 30, 0, &c), 0);
	assert_int_equal(cpu_ranges_take(&r, 30, 0, &d), -ENOSPC);
	assert_int_equal(cpu_ranges_give(&r, a, 30), 0);
	assert_int_equal(cpu_ranges_give(&r, c, 30), 0);
	assert_int_equal(cpu_ranges_take(&r, 50, 0, &d), -ENOSPC);
	assert_int_equal(cpu_ranges_give(&r, b, 30), 0);
	assert_int_equal(r.len, 1);
	assert_int_equal(cpu_ranges_take(&r, 100, 0, &d), 0);
	cpu_ranges_release(&r);
}

static void ranges_keep_to_their_boundary(void **state)
{
	struct cpu_ranges r = {0};
	uint32_t a, b;

	(void)state;
	assert_int_equal(cpu_ranges_give(&r, 0, 64), 0);
	assert_int_equal(cpu_ranges_take(&r, 10, 16, &a), 0);
	assert_int_equal(cpu_ranges_take(&r, 10, 16, &b), 0);
	assert_int_equal(a, 0);
	assert_int_equal(b, 16);
	/* What was jumped over is still there. */
	assert_int_equal(cpu_ranges_take(&r, 6, 16, &a), 0);
	assert_int_equal(a, 10);
	assert_int_equal(cpu_ranges_take(&r, 17, 16, &a), -ENOSPC);
	assert_int_equal(cpu_ranges_take_at(&r, 32, 16), 0);
	assert_int_equal(cpu_ranges_take_at(&r, 40, 16), -ENOSPC);
	cpu_ranges_release(&r);
}

static void join_prefers_the_first_where_both_know(void **state)
{
	struct elf_unwind_row a[] = {{.vaddr = 0x100, .rule = sp_rule(8)},
				     {.vaddr = 0x200, .rule = {.cfa = ELF_UNWIND_NONE}},
				     {.vaddr = 0x300, .rule = sp_rule(24)}};
	struct elf_unwind_row b[] = {{.vaddr = 0x80, .rule = sp_rule(80)},
				     {.vaddr = 0x180, .rule = sp_rule(88)},
				     {.vaddr = 0x280, .rule = {.cfa = ELF_UNWIND_NONE}}};
	struct elf_unwind_table first = {.rows = a, .n_rows = 3}, both = {0};
	struct cpu_file_join join = {.first = &first};

	(void)state;
	assert_int_equal(cpu_file_join_rows(&join, b, 1), 0);
	assert_int_equal(cpu_file_join_rows(&join, b + 1, 2), 0);
	assert_int_equal(cpu_file_join_finish(&join), 0);
	elf_unwind_builder_finish(&join.joined, &both);
	assert_rule(unwind_table_lookup(&both, 0x90), ELF_UNWIND_SP, 80);
	assert_rule(unwind_table_lookup(&both, 0x1c0), ELF_UNWIND_SP, 8);
	assert_rule(unwind_table_lookup(&both, 0x210), ELF_UNWIND_SP, 88);
	assert_rule(unwind_table_lookup(&both, 0x290), ELF_UNWIND_NONE, 0);
	assert_rule(unwind_table_lookup(&both, 0x310), ELF_UNWIND_SP, 24);
	elf_unwind_table_release(&both);
}

struct kept_rows {
	struct elf_unwind_row *rows;
	size_t n;
	size_t n_calls;
	size_t max_calls; /* then it refuses */
};

static int keep_rows(void *context, const struct elf_unwind_row *rows, size_t n)
{
	struct kept_rows *k = context;

	if (++k->n_calls > k->max_calls)
		return -ENOSPC;
	if (!n)
		return 0;
	k->rows = reallocarray(k->rows, k->n + n, sizeof(*rows));
	assert_non_null(k->rows);
	memcpy(k->rows + k->n, rows, n * sizeof(*rows));
	k->n += n;
	return 0;
}

/* Rows with what a builder leaves out: the same address again, the same rule again. */
static int build_some(struct elf_unwind_builder *b)
{
	uint64_t vaddr = 0x1000, seed = 1;
	int r = 0;

	for (size_t i = 0; r == 0 && i < 50000; i++) {
		seed = seed * 6364136223846793005U + 1442695040888963407U;
		vaddr += seed >> 62;
		r = elf_unwind_builder_row(b, vaddr, sp_rule((int32_t)(seed >> 40 & 3)));
	}
	return r;
}

static void rows_that_pass_by_are_those_of_a_whole_table(void **state)
{
	struct kept_rows kept = {.max_calls = SIZE_MAX};
	const struct elf_unwind_sink sink = {.rows = keep_rows, .context = &kept};
	struct elf_unwind_builder passing = {.sink = &sink}, whole = {0};

	(void)state;
	assert_int_equal(build_some(&whole), 0);
	assert_int_equal(build_some(&passing), 0);
	assert_int_equal(elf_unwind_builder_drain(&passing), 0);
	assert_true(kept.n_calls > 2);
	assert_int_equal(kept.n, whole.table.n_rows);
	assert_memory_equal(kept.rows, whole.table.rows, kept.n * sizeof(*kept.rows));
	elf_unwind_builder_release(&whole);
	elf_unwind_builder_release(&passing);
	free(kept.rows);
}

static void a_file_streams_the_rows_that_it_compiles_to(void **state)
{
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	struct kept_rows kept = {.max_calls = SIZE_MAX};
	const struct elf_unwind_sink sink = {.rows = keep_rows, .context = &kept};
	struct elf_unwind_table whole = {0};

	(void)state;
	assert_int_equal(elf_image_open_fd(fd, &image, NULL), 0);
	assert_int_equal(elf_unwind_compile(image, &whole, NULL), 0);
	assert_int_equal(elf_unwind_stream(image, &sink, NULL), 0);
	assert_int_equal(kept.n, whole.n_rows);
	assert_memory_equal(kept.rows, whole.rows, kept.n * sizeof(*kept.rows));
	/* Who takes them no more is not asked again. */
	kept.n_calls = kept.max_calls = 0;
	assert_int_equal(elf_unwind_stream(image, &sink, NULL), -ENOSPC);
	assert_int_equal(kept.n_calls, 1);
	elf_unwind_table_release(&whole);
	free(kept.rows);
}

static int copy_of_self(void)
{
	_cleanup_close_ int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int to = memfd_create("copy", MFD_CLOEXEC);
	static char block[1 << 16];
	ssize_t n;

	assert_true(from >= 0 && to >= 0);
	while ((n = read(from, block, sizeof(block))) > 0)
		assert_int_equal(write(to, block, (size_t)n), n);
	return to;
}

static void change_unwind_information(int fd)
{
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	const struct elf_section *frames;
	uint8_t byte;

	assert_int_equal(elf_image_open_fd(fd, &image, NULL), 0);
	frames = elf_image_section(image, ".eh_frame");
	assert_non_null(frames);
	assert_int_equal(pread(fd, &byte, 1, (off_t)(frames->offset + frames->size / 2)), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)(frames->offset + frames->size / 2)), 1);
}

static bool no_room(void *context)
{
	(void)context;
	return false;
}

static void count_pause(void *context)
{
	++*(size_t *)context;
}

static void others_are_heard_while_a_table_is_made(void **state)
{
	struct fixture *f = *state;
	struct cpu_file_tables shared = {0};
	struct cpu_file file = {.fd = copy_of_self()};
	struct cpu_file_table *table = NULL;
	size_t n = 0;
	const struct cpu_pause pause = {.call = count_pause, .context = &n};
	const struct cpu_file_loading loading = {.make_room = no_room, .pause = &pause};

	assert_int_equal(cpu_file_tables_take(&shared, f->tables, &file, &loading, &table), 0);
	assert_true(n > 0);
	cpu_file_tables_give(&shared, f->tables, table);
	(void)close(file.fd);
}

struct asking {
	struct cpu_files *files;
	uint32_t id;
	size_t n;
};

static void ask_again(void *context)
{
	struct asking *a = context;

	a->n++;
	cpu_files_want(a->files, a->id);
}

static void file_that_is_asked_for_while_it_is_loaded_is_loaded_once(void **state)
{
	struct fixture *f = *state;
	_cleanup_free_ struct cpu_sampler_file *shared = calloc(CPU_FILES_MAX, sizeof(*shared));
	_cleanup_(cpu_files_freep) struct cpu_files *files = NULL;
	_cleanup_(proc_maps_release) struct proc_maps maps = {0};
	struct interp_layout rows[INTERP_LAYOUTS];
	struct interp_layouts layouts = {.rows = rows};
	struct asking asking = {.id = CPU_FILE_NONE};
	const struct cpu_pause pause = {.call = ask_again, .context = &asking};
	uint64_t bias;

	assert_non_null(shared);
	assert_int_equal(cpu_files_new(shared, f->tables, &layouts, &files, NULL), 0);
	assert_int_equal(proc_maps_read(getpid(), &maps, NULL), 0);
	for (size_t i = 0; i < maps.len && asking.id == CPU_FILE_NONE; i++)
		if (maps.maps[i].flags & PROC_MAP_EXEC)
			assert_int_equal(
				cpu_files_open(files, getpid(), &maps.maps[i], &asking.id, &bias),
				0);
	asking.files = files;
	cpu_files_want(files, asking.id);
	assert_true(cpu_files_load_next(files, &pause));
	assert_true(asking.n > 0);
	assert_false(cpu_files_is_wanted(files));
	assert_int_equal(shared[asking.id].state, CPU_SAMPLER_FILE_TABLE);
}

static void only_files_of_equal_content_share_a_table(void **state)
{
	struct fixture *f = *state;
	struct cpu_file_tables shared = {0};
	struct cpu_file files[3] = {0};
	struct cpu_file_table *tables[3] = {0};
	struct cpu_file_loading loading = {.make_room = no_room};

	for (size_t i = 0; i < 3; i++) {
		files[i].fd = copy_of_self();
		/* The third one only says so. */
		(void)strcpy(files[i].build_id, "0123456789abcdef");
	}
	change_unwind_information(files[2].fd);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(
			cpu_file_tables_take(&shared, f->tables, &files[i], &loading, &tables[i]),
			0);
	assert_ptr_equal(tables[0], tables[1]);
	assert_ptr_not_equal(tables[0], tables[2]);
	cpu_file_tables_give(&shared, f->tables, tables[0]);
	assert_true(tables[1]->table.n_pages > 0);
	cpu_file_tables_give(&shared, f->tables, tables[1]);
	cpu_file_tables_give(&shared, f->tables, tables[2]);
	assert_null(shared.first);
	for (size_t i = 0; i < 3; i++)
		(void)close(files[i].fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(table_gives_the_rule_of_each_address, setup,
						teardown),
		cmocka_unit_test_setup_teardown(table_joins_functions_over_padding, setup,
						teardown),
		cmocka_unit_test_setup_teardown(table_larger_than_a_chunk_is_whole, setup,
						teardown),
		cmocka_unit_test_setup_teardown(removed_tables_leave_room_for_others, setup,
						teardown),
		cmocka_unit_test_setup_teardown(tables_refuse_past_their_limit_and_give_chunks_back,
						setup, teardown),
		cmocka_unit_test_setup_teardown(forged_rows_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(one_file_cannot_use_up_all_rules, setup, teardown),
		cmocka_unit_test_setup_teardown(
			file_that_is_asked_for_while_it_is_loaded_is_loaded_once, setup, teardown),
		cmocka_unit_test_setup_teardown(others_are_heard_while_a_table_is_made, setup,
						teardown),
		cmocka_unit_test(rows_that_pass_by_are_those_of_a_whole_table),
		cmocka_unit_test(a_file_streams_the_rows_that_it_compiles_to),
		cmocka_unit_test_setup_teardown(only_files_of_equal_content_share_a_table, setup,
						teardown),
		cmocka_unit_test(rules_are_shared_and_their_numbers_used_again),
		cmocka_unit_test(ranges_join_what_comes_back),
		cmocka_unit_test(ranges_keep_to_their_boundary),
		cmocka_unit_test(join_prefers_the_first_where_both_know),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
