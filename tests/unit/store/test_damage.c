/*
 * tests/unit/store/test_damage.c: damage to day files: every answer is right, or says what is
 * missing; nothing is changed by reading; check finds it, and repair keeps the rest.
 */
#include "test_metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "run.h"
#include "store/sqlite/seal.h"
#include "store/sqlite/state.h"

#define DATE "2024-10-04"
#define FLIPS 400

/* --- what a store says, in one number for each kind of answer */

enum {
	ANSWER_SUM,
	ANSWER_SERIES,
	ANSWER_CURVE,
	ANSWER_STREAMS,
	ANSWER_SETS,
	ANSWER_METRIC,
	ANSWER_EVENTS,
	ANSWER_OVERVIEW,
	N_ANSWERS
};

static uint64_t mix(uint64_t hash, const void *data, size_t len)
{
	return hash_mix(hash + hash_bytes(data, len));
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
	return mix(hash, text, strlen(text));
}

/* Stacks may come in any order: sums of hashes. */
static uint64_t answer_sum(struct rig *rig, const char *type)
{
	struct store_sum sum = {0};
	uint64_t all = 0;

	sum_of(rig, "svc", type, DAY_0, DAY_0 + DAY_NS, &sum);
	for (size_t i = 0; i < profile_n_samples(sum.profile); i++) {
		const struct profile_sample *s = profile_sample_at(sum.profile, i);
		uint64_t hash = profile_stack_hash(sum.profile, s->stack);

		all += mix(hash, s->values, sizeof(int64_t));
	}
	all = mix(all, &sum.collections, sizeof(sum.collections));
	profile_free(sum.profile);
	return all;
}

static uint64_t answer_series(struct rig *rig)
{
	const struct label filter = {"process.pid", "2"};
	struct store_window w = {.service = "svc",
				 .type = TYPE_ALLOC,
				 .from_ns = DAY_0,
				 .to_ns = DAY_0 + 4 * HOUR_NS,
				 .damaged = &rig->damaged};
	double points[48];
	uint64_t hash = 0;

	for (int filtered = 0; filtered < 2; filtered++) {
		w.filters = &filter;
		w.n_filters = (size_t)filtered;
		assert_int_equal(store_series(rig->store, &w, HOUR_NS / 12, points, 48, NULL), 0);
		hash = mix(hash, points, sizeof(points));
	}
	return hash;
}

static uint64_t answer_curve(struct rig *rig)
{
	const struct store_function function = {.name = "main.main"};
	struct store_window w = {.service = "svc",
				 .type = TYPE_INUSE,
				 .from_ns = DAY_0,
				 .to_ns = DAY_0 + 4 * HOUR_NS,
				 .stands = true,
				 .damaged = &rig->damaged};
	double points[2][48];
	uint8_t unread[48];
	const struct store_curve curve = {.step_ns = HOUR_NS / 12,
					  .n = 48,
					  .self = points[0],
					  .total = points[1],
					  .unread = unread};

	assert_int_equal(store_curve(rig->store, &w, &function, &curve, NULL), 0);
	return mix(0, points, sizeof(points));
}

static uint64_t answer_streams(struct rig *rig)
{
	struct store_stream *streams = NULL;
	uint64_t hash = 0;
	size_t n = 0;

	assert_int_equal(store_streams(rig->store, 0, INT64_MAX, &streams, &n, NULL), 0);
	for (size_t i = 0; i < n; i++) {
		hash = mix_text(mix_text(hash, streams[i].service), streams[i].type);
		hash = mix(hash, &streams[i].first_ns, 2 * sizeof(int64_t));
	}
	free(streams);
	return hash;
}

static uint64_t answer_sets(struct rig *rig)
{
	struct store_labelset *sets = NULL;
	uint64_t hash = 0;
	size_t n = 0;

	assert_int_equal(store_labelsets(rig->store, "svc", 0, INT64_MAX, &sets, &n, NULL), 0);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < sets[i].n_labels; k++)
			hash = mix_text(mix_text(hash, sets[i].labels[k].key),
					sets[i].labels[k].value);
	free(sets);
	return hash;
}

static uint64_t answer_metric(struct rig *rig)
{
	struct store_metric_answer a = {0};
	uint64_t hash = 0;

	read_metric(rig, "go.heap.live", DAY_0, DAY_0 + 4 * HOUR_NS, HOUR_NS / 12, STORE_AVERAGE,
		    &a);
	for (size_t i = 0; i < a.len; i++) {
		hash = mix(hash, a.series[i].points, 48 * sizeof(double));
		for (size_t k = 0; k < a.series[i].n_labels; k++)
			hash = mix_text(hash, a.series[i].labels[k].value);
	}
	store_metric_answer_release(&a);
	return hash;
}

