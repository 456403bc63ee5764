/* tests/unit/cpu/test_files.c: how many files of how many users there may be. */
#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cpu/unwind/files.h"

#define USER 1000
#define OTHER 1001
#define LARGE_IDS 65U /* of 2 GB: itself and its parts */

struct fixture {
	struct elf_unwind_rule *rules;
	struct cpu_tables *tables;
	struct cpu_sampler_file *shared;
	struct interp_layout rows[INTERP_LAYOUTS];
	struct interp_layouts layouts;
	struct cpu_files *files;
	uint64_t inode; /* the next */
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct rlimit fds;

	assert_non_null(f);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &fds), 0);
	fds.rlim_cur = fds.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &fds), 0);
	f->rules = calloc(CPU_SAMPLER_RULES, sizeof(*f->rules));
	f->shared = calloc(CPU_FILES_MAX, sizeof(*f->shared));
	assert_non_null(f->rules);
	assert_non_null(f->shared);
	f->layouts.rows = f->rows;
	assert_int_equal(cpu_tables_new(f->rules, -1, &f->tables, NULL), 0);
	assert_int_equal(cpu_files_new(f->shared, f->tables, &f->layouts, &f->files, NULL), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	cpu_files_free(f->files);
	cpu_tables_free(f->tables);
	free(f->shared);
	free(f->rules);
	free(f);
	return 0;
}

/* A file that cannot be opened has an id all the same. */
static int open_one(struct fixture *f, uid_t uid, uint32_t *ret_id)
{
	const struct proc_map map = {.inode = ++f->inode, .path = "/no/such/file"};
	uint64_t bias;

	return cpu_files_open(f->files, getpid(), uid, &map, ret_id, &bias);
}

static size_t open_all(struct fixture *f, uid_t uid)
{
	uint32_t id;
	size_t n = 0;

	while (n <= CPU_FILES_MAX && open_one(f, uid, &id) == 0)
		n++;
	return n;
}

/* Leaves room for a few. */
static void open_all_but(struct fixture *f, uid_t uid, size_t few)
{
	uint32_t ids[8];

	assert_true(few <= ARRAY_SIZE(ids));
	for (size_t i = 0; i < few; i++)
		assert_int_equal(open_one(f, uid, &ids[i]), 0);
	(void)open_all(f, uid);
	for (size_t i = 0; i < few; i++)
		cpu_files_unref(f->files, ids[i]);
}

static void a_user_cannot_take_all_ids(void **state)
{
	struct fixture *f = *state;
	size_t n = open_all(f, USER);

	assert_in_range(n, 1, CPU_FILES_MAX / 2);
	assert_int_equal(cpu_files_lost(f->files), 1);
	assert_in_range(open_all(f, OTHER), n / 4, n);
	/* Nor can many. */
	for (uid_t uid = OTHER + 1; uid < OTHER + 100; uid++)
		(void)open_all(f, uid);
	assert_in_range(open_all(f, 0), n / 4, CPU_FILES_MAX);
}

/* It may be root in a container. */
static void root_leaves_ids_for_others(void **state)
{
	struct fixture *f = *state;
	size_t n = open_all(f, 0);

	assert_in_range(n, 1, CPU_FILES_MAX / 2);
	assert_in_range(open_all(f, USER), n / 8, n);
}

static void a_user_gets_back_what_it_releases(void **state)
{
	struct fixture *f = *state;
	uint32_t ids[64];
	size_t n;

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		assert_int_equal(open_one(f, USER, &ids[i]), 0);
	n = open_all(f, USER);
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		cpu_files_unref(f->files, ids[i]);
	assert_true(n > ARRAY_SIZE(ids));
	assert_int_equal(open_all(f, USER), ARRAY_SIZE(ids));
}

/* An ELF file of a few bytes that claims 2 GB of code. */
static void large_make(const char *path, struct stat *ret)
{
	const Elf64_Ehdr header = {
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
#ifdef __x86_64__
		.e_machine = EM_X86_64,
#else
		.e_machine = EM_AARCH64,
#endif
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(header),
		.e_ehsize = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
	};
	const Elf64_Phdr segment = {.p_type = PT_LOAD,
				    .p_flags = PF_R | PF_X,
				    .p_filesz = 1U << 31,
				    .p_memsz = 1U << 31};
	_cleanup_close_ int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, &header, sizeof(header)), sizeof(header));
	assert_int_equal(write(fd, &segment, sizeof(segment)), sizeof(segment));
	assert_int_equal(fstat(fd, ret), 0);
}

