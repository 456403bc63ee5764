/* src/store/sqlite/day.c: opens day files, and turns SQLite's errors into ours. */
#include "store/sqlite/day.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"

/*
 * 2: frame ids of stacks have a fixed width. 3: tables of metrics and events. Older files are still
 * readable, and get the tables when written to.
 */
#define DAY_FORMAT 3

static const char day_schema[] =
	"CREATE TABLE IF NOT EXISTS service(id INTEGER PRIMARY KEY, name TEXT NOT NULL);"
	"CREATE TABLE IF NOT EXISTS stream(id INTEGER PRIMARY KEY, service INTEGER NOT NULL,"
	" type TEXT NOT NULL, snapshot INTEGER NOT NULL);"
	"CREATE TABLE IF NOT EXISTS labelset(id INTEGER PRIMARY KEY, service INTEGER NOT NULL,"
	" kv BLOB NOT NULL);"
	"CREATE TABLE IF NOT EXISTS frame_chunk(k INTEGER PRIMARY KEY, data BLOB NOT NULL);"
	"CREATE TABLE IF NOT EXISTS stack_chunk(k INTEGER PRIMARY KEY, data BLOB NOT NULL);"
	"CREATE TABLE IF NOT EXISTS profile(k INTEGER PRIMARY KEY, data BLOB NOT NULL);"
	"CREATE TABLE IF NOT EXISTS point(k INTEGER PRIMARY KEY, total INTEGER NOT NULL);"
	"CREATE TABLE IF NOT EXISTS pack(k INTEGER PRIMARY KEY, data BLOB NOT NULL);"
	"CREATE TABLE IF NOT EXISTS rollup(k INTEGER PRIMARY KEY, data BLOB NOT NULL);"
	"CREATE TABLE IF NOT EXISTS rolled(stream INTEGER PRIMARY KEY, collections INTEGER NOT "
	"NULL);"
	"CREATE TABLE IF NOT EXISTS metric(id INTEGER PRIMARY KEY, data BLOB NOT NULL);"
	"CREATE TABLE IF NOT EXISTS series(k INTEGER PRIMARY KEY, metric INTEGER NOT NULL,"
	" part INTEGER NOT NULL, attributes BLOB NOT NULL);"
	"CREATE TABLE IF NOT EXISTS reading(k INTEGER PRIMARY KEY, data BLOB NOT NULL);"
	"CREATE TABLE IF NOT EXISTS times(k INTEGER PRIMARY KEY, data BLOB NOT NULL);"
	"CREATE TABLE IF NOT EXISTS hour(k INTEGER PRIMARY KEY, data BLOB NOT NULL);"
	"CREATE TABLE IF NOT EXISTS event(k INTEGER PRIMARY KEY, service INTEGER NOT NULL,"
	" labelset INTEGER NOT NULL, data BLOB NOT NULL);"
	"PRAGMA user_version=3;";

