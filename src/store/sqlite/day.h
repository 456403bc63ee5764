/*
 * src/store/sqlite/day.h: one day file: a self-contained SQLite database.
 *
 *   service(id, name)   stream(id, service, type, snapshot)   labelset(id, service, kv)
 *   frame_chunk(k, data), stack_chunk(k, data)   k = service << 32 | first id
 *   profile(k, data)    one collection of one process: k = store_day_key()
 *   point(k, total)     the same key: charts, times, label sets
 *   pack(k, data)       k = store_day_pack_key(): replaces the hour's profile rows
 *   rollup(k, data)     k = store_day_rollup_key()
 *   rolled(stream, collections)   its rollups are complete, and nothing was written since
 *
 * Since format 3, metrics and events (store/metrics/, store/sqlite/events.c):
 *
 *   metric(id, data)    its definition
 *   series(k, metric, part, attributes)   columns of a service: k = store_day_series_key()
 *   reading(k, data)    numbers of one resource at one time: k = store_day_key(), by service
 *   times(k, data)      the times of an hour's readings: k = store_day_times_key()
 *   hour(k, data)       an hour of one series: k = store_day_hour_key(); replaces the readings
 *   event(k, service, labelset, data)     k = store_day_event_key()
 *
 * Keys are packed into the integer primary key, which clusters by stream without an index.
 *
 * Since format 4, whose services are: owner(service, uid, bytes) (store/sqlite/owners.h); and each
 * page has a checksum (store/sqlite/vfs.h). A damaged page cannot be read: scans of a reader go on
 * behind it, and the day notes the damage. A writer gets -EBADMSG.
 *
 * Since format 5, totals of all services (store/totals/):
 *
 *   total_type(id, name, snapshot)
 *   total(k, data)      k = the minute of the day, or store_day_slot_key(): ten of them
 *   about(service, data)   its runtime and parent (store/totals/about.h)
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <sqlite3.h>

#include "base/err.h"
#include "base/view.h"
#include "store/sqlite/damage.h"

#define STORE_DAY_MS 86400000LL
#define STORE_DAY_NS 86400000000000LL
#define STORE_DAY_BUSY_MS 2000 /* how long to wait for another process */
#define STORE_DAY_MAX_STREAMS 65534U
#define STORE_DAY_MAX_LABELSETS ((1U << 20) - 1) /* labelset 0 stands for all past this limit */
#define STORE_DAY_MAX_PARTS 256U		 /* of a pack */
#define STORE_DAY_MAX_HOUR_PARTS 64U		 /* of an hour of a series */
#define STORE_DAY_MAX_LISTS (1U << 28)		 /* of times, of a service and hour */

enum store_day_sql {
	STORE_DAY_BEGIN,
	STORE_DAY_BEGIN_READ,
	STORE_DAY_COMMIT,
	STORE_DAY_ROLLBACK,
	STORE_DAY_PUT_SERVICE,
	STORE_DAY_PUT_STREAM,
	STORE_DAY_PUT_LABELSET,
	STORE_DAY_PUT_FRAMES,
	STORE_DAY_PUT_STACKS,
	STORE_DAY_PUT_PROFILE,
	STORE_DAY_PUT_POINT,
	STORE_DAY_PUT_PACK,
	STORE_DAY_PUT_ROLLUP,
	STORE_DAY_PUT_ROLLED,
	STORE_DAY_ADD_POINT,
	STORE_DAY_GET_PROFILE,
	STORE_DAY_SERVICES,
	STORE_DAY_STREAMS,
	STORE_DAY_LABELSETS,
	STORE_DAY_FRAMES,
	STORE_DAY_STACKS,
	STORE_DAY_PROFILES,
	STORE_DAY_PROFILE_KEYS,
	STORE_DAY_PACKS,
	STORE_DAY_PACK_LAST,
	STORE_DAY_ROLLUPS,
	STORE_DAY_ALL_ROLLED,
	STORE_DAY_ROLLED,
	STORE_DAY_POINTS,
	STORE_DAY_POINT_FIRST,
	STORE_DAY_POINT_LAST,
	STORE_DAY_DROP_PROFILE,
	STORE_DAY_DROP_PROFILES,
	STORE_DAY_DROP_STACKS,
	STORE_DAY_DROP_FRAMES,
	STORE_DAY_DROP_ROLLUPS,
	STORE_DAY_DROP_ROLLED,
	STORE_DAY_PUT_METRIC,
	STORE_DAY_PUT_SERIES,
	STORE_DAY_PUT_READING,
	STORE_DAY_SET_READING,
	STORE_DAY_PUT_TIMES,
	STORE_DAY_PUT_HOUR,
	STORE_DAY_PUT_EVENT,
	STORE_DAY_METRICS,
	STORE_DAY_SERIES,
	STORE_DAY_LABELSET,
	STORE_DAY_READINGS,
	STORE_DAY_READING_KEYS,
	STORE_DAY_TIMES,
	STORE_DAY_HOURS,
	STORE_DAY_HOUR_LAST,
	STORE_DAY_EVENTS,
	STORE_DAY_EVENT_LAST,
	STORE_DAY_DROP_READING,
	STORE_DAY_PUT_OWNER,
	STORE_DAY_OWNERS,
	STORE_DAY_SIZE_FRAMES,
	STORE_DAY_SIZE_STACKS,
	STORE_DAY_SIZE_PROFILES,
	STORE_DAY_SIZE_POINTS,
	STORE_DAY_SIZE_PACKS,
	STORE_DAY_SIZE_ROLLUPS,
	STORE_DAY_SIZE_READINGS,
	STORE_DAY_SIZE_TIMES,
	STORE_DAY_SIZE_HOURS,
	STORE_DAY_DROP_POINTS,
	STORE_DAY_DROP_PACKS,
	STORE_DAY_DROP_READINGS,
	STORE_DAY_DROP_TIMES,
	STORE_DAY_DROP_HOURS,
	STORE_DAY_DROP_EVENTS,
	STORE_DAY_PUT_TOTAL_TYPE,
	STORE_DAY_PUT_TOTAL,
	STORE_DAY_PUT_ABOUT,
	STORE_DAY_TOTAL_TYPES,
	STORE_DAY_TOTALS,
	STORE_DAY_TOTAL_KEYS,
	STORE_DAY_ABOUTS,
	STORE_DAY_DROP_TOTAL,
	STORE_DAY_DROP_ABOUT,
	STORE_DAY_N_SQL,
};

