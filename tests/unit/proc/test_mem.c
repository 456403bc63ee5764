/* tests/unit/proc/test_mem.c: what all sources share, on made-up memory, and files behind it. */
#include "proc/mem.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "mem_fake.h"

static int file_of(const void *data, size_t len)
{
	int fd = memfd_create("backing", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	return fd;
}

static void fake_memory_is_read_across_neighbours(void **state)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct err err;
	char got[16];

	(void)state;
	assert_int_equal(proc_mem_open_fake(&mem, &err), 0);
	assert_int_equal(proc_mem_fake_add(mem, 0x2004, "efgh", 4), 0);
	assert_int_equal(proc_mem_fake_add(mem, 0x2000, "abcd", 4), 0);
	assert_int_equal(proc_mem_fake_add(mem, 0x3000, "xyz", 3), 0);
	assert_int_equal(proc_mem_read(mem, 0x2002, got, 4, &err), 0);
	assert_memory_equal(got, "cdef", 4);
	assert_int_equal(proc_mem_check(mem, 0x3000, got, 3, &err), 0);
	assert_memory_equal(got, "xyz", 3);
	assert_int_equal(proc_mem_read_some(mem, 0x2006, got, 10), 2);
	assert_int_equal(proc_mem_read_some(mem, 0x2008, got, 10), 0);
	assert_int_equal(proc_mem_read(mem, 0x2006, got, 3, &err), -EFAULT);
	assert_non_null(strstr(err.text, "0x2008"));
	assert_int_equal(proc_mem_read(mem, UINT64_MAX - 1, got, 8, &err), -EFAULT);
	assert_int_equal(proc_mem_replace(mem, 0x2000, "o", "x", 1, &err), -ENOTSUP);
}

static void fake_memory_refuses_overlap_and_wrap(void **state)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	const struct proc_maps *maps;
	static char bytes[16];
	struct err err;
	int r = 0;

	(void)state;
	assert_int_equal(proc_mem_open_fake(&mem, &err), 0);
	assert_int_equal(proc_mem_fake_add(mem, 0x1000, bytes, 16), 0);
	assert_int_equal(proc_mem_fake_add(mem, 0x100f, bytes, 1), -EEXIST);
	assert_int_equal(proc_mem_fake_add(mem, 0xff8, bytes, 9), -EEXIST);
	assert_int_equal(proc_mem_fake_add(mem, 0xff8, bytes, 8), 0);
	assert_int_equal(proc_mem_fake_add(mem, UINT64_MAX - 3, bytes, 16), -EINVAL);
	maps = proc_mem_maps(mem);
	assert_int_equal(maps->len, 2);
	assert_int_equal(maps->maps[0].start, 0xff8);
	assert_int_equal(maps->maps[1].end, 0x1010);
	for (uint64_t i = 0; i < 100000 && r == 0; i++)
		r = proc_mem_fake_add(mem, 0x100000 + i * 32, bytes, 16);
	assert_int_equal(r, -E2BIG);
}

static void file_fills_only_what_memory_lacks(void **state)
{
	_cleanup_close_ int fd = file_of("0123456789", 10);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct err err;
	char got[16];

	(void)state;
	assert_int_equal(proc_mem_open_fake(&mem, &err), 0);
	assert_int_equal(proc_mem_fake_add(mem, 0x1002, "AB", 2), 0);
	assert_int_equal(proc_mem_fake_add(mem, 0x1006, "C", 1), 0);
	assert_int_equal(proc_mem_back(mem, 0x1000, 9, fd, 1, &err), 0);
	assert_int_equal(proc_mem_read(mem, 0x1000, got, 9, &err), 0);
	assert_memory_equal(got, "12AB56C89", 9);
	assert_int_equal(proc_mem_read_some(mem, 0x0fff, got, 4), 0);
	assert_int_equal(proc_mem_read_some(mem, 0x1008, got, 4), 1);
	assert_int_equal(proc_mem_read(mem, 0x1008, got, 2, &err), -EFAULT);
}

static void file_that_is_too_short_leaves_a_bad_address(void **state)
{
	_cleanup_close_ int fd = file_of("0123", 4);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct err err;
	char got[16];

	(void)state;
	assert_int_equal(proc_mem_open_fake(&mem, &err), 0);
	assert_int_equal(proc_mem_back(mem, 0x1000, 0x1000, fd, 0, &err), 0);
	assert_int_equal(proc_mem_read_some(mem, 0x1002, got, 16), 2);
	assert_memory_equal(got, "23", 2);
	assert_int_equal(proc_mem_read(mem, 0x1004, got, 1, &err), -EFAULT);
}

static void files_are_bounded_regular_and_disjoint(void **state)
{
	_cleanup_close_ int fd = file_of("0123", 4);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct err err;
	int pipes[2], r = 0;
	char got[2];

	(void)state;
	assert_int_equal(proc_mem_open_fake(&mem, &err), 0);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(proc_mem_back(mem, 0x1000, 4, pipes[0], 0, &err), -EINVAL);
	close(pipes[0]);
	close(pipes[1]);
	assert_int_equal(proc_mem_back(mem, 0x1000, 0, fd, 0, &err), -EINVAL);
	assert_int_equal(proc_mem_back(mem, UINT64_MAX, 4, fd, 0, &err), -EINVAL);
	assert_int_equal(proc_mem_back(mem, 0x1000, 4, fd, UINT64_MAX, &err), -EINVAL);
	assert_int_equal(proc_mem_back(mem, 0x1000, 4, fd, 0, &err), 0);
	assert_int_equal(proc_mem_back(mem, 0x1003, 4, fd, 0, &err), -EEXIST);
	assert_int_equal(proc_mem_back(mem, 0x0ffd, 4, fd, 0, &err), -EEXIST);
	/* In falling order: the list has to stay sorted whatever the order of the calls. */
	for (uint64_t i = 1000; i > 0 && r == 0; i--)
		r = proc_mem_back(mem, 0x10000 + i * 16, 4, fd, i % 4, &err);
	assert_int_equal(r, -E2BIG);
	for (uint64_t i = 1000; i > 1000 - 63; i--) {
		assert_int_equal(proc_mem_read(mem, 0x10000 + i * 16, got, 1, &err), 0);
		assert_int_equal(got[0], '0' + (int)(i % 4));
	}
	assert_int_equal(proc_mem_read(mem, 0x1001, got, 2, &err), 0);
	assert_memory_equal(got, "12", 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fake_memory_is_read_across_neighbours),
		cmocka_unit_test(fake_memory_refuses_overlap_and_wrap),
		cmocka_unit_test(file_fills_only_what_memory_lacks),
		cmocka_unit_test(file_that_is_too_short_leaves_a_bad_address),
		cmocka_unit_test(files_are_bounded_regular_and_disjoint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