static const char *const day_sql_texts[STORE_DAY_N_SQL] = {
	[STORE_DAY_BEGIN] = "BEGIN IMMEDIATE",
	[STORE_DAY_BEGIN_READ] = "BEGIN",
	[STORE_DAY_COMMIT] = "COMMIT",
	[STORE_DAY_ROLLBACK] = "ROLLBACK",
	[STORE_DAY_PUT_SERVICE] = "INSERT INTO service VALUES(?,?)",
	[STORE_DAY_PUT_STREAM] = "INSERT INTO stream VALUES(?,?,?,?)",
	[STORE_DAY_PUT_LABELSET] = "INSERT INTO labelset VALUES(?,?,?)",
	[STORE_DAY_PUT_FRAMES] = "INSERT OR REPLACE INTO frame_chunk VALUES(?,?)",
	[STORE_DAY_PUT_STACKS] = "INSERT OR REPLACE INTO stack_chunk VALUES(?,?)",
	[STORE_DAY_PUT_PROFILE] = "INSERT OR REPLACE INTO profile VALUES(?,?)",
	[STORE_DAY_PUT_POINT] = "INSERT OR IGNORE INTO point VALUES(?,?)",
	[STORE_DAY_PUT_PACK] = "INSERT INTO pack VALUES(?,?)",
	[STORE_DAY_PUT_ROLLUP] = "INSERT OR REPLACE INTO rollup VALUES(?,?)",
	[STORE_DAY_PUT_ROLLED] = "INSERT OR REPLACE INTO rolled VALUES(?,?)",
	[STORE_DAY_ADD_POINT] = "UPDATE point SET total=?2 WHERE k=?1",
	[STORE_DAY_GET_PROFILE] = "SELECT data FROM profile WHERE k=?",
	[STORE_DAY_SERVICES] = "SELECT id,name FROM service",
	[STORE_DAY_STREAMS] =
		("SELECT t.id,service,type,snapshot,name FROM stream t, service s WHERE "
		 "s.id=service"),
	[STORE_DAY_LABELSETS] = "SELECT id,service,kv FROM labelset",
	[STORE_DAY_FRAMES] = "SELECT k,data FROM frame_chunk WHERE k BETWEEN ? AND ?",
	[STORE_DAY_STACKS] = "SELECT k,data FROM stack_chunk WHERE k BETWEEN ? AND ?",
	[STORE_DAY_PROFILES] = "SELECT k,data FROM profile WHERE k>=? AND k<?",
	[STORE_DAY_PROFILE_KEYS] = "SELECT k FROM profile WHERE k>=? AND k<?",
	[STORE_DAY_PACKS] = "SELECT k,data FROM pack WHERE k>=? AND k<?",
	[STORE_DAY_PACK_LAST] = "SELECT max(k) FROM pack WHERE k BETWEEN ? AND ?",
	[STORE_DAY_ROLLUPS] = "SELECT k,data FROM rollup WHERE k>=? AND k<?",
	[STORE_DAY_ANY_ROLLED] = "SELECT stream FROM rolled LIMIT 1",
	[STORE_DAY_ROLLED] = "SELECT collections FROM rolled WHERE stream=?",
	[STORE_DAY_POINTS] = "SELECT k,total FROM point WHERE k>=? AND k<?",
	[STORE_DAY_POINT_FIRST] = "SELECT min(k) FROM point WHERE k>=? AND k<?",
	[STORE_DAY_POINT_LAST] = "SELECT max(k) FROM point WHERE k>=? AND k<?",
	[STORE_DAY_DROP_PROFILE] = "DELETE FROM profile WHERE k=?",
	[STORE_DAY_DROP_PROFILES] = "DELETE FROM profile WHERE k>=? AND k<?",
	[STORE_DAY_DROP_STACKS] = "DELETE FROM stack_chunk WHERE k BETWEEN ? AND ?",
	[STORE_DAY_DROP_FRAMES] = "DELETE FROM frame_chunk WHERE k BETWEEN ? AND ?",
	[STORE_DAY_DROP_ROLLUPS] = "DELETE FROM rollup WHERE k>=? AND k<?",
	[STORE_DAY_DROP_ROLLED] = "DELETE FROM rolled WHERE stream=?",
	[STORE_DAY_PUT_METRIC] = "INSERT INTO metric VALUES(?,?)",
	[STORE_DAY_PUT_SERIES] = "INSERT INTO series VALUES(?,?,?,?)",
	[STORE_DAY_PUT_READING] = "INSERT OR IGNORE INTO reading VALUES(?,?)",
	[STORE_DAY_SET_READING] = "INSERT OR REPLACE INTO reading VALUES(?,?)",
	[STORE_DAY_PUT_TIMES] = "INSERT OR REPLACE INTO times VALUES(?,?)",
	[STORE_DAY_PUT_HOUR] = "INSERT INTO hour VALUES(?,?)",
	[STORE_DAY_PUT_EVENT] = "INSERT INTO event VALUES(?1,?3,?4,?2)",
	[STORE_DAY_METRICS] = "SELECT id,data FROM metric",
	[STORE_DAY_SERIES] = "SELECT k,metric,part,attributes FROM series WHERE k>=? AND k<?",
	[STORE_DAY_LABELSET] = "SELECT kv FROM labelset WHERE id=?",
	[STORE_DAY_READINGS] = "SELECT k,data FROM reading WHERE k>=? AND k<?",
	[STORE_DAY_READING_KEYS] = "SELECT k FROM reading WHERE k>=? AND k<?",
	[STORE_DAY_TIMES] = "SELECT k,data FROM times WHERE k>=? AND k<?",
	[STORE_DAY_HOURS] = "SELECT k,data FROM hour WHERE k>=? AND k<?",
	[STORE_DAY_HOUR_LAST] = "SELECT max(k) FROM hour WHERE k>=? AND k<?",
	[STORE_DAY_EVENTS] = "SELECT k,service,labelset,data FROM event WHERE k>=? AND k<?",
	[STORE_DAY_EVENT_LAST] = "SELECT max(k) FROM event WHERE k>=? AND k<?",
	[STORE_DAY_DROP_READING] = "DELETE FROM reading WHERE k=?",
};

