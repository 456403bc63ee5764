/* src/store/sqlite/state.h: shared by the parts of the embedded store. */
#pragma once

#include <pthread.h>

#include "base/buf.h"
#include "base/map.h"
#include "store/backend.h"
#include "store/sqlite/age.h"
#include "store/sqlite/day.h"
#include "store/sqlite/sqlite.h"
#include "store/sqlite/writer.h"

#define STORE_SQLITE_WRITERS 2 /* days open for writing; two around midnight */

#define STORE_SQLITE_ROLLED_UP 25
/* For collections still in progress when their hour, or ten minutes, end. */
#define STORE_SQLITE_GRACE_NS (120 * 1000000000LL)

struct store_sqlite {
	struct store base;
	char dir[400];
	int64_t retention_ns;
	uint64_t max_bytes;
	int64_t (*now_ns)(void *ctx);
	int64_t (*ran_ns)(void *ctx);
	void *now_ctx;

	pthread_mutex_t lock; /* protects everything below but the status */
	int lock_fd;	      /* of the directory's lock; -1: not held */
	struct store_writer writers[STORE_SQLITE_WRITERS];
	struct store_writer_tools tools;
	uint64_t ticks;
	int spoiled; /* -errno if the interval can no longer be written; 0: it can */
	struct err why_spoiled;
	/* Owners that are above their share by the current hour alone; and a sentence about it. */
	uint32_t refused[16];
	size_t n_refused;
	bool all_refused;
	char refusal[256];
	struct store_age age, age_saved;
	bool age_loaded;       /* from its file */
	int64_t newest_before; /* day that was there when we came; -1: none */
	struct map settled; /* by day: hours below are packed; STORE_SQLITE_ROLLED_UP: all done */

	pthread_mutex_t status_lock;
	struct store_status status; /* the counters and the trouble */
	struct map damaged;	    /* places counted so far */
};

static inline struct store_sqlite *store_sqlite(struct store *store)
{
	return (struct store_sqlite *)store;
}

/* sqlite.c; all with the lock held. */
int store_sqlite_lock_folder(struct store_sqlite *s, struct err *err);
int store_sqlite_writer(struct store_sqlite *s, int64_t number, struct store_writer **ret,
			struct err *err);
int store_sqlite_commit_writer(struct store_sqlite *s, struct store_writer *w, struct err *err);
void store_sqlite_drop_writer(struct store_sqlite *s,
			      int64_t number); /* uncommitted profiles are lost */
void store_sqlite_drop_writers(struct store_sqlite *s);
/*
 * Counts what was found damaged in the day, and was not counted yet; and says so. Returns how much
 * the day's reader has met, counted before or not.
 */
unsigned int store_sqlite_count_damage(struct store_sqlite *s, struct store_day *day);
/* A whole file cannot be read. */
void store_sqlite_tell_unreadable(struct store_sqlite *s, const struct store_day *day,
				  const char *why);
/* Whether the owner's data is not stored for now; room.c. */
bool store_sqlite_is_refused(const struct store_sqlite *s, uint32_t uid);
/* Reports trouble until the next successful commit. */
void store_sqlite_trouble(struct store_sqlite *s, const char *sentence, bool writing);

/* retention.c */
struct store_sqlite_file {
	char name[64];
	int64_t number;
	bool damaged;
	bool past;	/* there is a later one: it is not just being made */
	uint64_t bytes; /* with its log */
};
/* Smaller than any database. */
#define STORE_SQLITE_EMPTY 512
/* All files in the directory, oldest first. The caller frees the array. */
int store_sqlite_files(const struct store_sqlite *s, struct store_sqlite_file **ret_files,
		       size_t *ret_len, struct err *err);
/* The newest day; -1 if there is none. */
int64_t store_sqlite_newest(const struct store_sqlite *s);
/* Deletes what is too old, or too much; thorough: also where it was in vain. With the lock held. */
int store_sqlite_retain(struct store_sqlite *s, bool thorough, struct err *err);
/*
 * Renames a damaged day that is to be written, with the lock held. It is still read. inode: of the
 * file in which the damage was seen; 0: whatever there is.
 */
void store_sqlite_set_aside(struct store_sqlite *s, int64_t number, uint64_t inode,
			    const char *why);

void store_sqlite_remove_file(struct store_sqlite *s, const struct store_sqlite_file *f);

/* room.c: deletes what is too much, and says whose data is refused. With the lock held. */
int store_sqlite_make_room(struct store_sqlite *s, struct err *err);