static uint64_t answer_events(struct rig *rig)
{
	struct store_events_answer a = {0};
	uint64_t hash = 0;

	assert_int_equal(store_events(rig->store, NULL, 0, INT64_MAX, &a, NULL), 0);
	for (size_t i = 0; i < a.len; i++)
		hash = mix_text(mix_text(hash, a.events[i].sentence), a.events[i].service);
	rig->damaged += a.damaged;
	store_events_answer_release(&a);
	return hash;
}

/* In steps of minutes, and of ten. */
static uint64_t answer_overview(struct rig *rig)
{
	struct store_overview_query q = {
		.from_ns = DAY_0,
		.to_ns = DAY_0 + 4 * HOUR_NS,
		.types = {TYPE_ALLOC, TYPE_INUSE, "go_runtime:heap_live:bytes"}};
	uint64_t hash = 0;

	for (int minutes = 1; minutes <= 10; minutes += 9) {
		struct store_overview o = {0};

		q.step_ns = minutes * 60 * SEC_NS;
		assert_int_equal(store_overview(rig->store, &q, &o, NULL), 0);
		for (size_t i = 0; i < o.len; i++) {
			hash = mix_text(hash, o.services[i].name);
			for (int k = 0; k < 3; k++)
				if (o.services[i].cells[k])
					hash = mix(hash, o.services[i].cells[k],
						   o.n_steps * sizeof(**o.services[i].cells));
		}
		rig->damaged += o.damaged;
		store_overview_release(&o);
	}
	return hash;
}

static void ask_all(struct rig *rig, uint64_t ret[N_ANSWERS])
{
	ret[ANSWER_SUM] = answer_sum(rig, TYPE_ALLOC) ^ hash_mix(answer_sum(rig, TYPE_INUSE));
	ret[ANSWER_SERIES] = answer_series(rig);
	ret[ANSWER_CURVE] = answer_curve(rig);
	ret[ANSWER_STREAMS] = answer_streams(rig);
	ret[ANSWER_SETS] = answer_sets(rig);
	ret[ANSWER_METRIC] = answer_metric(rig);
	ret[ANSWER_EVENTS] = answer_events(rig);
	ret[ANSWER_OVERVIEW] = answer_overview(rig);
}

/* Whether each kind of answer that is not right says so itself. Lists have no mark. */
static bool are_marked(struct rig *rig, const uint64_t right[N_ANSWERS])
{
	static uint64_t (*const asks[N_ANSWERS])(struct rig *) = {
		[ANSWER_SERIES] = answer_series,     [ANSWER_CURVE] = answer_curve,
		[ANSWER_METRIC] = answer_metric,     [ANSWER_EVENTS] = answer_events,
		[ANSWER_OVERVIEW] = answer_overview,
	};
	bool marked;

	rig->damaged = 0;
	marked = (answer_sum(rig, TYPE_ALLOC) ^ hash_mix(answer_sum(rig, TYPE_INUSE))) ==
			 right[ANSWER_SUM] ||
		 rig->damaged > 0;
	for (int i = 0; i < N_ANSWERS; i++) {
		rig->damaged = 0;
		if (asks[i] && asks[i](rig) != right[i] && rig->damaged == 0)
			marked = false;
	}
	return marked;
}

static bool are_same(const uint64_t a[N_ANSWERS], const uint64_t b[N_ANSWERS])
{
	return memcmp(a, b, N_ANSWERS * sizeof(*a)) == 0;
}

/* --- a day with something of everything */

static void write_hours(struct rig *rig, int hours)
{
	static const char *const pids[] = {"1", "2", "3"};
	const struct event event = {.kind = &registry_events[EVENT_OOM_KILL],
				    .sentence = "it was killed"};
	const struct store_event e = {
		.service = "svc", .time_ns = DAY_0 + HOUR_NS, .event = &event};

	for (int i = 0; i < hours * 12; i++)
		for (unsigned int k = 0; k < 3; k++) {
			int64_t time_ns = DAY_0 + i * (HOUR_NS / 12) + k * SEC_NS;
			struct profile *p = make_profile();

			for (unsigned int stack = 0; stack < 20; stack++)
				add_stack(p, stack * 3 + (unsigned int)i, 100 + stack, 50 + k);
			assert_int_equal(write_profile(rig, "svc", pids[k], time_ns, p, NULL), 0);
			profile_free(p);
			write_process(rig, pids[k], time_ns, i * 10 + (int)k, 1);
		}
	assert_int_equal(store_write_event(rig->store, &e, NULL), 0);
	assert_int_equal(store_commit(rig->store, NULL), 0);
}