void store_day_path(char *path, size_t size, const char *dir, int64_t number)
{
	time_t seconds = (time_t)(number * 86400);
	char name[32] = "";
	struct tm tm;

	if (gmtime_r(&seconds, &tm))
		(void)strftime(name, sizeof(name), "%Y-%m-%d", &tm);
	(void)snprintf(path, size, "%s/%s.db", dir, name);
}

int store_day_error(struct store_day *d, int rc, struct err *err)
{
	int os = d->db ? sqlite3_system_errno(d->db) : 0;
	bool failed = (rc & 0xff) == SQLITE_IOERR || (rc & 0xff) == SQLITE_CANTOPEN;

	/* Only then does the system errno belong to this failure. */
	if ((rc & 0xff) == SQLITE_FULL || (failed && (os == ENOSPC || os == EDQUOT)))
		return err_lack(err, -ENOSPC, ERR_CAUSE_DISK, "free some space",
				"%s: the disk is full", d->path);
	switch (rc & 0xff) {
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return err_set(err, -EBADMSG, "%s: the file is damaged (%s)", d->path,
			       sqlite3_errstr(rc));
	case SQLITE_READONLY:
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return err_lack(err, -EROFS, ERR_CAUSE_DISK,
				"check the directory's owner and permissions",
				"%s: cannot be opened or written (%s)", d->path,
				os ? strerror(os) : sqlite3_errstr(rc));
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return err_set(err, -EBUSY, "%s: another process is writing to it", d->path);
	case SQLITE_NOMEM:
		return err_oom(err);
	default:
		break;
	}
	return err_set(err, failed && os == EROFS ? -EROFS : -EIO, "%s: %s", d->path,
		       d->db ? sqlite3_errmsg(d->db) : sqlite3_errstr(rc));
}