static uint32_t large_open(struct fixture *f, const char *folder, uid_t uid)
{
	char path[64];
	struct stat st;
	struct proc_map map = {.path = path};
	uint64_t bias;
	uint32_t id;

	(void)snprintf(path, sizeof(path), "%s/large", folder);
	large_make(path, &st);
	map.dev = st.st_dev;
	map.inode = st.st_ino;
	assert_int_equal(cpu_files_open(f->files, getpid(), uid, &map, &id, &bias), 0);
	assert_int_equal(unlink(path), 0);
	return id;
}

static void a_user_of_large_files_leaves_ids_for_the_parts_of_others(void **state)
{
	struct fixture *f = *state;
	char folder[] = "/tmp/sonde-files-XXXXXX";
	size_t n = 0;
	uint32_t id;

	assert_non_null(mkdtemp(folder));
	do
		id = large_open(f, folder, USER);
	while (f->shared[id].state == CPU_SAMPLER_FILE_PARTS && ++n < CPU_FILES_MAX / LARGE_IDS);
	assert_in_range(n, 1, CPU_FILES_MAX / 2 / LARGE_IDS);
	/* By frame pointers only, and counted. */
	assert_int_equal(f->shared[id].state, CPU_SAMPLER_FILE_CHAIN);
	assert_int_equal(cpu_files_lost(f->files), 1);
	id = large_open(f, folder, OTHER);
	assert_int_equal(f->shared[id].state, CPU_SAMPLER_FILE_PARTS);
	assert_int_equal(rmdir(folder), 0);
}

/* A minute's worth of unused files must not keep a busy user from its new ones. */
static void a_user_with_many_files_keeps_no_unused_ones(void **state)
{
	struct fixture *f = *state;
	char folder[] = "/tmp/sonde-files-XXXXXX";
	uint32_t mine, others;

	assert_non_null(mkdtemp(folder));
	others = large_open(f, folder, OTHER);
	mine = large_open(f, folder, USER);
	(void)open_all(f, USER);
	cpu_files_unref(f->files, mine);
	cpu_files_unref(f->files, others);
	cpu_files_sweep(f->files, clock_mono_ns());
	assert_null(cpu_files_get(f->files, mine, UINT32_MAX));
	assert_non_null(cpu_files_get(f->files, others, UINT32_MAX));
	assert_in_range(open_all(f, USER), 1, LARGE_IDS);
	assert_int_equal(rmdir(folder), 0);
}

static int hand_out(void *context, const struct elf_unwind_sink *sink)
{
	const size_t n = *(const size_t *)context;
	_cleanup_free_ struct elf_unwind_row *rows = calloc(n, sizeof(*rows));

	assert_non_null(rows);
	for (size_t i = 0; i < n; i++)
		rows[i] = (struct elf_unwind_row){
			.vaddr = 0x1000 + i,
			.rule = {.cfa = ELF_UNWIND_SP, .cfa_off = (int32_t)(8 + 8 * (i % 2))}};
	return sink->rows(sink->context, rows, n);
}

/* All rows that a user may have. */
struct hoard {
	struct cpu_table tables[4 * CPU_SAMPLER_CHUNKS];
	size_t n;
};

static void hoard_rows(struct fixture *f, uid_t uid, struct hoard *h)
{
	for (size_t n = 100000; n; n /= 10)
		while (cpu_tables_add(f->tables, uid, hand_out, &n, &h->tables[h->n]) == 0)
			assert_true(++h->n < ARRAY_SIZE(h->tables));
}

static void hoard_release(struct fixture *f, struct hoard *h)
{
	while (h->n)
		cpu_tables_remove(f->tables, &h->tables[--h->n]);
}

/* A file of this very program: the first, or the vdso. */
static uint32_t open_mapped(struct fixture *f, uid_t uid, const char *path)
{
	_cleanup_(proc_maps_release) struct proc_maps maps = {0};
	uint32_t id = CPU_FILE_NONE;
	uint64_t bias;

	assert_int_equal(proc_maps_read(getpid(), &maps, NULL), 0);
	for (size_t i = 0; i < maps.len && id == CPU_FILE_NONE; i++)
		if ((maps.maps[i].flags & PROC_MAP_EXEC) &&
		    (!path || strcmp(maps.maps[i].path, path) == 0))
			assert_int_equal(
				cpu_files_open(f->files, getpid(), uid, &maps.maps[i], &id, &bias),
				0);
	return id;
}

