/* tests/unit/base/test_io.c: whole files in and out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"

static int file_of(size_t len)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	assert_true(fd >= 0);
	for (size_t i = 0; i < len; i++) {
		uint8_t byte = (uint8_t)(i * 7);

		assert_int_equal(write(fd, &byte, 1), 1);
	}
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static void read_all_takes_files_up_to_the_maximum(void **state)
{
	const size_t sizes[] = {0, 1, 20000, 16384, 40000};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		_cleanup_(buf_release) struct buf exact = buf_with_max(MAX(sizes[i], 1));
		_cleanup_close_ int fd = file_of(sizes[i]);

		assert_int_equal(io_read_all(fd, &exact), 0);
		assert_int_equal(exact.len, sizes[i]);
		for (size_t k = 0; k < sizes[i]; k++)
			assert_int_equal(exact.data[k], (uint8_t)(k * 7));
	}
}

static void read_all_refuses_one_byte_more(void **state)
{
	_cleanup_(buf_release) struct buf b = buf_with_max(20000);
	_cleanup_close_ int fd = file_of(20001);

	(void)state;
	assert_int_equal(io_read_all(fd, &b), -E2BIG);
	assert_true(b.len <= 20000);
	assert_int_equal(io_read_all(-1, &b), -EBADF);
}

static void read_file_names_the_path_in_its_error(void **state)
{
	_cleanup_(buf_release) struct buf b = buf_with_max(4);
	struct err err = {0};

	(void)state;
	assert_int_equal(io_read_file(AT_FDCWD, "/nowhere/at/all", &b, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nowhere/at/all"));
	assert_int_equal(io_read_file(AT_FDCWD, "/proc/self/stat", &b, &err), -E2BIG);
	assert_non_null(strstr(err.text, "limit of 4 bytes"));
}

static void pread_full_stops_only_at_the_end(void **state)
{
	_cleanup_close_ int fd = file_of(100);
	uint8_t bytes[64];

	(void)state;
	assert_int_equal(io_pread_full(fd, bytes, 64, 10), 64);
	assert_int_equal(bytes[0], 70);
	assert_int_equal(io_pread_full(fd, bytes, 64, 90), 10);
	assert_int_equal(io_pread_full(fd, bytes, 64, 1000), 0);
	assert_int_equal(io_pread_full(fd, bytes, 64, UINT64_MAX), -EINVAL);
	assert_int_equal(io_pread_full(-1, bytes, 64, 0), -EBADF);
}

static size_t count_entries(const char *dir)
{
	DIR *d = opendir(dir);
	size_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static void write_file_replaces_and_leaves_nothing_behind(void **state)
{
	char dir[] = "/tmp/sonde-test-XXXXXX", path[64];
	_cleanup_(buf_release) struct buf b = {0};
	struct err err = {0};
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/out", dir);
	assert_int_equal(io_write_file(path, view_str("first, and longer"), &err), 0);
	assert_int_equal(io_write_file(path, view_str("second"), &err), 0);
	assert_int_equal(io_read_file(AT_FDCWD, path, &b, &err), 0);
	assert_string_equal(buf_cstr(&b), "second");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	assert_int_equal(count_entries(dir), 1);
	/* A directory cannot be replaced by a file. */
	assert_true(io_write_file(dir, view_str("x"), &err) < 0);
	assert_non_null(strstr(err.text, dir));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(io_write_file(path, view_str("x"), &err), -ENOENT);
}

static void write_file_writes_into_a_device(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(io_write_file("/dev/null", view_str("gone"), NULL), 0);
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode & (S_IFMT | 07777);
}

static void write_file_keeps_rights_and_symlinks(void **state)
{
	char dir[] = "/tmp/sonde-io-XXXXXX", file[64], link[64];
	mode_t mask = umask(077);

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(file, sizeof(file), "%s/file", dir);
	(void)snprintf(link, sizeof(link), "%s/link", dir);
	assert_int_equal(io_write_file(file, view_str("one"), NULL), 0);
	assert_int_equal(mode_of(file), S_IFREG | 0600);
	assert_int_equal(chmod(file, 0640), 0);
	assert_int_equal(symlink("file", link), 0);
	assert_int_equal(io_write_file(link, view_str("two"), NULL), 0);
	assert_int_equal(mode_of(file), S_IFREG | 0640);
	assert_true(S_ISLNK(mode_of(link)));
	(void)umask(mask);
	(void)unlink(link);
	(void)unlink(file);
	assert_int_equal(rmdir(dir), 0); /* nothing else was left behind */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read_all_takes_files_up_to_the_maximum),
		cmocka_unit_test(read_all_refuses_one_byte_more),
		cmocka_unit_test(read_file_names_the_path_in_its_error),
		cmocka_unit_test(pread_full_stops_only_at_the_end),
		cmocka_unit_test(write_file_replaces_and_leaves_nothing_behind),
		cmocka_unit_test(write_file_writes_into_a_device),
		cmocka_unit_test(write_file_keeps_rights_and_symlinks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
