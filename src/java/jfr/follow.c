/* src/java/jfr/follow.c: see follow.h. */
#include "java/jfr/follow.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

#define FOLLOW_NAME_MAX 160	 /* of a directory and a file */
#define FOLLOW_MAX_ENTRIES 65536 /* to scan, per directory */
#define FOLLOW_MAX_FILES 64	 /* opened per call */
/*
 * A JVM creates the next file, then finishes the last one, which takes seconds if it gets no CPU. A
 * file counts as abandoned only if it neither grows nor ends for this long, and for several calls.
 */
#define FOLLOW_PATIENCE_NS (30 * NS_PER_SEC)
#define FOLLOW_PATIENCE 3

struct java_jfr_follow {
	struct java_jfr_options options;
	int dirfd;
	struct java_jfr *jfr;
	char name[FOLLOW_NAME_MAX]; /* the file opened last; "" for none */
	bool is_open;		    /* it is being read */
	unsigned int idle;	    /* calls without an event while there is a newer file, */
	uint64_t idle_since_ns;	    /* since the first of them */
	struct java_jfr_follow_stats stats;
};

int java_jfr_follow_open(int dirfd, const struct java_jfr_options *options,
			 struct java_jfr_follow **ret_follow, struct err *err)
{
	struct java_jfr_follow *f = calloc(1, sizeof(*f));

	if (!f)
		return err_oom(err);
	f->options = *options;
	f->options.live = true;
	if (!f->options.patience_ns)
		f->options.patience_ns = FOLLOW_PATIENCE_NS;
	f->dirfd = dirfd;
	*ret_follow = f;
	return 0;
}

void java_jfr_follow_close(struct java_jfr_follow *f)
{
	if (!f)
		return;
	java_jfr_close(f->jfr);
	free(f);
}

/*
 * Nor into anything the target may have mounted there: its own file system could keep us waiting
 * forever.
 */
