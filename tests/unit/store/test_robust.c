/*
 * tests/unit/store/test_robust.c: what happens to the store from outside: kill -9, damage, a full
 * disk, limits, clocks.
 */
#include "test_metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <sqlite3.h>

#include "run.h"
#include "store/codec/chunk.h"
#include "store/sqlite/build.h"

#define KILLS 200

static struct store_status status_of(const struct rig *rig)
{
	struct store_status status;

	store_status(rig->store, &status);
	return status;
}

static void assert_intact(const char *path)
{
	sqlite3_stmt *stmt;
	sqlite3 *db;

	db = open_day(path);
	assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &stmt, NULL), 0);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	assert_string_equal((const char *)sqlite3_column_text(stmt, 0), "ok");
	(void)sqlite3_finalize(stmt);
	(void)sqlite3_close(db);
}

/* Writes until it is killed; after each commit it says how much is committed. */
static void write_forever(struct rig *rig, int report, int round)
{
	int64_t committed = 0;
	struct err err;

	store_close(rig->store);
	rig_open(rig);
	for (int i = 0;; i++) {
		int64_t time_ns = DAY_0 + ((int64_t)round * 2000 + i % 2000) * 40 * SEC_NS / 10;
		struct metric_point point = {.metric = &test_cycles, .increase = 40};
		struct profile *p = make_profile();

		for (unsigned int k = 0; k < 40; k++)
			add_stack(p, (unsigned int)(i * 13 + round * 7) % 3000 + k, 1, 1);
		if (write_profile(rig, "svc", "1", time_ns, p, &err) < 0 ||
		    write_points(rig, "svc", "1", time_ns, &point, 1) < 0)
			_exit(3);
		profile_free(p);
		if (store_commit(rig->store, &err) < 0)
			_exit(4);
		committed += 40;
		if (write(report, &committed, sizeof(committed)) < 0)
			_exit(5);
		/* Packing must be killed as well. */
		if (i % 5 == 4 &&
		    store_maintain(rig->store, rig->now_ns + STORE_DAY_NS / 2, &err) < 0)
			_exit(6);
	}
}

/* The sum of the counter over all times. */
static int64_t total_increase(struct rig *rig)
{
	struct store_metric_answer a = {0};
	double total;

	read_metric(rig, "go.gc.cycles", DAY_0, DAY_0 + STORE_DAY_NS, STORE_DAY_NS, STORE_AVERAGE,
		    &a);
	total = a.len > 0 ? a.series[0].points[0] : 0;
	store_metric_answer_release(&a);
	return (int64_t)total;
}

static void killed_writers_lose_nothing_that_was_committed(void **state)
{
	int64_t base = 0, said, last;
	struct rig rig;

	(void)state;
	rig_init(&rig);
	for (int round = 0; round < KILLS; round++) {
		int pipes[2], status;
		int64_t total;
		pid_t pid;

		assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
		pid = fork();
		if (pid == 0)
			write_forever(&rig, pipes[1], round % 10);
		assert_true(pid > 0);
		(void)close(pipes[1]);
		last = 0;
		/* Some are killed at the start, some after a commit or two, whenever that is. */
		for (int i = 0; i < round % 4; i++) {
			assert_int_equal(read(pipes[0], &said, sizeof(said)), sizeof(said));
			last = said;
		}
		(void)usleep((useconds_t)(round * 997 % 15000));
		assert_int_equal(kill(pid, SIGKILL), 0);
		while (read(pipes[0], &said, sizeof(said)) == sizeof(said))
			last = said;
		(void)close(pipes[0]);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		total = total_all(&rig);
		/* The last commit may have been made and not said. */
		assert_in_range(total - base, last, last + 40);
		assert_int_equal(total_increase(&rig), total);
		/* What it was in the middle of is no damage. */
		assert_string_equal(status_of(&rig).damage, "");
		base = total;
		assert_intact(rig_day(&rig, "2024-10-04"));
	}
	assert_true(base > 0);
	rig_release(&rig);
}

