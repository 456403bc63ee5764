/* src/pipeline/spool/folder.c: see folder.h. */
#include "pipeline/spool/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/crc.h"
#include "base/io.h"
#include "base/view.h"
#include "pipeline/spool/segment.h"

#define FOLDER_MAX_FILES ((size_t)1 << 16)
#define POSITION "position"
#define POSITION_NEW "position.new"
#define POSITION_BYTES 20

static void closedirp(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

static int folder_check(const char *dir, int fd, struct err *err)
{
	struct stat st;
	int r = 0;

	if (fstat(fd, &st) < 0)
		return err_set(err, -errno, "cannot examine %s: %s", dir, strerror(errno));
	if (st.st_uid != geteuid()) {
		r = err_set(err, -EPERM,
			    "the spool directory %s belongs to user %u, and sonde runs as user %u",
			    dir, st.st_uid, geteuid());
		err_write_remedy(err, ERR_CAUSE_DISK, "chown %u %.200s", geteuid(), dir);
	} else if (st.st_mode & 077) {
		r = err_set(err, -EPERM, "the spool directory %s is accessible to other users",
			    dir);
		err_write_remedy(err, ERR_CAUSE_DISK, "chmod 700 %.200s", dir);
	}
	return r;
}

int spool_folder_open(const char *dir, int *ret_fd, struct err *err)
{
	_cleanup_close_ int fd = -1;
	int r;

	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return err_set(err, -errno, "cannot create the spool directory %s: %s", dir,
			       strerror(errno));
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, -errno, "cannot open the spool directory %s: %s", dir,
			       strerror(errno));
	r = folder_check(dir, fd, err);
	if (r < 0)
		return r;
	r = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
	if (r < 0 && r != -EWOULDBLOCK)
		return err_set(err, r, "cannot lock the spool directory %s: %s", dir,
			       strerror(errno));
	if (r < 0)
		return err_lack(err, -EBUSY, ERR_CAUSE_DISK, "give each sonde its own directory",
				"another process uses the spool directory %s", dir);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int numbers_add(uint64_t **numbers, size_t *n, uint64_t number)
{
	if (*n == FOLDER_MAX_FILES)
		return -E2BIG;
	/* Full at each power of two. */
	if ((*n & (*n - 1)) == 0) {
		uint64_t *more = reallocarray(*numbers, *n ? *n * 2 : 1, sizeof(*more));

		if (!more)
			return -ENOMEM;
		*numbers = more;
	}
	(*numbers)[(*n)++] = number;
	return 0;
}

int spool_folder_list(int dirfd, uint64_t **ret_numbers, size_t *ret_n)
{
	_cleanup_free_ uint64_t *numbers = NULL;
	_cleanup_(closedirp) DIR *d = NULL;
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct dirent *entry;
	uint64_t number;
	size_t n = 0;
	int r = 0;

	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		r = -errno;
		closep(&fd);
		return r;
	}
	while (r == 0 && (entry = readdir(d)))
		if (spool_segment_parse_name(entry->d_name, &number))
			r = numbers_add(&numbers, &n, number);
	if (r < 0)
		return r;
	/* The array may be NULL. */
	if (n)
		qsort(numbers, n, sizeof(*numbers), compare_numbers);
	*ret_numbers = TAKE_PTR(numbers);
	*ret_n = n;
	return 0;
}

bool spool_position_read(int dirfd, uint64_t *ret_number, uint64_t *ret_at)
{
	_cleanup_close_ int fd =
		openat(dirfd, POSITION, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	uint8_t bytes[POSITION_BYTES + 1];
	struct view v = {.data = bytes};
	uint32_t crc;
	ssize_t n;

	if (fd < 0)
		return false;
	n = io_pread_full(fd, bytes, sizeof(bytes), 0);
	v.len = n > 0 ? (size_t)n : 0;
	return v.len == POSITION_BYTES && view_u64(v, 0, ret_number) && view_u64(v, 8, ret_at) &&
	       view_u32(v, 16, &crc) && crc == crc32c(view_of(bytes, 16));
}

int spool_position_write(int dirfd, uint64_t number, uint64_t at)
{
	_cleanup_close_ int fd =
		openat(dirfd, POSITION_NEW,
		       O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	uint8_t bytes[POSITION_BYTES];
	uint32_t crc;
	int r;

	memcpy(bytes, &number, sizeof(number));
	memcpy(bytes + 8, &at, sizeof(at));
	crc = crc32c(view_of(bytes, 16));
	memcpy(bytes + 16, &crc, sizeof(crc));
	r = fd < 0 ? -errno : io_write_full(fd, bytes, sizeof(bytes));
	if (r == 0 && renameat(dirfd, POSITION_NEW, dirfd, POSITION) < 0)
		r = -errno;
	return r;
}

void spool_position_remove(int dirfd)
{
	(void)unlinkat(dirfd, POSITION, 0);
}
