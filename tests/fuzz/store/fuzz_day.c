/*
 * tests/fuzz/store/fuzz_day.c: any bytes as a day file, of which all there is to ask is asked, and
 * which is checked. The first byte says whether the checksums of pages are made right, so that they
 * do not keep the fuzzer out, whether the file is repaired, too, and whether only one of the
 * questions is asked: each of them opens the file anew. The rest is a whole file; or, if it does
 * not begin like one, changes to a day that was written by the store: number of a page, place in
 * it, length, bytes. Whatever it is, nothing crashes, and what was repaired is whole.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "pipeline/event.h"
#include "pipeline/metrics.h"
#include "store/sqlite/seal.h"
#include "store/sqlite/sqlite.h"

#define DAY_NS 86400000000000LL
#define HOUR_NS 3600000000000LL
#define DAY_0 (20000 * DAY_NS) /* 2024-10-04 */
#define MAX_BYTES ((size_t)1 << 20)

/* The bits from QUESTION on: 0 for all of them. */
enum { MAKE_RIGHT = 1, REPAIR = 2, QUESTION = 4 };

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[64];
static char path[96];
static struct buf usual; /* the day that is changed */

/* Pages that look damaged are read again, as somebody may be writing them: here nobody is. */
int sqlite3_sleep(int ms)
{
	return ms;
}

static int64_t fuzz_now(void *ctx)
{
	(void)ctx;
	return DAY_0 + 3 * HOUR_NS;
}

static struct store *open_store(void)
{
	const struct store_sqlite_config config = {
		.dir = dir, .now_ns = fuzz_now, .ran_ns = fuzz_now};
	struct store *store = NULL;

	assert(store_sqlite_open(&config, &store, NULL) == 0);
	return store;
}

static void clean(void)
{
	static const char *const suffixes[] = {"", "-wal", "-shm", "-journal", ".damaged-1"};
	char name[128];

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		(void)snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
		(void)unlink(name);
	}
}

static void clean_all(void)
{
	char name[128];

	clean();
	(void)snprintf(name, sizeof(name), "%s/lock", dir);
	(void)unlink(name);
	(void)rmdir(dir);
	buf_release(&usual);
}

static struct profile *make_profile(unsigned int first)
{
	struct profile *p = profile_new();

	assert(p && profile_add_type(p, "inuse_space", "bytes") == 0);
	for (unsigned int i = first; i < first + 5; i++) {
		struct profile_function f = {0};
		struct profile_line line = {.line = 7};
		const int64_t value = 100 + i;
		uint32_t location, stack;
		char name[32];

		(void)snprintf(name, sizeof(name), "main.work_%u", i);
		assert(profile_add_string(p, view_str(name), &f.name) == 0);
		assert(profile_add_function(p, &f, &line.function) == 0);
		assert(profile_add_location(p, 0, PROFILE_NO_MAPPING, &line, 1, &location) == 0);
		assert(profile_add_stack(p, &location, 1, &stack) == 0);
		assert(profile_add_sample(p, stack, &value, NULL, 0) == 0);
	}
	return p;
}

static void write_usual(struct store *store)
{
	static const struct label labels[] = {{"process.pid", "1"}};
	struct metric_point point = {.metric = &registry_metrics[METRIC_SONDE_MEMORY], .value = 5};
	const struct metrics metrics = {.points = &point, .len = 1};
	const struct event event = {.kind = &registry_events[EVENT_OOM_KILL], .sentence = "killed"};

	for (unsigned int i = 0; i < 8; i++) {
		int64_t time_ns = DAY_0 + i * (HOUR_NS / 4);
		struct profile *p = make_profile(i);
		const struct store_entry e = {.service = "svc",
					      .family = "go_heap",
					      .labels = labels,
					      .n_labels = 1,
					      .time_ns = time_ns,
					      .profile = p,
					      .snapshot_types = 1};
		const struct store_metrics m = {.service = "svc",
						.labels = labels,
						.n_labels = 1,
						.time_ns = time_ns,
						.metrics = &metrics};

		assert(store_write(store, &e, NULL) == 0);
		assert(store_write_metrics(store, &m, NULL) == 0);
		profile_free(p);
	}
	const struct store_event e = {.service = "svc", .time_ns = DAY_0, .event = &event};

	assert(store_write_event(store, &e, NULL) == 0);
	assert(store_commit(store, NULL) == 0);
	/* One hour is packed, one is not. */
	assert(store_maintain(store, DAY_0 + HOUR_NS + 200000000000LL, NULL) == 0);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct store *store;

	(void)argc, (void)argv;
	/* In memory, if there is such a folder. */
	(void)snprintf(dir, sizeof(dir), "/dev/shm/sonde-fuzz-day-XXXXXX");
	if (!mkdtemp(dir)) {
		(void)snprintf(dir, sizeof(dir), "/tmp/sonde-fuzz-day-XXXXXX");
		assert(mkdtemp(dir));
	}
	(void)snprintf(path, sizeof(path), "%s/2024-10-04.db", dir);
	(void)atexit(clean_all);
	store = open_store();
	write_usual(store);
	store_close(store);
	assert(io_read_file(AT_FDCWD, path, &usual, NULL) == 0);
	return 0;
}