/* Frames with and without names, and two in one location; first shifts all ids. */
static void write_odd_stack(struct rig *rig, const char *first, int64_t time_ns)
{
	_cleanup_(profile_freep) struct profile *p = make_profile();
	const struct profile_mapping m = {0};
	struct profile_line lines[2] = {{.line = 3}, {.line = 4}};
	uint32_t locations[3], mapping, id;
	struct err err = {};

	(void)add_location(p, first, first, 1);
	locations[0] = add_location(p, "main.work", "main.go", 5);
	lines[0].function = lines[1].function = 1;
	assert_int_equal(profile_add_mapping(p, &m, &mapping), 0);
	assert_int_equal(profile_add_location(p, 7, mapping, NULL, 0, &locations[1]), 0);
	assert_int_equal(profile_add_location(p, 8, mapping, lines, 2, &locations[2]), 0);
	assert_int_equal(profile_add_stack(p, locations, 3, &id), 0);
	assert_int_equal(profile_add_sample(p, id, (const int64_t[]){1, 1}, NULL, 0), 0);
	assert_int_equal(profile_add_stack(p, &locations[2], 1, &id), 0);
	assert_int_equal(profile_add_sample(p, id, (const int64_t[]){1, 1}, NULL, 0), 0);
	assert_int_equal(write_profile(rig, "svc", "1", time_ns, p, &err), 0);
	assert_int_equal(store_commit(rig->store, &err), 0);
}

static void stacks_are_known_again_in_other_profiles_and_after_a_restart(void **state)
{
	_cleanup_(rig_release) struct rig rig;
	const char *path;

	(void)state;
	rig_init(&rig);
	path = rig_day(&rig, "2024-10-04");
	write_odd_stack(&rig, "main.a", DAY_0);
	write_odd_stack(&rig, "main.bc", DAY_0 + SEC_NS);
	rig_reopen(&rig);
	write_odd_stack(&rig, "main.def", DAY_0 + 2 * SEC_NS);
	assert_int_equal(total_all(&rig), 6);
	assert_int_equal(count_of(path, "SELECT count(*) FROM profile"), 6);
	assert_int_equal(count_of(path, "SELECT count(*) FROM stack_chunk"), 1);
	assert_int_equal(count_of(path, "SELECT count(*) FROM frame_chunk"), 1);
}

static void two_days(struct rig *rig)
{
	rig_init(rig);
	for (int i = 0; i < 200; i++)
		assert_int_equal(write_one(rig, "1", DAY_0 + i * SEC_NS, (unsigned int)i, 1), 0);
	assert_int_equal(store_commit(rig->store, NULL), 0);
	rig->now_ns += STORE_DAY_NS;
	for (int i = 0; i < 200; i++)
		assert_int_equal(write_one(rig, "1", DAY_0 + STORE_DAY_NS + i * SEC_NS,
					   (unsigned int)i, 1000),
				 0);
	assert_int_equal(store_commit(rig->store, NULL), 0);
	store_close(rig->store);
	rig->store = NULL;
}

static void overwrite(const char *path, off_t from, off_t to)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	char junk[256];

	assert_true(fd >= 0);
	memset(junk, 0xa5, sizeof(junk));
	for (off_t at = from; at < to; at += (off_t)sizeof(junk))
		assert_int_equal(pwrite(fd, junk, sizeof(junk), at), sizeof(junk));
	(void)close(fd);
}

/* Reading has changed nothing, and says what is missing. */
static void check_told(struct rig *rig)
{
	struct store_status status = status_of(rig);

	assert_int_equal(status.damaged_files, 0);
	assert_true(status.damaged_blocks > 0);
	assert_int_equal(status.days, 2);
	assert_non_null(strstr(status.damage, "2024-10-04.db"));
	run_in(rig->dir, "ls 2024-10-04.db && ! ls *damaged*");
}

static void a_file_that_is_no_database_is_told_of_and_left_alone(void **state)
{
	struct rig rig;

	(void)state;
	two_days(&rig);
	overwrite(rig_day(&rig, "2024-10-04"), 0, 2 * 4096);
	rig_open(&rig);
	assert_int_equal(total_all(&rig), 200 * 1000);
	check_told(&rig);
	rig_release(&rig);
}

