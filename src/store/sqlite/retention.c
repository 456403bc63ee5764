/* src/store/sqlite/retention.c: lists files, deletes old ones, and moves damaged ones aside. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/io.h"
#include "store/sqlite/state.h"

#define MAX_DAMAGED 1000
#define AGE_SAVE_NS ((int64_t)60 * (int64_t)NS_PER_SEC)

/* "2026-11-15.db", or that and ".damaged-1". */
static bool parse_name(const char *name, struct store_sqlite_file *ret)
{
	struct tm tm = {0};
	const char *rest;

	if (strlen(name) >= sizeof(ret->name))
		return false;
	rest = strptime(name, "%Y-%m-%d", &tm);
	if (!rest || strncmp(rest, ".db", 3) != 0)
		return false;
	rest += 3;
	/* Beside such a file there may be what a repair has left, or its log. */
	ret->damaged = strncmp(rest, ".damaged-", 9) == 0 && rest[9] &&
		       rest[9 + strspn(rest + 9, "0123456789")] == '\0';
	if (*rest && !ret->damaged)
		return false;
	(void)snprintf(ret->name, sizeof(ret->name), "%s", name);
	ret->number = timegm(&tm) / 86400;
	return true;
}

/* False if there is none, or something else of that name. */
static bool add_size(const char *dir, const char *name, const char *suffix, uint64_t *bytes)
{
	char path[512];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s%s", dir, name, suffix);
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	*bytes += (uint64_t)st.st_size;
	return true;
}

static int compare_files(const void *va, const void *vb)
{
	const struct store_sqlite_file *a = va, *b = vb;

	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	/* What was set aside is of earlier in the day. */
	if (a->damaged != b->damaged)
		return a->damaged ? -1 : 1;
	return strcmp(a->name, b->name);
}

static void closedirp(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

int store_sqlite_files(const struct store_sqlite *s, struct store_sqlite_file **ret_files,
		       size_t *ret_len, struct err *err)
{
	_cleanup_(closedirp) DIR *dir = opendir(s->dir);
	_cleanup_(buf_release) struct buf files = {0};
	struct store_sqlite_file f = {0};
	struct dirent *e;

	if (!dir)
		return err_set(err, -errno, "cannot read the directory %s: %s", s->dir,
			       strerror(errno));
	while ((e = readdir(dir))) {
		f.bytes = 0;
		if (!parse_name(e->d_name, &f) || !add_size(s->dir, f.name, "", &f.bytes))
			continue;
		(void)add_size(s->dir, f.name, "-wal", &f.bytes);
		if (buf_append(&files, &f, sizeof(f)) < 0)
			return err_oom(err);
	}
	*ret_len = files.len / sizeof(f);
	if (*ret_len > 0)
		qsort(files.data, *ret_len, sizeof(f), compare_files);
	*ret_files = (void *)TAKE_PTR(files.data);
	for (size_t i = 0; i < *ret_len; i++)
		(*ret_files)[i].past = (*ret_files)[i].number < (*ret_files)[*ret_len - 1].number;
	return 0;
}

/* Delete the database first: a later open then finds nothing, not half of it. */
void store_sqlite_remove_file(struct store_sqlite *s, const struct store_sqlite_file *f)
{
	static const char *const suffixes[] = {"", "-wal", "-shm"};
	char path[512];

	if (!f->damaged)
		store_sqlite_drop_writer(s, f->number);
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s%s", s->dir, f->name, suffixes[i]);
		(void)unlink(path);
	}
}

/* Removed before it is read again, should this fail: then nothing is known, and all days stay. */
static void age_save(const struct store_sqlite *s)
{
	char path[512], text[STORE_AGE_TEXT_MAX];

	(void)snprintf(path, sizeof(path), "%s/clock", s->dir);
	store_age_print(&s->age, text);
	if (io_write_private(path, view_str(text), NULL) < 0)
		(void)unlink(path);
}

/*
 * Without a file there is no more to go by than the newest day: as late as its end, at most. Not
 * one that we have made ourselves since, by the same clock.
 */
static void age_load(struct store_sqlite *s)
{
	_cleanup_(buf_release) struct buf text = buf_with_max(STORE_AGE_TEXT_MAX);
	char path[512];
	const char *line;

	s->age = (struct store_age){.ran_ns = -1};
	if (s->newest_before >= 0)
		s->age.trusted_ns =
			MIN((s->newest_before + 1) * STORE_DAY_NS - 1, s->now_ns(s->now_ctx));
	(void)snprintf(path, sizeof(path), "%s/clock", s->dir);
	if (io_read_file(AT_FDCWD, path, &text, NULL) == 0 && (line = buf_cstr(&text)))
		store_age_parse(&s->age, line);
	s->age_loaded = true;
}

