/*
 * src/store/sqlite/day.h: one day file: a self-contained SQLite database.
 *
 *   service(id, name)   stream(id, service, type, snapshot)   labelset(id, service, kv)
 *   frame_chunk(k, data), stack_chunk(k, data)   k = service << 32 | first id
 *   profile(k, data)    one collection of one process: k = day_key()
 *   point(k, total)     the same key: charts, times, label sets
 *   pack(k, data)       k = day_pack_key(): replaces the hour's profile rows
 *   rollup(k, data)     k = day_rollup_key(); rolled(stream, collections): the stream's rollups
 *                       are complete, and nothing was written since
 *
 * Since format 3, metrics and events (store/metrics/, store/sqlite/events.c):
 *
 *   metric(id, data)    its definition
 *   series(k, metric, part, attributes)   columns of a service: k = day_series_key()
 *   reading(k, data)    numbers of one resource at one time: k = day_key(service, ms, labelset)
 *   times(k, data)      the times of an hour's readings: k = day_times_key()
 *   hour(k, data)       an hour of one series: k = day_hour_key(); replaces the readings
 *   event(k, service, labelset, data)     k = day_event_key()
 *
 * Keys are packed into the integer primary key, which clusters by stream without an index.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <sqlite3.h>

#include "base/err.h"
#include "base/view.h"

#define DAY_MS 86400000LL
#define DAY_NS 86400000000000LL
#define DAY_MAX_STREAMS 65534U
#define DAY_MAX_LABELSETS ((1U << 20) - 1) /* labelset 0 stands for all past this limit */
#define DAY_MAX_PARTS 256U		   /* of a pack */
#define DAY_MAX_HOUR_PARTS 64U		   /* of an hour of a series */
#define DAY_MAX_LISTS (1U << 28)	   /* of times, of a service and hour */

enum day_sql {
	DAY_BEGIN,
	DAY_BEGIN_READ,
	DAY_COMMIT,
	DAY_ROLLBACK,
	DAY_PUT_SERVICE,
	DAY_PUT_STREAM,
	DAY_PUT_LABELSET,
	DAY_PUT_FRAMES,
	DAY_PUT_STACKS,
	DAY_PUT_PROFILE,
	DAY_PUT_POINT,
	DAY_PUT_PACK,
	DAY_PUT_ROLLUP,
	DAY_PUT_ROLLED,
	DAY_ADD_POINT,
	DAY_GET_PROFILE,
	DAY_SERVICES,
	DAY_STREAMS,
	DAY_LABELSETS,
	DAY_FRAMES,
	DAY_STACKS,
	DAY_PROFILES,
	DAY_PROFILE_KEYS,
	DAY_PACKS,
	DAY_PACK_LAST,
	DAY_ROLLUPS,
	DAY_ANY_ROLLED,
	DAY_ROLLED,
	DAY_POINTS,
	DAY_POINT_FIRST,
	DAY_POINT_LAST,
	DAY_DROP_PROFILE,
	DAY_DROP_PROFILES,
	DAY_DROP_STACKS,
	DAY_DROP_FRAMES,
	DAY_DROP_ROLLUPS,
	DAY_DROP_ROLLED,
	DAY_PUT_METRIC,
	DAY_PUT_SERIES,
	DAY_PUT_READING,
	DAY_SET_READING,
	DAY_PUT_TIMES,
	DAY_PUT_HOUR,
	DAY_PUT_EVENT,
	DAY_METRICS,
	DAY_SERIES,
	DAY_LABELSET,
	DAY_READINGS,
	DAY_READING_KEYS,
	DAY_TIMES,
	DAY_HOURS,
	DAY_HOUR_LAST,
	DAY_EVENTS,
	DAY_EVENT_LAST,
	DAY_DROP_READING,
	DAY_N_SQL,
};

struct day {
	char path[512];
	int64_t number; /* days since 1970 */
	uint64_t inode; /* of the file that was opened */
	int format;
	sqlite3 *db;
	sqlite3_stmt *stmts[DAY_N_SQL];
};

static inline int64_t day_key(uint32_t stream, int64_t ms, uint32_t labelset)
{
	return (int64_t)stream << 47 | ms << 20 | labelset;
}

static inline int64_t day_key_ms(int64_t key)
{
	return key >> 20 & ((1 << 27) - 1);
}

static inline uint32_t day_key_labelset(int64_t key)
{
	return key & DAY_MAX_LABELSETS;
}

static inline int64_t day_pack_key(uint32_t stream, unsigned int hour, uint32_t labelset,
				   unsigned int part)
{
	return (int64_t)stream << 33 | (int64_t)hour << 28 | (int64_t)labelset << 8 | part;
}

static inline int64_t day_rollup_key(uint32_t stream, uint32_t labelset)
{
	return (int64_t)stream << 20 | labelset;
}

static inline int64_t day_series_key(uint32_t service, uint32_t column)
{
	return (int64_t)service << 32 | column;
}

/* Lists of times are numbered per service and hour. */
static inline int64_t day_times_key(uint32_t service, unsigned int hour, uint32_t list)
{
	return (int64_t)service << 33 | (int64_t)hour << 28 | list;
}

static inline int64_t day_hour_key(uint32_t service, uint32_t column, unsigned int hour,
				   uint32_t labelset)
{
	return (int64_t)service << 47 | (int64_t)column << 31 | (int64_t)hour << 26 |
	       (int64_t)labelset << 6;
}

/* Events of one millisecond are numbered. */
static inline int64_t day_event_key(int64_t ms, uint32_t number)
{
	return ms << 20 | number;
}

/* Whether it has the tables of metrics and events. */
static inline bool day_has_metrics(const struct day *d)
{
	return d->format >= 3;
}

/* "DIR/2026-11-15.db" */
void day_path(char *path, size_t size, const char *dir, int64_t number);

/*
 * -ENOENT: no such day (for reading). -EBADMSG: damaged. -ENOSPC, -EROFS: not writable. A zeroed or
 * failed struct day may be closed.
 */
int day_open(struct day *d, const char *dir, int64_t number, bool write, struct err *err);
void day_close(struct day *d);

/* Binds up to three integers; the statement belongs to the day. */
int day_query(struct day *d, enum day_sql sql, const int64_t *args, int n, sqlite3_stmt **ret_stmt,
	      struct err *err);
/* 1: a row; 0: no more, and the statement is reset. */
int day_next(struct day *d, sqlite3_stmt *stmt, struct err *err);
void day_done(sqlite3_stmt *stmt);
/* For statements without rows. */
int day_exec(struct day *d, enum day_sql sql, const int64_t *args, int n, struct err *err);
int day_put(struct day *d, enum day_sql sql, int64_t key, struct view data, struct err *err);
/* The blob of a row, borrowed until the next step. */
struct view day_blob(sqlite3_stmt *stmt, int column);
/* The message and -errno for SQLite's error. */
int day_error(struct day *d, int rc, struct err *err);