static int open_beneath(int dirfd, const char *path, uint64_t flags)
{
	struct open_how how = {.flags = flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					  RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV};
	long fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

/* "2026_11_15_11_03_51", plus what a JVM appends to distinguish names of the same second. */
static bool is_dated(const char *name, const char *suffix)
{
	size_t len = strlen(name), end = strlen(suffix);

	if (len < 19 + end || len >= FOLLOW_NAME_MAX / 2 || strcmp(name + len - end, suffix) != 0)
		return false;
	return strspn(name, "0123456789_") == len - end;
}

/* Keeps the smallest name after the given one. */
static void offer(const char *after, const char *dir, const char *file, char *best)
{
	char path[FOLLOW_NAME_MAX];

	(void)snprintf(path, sizeof(path), "%.79s/%.79s", dir, file); /* is_dated() limits both */
	if (strcmp(path, after) > 0 && (!best[0] || strcmp(path, best) < 0))
		memcpy(best, path, sizeof(path));
}

static int list(int fd, DIR **ret_dir)
{
	if (fd < 0)
		return fd;
	*ret_dir = fdopendir(fd);
	if (*ret_dir)
		return 0;
	close(fd);
	return -ENOMEM;
}

static void offer_files(int dirfd, const char *after, const char *name, char *best)
{
	const struct dirent *entry;
	DIR *dir;

	/* One that disappears meanwhile counts as none. */
	if (list(open_beneath(dirfd, name, O_RDONLY | O_DIRECTORY), &dir) < 0)
		return;
	for (size_t n = 0; n < FOLLOW_MAX_ENTRIES && (entry = readdir(dir)); n++)
		if (is_dated(entry->d_name, ".jfr"))
			offer(after, name, entry->d_name, best);
	(void)closedir(dir);
}

/* "" if there is no file after that one. */
static int find_after(int dirfd, const char *after, char *best, struct err *err)
{
	const struct dirent *entry;
	DIR *dir;
	int r;

	best[0] = '\0';
	r = list(open_beneath(dirfd, ".", O_RDONLY | O_DIRECTORY), &dir);
	if (r < 0)
		return err_set(err, r, "cannot read the recording's directory: %s", strerror(-r));
	for (size_t n = 0; n < FOLLOW_MAX_ENTRIES && (entry = readdir(dir)); n++)
		if (is_dated(entry->d_name, ""))
			offer_files(dirfd, after, entry->d_name, best);
	(void)closedir(dir);
	return 0;
}

static void give_up(struct java_jfr_follow *f, const char *why)
{
	f->stats.broken++;
	(void)snprintf(f->stats.why, sizeof(f->stats.why), "%s", why);
	f->is_open = false;
}

/* Called once per call, if there is a newer file. */
static bool is_patient(struct java_jfr_follow *f)
{
	uint64_t now = clock_mono_ns();

	if (f->idle++ == 0)
		f->idle_since_ns = now;
	return f->idle < FOLLOW_PATIENCE || now - f->idle_since_ns < f->options.patience_ns;
}

/*
 * Before JDK 14 an empty file reserves the name, and the complete file later replaces it. If it
 * stays empty although there are newer ones, its writer abandoned it.
 */
static bool is_to_come(struct java_jfr_follow *f, const char *name)
{
	char newer[FOLLOW_NAME_MAX];

	return find_after(f->dirfd, name, newer, NULL) < 0 || !newer[0] || is_patient(f);
}

static bool is_empty(int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0;
}

/* 1 if a file was opened, 0 on failure: the next call tries the one after it. */
static int begin(struct java_jfr_follow *f, const char *name, struct err *err)
{
	int fd = open_beneath(f->dirfd, name, O_RDONLY);
	struct err inner = {0};
	int r;

	if (is_empty(fd)) {
		close(fd);
		if (is_to_come(f, name))
			return 0;
		fd = -ENODATA;
	}
	memcpy(f->name, name, sizeof(f->name));
	f->idle = 0;
	f->stats.files++;
	if (fd < 0) {
		give_up(f, fd == -ENODATA ? "was never finished" : strerror(-fd));
		return 0;
	}
	r = f->jfr ? java_jfr_switch_take(f->jfr, fd, name, &inner)
		   : java_jfr_open_take(fd, name, &f->options, &f->jfr, &inner);
	if (r == -ENOMEM)
		return err_oom(err);
	if (r < 0)
		give_up(f, inner.text);
	f->is_open = r == 0;
	return f->is_open;
}

/* The parser of a malformed file is useless for the next one. */
static void drop_parser(struct java_jfr_follow *f, const char *why)
{
	give_up(f, why);
	java_jfr_close(f->jfr);
	f->jfr = NULL;
}

/* The current file has no more data: 1 to try again, 0 to wait. */
static int move_on(struct java_jfr_follow *f, struct err *err)
{
	char next[FOLLOW_NAME_MAX];
	int r = find_after(f->dirfd, f->name, next, err);

	if (r < 0 || !next[0])
		return r;
	if (f->is_open && !java_jfr_finished(f->jfr)) {
		if (is_patient(f))
			return 0;
		give_up(f, "was never finished");
	}
	return begin(f, next, err);
}

int java_jfr_follow_next(struct java_jfr_follow *f, struct java_jfr_event *ret_event,
			 struct err *err)
{
	struct err inner;
	int r = 0;

	for (int n = 0; n < FOLLOW_MAX_FILES; n++) {
		if (f->is_open) {
			r = java_jfr_next(f->jfr, ret_event, &inner);
			if (r == -ENOMEM)
				return err_oom(err);
			if (r == 1) {
				f->idle = 0;
				return 1;
			}
			if (r < 0)
				drop_parser(f, inner.text);
		}
		r = move_on(f, err);
		if (r <= 0)
			return r;
	}
	return 0;
}

struct java_jfr *java_jfr_follow_parser(struct java_jfr_follow *f)
{
	return f->jfr;
}

const struct java_jfr_follow_stats *java_jfr_follow_stats(const struct java_jfr_follow *f)
{
	return &f->stats;
}