static int day_simple(struct store_day *d, const char *sql, struct err *err)
{
	int rc = sqlite3_exec(d->db, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : store_day_error(d, rc, err);
}

static int day_format(struct store_day *d, int *ret_format, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(d->db, "PRAGMA user_version", -1, &stmt, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW)
		*ret_format = sqlite3_column_int(stmt, 0);
	(void)sqlite3_finalize(stmt);
	return rc == SQLITE_ROW ? 0 : store_day_error(d, rc, err);
}

/* Writes the schema into a new or older file; explains a file that is not ours. */
static int day_check_format(struct store_day *d, bool write, struct err *err)
{
	int r = day_format(d, &d->format, err);
	int format = d->format;

	if (r < 0)
		return r;
	if (format > DAY_FORMAT)
		return err_set(err, -ENOTSUP,
			       "%s: written by a newer sonde (format %d; this one supports %d)",
			       d->path, format, DAY_FORMAT);
	if (format == DAY_FORMAT || (format > 0 && !write))
		return 0;
	if (!write)
		return -ENOENT; /* it is being made */
	r = day_simple(d, "BEGIN IMMEDIATE", err);
	if (r == 0)
		r = day_simple(d, day_schema, err);
	if (r == 0)
		r = day_simple(d, "COMMIT", err);
	if (r == 0)
		d->format = DAY_FORMAT;
	return r;
}

/*
 * A WAL must be read even if it cannot be written, so SQLite needs to create its index. In a
 * read-only directory without a WAL nobody writes, and the file is read as is.
 */
static bool day_is_frozen(const struct store_day *d, const char *dir)
{
	char log[sizeof(d->path) + 8];

	(void)snprintf(log, sizeof(log), "%s-wal", d->path);
	return access(dir, W_OK) < 0 && (errno == EROFS || errno == EACCES) &&
	       access(log, F_OK) < 0;
}

/*
 * What a machine does is its owner's affair. SQLite gives its other files the mode of this one. One
 * that exists is not opened: closing it would release the locks that SQLite has on it.
 */
static void day_keep_private(const struct store_day *d)
{
	int fd = open(d->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
	else
		(void)chmod(d->path, 0600);
}

static int day_connect(struct store_day *d, const char *dir, int flags)
{
	char uri[3 * sizeof(d->path) + 32] = "file:";
	size_t len = strlen(uri);

	if (flags & SQLITE_OPEN_CREATE)
		day_keep_private(d);
	if (flags & SQLITE_OPEN_CREATE || !day_is_frozen(d, dir))
		return sqlite3_open_v2(d->path, &d->db, flags, NULL);
	for (const char *p = d->path; *p; p++)
		len += (size_t)snprintf(uri + len, sizeof(uri) - len,
					strchr("?#%", *p) ? "%%%02x" : "%c", *p);
	(void)snprintf(uri + len, sizeof(uri) - len, "?immutable=1");
	return sqlite3_open_v2(uri, &d->db,
			       SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI, NULL);
}

int store_day_open(struct store_day *d, const char *dir, int64_t number, bool write,
		   struct err *err)
{
	int flags = write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READWRITE;
	struct stat st;
	int r, rc;

	*d = (struct store_day){.number = number};
	store_day_path(d->path, sizeof(d->path), dir, number);
	if (!write && access(d->path, F_OK) < 0)
		return -ENOENT;
	/*
	 * Readers of a WAL need its index and may have to create it: so not read-only if possible.
	 */
	rc = day_connect(d, dir, flags | SQLITE_OPEN_NOMUTEX);
	if (stat(d->path, &st) == 0)
		d->inode = st.st_ino;
	if (rc != SQLITE_OK)
		return store_day_error(d, rc, err);
	(void)sqlite3_busy_timeout(d->db, 2000);
	r = day_simple(d,
		       write ? "PRAGMA page_size=4096; PRAGMA auto_vacuum=INCREMENTAL;"
			       "PRAGMA journal_mode=WAL;"
			       "PRAGMA synchronous=FULL; PRAGMA cache_size=-4096;"
			       "PRAGMA secure_delete=OFF; PRAGMA wal_autocheckpoint=2000;"
			       "PRAGMA journal_size_limit=8388608"
			     : "PRAGMA query_only=1; PRAGMA cache_size=-2048",
		       err);
	return r < 0 ? r : day_check_format(d, write, err);
}

void store_day_close(struct store_day *d)
{
	for (size_t i = 0; i < STORE_DAY_N_SQL; i++)
		(void)sqlite3_finalize(d->stmts[i]);
	(void)sqlite3_close(d->db);
	d->db = NULL;
	memset(d->stmts, 0, sizeof(d->stmts));
}

int store_day_query(struct store_day *d, enum store_day_sql sql, const int64_t *args, int n,
		    sqlite3_stmt **ret_stmt, struct err *err)
{
	int rc = SQLITE_OK;

	if (!d->stmts[sql])
		rc = sqlite3_prepare_v3(d->db, day_sql_texts[sql], -1, SQLITE_PREPARE_PERSISTENT,
					&d->stmts[sql], NULL);
	for (int i = 0; rc == SQLITE_OK && i < n; i++)
		rc = sqlite3_bind_int64(d->stmts[sql], i + 1, args[i]);
	if (rc != SQLITE_OK)
		return store_day_error(d, rc, err);
	*ret_stmt = d->stmts[sql];
	return 0;
}

int store_day_next(struct store_day *d, sqlite3_stmt *stmt, struct err *err)
{
	int rc = sqlite3_step(stmt);
	int r = 0;

	if (rc == SQLITE_ROW)
		return 1;
	if (rc != SQLITE_DONE)
		r = store_day_error(d, rc, err);
	store_day_done(stmt);
	return r;
}

void store_day_done(sqlite3_stmt *stmt)
{
	(void)sqlite3_reset(stmt);
	(void)sqlite3_clear_bindings(stmt);
}

int store_day_exec(struct store_day *d, enum store_day_sql sql, const int64_t *args, int n,
		   struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(d, sql, args, n, &stmt, err);

	return r < 0 ? r : store_day_next(d, stmt, err);
}

int store_day_put(struct store_day *d, enum store_day_sql sql, int64_t key, struct view data,
		  struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(d, sql, &key, 1, &stmt, err);
	int rc;

	if (r < 0)
		return r;
	rc = sqlite3_bind_blob64(stmt, 2, data.data, data.len, SQLITE_STATIC);
	return rc == SQLITE_OK ? store_day_next(d, stmt, err) : store_day_error(d, rc, err);
}

struct view store_day_blob(sqlite3_stmt *stmt, int column)
{
	const void *data = sqlite3_column_blob(stmt, column);

	return view_of(data, (size_t)sqlite3_column_bytes(stmt, column));
}
