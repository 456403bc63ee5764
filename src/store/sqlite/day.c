/* src/store/sqlite/day.c: opens day files, and turns SQLite's errors into ours. */
#include "store/sqlite/day.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "store/sqlite/seal.h"
#include "store/sqlite/vfs.h"

/*
 * 2: frame ids of stacks have a fixed width. 3: tables of metrics and events. 4: pages have
 * checksums. 5: totals. Older files are still readable, and get the tables of 3 when written to;
 * checksums and totals only come with a new file.
 */
#define DAY_FORMAT 5
#define DAY_FORMAT_CHECKSUMS 4
#define DAY_FORMAT_TABLES 3
#define DAY_MAX_SKIPPED 256U /* damaged places per connection */

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
	"CREATE TABLE IF NOT EXISTS owner(service INTEGER PRIMARY KEY, uid INTEGER NOT NULL,"
	" bytes INTEGER NOT NULL);";

static const char day_schema_totals[] =
	"CREATE TABLE total_type(id INTEGER PRIMARY KEY, name TEXT NOT NULL,"
	" snapshot INTEGER NOT NULL);"
	"CREATE TABLE total(k INTEGER PRIMARY KEY, data BLOB NOT NULL);"
	"CREATE TABLE about(service INTEGER PRIMARY KEY, data BLOB NOT NULL);";

#define DAY_SIZE(table)                                                                            \
	("SELECT coalesce(sum(length(data)+16),0) FROM " table " WHERE k>=? AND k<?")

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
	[STORE_DAY_SERVICES] = "SELECT id,name FROM service WHERE id>=? AND id<?",
	[STORE_DAY_STREAMS] =
		("SELECT t.id,service,type,snapshot,name FROM stream t CROSS JOIN service s WHERE "
		 "s.id=service AND t.id>=? AND t.id<?"),
	[STORE_DAY_LABELSETS] = "SELECT id,service,kv FROM labelset WHERE id>=? AND id<?",
	[STORE_DAY_FRAMES] = "SELECT k,data FROM frame_chunk WHERE k BETWEEN ? AND ?",
	[STORE_DAY_STACKS] = "SELECT k,data FROM stack_chunk WHERE k BETWEEN ? AND ?",
	[STORE_DAY_PROFILES] = "SELECT k,data FROM profile WHERE k>=? AND k<?",
	[STORE_DAY_PROFILE_KEYS] = "SELECT k FROM profile WHERE k>=? AND k<?",
	[STORE_DAY_PACKS] = "SELECT k,data FROM pack WHERE k>=? AND k<?",
	[STORE_DAY_PACK_LAST] = "SELECT max(k) FROM pack WHERE k BETWEEN ? AND ?",
	[STORE_DAY_ROLLUPS] = "SELECT k,data FROM rollup WHERE k>=? AND k<?",
	[STORE_DAY_ALL_ROLLED] =
		"SELECT stream,collections FROM rolled WHERE stream>=? AND stream<?",
	[STORE_DAY_ROLLED] = "SELECT collections FROM rolled WHERE stream=?",
	[STORE_DAY_POINTS] = "SELECT k,total FROM point WHERE k>=? AND k<?",
	[STORE_DAY_POINT_FIRST] = "SELECT k FROM point WHERE k>=? AND k<? LIMIT 1",
	[STORE_DAY_POINT_LAST] = "SELECT k FROM point WHERE k>=? AND k<? ORDER BY k DESC LIMIT 1",
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
	[STORE_DAY_METRICS] = "SELECT id,data FROM metric WHERE id>=? AND id<?",
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
	[STORE_DAY_PUT_OWNER] = "INSERT OR REPLACE INTO owner VALUES(?,?,?)",
	[STORE_DAY_OWNERS] = "SELECT service,uid,bytes FROM owner WHERE service>=? AND service<?",
	[STORE_DAY_SIZE_FRAMES] = DAY_SIZE("frame_chunk"),
	[STORE_DAY_SIZE_STACKS] = DAY_SIZE("stack_chunk"),
	[STORE_DAY_SIZE_PROFILES] = DAY_SIZE("profile"),
	/* Rows of about this length. */
	[STORE_DAY_SIZE_POINTS] = "SELECT count(*)*16 FROM point WHERE k>=? AND k<?",
	[STORE_DAY_SIZE_PACKS] = DAY_SIZE("pack"),
	[STORE_DAY_SIZE_ROLLUPS] = DAY_SIZE("rollup"),
	[STORE_DAY_SIZE_READINGS] = DAY_SIZE("reading"),
	[STORE_DAY_SIZE_TIMES] = DAY_SIZE("times"),
	[STORE_DAY_SIZE_HOURS] = DAY_SIZE("hour"),
	[STORE_DAY_DROP_POINTS] = "DELETE FROM point WHERE k>=? AND k<?",
	[STORE_DAY_DROP_PACKS] = "DELETE FROM pack WHERE k>=? AND k<?",
	[STORE_DAY_DROP_READINGS] = "DELETE FROM reading WHERE k>=? AND k<?",
	[STORE_DAY_DROP_TIMES] = "DELETE FROM times WHERE k>=? AND k<?",
	/* The hour is inside the key. */
	[STORE_DAY_DROP_HOURS] = "DELETE FROM hour WHERE k>=? AND k<? AND (k>>26&31)<?",
	[STORE_DAY_DROP_EVENTS] = "DELETE FROM event WHERE k<? AND service=?",
	[STORE_DAY_PUT_TOTAL_TYPE] = "INSERT INTO total_type VALUES(?1,?3,?2)",
	[STORE_DAY_PUT_TOTAL] = "INSERT OR REPLACE INTO total VALUES(?,?)",
	[STORE_DAY_PUT_ABOUT] = "INSERT OR REPLACE INTO about VALUES(?,?)",
	[STORE_DAY_TOTAL_TYPES] = "SELECT id,name,snapshot FROM total_type WHERE id>=? AND id<?",
	[STORE_DAY_TOTALS] = "SELECT k,data FROM total WHERE k>=? AND k<?",
	[STORE_DAY_TOTAL_KEYS] = "SELECT k FROM total WHERE k>=? AND k<?",
	[STORE_DAY_ABOUTS] = "SELECT service,data FROM about WHERE service>=? AND service<?",
	[STORE_DAY_DROP_TOTAL] = "DELETE FROM total WHERE k=?",
	[STORE_DAY_DROP_ABOUT] = "DELETE FROM about WHERE service=?",
};