/* repair.c: with the folder locked. */
/* Takes up repairs that were killed: their files are in place, or gone. */
void store_sqlite_finish_repairs(const struct store_sqlite *s);
int store_sqlite_repair_file(struct store_sqlite *s, const struct store_sqlite_file *file,
			     struct store_sqlite_report *report, struct err *err);

/* pack.c; with the lock held. */
int store_sqlite_pack_day(struct store_sqlite *s, int64_t number, int64_t now_ns, struct err *err);

/* rollup.c: within the open transaction; no-op if already rolled up. */
int store_sqlite_roll_up(struct store_writer *w, struct store_writer_tools *t, uint32_t stream,
			 struct err *err);

/* merge.c: merges small dictionary chunks into large ones, within the open transaction. */
int store_sqlite_merge_chunks(struct store_writer *w, struct store_writer_tools *t,
			      uint32_t service, bool always, struct err *err);

/* read.c */
typedef int store_sqlite_day_fn(void *ctx, struct store_day *day, struct err *err);
struct store_sqlite_span {
	int64_t from_ns;
	int64_t to_ns;
	uint64_t *damaged; /* adds up what could not be read; NULL: unwanted */
};
/*
 * Calls fn for each day in the span, oldest first, within a read transaction. If it returns
 * -EBADMSG, the rest of the day is lost; that is counted, and the iteration continues. Nothing on
 * disk is changed.
 */
int store_sqlite_each_day(struct store_sqlite *s, const struct store_sqlite_span *span,
			  store_sqlite_day_fn *fn, void *ctx, struct err *err);
/* The same for one file. Returns how much of it could not be read. */
int store_sqlite_read_file(struct store_sqlite *s, const struct store_sqlite_file *file,
			   store_sqlite_day_fn *fn, void *ctx, struct err *err);
/* 1 if the day has the service, otherwise 0. */
int store_sqlite_find_service(struct store_day *day, const char *service, uint32_t *ret_id,
			      struct err *err);
struct store_sqlite_stream {
	uint32_t id;
	uint32_t service;
	bool snapshot;
};
/* 1 if the day has the stream, otherwise 0. */
int store_sqlite_find_stream(struct store_day *day, const char *service, const char *type,
			     struct store_sqlite_stream *ret, struct err *err);
/* The window within the day, in ms: rounded up, as times are stored in whole ms. */
void store_sqlite_day_window(const struct store_day *day, int64_t from_ns, int64_t to_ns,
			     int64_t *ret_from_ms, int64_t *ret_to_ms);
/* One bit per label set of the service that passes the filters; NULL without filters. */
int store_sqlite_filter(struct store_day *day, uint32_t service, const struct store_window *window,
			uint8_t **ret_bits, struct err *err);
static inline bool store_sqlite_passes(const uint8_t *bits, uint32_t labelset)
{
	return !bits || (bits[labelset / 8] >> labelset % 8 & 1);
}

/* sum.c, series.c, label_totals.c, store/status.c, streams.c, metrics/query.c, events.c,
 * totals/overview.c */
void store_sqlite_status(struct store *store, struct store_status *ret_status);
int store_sqlite_sum(struct store *store, const struct store_window *window,
		     struct store_sum *ret_sum, struct err *err);
int store_sqlite_series(struct store *store, const struct store_window *window,
			const struct store_series_request *requests, size_t n, struct err *err);
int store_sqlite_label_totals(struct store *store, const struct store_window *window,
			      const char *key, struct store_label_total **ret_totals,
			      size_t *ret_len, struct err *err);
int store_sqlite_curve(struct store *store, const struct store_window *window,
		       const struct store_function *function, const struct store_curve *curve,
		       struct err *err);
int store_sqlite_streams(struct store *store, int64_t from_ns, int64_t to_ns,
			 struct store_stream **ret_streams, size_t *ret_len, struct err *err);
int store_sqlite_labelsets(struct store *store, const char *service, int64_t from_ns, int64_t to_ns,
			   struct store_labelset **ret_sets, size_t *ret_len, struct err *err);
int store_sqlite_metrics(struct store *store, const struct store_metric_query *query,
			 struct store_metric_answer *ret_answer, struct err *err);
int store_sqlite_events(struct store *store, const char *service, int64_t from_ns, int64_t to_ns,
			struct store_events_answer *ret_answer, struct err *err);
int store_sqlite_overview(struct store *store, const struct store_overview_query *query,
			  struct store_overview *ret_overview, struct err *err);
