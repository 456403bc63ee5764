/*
 * src/store/sqlite/repair.c: writes a damaged day file anew, with all that is whole.
 *
 * The new file takes the place of the old one only when it is complete and on disk. In between,
 * the old one has another name: a log must never be found beside a database that is not its own.
 * Whoever is killed then leaves NAME.old and NAME.repair; the next writer goes on from there.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "store/sqlite/check.h"
#include "store/sqlite/state.h"

#define OLD ".old"
#define NEW ".repair"

static int copy_row(void *ctx, const struct store_check_table *table, sqlite3_stmt *row,
		    struct err *err)
{
	struct store_day *to = ctx;
	sqlite3_stmt *put = NULL;
	int r = store_day_query(to, table->put, NULL, 0, &put, err);

	for (int i = 0; r == 0 && table->places[i]; i++) {
		int rc = sqlite3_bind_value(put, table->places[i] - '0',
					    sqlite3_column_value(row, i));

		if (rc != SQLITE_OK)
			r = store_day_error(to, rc, err);
	}
	if (r < 0)
		return r;
	/* Where the structure is damaged, a row may come twice. */
	r = sqlite3_step(put);
	store_day_done(put);
	return r == SQLITE_DONE || (r & 0xff) == SQLITE_CONSTRAINT ? 0
								   : store_day_error(to, r, err);
}

/* Days whose roll-ups are damaged are added up from their hours. */
static int drop_rollups(struct store_day *to, struct err *err)
{
	int rc = sqlite3_exec(to->db, "DELETE FROM rolled; DELETE FROM rollup", NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : store_day_error(to, rc, err);
}

/* Whether a table whose name begins like this has lost rows. */
static bool has_lost(const struct store_sqlite_report *report, const char *table)
{
	for (size_t i = 0; i < report->n_findings; i++)
		if (strncmp(report->findings[i], table, strlen(table)) == 0)
			return true;
	return report->n_findings == STORE_SQLITE_FINDINGS;
}

static int copy_day(struct store_sqlite *s, const struct store_sqlite_file *file, const char *name,
		    struct store_sqlite_report *report, struct err *err)
{
	_cleanup_(store_day_close) struct store_day to = {0}, from = {0};
	int r = store_day_open_file(&to, s->dir, name, file->number, true, err);

	if (r == 0)
		r = store_day_exec(&to, STORE_DAY_BEGIN, NULL, 0, err);
	if (r == 0)
		r = store_day_open_file(&from, s->dir, file->name, file->number, false, err);
	if (r == 0)
		r = store_check_day(&from, report, copy_row, &to, err);
	if (r == 0 && has_lost(report, "table roll"))
		r = drop_rollups(&to, err);
	/* Without all of them, totals are read from the points, and nobody counts as short-lived.
	 */
	if (r == 0 && (!store_day_has_totals(&from) || has_lost(report, "table total") ||
		       has_lost(report, "table about")))
		r = store_day_drop_totals(&to, err);
	if (r == 0)
		r = store_day_exec(&to, STORE_DAY_COMMIT, NULL, 0, err);
	/* Closing would do it as well, and say nothing of a full disk. */
	if (r == 0 && sqlite3_wal_checkpoint_v2(to.db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL,
						NULL) != SQLITE_OK)
		r = err_set(err, -EIO, "%s: %s", to.path, sqlite3_errmsg(to.db));
	return r;
}

static void remove_files(const char *dir, const char *name, bool with_database)
{
	static const char *const suffixes[] = {"-wal", "-shm", "-journal", ""};
	char path[600];

	for (size_t i = 0; i < ARRAY_SIZE(suffixes) - !with_database; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s%s", dir, name, suffixes[i]);
		(void)unlink(path);
	}
}

static int rename_in(const char *dir, const char *from, const char *to, struct err *err)
{
	char old_path[600], new_path[600];

	(void)snprintf(old_path, sizeof(old_path), "%s/%s", dir, from);
	(void)snprintf(new_path, sizeof(new_path), "%s/%s", dir, to);
	if (rename(old_path, new_path) < 0)
		return err_set(err, -errno, "cannot rename %s: %s", old_path, strerror(errno));
	return 0;
}

static int sync_dir(const char *dir, struct err *err)
{
	_cleanup_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0
		       ? err_set(err, -errno, "cannot sync %s: %s", dir, strerror(errno))
		       : 0;
}

/* The second half: the old file is out of the way. */
static int put_in_place(const char *dir, const char *name, const char *by, const char *aside,
			struct err *err)
{
	int r;

	remove_files(dir, name, false);
	r = rename_in(dir, by, name, err);
	if (r == 0)
		r = sync_dir(dir, err);
	if (r == 0)
		remove_files(dir, aside, true);
	return r;
}

static int replace(const char *dir, const char *name, const char *by, struct err *err)
{
	char aside[96];
	int r;

	(void)snprintf(aside, sizeof(aside), "%s" OLD, name);
	r = rename_in(dir, name, aside, err);
	return r < 0 ? r : put_in_place(dir, name, by, aside, err);
}

static bool exists_in(const char *dir, const char *name)
{
	char path[600];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	return access(path, F_OK) == 0;
}

/* "NAME.old" is there: of a repair that was killed. */
static void finish(const char *dir, const char *aside)
{
	size_t len = strlen(aside) - strlen(OLD);
	char name[96], by[112];

	if (len >= sizeof(name))
		return;
	(void)snprintf(name, sizeof(name), "%.*s", (int)len, aside);
	(void)snprintf(by, sizeof(by), "%s" NEW, name);
	if (exists_in(dir, name))
		remove_files(dir, aside, true);
	else if (exists_in(dir, by))
		(void)put_in_place(dir, name, by, aside, NULL);
	else
		(void)rename_in(dir, aside, name, NULL);
}

/* Of day files, also of those that were set aside. */
static void each_name(const char *dir, const char *end,
		      void (*fn)(const char *dir, const char *name))
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		size_t len = strlen(e->d_name), n = strlen(end);

		if (len > n && strcmp(e->d_name + len - n, end) == 0 && strstr(e->d_name, ".db"))
			fn(dir, e->d_name);
	}
	if (d)
		(void)closedir(d);
}

static void give_up(const char *dir, const char *name)
{
	remove_files(dir, name, true);
}

void store_sqlite_finish_repairs(const struct store_sqlite *s)
{
	each_name(s->dir, OLD, finish);
	each_name(s->dir, NEW, give_up);
}

int store_sqlite_repair_file(struct store_sqlite *s, const struct store_sqlite_file *file,
			     struct store_sqlite_report *report, struct err *err)
{
	struct store_sqlite_report found = {0};
	char name[96];
	int r;

	report->repaired = true;
	if (report->unreadable) {
		remove_files(s->dir, file->name, true);
		return 0;
	}
	(void)snprintf(name, sizeof(name), "%s" NEW, file->name);
	remove_files(s->dir, name, true);
	r = copy_day(s, file, name, &found, err);
	if (r == 0)
		r = replace(s->dir, file->name, name, err);
	else
		remove_files(s->dir, name, true);
	return r;
}