struct store_day {
	char path[512];
	int64_t number; /* days since 1970 */
	uint64_t inode; /* of the file that was opened */
	int format;
	bool writes;
	sqlite3 *db;
	sqlite3_stmt *stmts[STORE_DAY_N_SQL];
	int64_t ranges[STORE_DAY_N_SQL][2]; /* of scans: what is left */
	unsigned int n_skipped;
	struct store_damage damage;
};

static inline int64_t store_day_key(uint32_t stream, int64_t ms, uint32_t labelset)
{
	return (int64_t)stream << 47 | ms << 20 | labelset;
}

static inline int64_t store_day_key_ms(int64_t key)
{
	return key >> 20 & ((1 << 27) - 1);
}

static inline uint32_t store_day_key_labelset(int64_t key)
{
	return key & STORE_DAY_MAX_LABELSETS;
}

static inline int64_t store_day_pack_key(uint32_t stream, unsigned int hour, uint32_t labelset,
					 unsigned int part)
{
	return (int64_t)stream << 33 | (int64_t)hour << 28 | (int64_t)labelset << 8 | part;
}

static inline int64_t store_day_rollup_key(uint32_t stream, uint32_t labelset)
{
	return (int64_t)stream << 20 | labelset;
}

static inline int64_t store_day_series_key(uint32_t service, uint32_t column)
{
	return (int64_t)service << 32 | column;
}

/* Lists of times are numbered per service and hour. */
static inline int64_t store_day_times_key(uint32_t service, unsigned int hour, uint32_t list)
{
	return (int64_t)service << 33 | (int64_t)hour << 28 | list;
}

static inline int64_t store_day_hour_key(uint32_t service, uint32_t column, unsigned int hour,
					 uint32_t labelset)
{
	return (int64_t)service << 47 | (int64_t)column << 31 | (int64_t)hour << 26 |
	       (int64_t)labelset << 6;
}

/* Events of one millisecond are numbered. */
static inline int64_t store_day_event_key(int64_t ms, uint32_t number)
{
	return ms << 20 | number;
}

#define STORE_DAY_MINUTES 1440

/* Ten minutes of totals. */
static inline int64_t store_day_slot_key(unsigned int slot)
{
	return 4096 + (int64_t)slot;
}

/* Whether it has the tables of metrics and events. */
static inline bool store_day_has_metrics(const struct store_day *d)
{
	return d->format >= 3;
}

static inline bool store_day_has_owners(const struct store_day *d)
{
	return d->format >= 4;
}

/* A file that was begun without them goes on without: they would lack what was before. */
static inline bool store_day_has_totals(const struct store_day *d)
{
	return d->format >= 5;
}

/* "DIR/2026-11-15.db" */
void store_day_path(char *path, size_t size, const char *dir, int64_t number);

/* Notes damage; sql identifies the table. */
void store_day_damaged(struct store_day *d, enum store_day_sql sql, int64_t key);

/*
 * -ENOENT: no such day (for reading). -EBADMSG: damaged. -ENOSPC, -EROFS: not writable. A zeroed or
 * failed struct store_day may be closed.
 */
int store_day_open(struct store_day *d, const char *dir, int64_t number, bool write,
		   struct err *err);
/* A file of this name in the directory: one that was set aside, or that is being repaired. */
int store_day_open_file(struct store_day *d, const char *dir, const char *name, int64_t number,
			bool write, struct err *err);
void store_day_close(struct store_day *d);
/* That of a new file of this format, 4 or 5, without anything in its tables. */
int store_day_first_page(uint8_t *page, int format);
/* Its totals are damaged: it becomes one without. */
int store_day_drop_totals(struct store_day *d, struct err *err);

/*
 * Binds up to three integers; the statement belongs to the day. A scan without a range takes the
 * whole table.
 */
int store_day_query(struct store_day *d, enum store_day_sql sql, const int64_t *args, int n,
		    sqlite3_stmt **ret_stmt, struct err *err);
/* 1: a row; 0: no more, and the statement is reset. */
int store_day_next(struct store_day *d, sqlite3_stmt *stmt, struct err *err);
void store_day_done(sqlite3_stmt *stmt);
/* The first column of the first row. 1: there is one; 0: no row. */
int store_day_value(struct store_day *d, enum store_day_sql sql, const int64_t *args, int n,
		    int64_t *ret_value, struct err *err);
/* For statements without rows. */
int store_day_exec(struct store_day *d, enum store_day_sql sql, const int64_t *args, int n,
		   struct err *err);
int store_day_put(struct store_day *d, enum store_day_sql sql, int64_t key, struct view data,
		  struct err *err);
/* The blob of a row, borrowed until the next step. */
struct view store_day_blob(sqlite3_stmt *stmt, int column);
/* The message and -errno for SQLite's error. */
int store_day_error(struct store_day *d, int rc, struct err *err);