/* Two hours are packed, two are not; nothing is left in the log. */
static void fill_day(struct rig *rig)
{
	rig_init(rig);
	rig->now_ns = DAY_0 + 4 * HOUR_NS;
	write_hours(rig, 4);
	assert_int_equal(store_maintain(rig->store, DAY_0 + 2 * HOUR_NS + 200 * SEC_NS, NULL), 0);
	store_close(rig->store);
	rig->store = NULL;
}

static off_t size_of_file(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

static void flip(const char *path, off_t at, unsigned int bit)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	uint8_t byte;

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= (uint8_t)(1U << bit);
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	(void)close(fd);
}

static struct store_status status_of(const struct rig *rig)
{
	struct store_status status;

	store_status(rig->store, &status);
	return status;
}

/* --- flipped bits */

static void a_flipped_bit_anywhere_in_a_day_file_changes_no_answer(void **state)
{
	uint64_t right[N_ANSWERS], now[N_ANSWERS];
	char path[128];
	struct rig rig;
	off_t size;

	(void)state;
	fill_day(&rig);
	(void)snprintf(path, sizeof(path), "%s", rig_day(&rig, DATE));
	size = size_of_file(path);
	rig_open(&rig);
	ask_all(&rig, right);
	assert_int_equal(status_of(&rig).damaged_blocks + status_of(&rig).corrected_pages, 0);
	for (int i = 0; i < FLIPS; i++) {
		/* All of the header, then places throughout the file. */
		off_t at = i < 100 ? i : (off_t)(((uint64_t)i * 2654435761U) % (uint64_t)size);
		unsigned int bit = (unsigned int)(i * 5) % 8;
		struct store_status before = status_of(&rig), after;

		flip(path, at, bit);
		ask_all(&rig, now);
		after = status_of(&rig);
		if (!are_same(right, now))
			fail_msg("byte %lld, bit %u: another answer", (long long)at, bit);
		assert_int_equal(after.damaged_blocks, before.damaged_blocks);
		flip(path, at, bit);
	}
	/* Pages that are free are not read; most others are, each counted once. */
	assert_true(status_of(&rig).corrected_pages > 10);
	assert_true(status_of(&rig).corrected_pages <= (uint64_t)size / STORE_SEAL_PAGE);
	assert_string_equal(status_of(&rig).damage, "");
	run_in(rig.dir, "ls " DATE ".db && ! ls *damaged*");
	rig_release(&rig);
}

/* More than a bit: the page is lost, what it held is missing, and that is said. */
static void a_damaged_page_is_missing_and_told(void **state)
{
	uint64_t right[N_ANSWERS], now[N_ANSWERS];
	unsigned int wrong = 0, told = 0;
	char path[128], copy[160];
	struct rig rig;
	off_t size;

	(void)state;
	fill_day(&rig);
	(void)snprintf(path, sizeof(path), "%s", rig_day(&rig, DATE));
	(void)snprintf(copy, sizeof(copy), "%s.copy", path);
	size = size_of_file(path);
	rig_open(&rig);
	ask_all(&rig, right);
	assert_int_equal(rig.damaged, 0);
	store_close(rig.store);
	for (off_t page = 0; page < size / STORE_SEAL_PAGE; page++) {
		int64_t total;

		run_in(rig.dir, "cp --reflink=never %s.db %s.db.copy", DATE, DATE);
		for (unsigned int i = 0; i < 5; i++)
			flip(path, page * STORE_SEAL_PAGE + 17 + 701 * i, i);
		rig_open(&rig);
		ask_all(&rig, now);
		total = total_all(&rig);
		/* 4 hours, 12 times, 3 processes: the sum of 20 values from 100 on. */
		assert_in_range(total, 0, 144 * 20 * 100 + 144 * 190);
		if (!are_same(right, now)) {
			wrong++;
			told += status_of(&rig).damaged_blocks > 0 &&
				strstr(status_of(&rig).damage, DATE ".db") != NULL;
		}
		if (!are_marked(&rig, right))
			fail_msg("page %lld: an answer lacks it, and has no mark", (long long)page);
		store_close(rig.store);
		assert_int_equal(rename(copy, path), 0);
	}
	assert_true(wrong > 5);
	assert_int_equal(told, wrong);
	rig.store = NULL;
	run_in(rig.dir, "! ls *damaged*");
	rig_release(&rig);
}

