/* tests/unit/proc/test_maps.c: the text of /proc/PID/maps, and its search. */
#include "proc/maps.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"

/* makedev() for small numbers, as a constant. */
#define DEV(major, minor) ((uint64_t)(major) << 8 | (minor))

static const struct {
	const char *line;
	struct proc_map want;
} good[] = {
	{"00400000-0040b000 r-xp 00001000 fe:01 123456 /usr/bin/cat",
	 {.start = 0x400000,
	  .end = 0x40b000,
	  .offset = 0x1000,
	  .dev = DEV(0xfe, 1),
	  .inode = 123456,
	  .flags = PROC_MAP_READ | PROC_MAP_EXEC,
	  .path = "/usr/bin/cat"}},
	{"7f0000000000-7f0000001000 rw-p 00000000 00:00 0 ",
	 {.start = 0x7f0000000000,
	  .end = 0x7f0000001000,
	  .flags = PROC_MAP_READ | PROC_MAP_WRITE,
	  .path = ""}},
	{"7f0000000000-7f0000001000 ---p 00000000 00:00 0",
	 {.start = 0x7f0000000000, .end = 0x7f0000001000, .path = ""}},
	{"1000-2000 rw-p 00000000 00:00 0                          [heap]",
	 {.start = 0x1000,
	  .end = 0x2000,
	  .flags = PROC_MAP_READ | PROC_MAP_WRITE,
	  .path = "[heap]"}},
	{"1000-2000 rw-p 00000000 00:00 0 [anon:Go: heap (deleted)]",
	 {.start = 0x1000,
	  .end = 0x2000,
	  .flags = PROC_MAP_READ | PROC_MAP_WRITE,
	  .path = "[anon:Go: heap (deleted)]"}},
	{"1000-2000 rwxs 00002000 103:00012 18446744073709551615   /a b/c d (deleted)",
	 {.start = 0x1000,
	  .end = 0x2000,
	  .offset = 0x2000,
	  .dev = DEV(0x103, 0x12),
	  .inode = UINT64_MAX,
	  .flags = PROC_MAP_READ | PROC_MAP_WRITE | PROC_MAP_EXEC | PROC_MAP_DELETED |
		   PROC_MAP_SHARED,
	  .path = "/a b/c d"}},
	{"1000-2000 r--p 00000000 08:01 5 /new\\012line\\040\\012",
	 {.start = 0x1000,
	  .end = 0x2000,
	  .dev = DEV(8, 1),
	  .inode = 5,
	  .flags = PROC_MAP_READ,
	  .path = "/new\nline\\040\n"}},
	{"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]",
	 {.start = 0xffffffffff600000,
	  .end = 0xffffffffff601000,
	  .flags = PROC_MAP_EXEC,
	  .path = "[vsyscall]"}},
};

static void maps_lines_are_read_as_the_kernel_writes_them(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		_cleanup_(proc_maps_release) struct proc_maps maps = {0};
		const struct proc_map *want = &good[i].want, *m;
		struct err err = {};

		assert_int_equal(proc_maps_parse(view_str(good[i].line), &maps, &err), 0);
		assert_int_equal(maps.len, 1);
		m = &maps.maps[0];
		assert_int_equal(m->start, want->start);
		assert_int_equal(m->end, want->end);
		assert_int_equal(m->offset, want->offset);
		assert_int_equal(m->dev, want->dev);
		assert_int_equal(m->inode, want->inode);
		assert_int_equal(m->flags, want->flags);
		assert_string_equal(m->path, want->path);
	}
}

static void maps_lines_that_make_no_sense_are_refused(void **state)
{
	static const char *const bad[] = {
		"x",
		"\n",
		"1000-2000",
		"1000 2000 r--p 0 00:00 0",
		"2000-1000 r--p 0 00:00 0",
		"1000-1000 r--p 0 00:00 0",
		"1000-2000 r--q 0 00:00 0",
		"1000-2000 rrrp 0 00:00 0",
		"1000-2000 r--p  00:00 0",
		"1000-2000 r--p 0 00-00 0",
		"1000-2000 r--p 0 00:00 x",
		"1000-2000 r--p 0 00:00 0x",
		"1000-2000 r--p 0 100000000:00 0",
		"1000-2000 r--p 0 00:00 18446744073709551616",
		"1000-12345678123456789 r--p 0 00:00 0",
		"1000-3000 r--p 0 00:00 0\n2000-4000 r--p 0 00:00 0\n",
		"3000-4000 r--p 0 00:00 0\n1000-2000 r--p 0 00:00 0\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		_cleanup_(proc_maps_release) struct proc_maps maps = {0};
		struct err err = {};

		assert_int_equal(proc_maps_parse(view_str(bad[i]), &maps, &err), -EBADMSG);
		assert_int_equal(maps.len, 0);
		assert_string_not_equal(err.text, "");
	}
	{
		static const char nul[] = "1000-2000 r--p 0 00:00 1 /a\0b";
		_cleanup_(proc_maps_release) struct proc_maps maps = {0};
		struct err err;

		assert_int_equal(proc_maps_parse(view_of(nul, sizeof(nul) - 1), &maps, &err),
				 -EBADMSG);
	}
}