static uint32_t open_self(struct fixture *f, uid_t uid)
{
	return open_mapped(f, uid, NULL);
}

static uint32_t open_vdso(struct fixture *f, uid_t uid)
{
	return open_mapped(f, uid, "[vdso]");
}

static uint32_t load(struct fixture *f, uint32_t id)
{
	cpu_files_want(f->files, id);
	while (cpu_files_load_next(f->files, NULL))
		;
	return f->shared[id].state;
}

static void a_user_without_rows_does_not_keep_a_file_from_others(void **state)
{
	struct fixture *f = *state;
	struct hoard hoard = {.n = 0};
	uint32_t id;

	hoard_rows(f, USER, &hoard);
	id = open_self(f, USER);
	assert_int_equal(load(f, id), CPU_SAMPLER_FILE_CHAIN);
	assert_int_equal(cpu_files_lost(f->files), 1);
	assert_int_equal(open_self(f, USER), id);
	assert_int_equal(load(f, id), CPU_SAMPLER_FILE_CHAIN);
	assert_int_equal(open_self(f, OTHER), id);
	assert_int_equal(load(f, id), CPU_SAMPLER_FILE_TABLE);
	assert_int_equal(cpu_files_lost(f->files), 1);
	hoard_release(f, &hoard);
}

static void a_table_is_of_any_user_that_has_room_for_it(void **state)
{
	struct fixture *f = *state;
	struct hoard hoard = {.n = 0};
	uint32_t id;

	hoard_rows(f, USER, &hoard);
	id = open_self(f, USER);
	assert_int_equal(open_self(f, OTHER), id);
	assert_int_equal(open_self(f, USER), id);
	assert_int_equal(load(f, id), CPU_SAMPLER_FILE_TABLE);
	assert_int_equal(cpu_files_lost(f->files), 0);
	hoard_release(f, &hoard);
}

static void a_user_without_rows_takes_none_of_what_others_keep(void **state)
{
	struct fixture *f = *state;
	struct hoard hoard = {.n = 0};
	uint32_t id = open_self(f, OTHER);

	assert_int_equal(load(f, id), CPU_SAMPLER_FILE_TABLE);
	cpu_files_unref(f->files, id);
	hoard_rows(f, USER, &hoard);
	assert_int_equal(load(f, open_vdso(f, USER)), CPU_SAMPLER_FILE_CHAIN);
	assert_int_equal(f->shared[id].state, CPU_SAMPLER_FILE_TABLE);
	hoard_release(f, &hoard);
}

static void a_user_without_ids_does_not_keep_the_parts_of_a_file_from_others(void **state)
{
	struct fixture *f = *state;
	char folder[] = "/tmp/sonde-files-XXXXXX", path[64];
	struct stat st;
	struct proc_map map = {.path = path};
	uint64_t bias;
	uint32_t id;

	assert_non_null(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/large", folder);
	large_make(path, &st);
	map.dev = st.st_dev;
	map.inode = st.st_ino;
	open_all_but(f, USER, 2);
	assert_int_equal(cpu_files_open(f->files, getpid(), USER, &map, &id, &bias), 0);
	assert_int_equal(f->shared[id].state, CPU_SAMPLER_FILE_CHAIN);
	assert_int_equal(cpu_files_open(f->files, getpid(), OTHER, &map, &id, &bias), 0);
	assert_int_equal(f->shared[id].state, CPU_SAMPLER_FILE_PARTS);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_user_cannot_take_all_ids, setup, teardown),
		cmocka_unit_test_setup_teardown(root_leaves_ids_for_others, setup, teardown),
		cmocka_unit_test_setup_teardown(a_user_gets_back_what_it_releases, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_user_of_large_files_leaves_ids_for_the_parts_of_others, setup, teardown),
		cmocka_unit_test_setup_teardown(a_user_with_many_files_keeps_no_unused_ones, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_user_without_rows_does_not_keep_a_file_from_others, setup, teardown),
		cmocka_unit_test_setup_teardown(a_table_is_of_any_user_that_has_room_for_it, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_user_without_rows_takes_none_of_what_others_keep,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_user_without_ids_does_not_keep_the_parts_of_a_file_from_others, setup,
			teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