/* What is read twice is lost only where both are. */
static void a_damaged_rollup_is_made_up_for_by_the_hours(void **state)
{
	struct rig rig;
	int64_t right;

	(void)state;
	rig_init(&rig);
	rig.now_ns = DAY_0 + 4 * HOUR_NS;
	write_hours(&rig, 4);
	rig.now_ns = DAY_0 + DAY_NS + HOUR_NS;
	assert_int_equal(store_maintain(rig.store, rig.now_ns, NULL), 0);
	right = total_all(&rig);
	assert_true(count_of(rig_day(&rig, DATE), "SELECT count(*) FROM rollup") > 0);
	run_sql(rig_day(&rig, DATE), "UPDATE rollup SET data=substr(data,1,length(data)-1)||x'77'");
	assert_int_equal(total_all(&rig), right);
	assert_true(status_of(&rig).damaged_blocks > 0);
	rig_release(&rig);
}

/* Values whose names are lost still count. */
static void values_without_names_are_damaged_and_add_up(void **state)
{
	struct store_sum sum = {0};
	struct rig rig;
	bool found = false;
	int64_t right;

	(void)state;
	fill_day(&rig);
	rig_open(&rig);
	right = total_all(&rig);
	run_sql(rig_day(&rig, DATE),
		"UPDATE stack_chunk SET data=substr(data,1,length(data)-1)||x'77'"
		" WHERE k=(SELECT max(k) FROM stack_chunk)");
	assert_int_equal(total_all(&rig), right);
	sum_of(&rig, "svc", TYPE_ALLOC, DAY_0, DAY_0 + DAY_NS, &sum);
	for (size_t i = 0; i < profile_n_functions(sum.profile); i++)
		found |=
			strcmp(profile_cstring(sum.profile,
					       profile_function_at(sum.profile, (uint32_t)i)->name),
			       "(damaged)") == 0;
	assert_true(found);
	assert_true(status_of(&rig).damaged_blocks > 0);
	profile_free(sum.profile);
	rig_release(&rig);
}

/* --- the log */

/* A store whose last commits are only in the log, as after a crash. */
static void fill_log(struct rig *rig)
{
	rig_init(rig);
	for (int i = 0; i < 30; i++) {
		assert_int_equal(write_one(rig, "1", DAY_0 + i * SEC_NS, (unsigned int)i, 1), 0);
		assert_int_equal(store_commit(rig->store, NULL), 0);
	}
	run_in(rig->dir, "mkdir crashed && cp %s.db %s.db-wal crashed", DATE, DATE);
	store_close(rig->store);
	rig->store = NULL;
	run_in(rig->dir, "rm -f *.db* lock");
}

static void a_damaged_log_is_corrected_or_told(void **state)
{
	unsigned int corrected = 0, told = 0;
	char path[128];
	struct rig rig;
	off_t size;

	(void)state;
	fill_log(&rig);
	(void)snprintf(path, sizeof(path), "%s-wal", rig_day(&rig, DATE));
	run_in(rig.dir, "cp crashed/* .");
	size = size_of_file(path);
	rig_open(&rig);
	assert_int_equal(total_all(&rig), 30);
	store_close(rig.store);
	for (int i = 0; i < 200; i++) {
		off_t at = i < 60 ? i : (off_t)(((uint64_t)i * 2654435761U) % (uint64_t)size);
		struct store_status status;
		int64_t total;

		run_in(rig.dir, "rm -f *.db* && cp crashed/* .");
		flip(path, at, (unsigned int)i % 8);
		rig_open(&rig);
		total = total_all(&rig);
		status = status_of(&rig);
		if (total != 30 && status.damaged_blocks == 0)
			fail_msg("byte %lld, bit %d: %lld without a word", (long long)at, i % 8,
				 (long long)total);
		corrected += total == 30;
		told += total != 30;
		store_close(rig.store);
	}
	/* The sums of the log cannot tell all bits apart. */
	assert_true(corrected > 100 && told < 100);
	rig.store = NULL;
	rig_release(&rig);
}