/* Changes: page (2), place (2), length (1), bytes. */
static void change(struct buf *file, const uint8_t *data, size_t size)
{
	while (size > 5) {
		size_t page = (size_t)(data[0] | data[1] << 8) % (file->len / STORE_SEAL_PAGE);
		size_t at = (size_t)(data[2] | data[3] << 8) % STORE_SEAL_PAGE;
		size_t n = MIN(MIN((size_t)data[4], size - 5), STORE_SEAL_PAGE - at);

		memcpy(file->data + page * STORE_SEAL_PAGE + at, data + 5, n);
		data += 5 + n;
		size -= 5 + n;
	}
}

static void make_file(struct buf *file, const uint8_t *data, size_t size, bool right)
{
	if (size > 16 && memcmp(data, "SQLite format 3", 16) == 0) {
		assert(buf_append(file, data, MIN(size, MAX_BYTES)) == 0);
	} else {
		assert(buf_append(file, usual.data, usual.len) == 0);
		change(file, data, size);
	}
	for (size_t i = 0; right && (i + 1) * STORE_SEAL_PAGE <= file->len; i++)
		store_seal_page(file->data + i * STORE_SEAL_PAGE, (uint32_t)i + 1);
}

static void ask_metrics(struct store *store)
{
	static const char *const names[] = {NULL, "sonde.memory.resident"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct store_metric_query q = {.service = "svc",
						     .metric = names[i],
						     .from_ns = DAY_0,
						     .to_ns = DAY_0 + 4 * HOUR_NS,
						     .step_ns = HOUR_NS,
						     .n_points = 4};
		struct store_metric_answer a = {0};

		if (store_metrics(store, &q, &a, NULL) == 0)
			store_metric_answer_release(&a);
	}
}

static void ask_streams(struct store *store)
{
	_cleanup_free_ struct store_stream *streams = NULL;
	struct store_status status;
	size_t n = 0;

	(void)store_streams(store, 0, INT64_MAX, &streams, &n, NULL);
	store_status(store, &status);
}

static void ask_labelsets(struct store *store)
{
	_cleanup_free_ struct store_labelset *sets = NULL;
	size_t n = 0;

	(void)store_labelsets(store, "svc", 0, INT64_MAX, &sets, &n, NULL);
}

static void ask_events(struct store *store)
{
	struct store_events_answer events = {0};

	if (store_events(store, NULL, 0, INT64_MAX, &events, NULL) == 0)
		store_events_answer_release(&events);
}

static const struct label filter = {"process.pid", "1"};
static struct store_window window = {.service = "svc",
				     .type = "go_heap:inuse_space:bytes",
				     .from_ns = DAY_0,
				     .to_ns = DAY_0 + DAY_NS,
				     .filters = &filter};

static void ask_sums(struct store *store)
{
	for (window.n_filters = 0; window.n_filters < 2; window.n_filters++) {
		struct store_sum sum = {0};

		if (store_sum(store, &window, &sum, NULL) == 0)
			profile_free(sum.profile);
	}
}

static void ask_series(struct store *store)
{
	double points[8];

	for (window.n_filters = 0; window.n_filters < 2; window.n_filters++)
		(void)store_series(store, &window, HOUR_NS, points, ARRAY_SIZE(points), NULL);
}

static int on_report(void *ctx, const struct store_sqlite_report *report)
{
	*(struct store_sqlite_report *)ctx = *report;
	return 0;
}

static void check(struct store *store)
{
	static struct store_sqlite_report report;

	(void)store_sqlite_check(store, on_report, &report, NULL);
}

static void ask_overview(struct store *store)
{
	struct store_overview_query q = {.from_ns = DAY_0,
					 .to_ns = DAY_0 + 4 * HOUR_NS,
					 .step_ns = HOUR_NS / 6,
					 .types = {"go_heap:inuse_space:bytes"}};
	struct store_overview o = {0};

	for (; q.step_ns >= HOUR_NS / 60; q.step_ns /= 10) {
		if (store_overview(store, &q, &o, NULL) < 0)
			continue;
		for (size_t i = 0; i < o.len; i++)
			assert(strlen(o.services[i].name) < 256 && o.services[i].first_ns > 0);
		store_overview_release(&o);
	}
}

static void ask(struct store *store, unsigned int which)
{
	static void (*const questions[])(struct store *) = {ask_sums,	 ask_series,	ask_metrics,
							    ask_streams, ask_labelsets, ask_events,
							    check,	 ask_overview};

	for (size_t i = 0; i < ARRAY_SIZE(questions); i++)
		if (which == 0 || (which - 1) % ARRAY_SIZE(questions) == i)
			questions[i](store);
}

static void repair(struct store *store)
{
	static struct store_sqlite_report report;

	if (store_sqlite_repair(store, on_report, &report, NULL) < 0 || !report.repaired ||
	    report.unreadable)
		return;
	assert(store_sqlite_check(store, on_report, &report, NULL) == 0);
	assert(report.damaged == 0 && report.corrected == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(buf_release) struct buf file = {0};
	struct store *store;

	if (size < 1)
		return 0;
	make_file(&file, data + 1, size - 1, data[0] & MAKE_RIGHT);
	clean();
	assert(io_write_file(path, buf_view(&file), NULL) == 0);
	store = open_store();
	ask(store, data[0] / QUESTION);
	if (data[0] & REPAIR)
		repair(store);
	store_close(store);
	return 0;
}
