/*
 * tests/unit/store/test_rebuild.c: pages that only say where others are cost no rows when they are
 * lost: day files with deep trees, of which one page after the other is overwritten.
 */
#include "test_model.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "store/sqlite/day.h"
#include "store/sqlite/rebuild.h"

#define NUMBER 20000
#define ROWS 2400
#define SMALL 300
#define PAGE STORE_SEAL_PAGE
#define INTERIOR 0x05
#define LEAF 0x0d

struct folder {
	char dir[64];
	char path[128];
};

static void folder_init(struct folder *f)
{
	*f = (struct folder){.dir = "/tmp/sonde-rebuild-XXXXXX"};
	assert_non_null(mkdtemp(f->dir));
	store_day_path(f->path, sizeof(f->path), f->dir, NUMBER);
}

static void folder_release(struct folder *f)
{
	(void)nftw(f->dir, rig_remove, 8, FTW_DEPTH | FTW_PHYS);
}

/* Keys of several lengths, each once, in no order. */
static int64_t key_of(unsigned int i)
{
	uint64_t mixed = (i + 1) * 0x9e3779b97f4a7c15ULL;

	return (int64_t)(mixed >> (1 + i % 3 * 12));
}

/* Few rows fit into a page, so there are many; some are longer than one. */
static struct view row_of(unsigned int i, uint8_t *space)
{
	size_t len = i % 97 == 0 ? 9000 : 1000 + i % 700;

	memset(space, (int)i, len);
	return view_of(space, len);
}

static void put_row(struct store_day *day, unsigned int i)
{
	static uint8_t space[9000];

	assert_int_equal(
		store_day_put(day, STORE_DAY_PUT_PROFILE, key_of(i), row_of(i, space), NULL), 0);
}

/* Pages do not change their order for it. */
static void put_small(struct store_day *day, unsigned int i)
{
	assert_int_equal(store_day_put(day, STORE_DAY_PUT_PROFILE, key_of(ROWS + i),
				       view_str("small"), NULL),
			 0);
}

static void drop_small(struct store_day *day, unsigned int i)
{
	int64_t key = key_of(ROWS + i);

	assert_int_equal(store_day_exec(day, STORE_DAY_DROP_PROFILE, &key, 1, NULL), 0);
}

/* With n small rows among them. */
static void write_day(const struct folder *f, unsigned int n, struct store_day *day)
{
	assert_int_equal(store_day_open(day, f->dir, NUMBER, true, NULL), 0);
	assert_int_equal(store_day_exec(day, STORE_DAY_BEGIN, NULL, 0, NULL), 0);
	for (unsigned int i = 0; i < ROWS; i++) {
		put_row(day, i);
		if (i < n)
			put_small(day, i);
	}
	assert_int_equal(store_day_exec(day, STORE_DAY_COMMIT, NULL, 0, NULL), 0);
}

/* --- what a reader sees */

struct seen {
	size_t rows;
	uint64_t hash; /* of keys and rows */
	size_t lost, corrected;
};

static struct seen read_day(const struct folder *f)
{
	_cleanup_(store_day_close) struct store_day day = {0};
	const struct store_vfs_damage *damage;
	sqlite3_stmt *row = NULL;
	struct seen seen = {0};
	struct err err = {};
	int64_t before = -1;