static void a_log_that_ends_in_the_middle_of_a_commit_is_no_damage(void **state)
{
	char path[128];
	struct rig rig;
	off_t size;

	(void)state;
	fill_log(&rig);
	(void)snprintf(path, sizeof(path), "%s-wal", rig_day(&rig, DATE));
	run_in(rig.dir, "cp crashed/* .");
	size = size_of_file(path);
	for (off_t cut = 1; cut < 3 * STORE_SEAL_FRAME; cut += 1000) {
		run_in(rig.dir, "rm -f *.db* && cp crashed/* .");
		assert_int_equal(truncate(path, size - cut), 0);
		rig_open(&rig);
		assert_in_range(total_all(&rig), 27, 29);
		assert_int_equal(status_of(&rig).damaged_blocks, 0);
		store_close(rig.store);
	}
	rig.store = NULL;
	rig_release(&rig);
}

static void a_reader_leaves_the_log_as_it_is(void **state)
{
	struct rig rig;

	(void)state;
	fill_log(&rig);
	run_in(rig.dir, "cp crashed/* .");
	rig_open(&rig);
	assert_int_equal(total_all(&rig), 30);
	store_close(rig.store);
	rig.store = NULL;
	run_in(rig.dir, "cmp %s.db crashed/%s.db && cmp %s.db-wal crashed/%s.db-wal", DATE, DATE,
	       DATE, DATE);
	rig_release(&rig);
}

static void the_log_is_truncated_after_packing(void **state)
{
	char path[128];
	struct rig rig;

	(void)state;
	rig_init(&rig);
	rig.now_ns = DAY_0 + 4 * HOUR_NS;
	write_hours(&rig, 4);
	(void)snprintf(path, sizeof(path), "%s-wal", rig_day(&rig, DATE));
	assert_true(size_of_file(path) > 0);
	assert_int_equal(store_maintain(rig.store, rig.now_ns + 200 * SEC_NS, NULL), 0);
	assert_int_equal(size_of_file(path), 0);
	rig_release(&rig);
}

/* --- files of older versions */