static void maps_find_gives_the_mapping_that_holds_an_address(void **state)
{
	static const char text[] = "1000-2000 r--p 0 00:00 0\n2000-3000 rw-p 0 00:00 0\n"
				   "5000-6000 r-xp 0 00:00 0\n";
	_cleanup_(proc_maps_release) struct proc_maps maps = {0};
	struct err err;

	(void)state;
	assert_null(proc_maps_find(&maps, 0x1000));
	assert_int_equal(proc_maps_parse(view_str(text), &maps, &err), 0);
	assert_int_equal(maps.len, 3);
	assert_null(proc_maps_find(&maps, 0));
	assert_null(proc_maps_find(&maps, 0xfff));
	assert_ptr_equal(proc_maps_find(&maps, 0x1000), &maps.maps[0]);
	assert_ptr_equal(proc_maps_find(&maps, 0x1fff), &maps.maps[0]);
	assert_ptr_equal(proc_maps_find(&maps, 0x2000), &maps.maps[1]);
	assert_null(proc_maps_find(&maps, 0x3000));
	assert_null(proc_maps_find(&maps, 0x4fff));
	assert_ptr_equal(proc_maps_find(&maps, 0x5fff), &maps.maps[2]);
	assert_null(proc_maps_find(&maps, 0x6000));
	assert_null(proc_maps_find(&maps, UINT64_MAX));
}

static void maps_of_this_process_hold_a_file_it_maps(void **state)
{
	char name[] = "/tmp/sonde maps\nXXXXXX";
	_cleanup_(proc_maps_release) struct proc_maps maps = {0};
	_cleanup_close_ int fd = mkstemp(name);
	const struct proc_map *m;
	struct err err;
	struct stat st;
	void *p;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 3 * 4096), 0);
	p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 8192);
	assert_true(p != MAP_FAILED);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(proc_maps_read(getpid(), &maps, &err), 0);
	m = proc_maps_find(&maps, (uintptr_t)p);
	assert_non_null(m);
	assert_string_equal(m->path, name);
	assert_int_equal(m->inode, st.st_ino);
	assert_int_equal(m->dev, st.st_dev);
	assert_int_equal(m->offset, 8192);
	assert_int_equal(m->flags, PROC_MAP_READ);

	assert_int_equal(unlink(name), 0);
	proc_maps_release(&maps);
	assert_int_equal(proc_maps_read(getpid(), &maps, &err), 0);
	m = proc_maps_find(&maps, (uintptr_t)p);
	assert_non_null(m);
	assert_string_equal(m->path, name);
	assert_int_equal(m->flags, PROC_MAP_READ | PROC_MAP_DELETED);
	munmap(p, 4096);
}

static void maps_of_nobody_are_gone(void **state)
{
	_cleanup_(proc_maps_release) struct proc_maps maps = {0};
	struct err err;

	(void)state;
	assert_int_equal(proc_maps_read(0x7ffffff0, &maps, &err), -ESRCH);
	assert_non_null(strstr(err.text, "has exited"));
}

static void maps_stop_at_their_limit(void **state)
{
	_cleanup_(proc_maps_release) struct proc_maps maps = {0};
	struct proc_map m = {.path = "/same"};
	struct err err;

	(void)state;
	for (size_t i = 0; i < PROC_MAPS_MAX; i++) {
		m.start = i * 4096;
		m.end = m.start + 4096;
		assert_int_equal(proc_maps_add(&maps, &m, &err), 0);
	}
	assert_ptr_equal(maps.maps[0].path, maps.maps[PROC_MAPS_MAX - 1].path);
	assert_int_equal(proc_maps_add(&maps, &m, &err), -E2BIG);
	assert_int_equal(maps.len, PROC_MAPS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maps_lines_are_read_as_the_kernel_writes_them),
		cmocka_unit_test(maps_lines_that_make_no_sense_are_refused),
		cmocka_unit_test(maps_find_gives_the_mapping_that_holds_an_address),
		cmocka_unit_test(maps_of_this_process_hold_a_file_it_maps),
		cmocka_unit_test(maps_of_nobody_are_gone),
		cmocka_unit_test(maps_stop_at_their_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