/* Those whose first column is the key of a range. */
static const bool day_scans[STORE_DAY_N_SQL] = {
	[STORE_DAY_SERVICES] = true,	 [STORE_DAY_STREAMS] = true,
	[STORE_DAY_LABELSETS] = true,	 [STORE_DAY_FRAMES] = true,
	[STORE_DAY_STACKS] = true,	 [STORE_DAY_PROFILES] = true,
	[STORE_DAY_PROFILE_KEYS] = true, [STORE_DAY_PACKS] = true,
	[STORE_DAY_ROLLUPS] = true,	 [STORE_DAY_POINTS] = true,
	[STORE_DAY_POINT_FIRST] = true,	 [STORE_DAY_METRICS] = true,
	[STORE_DAY_SERIES] = true,	 [STORE_DAY_READINGS] = true,
	[STORE_DAY_READING_KEYS] = true, [STORE_DAY_OWNERS] = true,
	[STORE_DAY_ALL_ROLLED] = true,	 [STORE_DAY_TIMES] = true,
	[STORE_DAY_HOURS] = true,	 [STORE_DAY_EVENTS] = true,
	[STORE_DAY_TOTAL_TYPES] = true,	 [STORE_DAY_TOTALS] = true,
	[STORE_DAY_TOTAL_KEYS] = true,	 [STORE_DAY_ABOUTS] = true,
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

void store_day_damaged(struct store_day *d, enum store_day_sql sql, int64_t key)
{
	uint64_t where = hash_mix(hash_u64(d->inode << 8 | sql) + (uint64_t)key);

	d->damage.found++;
	if (d->damage.n < STORE_DAMAGE_MAX)
		d->damage.where[d->damage.n++] = where;
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

static int day_set_format(struct store_day *d, int format, struct err *err)
{
	char sql[40];

	(void)snprintf(sql, sizeof(sql), "PRAGMA user_version=%d", format);
	return day_simple(d, sql, err);
}

static int day_write_schema(struct store_day *d, int format, struct err *err)
{
	int r = day_simple(d, "BEGIN IMMEDIATE", err);

	if (r == 0)
		r = day_simple(d, day_schema, err);
	if (r == 0 && format == DAY_FORMAT)
		r = day_simple(d, day_schema_totals, err);
	if (r == 0)
		r = day_set_format(d, format, err);
	if (r == 0)
		r = day_simple(d, "COMMIT", err);
	return r;
}

/* Writes the schema into a new or older file; explains a file that is not ours. */
static int day_check_format(struct store_day *d, bool write, struct err *err)
{
	int r = day_format(d, &d->format, err);
	int format = d->format, now;

	if (r < 0)
		return r;
	if (format > DAY_FORMAT)
		return err_set(err, -ENOTSUP,
			       "%s: written by a newer sonde (format %d; this one supports %d)",
			       d->path, format, DAY_FORMAT);
	if (!write)
		return format > 0 ? 0 : -ENOENT; /* it is being made */
	now = store_vfs_is_sealed(d->db) ? DAY_FORMAT : DAY_FORMAT_TABLES;
	if (format >= now || format == DAY_FORMAT_CHECKSUMS)
		return 0;
	r = day_write_schema(d, now, err);
	if (r == 0)
		d->format = now;
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

static bool day_is_empty(const struct store_day *d)
{
	struct stat st;

	return stat(d->path, &st) == 0 && st.st_size == 0;
}

static int day_connect(struct store_day *d, const char *dir, int flags)
{
	char uri[3 * sizeof(d->path) + 32] = "file:";
	size_t len = strlen(uri);

	if (flags & SQLITE_OPEN_CREATE)
		day_keep_private(d);
	if (flags & SQLITE_OPEN_CREATE || !day_is_frozen(d, dir))
		return sqlite3_open_v2(d->path, &d->db, flags, STORE_VFS_NAME);
	for (const char *p = d->path; *p; p++)
		len += (size_t)snprintf(uri + len, sizeof(uri) - len,
					strchr("?#%", *p) ? "%%%02x" : "%c", *p);
	(void)snprintf(uri + len, sizeof(uri) - len, "?immutable=1");
	return sqlite3_open_v2(uri, &d->db,
			       SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI,
			       STORE_VFS_NAME);
}

/* With checksums, and the mark that says so, before anything else is in it. */
static int day_make(struct store_day *d, struct err *err)
{
	int rc = store_vfs_seal(d->db);

	_Static_assert(STORE_VFS_APPLICATION == 1936682596, "as below");
	return rc == SQLITE_OK ? day_simple(d,
					    "PRAGMA page_size=4096; PRAGMA auto_vacuum=INCREMENTAL;"
					    "PRAGMA application_id=1936682596",
					    err)
			       : store_day_error(d, rc, err);
}

/* A file like each that is made, in memory. */
int store_day_first_page(uint8_t *page, int format)
{
	_cleanup_(store_day_close) struct store_day d = {.path = ":memory:"};
	unsigned char *image = NULL;
	sqlite3_int64 size = 0;
	int r = sqlite3_open(d.path, &d.db) == SQLITE_OK ? 0 : -EIO;

	if (r == 0)
		r = day_make(&d, NULL);
	if (r == 0)
		r = day_write_schema(&d, format, NULL);
	if (r == 0)
		image = sqlite3_serialize(d.db, "main", &size, 0);
	if (image && size >= STORE_SEAL_PAGE)
		memcpy(page, image, STORE_SEAL_PAGE);
	else
		r = -EIO;
	sqlite3_free(image);
	return r;
}

int store_day_drop_totals(struct store_day *d, struct err *err)
{
	int r = day_simple(d, "DROP TABLE about; DROP TABLE total; DROP TABLE total_type", err);

	if (r == 0)
		r = day_set_format(d, DAY_FORMAT_CHECKSUMS, err);
	if (r == 0)
		d->format = DAY_FORMAT_CHECKSUMS;
	return r;
}

static int day_open(struct store_day *d, const char *dir, struct err *err)
{
	int flags = d->writes ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READWRITE;
	struct stat st;
	int r = store_vfs_register(err), rc;

	if (r < 0)
		return r;
	if (!d->writes && access(d->path, F_OK) < 0)
		return -ENOENT;
	/*
	 * Readers of a WAL need its index and may have to create it: so not read-only if possible.
	 */
	rc = day_connect(d, dir, flags | SQLITE_OPEN_NOMUTEX);
	if (stat(d->path, &st) == 0)
		d->inode = st.st_ino;
	if (rc != SQLITE_OK)
		return store_day_error(d, rc, err);
	(void)sqlite3_busy_timeout(d->db, STORE_DAY_BUSY_MS);
	/* A reader leaves the log as it is. */
	if (!d->writes)
		(void)sqlite3_db_config(d->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	if (d->writes && day_is_empty(d))
		r = day_make(d, err);
	if (r == 0)
		r = day_simple(d,
			       d->writes
				       ? "PRAGMA journal_mode=WAL;"
					 "PRAGMA synchronous=FULL; PRAGMA cache_size=-4096;"
					 "PRAGMA secure_delete=OFF; PRAGMA wal_autocheckpoint=2000;"
					 "PRAGMA journal_size_limit=8388608"
				       : "PRAGMA query_only=1; PRAGMA cache_size=-2048",
			       err);
	return r < 0 ? r : day_check_format(d, d->writes, err);
}

int store_day_open(struct store_day *d, const char *dir, int64_t number, bool write,
		   struct err *err)
{
	*d = (struct store_day){.number = number, .writes = write};
	store_day_path(d->path, sizeof(d->path), dir, number);
	return day_open(d, dir, err);
}

int store_day_open_file(struct store_day *d, const char *dir, const char *name, int64_t number,
			bool write, struct err *err)
{
	*d = (struct store_day){.number = number, .writes = write};
	(void)snprintf(d->path, sizeof(d->path), "%s/%s", dir, name);
	return day_open(d, dir, err);
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
	if (day_scans[sql]) {
		d->ranges[sql][0] = n > 0 ? args[0] : 0;
		d->ranges[sql][1] = n > 1 ? args[1] : INT64_MAX;
		args = d->ranges[sql];
		n = 2;
	}
	for (int i = 0; rc == SQLITE_OK && i < n; i++)
		rc = sqlite3_bind_int64(d->stmts[sql], i + 1, args[i]);
	if (rc != SQLITE_OK)
		return store_day_error(d, rc, err);
	*ret_stmt = d->stmts[sql];
	return 0;
}

static int day_step_from(const struct store_day *d, enum store_day_sql sql, int64_t from)
{
	sqlite3_stmt *stmt = d->stmts[sql];

	(void)sqlite3_reset(stmt);
	(void)sqlite3_bind_int64(stmt, 1, from);
	return sqlite3_step(stmt);
}

static bool day_reads_from(const struct store_day *d, enum store_day_sql sql, int64_t from)
{
	int rc = day_step_from(d, sql, from);

	return rc == SQLITE_ROW || rc == SQLITE_DONE;
}

/* The first key from which the scan can be read again; the one before it cannot. */
static int64_t day_find_end(const struct store_day *d, enum store_day_sql sql, int64_t from)
{
	int64_t low = from, high = from, end = d->ranges[sql][1], step = 1;

	while (high < end && !day_reads_from(d, sql, high)) {
		low = high;
		high = step < end - high ? high + step : end;
		step = step < INT64_MAX / 2 ? step * 2 : step;
	}
	while (high - low > 1 && high > from) {
		int64_t middle = low + (high - low) / 2;

		if (day_reads_from(d, sql, middle))
			high = middle;
		else
			low = middle;
	}
	return high;
}

/*
 * The scan has met damage: reads it again up to there, and goes on behind it. Returns as
 * sqlite3_step() does.
 */
static int day_skip(struct store_day *d, enum store_day_sql sql, int rc)
{
	int64_t *range = d->ranges[sql], last = range[0] - 1;

	for (; (rc & 0xff) == SQLITE_CORRUPT; d->n_skipped++) {
		int again = day_step_from(d, sql, range[0]);

		for (; again == SQLITE_ROW; again = sqlite3_step(d->stmts[sql]))
			last = sqlite3_column_int64(d->stmts[sql], 0);
		/* If it can be read now, nothing says how far the caller has come. */
		if ((again & 0xff) != SQLITE_CORRUPT || last == INT64_MAX ||
		    d->n_skipped == DAY_MAX_SKIPPED)
			return rc;
		store_day_damaged(d, sql, last);
		range[0] = day_find_end(d, sql, last + 1);
		last = range[0] - 1;
		/* Even to look for what lies behind the range may mean to read the page. */
		rc = range[0] < range[1] ? day_step_from(d, sql, range[0]) : SQLITE_DONE;
	}
	return rc;
}

static enum store_day_sql day_sql_of(const struct store_day *d, const sqlite3_stmt *stmt)
{
	enum store_day_sql sql = 0;

	while (d->stmts[sql] != stmt)
		sql++;
	return sql;
}

int store_day_next(struct store_day *d, sqlite3_stmt *stmt, struct err *err)
{
	int rc = sqlite3_step(stmt);
	int r = 0;

	if (rc == SQLITE_ROW)
		return 1;
	if ((rc & 0xff) == SQLITE_CORRUPT && !d->writes && day_scans[day_sql_of(d, stmt)]) {
		rc = day_skip(d, day_sql_of(d, stmt), rc);
		if (rc == SQLITE_ROW)
			return 1;
	}
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

int store_day_value(struct store_day *d, enum store_day_sql sql, const int64_t *args, int n,
		    int64_t *ret_value, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(d, sql, args, n, &stmt, err);

	if (r == 0)
		r = store_day_next(d, stmt, err);
	if (r > 0) {
		*ret_value = sqlite3_column_int64(stmt, 0);
		store_day_done(stmt);
	}
	return r;
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

	/* NULL if there is none; nothing may be copied from there, not even 0 bytes. */
	return data ? view_of(data, (size_t)sqlite3_column_bytes(stmt, column)) : view_str("");
}
