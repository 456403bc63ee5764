/* src/java/perfmap/files.c: see files.h. */
#include "java/perfmap/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "java/perfmap/perfmap.h"
#include "proc/aide/rights.h"

/* Writable by the JVM's user, unreadable until complete. */
#define FILES_RAW_MODE 0200
#define FILES_DONE_MODE 0600

void java_perfmap_files_init(struct java_perfmap_files *f, int tmp, const char *name,
			     const struct java_note *note)
{
	char dir[JAVA_NOTE_NAME];

	java_note_dir_name(note, dir);
	f->tmp = tmp;
	(void)snprintf(f->name, sizeof(f->name), "%.31s", name);
	(void)snprintf(f->raw, sizeof(f->raw), "%s.raw", dir);
	(void)snprintf(f->fresh, sizeof(f->fresh), "%s.new", dir);
	(void)snprintf(f->done, sizeof(f->done), "%s.map", dir);
}

void java_perfmap_files_release(struct java_perfmap_files *f)
{
	closep(&f->tmp);
	f->tmp = -1;
}

static bool files_stat(const struct java_perfmap_files *f, const char *name, struct stat *st)
{
	return fstatat(f->tmp, name, st, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool files_is(const struct java_perfmap_files *f, const struct stat *st, const char *name)
{
	struct stat other;

	return files_stat(f, name, &other) && S_ISREG(st->st_mode) && st->st_ino == other.st_ino &&
	       st->st_dev == other.st_dev;
}

/* Pids are reused: an older file belongs to an earlier process. */
static bool files_is_younger(const struct stat *st, const struct proc_id *id)
{
	uint64_t ticks = (uint64_t)sysconf(_SC_CLK_TCK);
	struct timespec up = {0};
	uint64_t age_ns, up_ns, start_ns = id->start_ticks * (NS_PER_SEC / ticks);

	if (clock_gettime(CLOCK_BOOTTIME, &up) < 0)
		return false;
	up_ns = (uint64_t)up.tv_sec * NS_PER_SEC + (uint64_t)up.tv_nsec;
	age_ns = up_ns > start_ns ? up_ns - start_ns : 0;
	return st->st_mtim.tv_sec + 1 >= (int64_t)((clock_unix_ns() - age_ns) / NS_PER_SEC);
}

enum java_perfmap_there java_perfmap_files_look(const struct java_perfmap_files *f,
						const struct java_target *t)
{
	struct stat st;

	if (!files_stat(f, f->name, &st))
		return errno == ENOENT ? JAVA_PERFMAP_NONE : JAVA_PERFMAP_OTHER;
	if (files_is(f, &st, f->raw) || files_is(f, &st, f->done))
		return JAVA_PERFMAP_OURS;
	if (S_ISREG(st.st_mode) && (st.st_uid == t->status.euid || st.st_uid == 0) &&
	    files_is_younger(&st, &t->id))
		return JAVA_PERFMAP_USERS;
	return JAVA_PERFMAP_OTHER;
}

/* The owner decides who may replace it, and whether the JVM may write. */
static int files_create(const struct java_perfmap_files *f, const char *name, mode_t mode,
			int *ret_fd)
{
	_cleanup_close_ int fd =
		openat(f->tmp, name, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, mode);

	/* Regardless of our umask. */
	if (fd < 0 || fchmod(fd, mode) < 0)
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* Removes it only if it is ours. */
static int files_withdraw(const struct java_perfmap_files *f)
{
	struct stat st;

	if (!files_stat(f, f->name, &st) ||
	    (!files_is(f, &st, f->raw) && !files_is(f, &st, f->done)))
		return 0;
	return unlinkat(f->tmp, f->name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* -EEXIST if something is there: never replaces it. */
static int files_publish(const struct java_perfmap_files *f, const char *from)
{
	return linkat(f->tmp, from, f->tmp, f->name, 0) < 0 ? -errno : 0;
}

static int files_begin(const struct java_perfmap_files *f, bool by_name, int *ret_raw)
{
	_cleanup_close_ int raw = -1;
	int r;

	r = by_name ? files_withdraw(f) : 0;
	if (r < 0)
		return r;
	/* Left by a failed attempt. */
	if (unlinkat(f->tmp, f->raw, 0) < 0 && errno != ENOENT)
		return -errno;
	r = files_create(f, f->raw, FILES_RAW_MODE, &raw);
	if (r == 0 && by_name)
		r = files_publish(f, f->raw);
	if (r == 0)
		*ret_raw = TAKE_FD(raw);
	return r;
}

int java_perfmap_files_begin(const struct java_perfmap_files *f, const struct java_target *t,
			     bool by_name, int *ret_raw)
{
	struct proc_rights *own;
	int r = proc_rights_take(&t->status, &own);

	if (r < 0)
		return r;
	r = files_begin(f, by_name, ret_raw);
	proc_rights_return(own);
	return r;
}

static int files_finish(const struct java_perfmap_files *f, int raw,
			struct java_perfmap_copied *ret_copied)
{
	struct java_perfmap_copied copied = {0};
	_cleanup_close_ int fresh = -1;
	int r;

	if (unlinkat(f->tmp, f->fresh, 0) < 0 && errno != ENOENT)
		return -errno;
	r = files_create(f, f->fresh, FILES_DONE_MODE, &fresh);
	if (r == 0)
		r = java_perfmap_copy(raw, fresh, JAVA_PERFMAP_MAX_BYTES, &copied);
	if (r == 0 && copied.functions == 0)
		r = -ENODATA;
	/* Before the rename, while its link to the old file still proves it is ours. */
	if (r == 0)
		r = files_withdraw(f);
	if (r < 0)
		return r;
	if (renameat(f->tmp, f->fresh, f->tmp, f->done) < 0)
		return -errno;
	r = files_publish(f, f->done);
	(void)unlinkat(f->tmp, f->raw, 0);
	if (r == 0)
		*ret_copied = copied;
	return r;
}

int java_perfmap_files_finish(const struct java_perfmap_files *f, const struct java_target *t,
			      int raw, struct java_perfmap_copied *ret_copied)
{
	struct proc_rights *own;
	int r = proc_rights_take(&t->status, &own);

	if (r < 0)
		return r;
	r = files_finish(f, raw, ret_copied);
	proc_rights_return(own);
	return r;
}

int java_perfmap_files_remove(const struct java_perfmap_files *f)
{
	const char *const ours[] = {f->raw, f->fresh, f->done};
	int r = files_withdraw(f);

	/* If the public name cannot be removed, keep these as proof that it is ours. */
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(ours); i++)
		if (unlinkat(f->tmp, ours[i], 0) < 0 && errno != ENOENT)
			r = -errno;
	return r;
}