static void a_damaged_file_is_read_as_far_as_it_goes_and_replaced_when_written(void **state)
{
	struct stat st;
	struct rig rig;

	(void)state;
	two_days(&rig);
	assert_int_equal(stat(rig_day(&rig, "2024-10-04"), &st), 0);
	overwrite(rig_day(&rig, "2024-10-04"), 4096 * 3, st.st_size);
	rig_open(&rig);
	assert_int_equal(total_all(&rig), 200 * 1000);
	check_told(&rig);
	/* The day can be written again: the writer sets the file aside, and it is still read. */
	rig.now_ns = DAY_0 + HOUR_NS;
	assert_int_equal(write_one(&rig, "1", DAY_0 + HOUR_NS, 1, 5), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	assert_int_equal(total_all(&rig), 200 * 1000 + 5);
	assert_int_equal(status_of(&rig).damaged_files, 1);
	run_in(rig.dir, "ls 2024-10-04.db.damaged-1");
	rig_release(&rig);
}

static void a_block_with_a_wrong_byte_is_noticed(void **state)
{
	struct rig rig;
	sqlite3 *db;

	(void)state;
	two_days(&rig);
	db = open_day(rig_day(&rig, "2024-10-04"));
	assert_int_equal(sqlite3_exec(db,
				      "UPDATE profile SET data=substr(data,1,length(data)-1)||x'77'"
				      " WHERE k=(SELECT max(k) FROM profile)",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	(void)sqlite3_close(db);
	rig_open(&rig);
	/* The damage is in the other type's last collection. */
	assert_int_equal(total_all(&rig), 200 * 1000 + 200);
	assert_int_equal(status_of(&rig).damaged_blocks, 0);
	{
		struct store_sum sum = {0};

		sum_of(&rig, "svc", TYPE_INUSE, 0, INT64_MAX, &sum);
		assert_int_equal(total_of(sum.profile), 200 * 1000 + 199);
		profile_free(sum.profile);
	}
	check_told(&rig);
	assert_int_equal(status_of(&rig).damaged_blocks, 1);
	rig_release(&rig);
}

/* Stacks of a day's only chunk, on their way into another. */
struct copied {
	struct store_chunk_stack stacks[256];
	uint32_t frames[256][4];
	uint32_t shared[256];
	size_t n;
};

static int copy_stack(void *ctx, const struct store_chunk_stack *s, uint32_t shared)
{
	struct copied *to = ctx;

	assert_true(to->n < ARRAY_SIZE(to->stacks) && s->n <= ARRAY_SIZE(to->frames[0]));
	memcpy(to->frames[to->n], s->frames, s->n * sizeof(*s->frames));
	to->stacks[to->n] = *s;
	to->stacks[to->n].frames = to->frames[to->n];
	to->shared[to->n++] = shared;
	return 0;
}

static void read_chunk(sqlite3 *db, struct store_codec *c, struct copied *ret)
{
	sqlite3_stmt *stmt;

	*ret = (struct copied){.n = 0};
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT data FROM stack_chunk", -1, &stmt, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	assert_int_equal(store_chunk_decode_stacks(c,
						   view_of(sqlite3_column_blob(stmt, 0),
							   (size_t)sqlite3_column_bytes(stmt, 0)),
						   copy_stack, ret),
			 0);
	assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
	(void)sqlite3_finalize(stmt);
}

static void replace_chunk(sqlite3 *db, const struct buf *chunk)
{
	sqlite3_stmt *stmt;

	assert_int_equal(sqlite3_prepare_v2(db, "UPDATE stack_chunk SET data=?", -1, &stmt, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_bind_blob(stmt, 1, chunk->data, (int)chunk->len, SQLITE_TRANSIENT),
			 SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
	(void)sqlite3_finalize(stmt);
}

/* 200 stacks, of which one comes again: in the place of another, or besides all of them. */
static void repeat_a_stack(const char *path, bool besides)
{
	_cleanup_(store_codec_release) struct store_codec c = {0};
	_cleanup_(buf_release) struct buf out = {0};
	struct copied stacks;
	sqlite3 *db;

	db = open_day(path);
	read_chunk(db, &c, &stacks);
	assert_int_equal(stacks.n, 200);
	if (besides) {
		stacks.stacks[200] = stacks.stacks[10];
		stacks.n++;
	} else {
		stacks.stacks[20].id = stacks.stacks[10].id;
	}
	assert_int_equal(store_chunk_encode_stacks(&c, stacks.stacks, stacks.n, &out), 0);
	replace_chunk(db, &out);
	(void)sqlite3_close(db);
}

/* What building a profile of the first day says, where each of 200 stacks has a sum. */
static int build_first_day(struct rig *rig)
{
	_cleanup_(store_codec_release) struct store_codec c = {0};
	_cleanup_free_ int64_t *values = calloc(STORE_BLOCK_MAX_STACK + 1, sizeof(*values));
	struct store_block_sums sums = {.values = values, .n_stacks = 201};
	struct err err = {};
	struct store_build b;
	struct store_day day;
	int r;

	assert_non_null(values);
	for (uint32_t i = 1; i <= 200; i++)
		values[i] = 1;
	assert_int_equal(store_build_init(&b), 0);
	assert_int_equal(store_day_open(&day, rig->dir, DAY_0 / STORE_DAY_NS, false, &err), 0);
	r = store_build_add_day(&b, &c, &day, 1, &sums, &err);
	store_day_close(&day);
	store_build_release(&b);
	return r;
}

static void stack_ids_that_repeat_are_refused(void **state)
{
	(void)state;
	for (int besides = 0; besides < 2; besides++) {
		struct rig rig;

		two_days(&rig);
		assert_int_equal(build_first_day(&rig), 0);
		repeat_a_stack(rig_day(&rig, "2024-10-04"), besides);
		assert_int_equal(build_first_day(&rig), -EBADMSG);
		rig_open(&rig);
		assert_int_equal(total_all(&rig), 200 * 1000);
		check_told(&rig);
		rig_release(&rig);
	}
}

/* Format 1: no width of ids, which are varints. */
static void encode_format_1(struct store_codec *c, const struct copied *stacks, struct buf *out)
{
	_cleanup_(buf_release) struct buf ids = {0}, shared = {0}, further = {0}, frames = {0};
	const struct buf *columns[] = {&ids, &shared, &further, &frames};
	int64_t before = 0;

	for (size_t i = 0; i < stacks->n; i++) {
		const struct store_chunk_stack *s = &stacks->stacks[i];
		uint32_t begin = stacks->shared[i];

		assert_int_equal(buf_append_varint(&ids, store_zigzag(s->id - before)), 0);
		assert_int_equal(buf_append_varint(&shared, begin), 0);
		assert_int_equal(buf_append_varint(&further, s->n - begin), 0);
		for (uint32_t k = begin; k < s->n; k++)
			assert_int_equal(buf_append_varint(&frames, s->frames[k]), 0);
		before = s->id;
	}
	assert_int_equal(store_codec_begin(out, STORE_CODEC_STACKS_1), 0);
	assert_int_equal(buf_append_varint(out, stacks->n), 0);
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		assert_int_equal(store_codec_put_column(c, out, buf_view(columns[i]), 1), 0);
	store_codec_end(out);
}

static void make_format_1(const char *path)
{
	_cleanup_(store_codec_release) struct store_codec c = {0};
	_cleanup_(buf_release) struct buf out = {0};
	struct copied stacks;
	sqlite3 *db;

	db = open_day(path);
	read_chunk(db, &c, &stacks);
	encode_format_1(&c, &stacks, &out);
	replace_chunk(db, &out);
	(void)sqlite3_close(db);
	make_old(path, 1);
}

/* Of the stacks that write_one() made; each is known by the line of its leaf. */
static void assert_value(struct rig *rig, int64_t line, int64_t value)
{
	struct store_sum sum = {0};
	int64_t found = 0;
	uint32_t n;

	sum_of(rig, "svc", TYPE_ALLOC, DAY_0, DAY_0 + STORE_DAY_NS, &sum);
	for (size_t i = 0; i < profile_n_samples(sum.profile); i++) {
		const struct profile_sample *s = profile_sample_at(sum.profile, i);
		const uint32_t *ids = profile_stack_at(sum.profile, s->stack, &n);

		assert_int_equal(n, 3);
		if (profile_location_at(sum.profile, ids[0])->lines[0].line == line)
			found += s->values[0];
	}
	assert_int_equal(found, value);
	profile_free(sum.profile);
}

static void a_day_of_format_1_is_read_and_becomes_format_3_when_written(void **state)
{
	const char of_format_1[] = "SELECT count(*) FROM stack_chunk WHERE substr(data,2,1)=x'03'";
	const char *path;
	struct rig rig;

	(void)state;
	two_days(&rig);
	path = rig_day(&rig, "2024-10-04");
	make_format_1(path);
	rig_open(&rig);
	assert_int_equal(total_all(&rig), 200 + 200 * 1000);
	assert_value(&rig, 150, 1);
	assert_int_equal(count_of(path, "PRAGMA user_version"), 1);

	/* A stack that it has, and one that it has not. */
	assert_int_equal(write_one(&rig, "1", DAY_0 + HOUR_NS, 150, 5), 0);
	assert_int_equal(write_one(&rig, "1", DAY_0 + HOUR_NS + SEC_NS, 777, 7), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	assert_int_equal(count_of(path, "PRAGMA user_version"), 3);
	assert_int_equal(count_of(path, of_format_1), 1);
	assert_int_equal(count_of(path, "SELECT count(*) FROM stack_chunk"), 2);
	assert_value(&rig, 150, 6);
	assert_value(&rig, 777, 7);

	/* The end of the day leaves one chunk, as format 2 has it. */
	assert_int_equal(store_maintain(rig.store, DAY_0 + 2 * STORE_DAY_NS, NULL), 0);
	assert_int_equal(count_of(path, of_format_1), 0);
	assert_int_equal(count_of(path, "SELECT count(*) FROM stack_chunk"), 1);
	assert_value(&rig, 150, 6);
	assert_value(&rig, 3, 1);
	assert_int_equal(total_all(&rig), 200 + 12 + 200 * 1000);
	rig_release(&rig);
}

/* It is still read: its first page can be made anew. */
static void a_damaged_file_of_today_is_replaced_by_the_writer(void **state)
{
	struct rig rig;

	(void)state;
	two_days(&rig);
	overwrite(rig_day(&rig, "2024-10-05"), 0, 4096);
	rig_open(&rig);
	assert_int_equal(write_one(&rig, "1", DAY_0 + STORE_DAY_NS + HOUR_NS, 1, 7), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	run_in(rig.dir, "ls 2024-10-05.db 2024-10-05.db.damaged-1");
	assert_int_equal(total_all(&rig), 200 + 200 * 1000 + 7);
	rig_release(&rig);
}

static void times_far_from_now_are_refused_and_counted(void **state)
{
	struct store_status status;
	struct err err = {};
	struct profile *p = make_profile();
	struct rig rig;

	(void)state;
	rig_init(&rig);
	add_stack(p, 1, 1, 1);
	assert_int_equal(write_profile(&rig, "svc", "1", DAY_0 - 2 * STORE_DAY_NS, p, &err),
			 -ERANGE);
	assert_non_null(strstr(err.remedy, "clock"));
	assert_int_equal(write_profile(&rig, "svc", "1", DAY_0 + 2 * STORE_DAY_NS, p, &err),
			 -ERANGE);
	assert_int_equal(write_profile(&rig, "svc", "1", INT64_MIN, p, &err), -ERANGE);
	assert_int_equal(write_profile(&rig, "svc", "1", INT64_MAX, p, &err), -ERANGE);
	/* Back over midnight, and forth again. */
	assert_int_equal(write_profile(&rig, "svc", "1", DAY_0, p, &err), 0);
	assert_int_equal(write_profile(&rig, "svc", "1", DAY_0 - 1, p, &err), 0);
	assert_int_equal(write_profile(&rig, "svc", "1", DAY_0 + HOUR_NS, p, &err), 0);
	assert_int_equal(store_commit(rig.store, &err), 0);
	assert_int_equal(total_all(&rig), 3);
	store_status(rig.store, &status);
	assert_int_equal(status.profiles_lost, 4);
	assert_int_equal(status.profiles_written, 3);
	assert_int_equal(status.samples_written, 6);
	assert_int_equal(status.days, 2);
	assert_int_equal(status.oldest_ns, DAY_0 - 1000000);
	profile_free(p);
	rig_release(&rig);
}

static void write_and_maintain(struct rig *rig)
{
	assert_int_equal(write_one(rig, "1", rig->now_ns, 1, 1), 0);
	assert_int_equal(store_commit(rig->store, NULL), 0);
	assert_int_equal(store_maintain(rig->store, rig->now_ns, NULL), 0);
}

static void old_days_are_dropped_by_age(void **state)
{
	struct store_status status;
	struct rig rig;

	(void)state;
	rig_init(&rig);
	store_close(rig.store);
	rig.config.retention_ns = 2 * STORE_DAY_NS;
	rig_open(&rig);
	for (int day = 0; day < 6; day++) {
		rig.now_ns = DAY_0 + day * STORE_DAY_NS + HOUR_NS;
		write_and_maintain(&rig);
	}
	store_status(rig.store, &status);
	assert_int_equal(status.days, 3);
	assert_int_equal(status.oldest_ns, DAY_0 + 3 * STORE_DAY_NS + HOUR_NS);
	assert_int_equal(total_all(&rig), 3);
	rig_release(&rig);
}

/* Days and hours pass, while sonde runs. */
static void pass(struct rig *rig, int64_t ns)
{
	for (const int64_t end = rig->now_ns + ns; rig->now_ns < end;) {
		rig->now_ns = MIN(rig->now_ns + HOUR_NS, end);
		assert_int_equal(store_maintain(rig->store, rig->now_ns, NULL), 0);
	}
}

static void jump(struct rig *rig, int64_t ns)
{
	rig->now_ns += ns;
	rig->jumped_ns += ns;
	assert_int_equal(store_maintain(rig->store, rig->now_ns, NULL), 0);
}

static void restart(struct rig *rig)
{
	store_close(rig->store);
	rig_open(rig);
	assert_int_equal(store_maintain(rig->store, rig->now_ns, NULL), 0);
}

/* Three days, the last of them today, of a store that keeps two. */
static void fill_three_days(struct rig *rig)
{
	rig_init(rig);
	store_close(rig->store);
	rig->config.retention_ns = 2 * STORE_DAY_NS;
	rig_open(rig);
	for (int day = 0; day < 3; day++) {
		rig->now_ns = DAY_0 + day * STORE_DAY_NS + HOUR_NS;
		assert_int_equal(write_one(rig, "1", rig->now_ns, 1, 1), 0);
		assert_int_equal(store_commit(rig->store, NULL), 0);
		assert_int_equal(store_maintain(rig->store, rig->now_ns, NULL), 0);
	}
	assert_int_equal(status_of(rig).days, 3);
}

static void clock_that_jumps_ahead_makes_nothing_old_before_a_day_confirms_it(void **state)
{
	struct rig rig;

	(void)state;
	fill_three_days(&rig);
	jump(&rig, 30 * STORE_DAY_NS);
	assert_int_equal(status_of(&rig).days, 3);
	assert_int_equal(status_of(&rig).clock_ahead_ns, 30 * STORE_DAY_NS);
	assert_int_equal(write_one(&rig, "1", rig.now_ns, 1, 1), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	pass(&rig, 20 * HOUR_NS);
	restart(&rig);
	assert_int_equal(status_of(&rig).days, 4);
	assert_int_equal(total_all(&rig), 4);
	/* In two parts, with a restart between them. */
	pass(&rig, 5 * HOUR_NS);
	assert_int_equal(status_of(&rig).days, 1);
	assert_int_equal(status_of(&rig).clock_ahead_ns, 0);
	rig_release(&rig);
}

static void clock_that_jumps_ahead_and_back_has_changed_nothing(void **state)
{
	struct rig rig;

	(void)state;
	fill_three_days(&rig);
	jump(&rig, 30 * STORE_DAY_NS);
	pass(&rig, 21 * HOUR_NS);
	/* A second jump begins anew, and a restart does not help either. */
	jump(&rig, 300 * STORE_DAY_NS);
	restart(&rig);
	pass(&rig, HOUR_NS);
	assert_int_equal(status_of(&rig).days, 3);
	jump(&rig, -330 * STORE_DAY_NS);
	assert_int_equal(status_of(&rig).clock_ahead_ns, 0);
	assert_int_equal(total_all(&rig), 3);
	/* 23 hours have really passed: the first day is past retention, and no other. */
	pass(&rig, HOUR_NS);
	assert_int_equal(status_of(&rig).days, 2);
	rig_release(&rig);
}

/* Steps that are no jump by themselves. */
static void clock_that_runs_away_is_confirmed_by_no_time_before(void **state)
{
	struct rig rig;

	(void)state;
	fill_three_days(&rig);
	jump(&rig, HOUR_NS / 2);
	pass(&rig, 20 * HOUR_NS);
	for (int i = 0; i < 60 * 24; i++)
		jump(&rig, HOUR_NS / 2);
	pass(&rig, 12 * HOUR_NS);
	/* 32 hours have really passed: the first day is past retention, and no other. */
	assert_int_equal(total_all(&rig), 2);
	assert_true(status_of(&rig).clock_ahead_ns >= 29 * STORE_DAY_NS);
	pass(&rig, 13 * HOUR_NS);
	assert_int_equal(status_of(&rig).clock_ahead_ns, 0);
	rig_release(&rig);
}

static void new_store_has_no_clock_that_jumped(void **state)
{
	struct rig rig;

	(void)state;
	rig_init(&rig);
	store_close(rig.store);
	rig.config.retention_ns = 2 * STORE_DAY_NS;
	rig.now_ns = DAY_0 + 15 * HOUR_NS;
	rig_open(&rig);
	write_and_maintain(&rig);
	assert_int_equal(status_of(&rig).clock_ahead_ns, 0);
	/* Nor has one of today's, of a version that left no note. */
	run_in(rig.dir, "rm clock");
	rig_reopen(&rig);
	write_and_maintain(&rig);
	assert_int_equal(status_of(&rig).clock_ahead_ns, 0);
	rig_release(&rig);
}

/* What we write ourselves by a clock is no witness of it. */
static void store_without_a_note_is_not_fooled_by_a_day_of_our_own(void **state)
{
	struct rig rig;

	(void)state;
	fill_three_days(&rig);
	run_in(rig.dir, "rm clock");
	rig.now_ns += 30 * STORE_DAY_NS;
	rig.jumped_ns += 30 * STORE_DAY_NS;
	store_close(rig.store);
	rig.config.max_bytes = 1 << 30;
	rig_open(&rig);
	write_and_maintain(&rig);
	assert_int_equal(status_of(&rig).days, 4);
	assert_true(status_of(&rig).clock_ahead_ns > 28 * STORE_DAY_NS);
	rig_release(&rig);
}

static void store_without_a_note_of_the_clock_goes_by_its_newest_day(void **state)
{
	struct rig rig;

	(void)state;
	fill_three_days(&rig);
	run_in(rig.dir, "rm clock");
	rig.now_ns += 30 * STORE_DAY_NS;
	rig.jumped_ns += 30 * STORE_DAY_NS;
	restart(&rig);
	assert_int_equal(status_of(&rig).days, 3);
	run_in(rig.dir, "echo nonsense > clock");
	restart(&rig);
	assert_int_equal(status_of(&rig).days, 3);
	pass(&rig, 25 * HOUR_NS);
	assert_int_equal(status_of(&rig).days, 1);
	rig_release(&rig);
}

static void files_are_private_whatever_the_umask(void **state)
{
	mode_t before = umask(0);
	struct rig rig;

	(void)state;
	rig_init(&rig);
	assert_int_equal(write_one(&rig, "1", rig.now_ns, 1, 1), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	run_in(rig.dir, "ls *.db *.db-wal && ! find . -type f -perm /077 | grep db");
	/* One of an earlier version. */
	store_close(rig.store);
	run_in(rig.dir, "chmod 0644 *.db");
	rig_open(&rig);
	assert_int_equal(write_one(&rig, "1", rig.now_ns + SEC_NS, 1, 1), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	rig.config.retention_ns = DAY_NS;
	store_close(rig.store);
	rig_open(&rig);
	assert_int_equal(store_maintain(rig.store, rig.now_ns, NULL), 0);
	run_in(rig.dir, "ls clock && ! find . -type f -perm /077 | grep .");
	(void)umask(before);
	rig_release(&rig);
}

static void old_days_are_dropped_by_size_but_never_today(void **state)
{
	struct store_status status;
	struct rig rig;

	(void)state;
	rig_init(&rig);
	store_close(rig.store);
	rig.config.max_bytes = 400 << 10;
	rig_open(&rig);
	for (int day = 0; day < 8; day++) {
		rig.now_ns = DAY_0 + day * STORE_DAY_NS + HOUR_NS;
		write_and_maintain(&rig);
	}
	store_status(rig.store, &status);
	assert_true(status.bytes_on_disk <= rig.config.max_bytes && status.writing);
	assert_in_range(total_all(&rig), 1, 7);
	store_close(rig.store);

	/* Today alone is too much: it stays, is read, and no more is written. */
	rig.config.max_bytes = 10000;
	rig_open(&rig);
	assert_int_equal(store_maintain(rig.store, rig.now_ns, NULL), 0);
	assert_int_equal(write_one(&rig, "1", rig.now_ns + SEC_NS, 1, 1), -ENOSPC);
	store_status(rig.store, &status);
	assert_true(!status.writing && strstr(status.trouble, "--max-disk"));
	assert_int_equal(status.days, 1);
	assert_int_equal(total_all(&rig), 1);
	rig_release(&rig);
}

static void a_second_writer_is_refused(void **state)
{
	struct err err = {};
	struct rig rig;
	struct store *first;

	(void)state;
	rig_init(&rig);
	assert_int_equal(write_one(&rig, "1", DAY_0, 1, 1), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	first = rig.store;
	rig_open(&rig);
	assert_int_equal(total_all(&rig), 1);
	assert_int_equal(write_one(&rig, "1", DAY_0, 1, 1), -EBUSY);
	store_close(first);
	/* The commit ends the spoilt interval, and says again what spoilt it. */
	assert_int_equal(store_commit(rig.store, &err), -EBUSY);
	assert_non_null(strstr(err.text, "another sonde"));
	assert_int_equal(write_one(&rig, "1", DAY_0, 1, 1), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	assert_int_equal(total_all(&rig), 2);
	rig_release(&rig);
}

/* Fills the file system, keeping nothing free. */
static void fill_disk(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	char zeros[4096] = "";

	assert_true(fd >= 0);
	while (write(fd, zeros, sizeof(zeros)) > 0)
		;
	(void)close(fd);
}

static void a_full_disk_stops_writing_keeps_serving_and_recovers(void **state)
{
	struct store_status status;
	int64_t committed = 0, lost = 0;
	char ballast[128];
	struct rig rig;

	(void)state;
	rig_init(&rig);
	if (mount("tmpfs", rig.dir, "tmpfs", 0, "size=32m") < 0) {
		rig_release(&rig);
		skip();
	}
	(void)snprintf(ballast, sizeof(ballast), "%s/ballast", rig.dir);
	for (int i = 0; i < 400; i++) {
		struct profile *p = make_profile();
		struct err err = {};
		bool good;
		int r;

		if (i == 100)
			fill_disk(ballast);
		if (i == 300)
			assert_int_equal(unlink(ballast), 0);
		for (unsigned int k = 0; k < 50; k++)
			add_stack(p, (unsigned int)i * 50 + k, 1, 1);
		good = write_profile(&rig, "svc", "1", DAY_0 + i * SEC_NS, p, &err) == 0;
		r = store_commit(rig.store, &err);
		assert_true(r == 0 || r == -ENOSPC);
		good = r == 0 && good;
		profile_free(p);
		committed += good ? 50 : 0;
		lost += !good;
		assert_int_equal(total_all(&rig), committed);
		if (i == 299) {
			store_status(rig.store, &status);
			assert_false(status.writing);
			assert_non_null(strstr(status.trouble, "full"));
		}
	}
	store_status(rig.store, &status);
	assert_true(status.writing && lost > 0);
	assert_string_equal(status.trouble, "");
	assert_int_equal(status.profiles_lost, lost);
	store_close(rig.store);
	assert_intact(rig_day(&rig, "2024-10-04"));
	rig_open(&rig);
	assert_int_equal(total_all(&rig), committed);
	store_close(rig.store);
	rig.store = NULL;
	assert_int_equal(umount2(rig.dir, MNT_DETACH), 0);
	rig_release(&rig);
}

static void a_read_only_folder_is_read_and_says_why_it_is_not_written(void **state)
{
	struct store_status status;
	struct err err = {};
	struct profile *p = make_profile();
	struct rig rig;

	(void)state;
	rig_init(&rig);
	if (mount("tmpfs", rig.dir, "tmpfs", 0, "size=32m") < 0) {
		profile_free(p);
		rig_release(&rig);
		skip();
	}
	assert_int_equal(write_one(&rig, "1", DAY_0, 1, 5), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	store_close(rig.store);
	assert_int_equal(mount(NULL, rig.dir, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	rig_open(&rig);
	assert_int_equal(total_all(&rig), 5);
	add_stack(p, 1, 1, 1);
	assert_int_equal(write_profile(&rig, "svc", "1", DAY_0, p, &err), -EROFS);
	assert_non_null(strstr(err.text, rig.dir));
	assert_non_null(strstr(err.text, "Read-only file system"));
	assert_int_equal(err.cause, ERR_CAUSE_DISK);
	assert_non_null(strstr(err.remedy, "--data-dir"));
	/* What else comes in this interval is refused for the same reason, and so is its commit. */
	assert_int_equal(write_profile(&rig, "svc", "1", DAY_0, p, &err), -EROFS);
	err.text[0] = '\0';
	assert_int_equal(store_commit(rig.store, &err), -EROFS);
	assert_non_null(strstr(err.text, "Read-only file system"));
	store_status(rig.store, &status);
	assert_false(status.writing);
	assert_non_null(strstr(status.trouble, "Read-only file system"));
	assert_int_equal(status.profiles_lost, 2);
	assert_int_equal(total_all(&rig), 5);

	assert_int_equal(mount(NULL, rig.dir, NULL, MS_REMOUNT, NULL), 0);
	assert_int_equal(write_profile(&rig, "svc", "1", DAY_0, p, &err), 0);
	assert_int_equal(store_commit(rig.store, &err), 0);
	assert_int_equal(total_all(&rig), 6);
	profile_free(p);
	store_close(rig.store);
	rig.store = NULL;
	assert_int_equal(umount2(rig.dir, MNT_DETACH), 0);
	rig_release(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_writers_lose_nothing_that_was_committed),
		cmocka_unit_test(stacks_are_known_again_in_other_profiles_and_after_a_restart),
		cmocka_unit_test(a_file_that_is_no_database_is_told_of_and_left_alone),
		cmocka_unit_test(
			a_damaged_file_is_read_as_far_as_it_goes_and_replaced_when_written),
		cmocka_unit_test(a_block_with_a_wrong_byte_is_noticed),
		cmocka_unit_test(stack_ids_that_repeat_are_refused),
		cmocka_unit_test(a_day_of_format_1_is_read_and_becomes_format_3_when_written),
		cmocka_unit_test(a_damaged_file_of_today_is_replaced_by_the_writer),
		cmocka_unit_test(times_far_from_now_are_refused_and_counted),
		cmocka_unit_test(old_days_are_dropped_by_age),
		cmocka_unit_test(files_are_private_whatever_the_umask),
		cmocka_unit_test(clock_that_jumps_ahead_makes_nothing_old_before_a_day_confirms_it),
		cmocka_unit_test(clock_that_jumps_ahead_and_back_has_changed_nothing),
		cmocka_unit_test(clock_that_runs_away_is_confirmed_by_no_time_before),
		cmocka_unit_test(new_store_has_no_clock_that_jumped),
		cmocka_unit_test(store_without_a_note_is_not_fooled_by_a_day_of_our_own),
		cmocka_unit_test(store_without_a_note_of_the_clock_goes_by_its_newest_day),
		cmocka_unit_test(old_days_are_dropped_by_size_but_never_today),
		cmocka_unit_test(a_second_writer_is_refused),
		cmocka_unit_test(a_full_disk_stops_writing_keeps_serving_and_recovers),
		cmocka_unit_test(a_read_only_folder_is_read_and_says_why_it_is_not_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