static void files_without_checksums_are_read_and_said_to_have_none(void **state)
{
	uint64_t right[N_ANSWERS], now[N_ANSWERS];
	struct rig rig;

	(void)state;
	fill_day(&rig);
	rig_open(&rig);
	ask_all(&rig, right);
	store_close(rig.store);
	make_old(rig_day(&rig, DATE), 3);
	rig_open(&rig);
	ask_all(&rig, now);
	assert_true(are_same(right, now));
	/* It can be written, and stays one of the older version. */
	assert_int_equal(write_one(&rig, "1", rig.now_ns, 1, 1), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	assert_int_equal(count_of(rig_day(&rig, DATE), "PRAGMA user_version"), 3);
	assert_int_equal(status_of(&rig).damaged_blocks, 0);
	rig_release(&rig);
}

static uint64_t count_reads(void)
{
	char line[128];
	uint64_t n = 0;
	FILE *f = fopen("/proc/self/io", "re");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		(void)sscanf(line, "syscr: %" SCNu64, &n);
	(void)fclose(f);
	return n;
}

/* Pages that one transaction writes twice have their sums renewed in the log. */
static void a_large_commit_reads_each_frame_a_few_times(void **state)
{
	struct store_day day = {0};
	struct rig rig;
	uint64_t before;

	(void)state;
	rig_init(&rig);
	assert_int_equal(store_day_open(&day, rig.dir, DAY_0 / DAY_NS, true, NULL), 0);
	assert_int_equal(
		sqlite3_wal_checkpoint_v2(day.db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL),
		SQLITE_OK);
	before = count_reads();
	/* Several times the cache. */
	assert_int_equal(
		sqlite3_exec(day.db,
			     "BEGIN; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n"
			     " WHERE i<4000) INSERT INTO profile SELECT i,zeroblob(4000) FROM n;"
			     "UPDATE profile SET data=zeroblob(4001); COMMIT",
			     NULL, NULL, NULL),
		SQLITE_OK);
	assert_in_range(count_reads() - before, 4000, 80000);
	store_day_close(&day);
	rig_release(&rig);
}

/* --- check and repair */

struct seen {
	size_t files;
	struct store_sqlite_report last;
};

static int on_report(void *ctx, const struct store_sqlite_report *report)
{
	struct seen *seen = ctx;

	seen->files++;
	seen->last = *report;
	return 0;
}

static struct store_sqlite_report check(struct rig *rig)
{
	struct seen seen = {0};

	assert_int_equal(store_sqlite_check(rig->store, on_report, &seen, NULL), 0);
	assert_int_equal(seen.files, 1);
	return seen.last;
}

static struct store_sqlite_report repair(struct rig *rig)
{
	struct seen seen = {0};
	struct err err = {};

	if (store_sqlite_repair(rig->store, on_report, &seen, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(seen.files, 1);
	return seen.last;
}

static void check_finds_what_is_damaged_and_repair_keeps_the_rest(void **state)
{
	uint64_t right[N_ANSWERS], now[N_ANSWERS];
	struct store_sqlite_report before, report;
	struct rig rig;
	int64_t total;

	(void)state;
	fill_day(&rig);
	rig_open(&rig);
	ask_all(&rig, right);
	before = check(&rig);
	assert_int_equal(before.damaged + before.corrected, 0);
	assert_true(before.rows > 100 && before.checksums);
	/* One bit: nothing is lost. */
	flip(rig_day(&rig, DATE), 3 * STORE_SEAL_PAGE + 100, 3);
	report = check(&rig);
	assert_int_equal(report.corrected, 1);
	assert_int_equal(report.damaged, 0);
	report = repair(&rig);
	assert_true(report.repaired);
	report = check(&rig);
	assert_int_equal(report.corrected + report.damaged, 0);
	assert_int_equal(report.rows, before.rows);
	/* Whose it is, too: shares of the disk go by that. */
	assert_int_equal(count_of(rig_day(&rig, DATE), "SELECT count(*) FROM owner"), 1);
	ask_all(&rig, now);
	assert_true(are_same(right, now));
	/* One row: the others stay. */
	total = total_all(&rig);
	run_sql(rig_day(&rig, DATE), "UPDATE profile SET data=substr(data,1,length(data)-1)||x'77'"
				     " WHERE k=(SELECT min(k) FROM profile)");
	report = check(&rig);
	assert_int_equal(report.damaged, 1);
	assert_non_null(strstr(report.findings[0], "table profile, row "));
	report = repair(&rig);
	assert_int_equal(report.damaged, 1);
	report = check(&rig);
	assert_int_equal(report.damaged, 0);
	assert_int_equal(report.rows, before.rows - 1);
	assert_in_range(total_all(&rig), total - 20 * 120, total - 20 * 100);
	run_in(rig.dir, "! ls *.repair* *.old*");
	rig_release(&rig);
}

static void repair_of_damaged_pages_leaves_a_whole_file(void **state)
{
	struct store_sqlite_report report;
	struct rig rig;
	off_t size;

	(void)state;
	fill_day(&rig);
	size = size_of_file(rig_day(&rig, DATE));
	/* Some page in the middle, and one near the end. */
	for (off_t page = size / STORE_SEAL_PAGE / 2; page < size / STORE_SEAL_PAGE; page += 7)
		for (unsigned int i = 0; i < 5; i++)
			flip(rig_day(&rig, DATE), page * STORE_SEAL_PAGE + 17 + 701 * i, i);
	rig_open(&rig);
	report = check(&rig);
	assert_true(report.damaged > 0 && !report.unreadable);
	report = repair(&rig);
	assert_true(report.repaired);
	report = check(&rig);
	assert_int_equal(report.damaged + report.corrected, 0);
	assert_true(report.rows > 0);
	rig_release(&rig);
}

/* It is the same in all files. */
static void a_lost_first_page_costs_nothing(void **state)
{
	static const uint8_t zeros[STORE_SEAL_PAGE];
	uint64_t right[N_ANSWERS], now[N_ANSWERS];
	struct store_sqlite_report before, report;
	struct rig rig;
	int fd;

	(void)state;
	fill_day(&rig);
	rig_open(&rig);
	ask_all(&rig, right);
	before = check(&rig);
	store_close(rig.store);
	fd = open(rig_day(&rig, DATE), O_WRONLY | O_CLOEXEC);
	assert_int_equal(write(fd, zeros, sizeof(zeros)), sizeof(zeros));
	(void)close(fd);
	rig_open(&rig);
	ask_all(&rig, now);
	assert_true(are_same(right, now));
	assert_int_equal(status_of(&rig).corrected_pages, 1);
	assert_int_equal(status_of(&rig).damaged_blocks, 0);
	report = check(&rig);
	assert_int_equal(report.corrected, 1);
	assert_int_equal(report.damaged, 0);
	report = repair(&rig);
	assert_true(report.repaired && !report.unreadable);
	report = check(&rig);
	assert_int_equal(report.corrected + report.damaged, 0);
	assert_int_equal(report.rows, before.rows);
	ask_all(&rig, now);
	assert_true(are_same(right, now));
	rig_release(&rig);
}

/* By a full disk, or a copy that was not finished. */
static void of_a_file_that_was_cut_off_the_rest_is_kept(void **state)
{
	struct store_sqlite_report report;
	uint64_t rows;
	int64_t right;
	struct rig rig;
	off_t size;

	(void)state;
	fill_day(&rig);
	rig_open(&rig);
	rows = check(&rig).rows;
	right = total_all(&rig);
	store_close(rig.store);
	size = size_of_file(rig_day(&rig, DATE));
	/* Not where a page ends. */
	assert_int_equal(truncate(rig_day(&rig, DATE), size - 3 * STORE_SEAL_PAGE + 77), 0);
	rig_open(&rig);
	assert_in_range(total_all(&rig), 0, right);
	assert_true(status_of(&rig).damaged_blocks > 0);
	report = check(&rig);
	assert_true(report.damaged > 0 && !report.unreadable);
	assert_in_range(report.rows, 1, rows - 1);
	report = repair(&rig);
	assert_true(report.repaired && !report.unreadable);
	report = check(&rig);
	assert_int_equal(report.damaged, 0);
	assert_in_range(report.rows, 1, rows - 1);
	rig_release(&rig);
}

static void an_empty_file_of_a_past_day_is_told_and_other_things_are_no_days(void **state)
{
	struct rig rig;
	int64_t right;

	(void)state;
	fill_day(&rig);
	rig_open(&rig);
	right = total_all(&rig);
	store_close(rig.store);
	run_in(rig.dir,
	       "mkdir 2000-01-01.db && mkfifo 2000-01-02.db && ln -s nowhere 2000-01-03.db");
	rig_open(&rig);
	assert_int_equal(total_all(&rig), right);
	assert_int_equal(check(&rig).damaged, 0);
	assert_int_equal(status_of(&rig).damaged_blocks, 0);
	store_close(rig.store);
	/* One that is just being made is empty, too. */
	run_in(rig.dir, "touch 2100-01-01.db");
	rig_open(&rig);
	assert_int_equal(total_all(&rig), right);
	assert_int_equal(status_of(&rig).damaged_blocks, 0);
	store_close(rig.store);
	run_in(rig.dir, "printf x > 2000-01-04.db");
	rig_open(&rig);
	assert_int_equal(total_all(&rig), right);
	assert_non_null(strstr(status_of(&rig).damage, "2000-01-04.db"));
	rig_release(&rig);
}

/* Between the two renames, and before the old file is removed. */
static void a_repair_that_was_killed_is_finished(void **state)
{
	struct rig rig;
	int64_t right;

	(void)state;
	fill_day(&rig);
	rig_open(&rig);
	right = total_all(&rig);
	store_close(rig.store);
	run_in(rig.dir, "cp " DATE ".db " DATE ".db.repair && mv " DATE ".db " DATE ".db.old"
			" && echo of the old one > " DATE ".db-wal");
	rig_open(&rig);
	(void)repair(&rig);
	assert_int_equal(total_all(&rig), right);
	run_in(rig.dir, "! ls *.old* *.repair*");
	store_close(rig.store);
	/* One that was set aside: neither copy counts beside it. */
	run_in(rig.dir,
	       "mv " DATE ".db " DATE ".db.damaged-1 && cp " DATE ".db.damaged-1 " DATE
	       ".db.damaged-1.old && cp " DATE ".db.damaged-1 " DATE ".db.damaged-1.repair");
	rig_open(&rig);
	assert_int_equal(total_all(&rig), right);
	(void)repair(&rig);
	assert_int_equal(total_all(&rig), right);
	run_in(rig.dir, "ls " DATE ".db.damaged-1 && ! ls *.old* *.repair*");
	rig_release(&rig);
}

static void repair_is_refused_while_another_writes(void **state)
{
	struct store *writer;
	struct seen seen = {0};
	struct rig rig;

	(void)state;
	rig_init(&rig);
	assert_int_equal(write_one(&rig, "1", DAY_0, 1, 1), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	writer = rig.store;
	rig_open(&rig);
	assert_int_equal(store_sqlite_repair(rig.store, on_report, &seen, NULL), -EBUSY);
	assert_int_equal(check(&rig).damaged, 0);
	store_close(writer);
	rig_release(&rig);
}

/* The sums of a frame are where those of the next one begin. */
static void a_flipped_bit_in_the_sums_of_a_frame_costs_no_other(void **state)
{
	unsigned int corrected = 0;
	char path[128];
	struct rig rig;
	off_t frames;

	(void)state;
	fill_log(&rig);
	(void)snprintf(path, sizeof(path), "%s-wal", rig_day(&rig, DATE));
	run_in(rig.dir, "cp crashed/* .");
	frames = size_of_file(path) / STORE_SEAL_FRAME;
	/* Of the first and the last: pages in between were written again. */
	for (off_t i = 0; i < 30; i++) {
		off_t frame = i < 15 ? i : frames - (i - 15) - 1;

		run_in(rig.dir, "rm -f *.db* && cp crashed/* .");
		flip(path, STORE_SEAL_LOG_HEAD + frame * STORE_SEAL_FRAME + 19, i % 8);
		rig_open(&rig);
		/* Else it might be another bit as well, and the log ends there. */
		if (total_all(&rig) == 30) {
			assert_int_equal(status_of(&rig).damaged_blocks, 0);
			corrected++;
		}
		store_close(rig.store);
	}
	assert_true(corrected > 20);
	rig.store = NULL;
	rig_release(&rig);
}

/* All of a day may be in its log. */
static void check_finds_a_log_that_is_lost_with_all_tables(void **state)
{
	struct store_sqlite_report report;
	char path[128];
	struct rig rig;

	(void)state;
	fill_log(&rig);
	(void)snprintf(path, sizeof(path), "%s-wal", rig_day(&rig, DATE));
	run_in(rig.dir, "cp crashed/* .");
	for (int i = 0; i < 20; i++)
		flip(path, STORE_SEAL_LOG_HEAD + STORE_SEAL_FRAME_HEAD + 100 * i, 3);
	rig_open(&rig);
	assert_int_equal(total_all(&rig), 0);
	assert_true(status_of(&rig).damaged_blocks > 0);
	report = check(&rig);
	assert_true(report.damaged > 0 && report.unreadable);
	store_close(rig.store);
	/* A writer says so, too, before it begins anew. */
	run_in(rig.dir, "cp %s.db* crashed", DATE);
	rig_open(&rig);
	assert_int_equal(write_one(&rig, "1", DAY_0, 1, 1), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	assert_true(status_of(&rig).damaged_blocks > 0);
	store_close(rig.store);
	run_in(rig.dir, "rm -f *.db* && cp crashed/* .");
	rig_open(&rig);
	assert_true(repair(&rig).repaired);
	run_in(rig.dir, "! ls *.db*");
	rig_release(&rig);
}

static void check_says_which_files_have_no_checksums(void **state)
{
	struct store_sqlite_report report;
	struct rig rig;

	(void)state;
	fill_day(&rig);
	make_old(rig_day(&rig, DATE), 3);
	rig_open(&rig);
	report = check(&rig);
	assert_int_equal(report.damaged, 0);
	assert_false(report.checksums);
	rig_release(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_flipped_bit_anywhere_in_a_day_file_changes_no_answer),
		cmocka_unit_test(a_damaged_page_is_missing_and_told),
		cmocka_unit_test(a_damaged_rollup_is_made_up_for_by_the_hours),
		cmocka_unit_test(values_without_names_are_damaged_and_add_up),
		cmocka_unit_test(a_damaged_log_is_corrected_or_told),
		cmocka_unit_test(a_log_that_ends_in_the_middle_of_a_commit_is_no_damage),
		cmocka_unit_test(a_reader_leaves_the_log_as_it_is),
		cmocka_unit_test(the_log_is_truncated_after_packing),
		cmocka_unit_test(files_without_checksums_are_read_and_said_to_have_none),
		cmocka_unit_test(a_large_commit_reads_each_frame_a_few_times),
		cmocka_unit_test(check_finds_what_is_damaged_and_repair_keeps_the_rest),
		cmocka_unit_test(repair_of_damaged_pages_leaves_a_whole_file),
		cmocka_unit_test(a_lost_first_page_costs_nothing),
		cmocka_unit_test(of_a_file_that_was_cut_off_the_rest_is_kept),
		cmocka_unit_test(an_empty_file_of_a_past_day_is_told_and_other_things_are_no_days),
		cmocka_unit_test(a_repair_that_was_killed_is_finished),
		cmocka_unit_test(repair_is_refused_while_another_writes),
		cmocka_unit_test(a_flipped_bit_in_the_sums_of_a_frame_costs_no_other),
		cmocka_unit_test(check_finds_a_log_that_is_lost_with_all_tables),
		cmocka_unit_test(check_says_which_files_have_no_checksums),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