static void age_report(struct store_sqlite *s)
{
	(void)pthread_mutex_lock(&s->status_lock);
	s->status.clock_ahead_ns = store_age_is_ahead(&s->age) ? s->age.ahead_ns : 0;
	(void)pthread_mutex_unlock(&s->status_lock);
}

/* The time to judge age by. */
static int64_t age_now(struct store_sqlite *s)
{
	int64_t now;

	if (!s->age_loaded)
		age_load(s);
	now = store_age_look(&s->age, s->now_ns(s->now_ctx), s->ran_ns(s->now_ctx));
	/* A restart loses no more than this of what has been confirmed. */
	if (llabs(now - s->age_saved.trusted_ns) >= AGE_SAVE_NS ||
	    !s->age.ahead_ns != !s->age_saved.ahead_ns) {
		age_save(s);
		s->age_saved = s->age;
	}
	age_report(s);
	return now;
}

static bool is_being_written(const struct store_sqlite *s, int64_t number)
{
	for (size_t i = 0; i < STORE_SQLITE_WRITERS; i++)
		if (s->writers[i].open && s->writers[i].day.number == number)
			return true;
	return false;
}

/* SQLite may have rolled back what failed, which a writer would not know. */
static int make_room(struct store_sqlite *s, struct err *err)
{
	int r = store_sqlite_make_room(s, err);

	if (r < 0)
		store_sqlite_drop_writers(s);
	return r;
}

int store_sqlite_retain(struct store_sqlite *s, bool thorough, struct err *err)
{
	_cleanup_free_ struct store_sqlite_file *files = NULL;
	uint64_t bytes = 0;
	int64_t newest = -1, oldest_ns;
	size_t n = 0;
	int r = store_sqlite_files(s, &files, &n, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		bytes += files[i].bytes;
		if (!files[i].damaged)
			newest = files[i].number;
	}
	oldest_ns = s->retention_ns > 0 ? age_now(s) - s->retention_ns : INT64_MIN;
	for (size_t i = 0; i < n; i++) {
		const struct store_sqlite_file *f = &files[i];

		/* The newest stays, and so does what is being written, whatever the clock says. */
		if ((f->number + 1) * STORE_DAY_NS > oldest_ns ||
		    (!f->damaged && (f->number == newest || is_being_written(s, f->number))))
			continue;
		store_sqlite_remove_file(s, f);
		bytes -= f->bytes;
	}
	if (s->max_bytes > 0 && bytes > s->max_bytes && (thorough || s->n_refused == 0))
		r = make_room(s, err);
	else if (bytes <= s->max_bytes)
		s->n_refused = 0;
	if (s->n_refused > 0)
		store_sqlite_trouble(s, s->refusal, !s->all_refused);
	return r;
}

static bool rename_day(const char *path, int n)
{
	static const char *const suffixes[] = {"-wal", "-shm", ""};
	char from[600], to[640];

	(void)snprintf(to, sizeof(to), "%s.damaged-%d", path, n);
	if (access(to, F_OK) == 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		(void)snprintf(from, sizeof(from), "%s%s", path, suffixes[i]);
		(void)snprintf(to, sizeof(to), "%s.damaged-%d%s", path, n, suffixes[i]);
		(void)rename(from, to);
	}
	return true;
}

void store_sqlite_set_aside(struct store_sqlite *s, int64_t number, uint64_t inode, const char *why)
{
	char path[512], sentence[800];
	struct stat st;

	store_day_path(path, sizeof(path), s->dir, number);
	/* A new file may have taken the name. */
	if (stat(path, &st) < 0 || (inode && st.st_ino != inode) ||
	    store_sqlite_lock_folder(s, NULL) < 0)
		return;
	store_sqlite_drop_writer(s, number);
	for (int n = 1; n < MAX_DAMAGED; n++)
		if (rename_day(path, n))
			break;
	(void)snprintf(sentence, sizeof(sentence), "a damaged file was moved aside: %s", why);
	(void)pthread_mutex_lock(&s->status_lock);
	s->status.damaged_files++;
	(void)snprintf(s->status.trouble, sizeof(s->status.trouble), "%.*s",
		       (int)sizeof(s->status.trouble) - 1, sentence);
	(void)pthread_mutex_unlock(&s->status_lock);
}

int64_t store_sqlite_newest(const struct store_sqlite *s)
{
	_cleanup_free_ struct store_sqlite_file *files = NULL;
	int64_t newest = -1;
	size_t n = 0;

	if (store_sqlite_files(s, &files, &n, NULL) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		newest = files[i].damaged ? newest : files[i].number;
	return newest;
}