	if (store_day_open(&day, f->dir, NUMBER, false, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(store_day_query(&day, STORE_DAY_PROFILES, NULL, 0, &row, NULL), 0);
	while (store_day_next(&day, row, NULL) > 0) {
		struct view data = store_day_blob(row, 1);
		int64_t key = sqlite3_column_int64(row, 0);

		assert_true(key > before);
		before = key;
		seen.rows++;
		seen.hash += hash_mix(hash_bytes(data.data, data.len) + (uint64_t)key);
	}
	damage = store_vfs_damage(day.db);
	for (size_t i = 0; i < damage->n; i++)
		*(damage->items[i].kind == STORE_VFS_CORRECTED ? &seen.corrected : &seen.lost) += 1;
	return seen;
}

/* Each row by its key, as those do who ask for one. */
static size_t count_found(const struct folder *f, unsigned int n)
{
	_cleanup_(store_day_close) struct store_day day = {0};
	size_t found = 0;

	assert_int_equal(store_day_open(&day, f->dir, NUMBER, false, NULL), 0);
	for (unsigned int i = 0; i < n; i++) {
		int64_t key = key_of(i), value;

		found += store_day_value(&day, STORE_DAY_GET_PROFILE, &key, 1, &value, NULL) > 0;
	}
	return found;
}

static bool is_same(struct seen a, struct seen b)
{
	return a.rows == b.rows && a.hash == b.hash;
}

/* --- pages of the file */

static uint32_t n_pages(const struct folder *f)
{
	struct stat st;

	assert_int_equal(stat(f->path, &st), 0);
	return (uint32_t)(st.st_size / PAGE);
}

static void get_page(const struct folder *f, uint32_t number, uint8_t *page)
{
	int fd = open(f->path, O_RDONLY | O_CLOEXEC);

	assert_int_equal(pread(fd, page, PAGE, (off_t)(number - 1) * PAGE), PAGE);
	(void)close(fd);
}

static void set_page(const struct folder *f, uint32_t number, const uint8_t *page)
{
	int fd = open(f->path, O_WRONLY | O_CLOEXEC);

	assert_int_equal(pwrite(fd, page, PAGE, (off_t)(number - 1) * PAGE), PAGE);
	(void)close(fd);
}

static void lose_page(const struct folder *f, uint32_t number)
{
	uint8_t page[PAGE];

	memset(page, 0xa5, sizeof(page));
	set_page(f, number, page);
}

static bool is_map(uint32_t number)
{
	return number % 818 == 2;
}

static uint8_t kind_of(const struct folder *f, uint32_t number)
{
	uint8_t page[PAGE];

	get_page(f, number, page);
	return is_map(number) ? 0 : page[0];
}

/* The deepest tree is that of the rows: its root has interior pages below it. */
static uint32_t find_root(const struct folder *f)
{
	uint8_t page[PAGE];

	for (uint32_t i = 3; i <= n_pages(f); i++) {
		get_page(f, i, page);
		if (page[0] == INTERIOR && !is_map(i) &&
		    kind_of(f, (uint32_t)page[8] << 24 | (uint32_t)page[9] << 16 |
				       (uint32_t)page[10] << 8 | page[11]) == INTERIOR)
			return i;
	}
	fail_msg("no tree is deep");
	return 0;
}

/* --- tests */

static void no_lost_page_costs_rows_of_others(void **state)
{
	_cleanup_(store_day_close) struct store_day day = {0};
	unsigned int interior = 0;
	struct folder f;
	struct seen right;

	(void)state;
	folder_init(&f);
	write_day(&f, 0, &day);
	store_day_close(&day);
	right = read_day(&f);
	assert_int_equal(right.rows, ROWS);
	assert_int_equal(right.lost + right.corrected, 0);
	for (uint32_t i = 1; i <= n_pages(&f); i++) {
		uint8_t page[PAGE];
		struct seen now;

		get_page(&f, i, page);
		if (i > 20 && page[0] == LEAF && i % 37 != 0)
			continue;
		lose_page(&f, i);
		now = read_day(&f);
		if (i == 1 || (page[0] == INTERIOR && !is_map(i))) {
			interior++;
			if (!is_same(now, right))
				fail_msg("page %u: %zu rows of %d", i, now.rows, ROWS);
			assert_int_equal(now.lost, 0);
			assert_int_equal(now.corrected, 1);
			assert_int_equal(count_found(&f, ROWS), ROWS);
		}
		/* No more than a page full. */
		assert_in_range(now.rows, ROWS - 4, ROWS);
		assert_true(is_same(now, right) || now.lost > 0);
		set_page(&f, i, page);
	}
	assert_true(interior > 4);
	assert_true(is_same(read_day(&f), right));
	folder_release(&f);
}

/* All interior pages but the root, and a leaf: the rows of that are lost, and no others. */
static void of_many_lost_pages_each_costs_its_own_rows(void **state)
{
	_cleanup_(store_day_close) struct store_day day = {0};
	struct folder f;
	uint32_t root, leaf = 0;
	struct seen now;
	size_t n = 0;

	(void)state;
	folder_init(&f);
	write_day(&f, 0, &day);
	store_day_close(&day);
	root = find_root(&f);
	for (uint32_t i = root + 1; i <= n_pages(&f); i++)
		if (kind_of(&f, i) == LEAF)
			leaf = i;
	lose_page(&f, leaf);
	now = read_day(&f);
	assert_in_range(now.rows, ROWS - 4, ROWS - 1);
	for (uint32_t i = root + 1; i <= n_pages(&f); i++)
		if (kind_of(&f, i) == INTERIOR) {
			lose_page(&f, i);
			n++;
		}
	assert_in_range(n, 2, 20);
	assert_true(is_same(read_day(&f), now));
	assert_int_equal(read_day(&f).lost, 1);
	assert_int_equal(read_day(&f).corrected, n);
	/* And the page above them all. */
	lose_page(&f, root);
	assert_true(is_same(read_day(&f), now));
	assert_int_equal(read_day(&f).corrected, n + 1);
	folder_release(&f);
}

/* What the log has changed is below the lost page, or the page is in the log itself. */
static void pages_are_made_from_the_file_and_the_log(void **state)
{
	_cleanup_(store_day_close) struct store_day day = {0};
	unsigned int made = 0;
	struct seen right;
	struct folder f;

	(void)state;
	folder_init(&f);
	write_day(&f, SMALL, &day);
	for (unsigned int i = 0; i < SMALL; i++)
		drop_small(&day, i);
	assert_int_equal(sqlite3_exec(day.db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL),
			 SQLITE_OK);
	/* They come back, also behind what is now the last row of a page. */
	for (unsigned int i = 0; i < SMALL; i++)
		put_small(&day, i);
	right = read_day(&f);
	assert_int_equal(right.lost, 0);
	for (uint32_t i = 1; i <= n_pages(&f); i++) {
		uint8_t page[PAGE];
		struct seen now;

		get_page(&f, i, page);
		if (i > 1 && page[0] != INTERIOR)
			continue;
		lose_page(&f, i);
		now = read_day(&f);
		if (!is_same(now, right) && now.lost == 0)
			fail_msg("page %u: %zu rows, and not a word", i, now.rows);
		if (now.lost == 0)
			assert_int_equal(count_found(&f, ROWS + SMALL), ROWS + SMALL);
		made += i > 1 && now.corrected > 0;
		set_page(&f, i, page);
	}
	assert_true(made > 0);
	folder_release(&f);
}

/* One child is left: it takes the place of its parent. */
static void a_page_with_one_child_is_that_child(void **state)
{
	_cleanup_(store_day_close) struct store_day day = {0};
	uint32_t root = 0, leaves[8] = {0};
	struct folder f;
	struct seen now;
	size_t n = 0;

	(void)state;
	folder_init(&f);
	assert_int_equal(store_day_open(&day, f.dir, NUMBER, true, NULL), 0);
	for (unsigned int i = 1; i < 8; i++)
		put_row(&day, i);
	store_day_close(&day);
	for (uint32_t i = 3; i <= n_pages(&f); i++) {
		uint8_t page[PAGE];

		get_page(&f, i, page);
		if (page[0] == INTERIOR)
			root = i;
		else if (page[0] == LEAF && root > 0 && page[4] > 0 && n < ARRAY_SIZE(leaves))
			leaves[n++] = i;
	}
	assert_in_range(n, 2, ARRAY_SIZE(leaves));
	lose_page(&f, root);
	assert_int_equal(read_day(&f).rows, 7);
	for (size_t i = 1; i < n; i++)
		lose_page(&f, leaves[i]);
	now = read_day(&f);
	assert_in_range(now.rows, 1, 4);
	assert_int_equal(now.lost, n - 1);
	lose_page(&f, leaves[0]);
	now = read_day(&f);
	assert_int_equal(now.rows, 0);
	assert_true(now.lost > 0);
	folder_release(&f);
}

/* Which pages there are is no longer known: they are searched for where a new file has them. */
static void a_first_page_of_another_file_is_not_used(void **state)
{
	_cleanup_(store_day_close) struct store_day day = {0};
	struct folder f;
	struct err err = {};

	(void)state;
	folder_init(&f);
	write_day(&f, 0, &day);
	assert_int_equal(
		sqlite3_exec(day.db, "CREATE TABLE more(k INTEGER PRIMARY KEY)", NULL, NULL, NULL),
		SQLITE_OK);
	store_day_close(&day);
	lose_page(&f, 1);
	assert_int_equal(store_day_open(&day, f.dir, NUMBER, false, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "damaged"));
	folder_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_lost_page_costs_rows_of_others),
		cmocka_unit_test(of_many_lost_pages_each_costs_its_own_rows),
		cmocka_unit_test(pages_are_made_from_the_file_and_the_log),
		cmocka_unit_test(a_page_with_one_child_is_that_child),
		cmocka_unit_test(a_first_page_of_another_file_is_not_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
