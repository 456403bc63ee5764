/* tests/unit/proc/test_file.c: only the very file that is mapped is opened, and only regular ones.
 */
#include "proc/file.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "child.h"

#define NOBODY 65534

/* A directory with a mapped file in it, and the mapping as the maps file shows it. */
struct fixture {
	char dir[64];
	char path[96];
	void *addr;
	struct proc_maps maps;
	const struct proc_map *map;
	ino_t inode;
};

static void write_file(const char *path, const char *text)
{
	_cleanup_close_ int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void fixture_init(struct fixture *f)
{
	_cleanup_close_ int fd = -1;
	struct stat st;
	struct err err;

	*f = (struct fixture){.dir = "/tmp/sonde-file-XXXXXX"};
	assert_non_null(mkdtemp(f->dir));
	assert_int_equal(chmod(f->dir, 0755), 0);
	(void)snprintf(f->path, sizeof(f->path), "%s/mapped", f->dir);
	write_file(f->path, "mapped file");
	fd = open(f->path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	f->inode = st.st_ino;
	f->addr = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(f->addr != MAP_FAILED);
	assert_int_equal(proc_maps_read(getpid(), &f->maps, &err), 0);
	f->map = proc_maps_find(&f->maps, (uintptr_t)f->addr);
	assert_non_null(f->map);
}

static void fixture_reload(struct fixture *f)
{
	struct err err;

	proc_maps_release(&f->maps);
	assert_int_equal(proc_maps_read(getpid(), &f->maps, &err), 0);
	f->map = proc_maps_find(&f->maps, (uintptr_t)f->addr);
	assert_non_null(f->map);
}

static void fixture_release(struct fixture *f)
{
	char command[128];

	proc_maps_release(&f->maps);
	munmap(f->addr, 4096);
	(void)snprintf(command, sizeof(command), "rm -rf %s", f->dir);
	assert_int_equal(system(command), 0);
}

static void expect_mapped_file(const struct fixture *f)
{
	_cleanup_close_ int fd = -1;
	struct err err = {};
	struct stat st;
	char text[32];

	if (proc_file_open_mapped(getpid(), f->map, &fd, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_ino, f->inode);
	assert_int_equal(read(fd, text, sizeof(text)), strlen("mapped file"));
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

static void file_is_found_even_when_deleted_or_replaced(void **state)
{
	struct fixture f;

	(void)state;
	if (geteuid() != 0)
		skip();
	fixture_init(&f);
	expect_mapped_file(&f);
	assert_int_equal(unlink(f.path), 0);
	write_file(f.path, "another file of the same name");
	expect_mapped_file(&f);
	fixture_reload(&f);
	assert_true(f.map->flags & PROC_MAP_DELETED);
	expect_mapped_file(&f);
	fixture_release(&f);
}

static void file_of_a_mapping_that_changed_is_refused(void **state)
{
	struct proc_map other;
	struct fixture f;
	struct err err;
	int fd = -1;

	(void)state;
	fixture_init(&f);
	other = *f.map;
	other.inode++;
	assert_int_equal(proc_file_open_mapped(getpid(), &other, &fd, &err), -ESTALE);
	assert_non_null(strstr(err.text, "no longer the mapped one"));
	assert_int_equal(fd, -1);
	fixture_release(&f);
}

static void file_behind_anonymous_memory_does_not_exist(void **state)
{
	static const struct proc_map maps[] = {
		{.start = 4096, .end = 8192, .path = ""},
		{.start = 4096, .end = 8192, .path = "[heap]"},
		{.start = 4096, .end = 8192, .inode = 1, .path = "[x]"},
	};
	struct err err;
	int fd = -1;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(maps); i++)
		assert_int_equal(proc_file_open_mapped(getpid(), &maps[i], &fd, &err), -ENOENT);
	assert_int_equal(fd, -1);
}

static void file_that_is_a_device_is_refused(void **state)
{
	_cleanup_(proc_maps_release) struct proc_maps maps = {0};
	_cleanup_close_ int zero = open("/dev/zero", O_RDWR | O_CLOEXEC);
	const struct proc_map *map;
	struct err err;
	int fd = -1;
	void *p;

	(void)state;
	assert_true(zero >= 0);
	p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, zero, 0);
	assert_true(p != MAP_FAILED);
	assert_int_equal(proc_maps_read(getpid(), &maps, &err), 0);
	map = proc_maps_find(&maps, (uintptr_t)p);
	assert_non_null(map);
	assert_string_equal(map->path, "/dev/zero");
	assert_int_equal(proc_file_open_mapped(getpid(), map, &fd, &err), -EINVAL);
	assert_non_null(strstr(err.text, "not a regular file"));
	munmap(p, 4096);
}

/* Without CAP_CHECKPOINT_RESTORE the links in map_files are closed: names have to do. */
static int as_nobody(int (*question)(const struct fixture *f), const struct fixture *f)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		if (setgroups(0, NULL) < 0 || setgid(NOBODY) < 0 || setuid(NOBODY) < 0 ||
		    prctl(PR_SET_DUMPABLE, 1) < 0)
			_exit(99);
		_exit(question(f));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int open_by_name(const struct fixture *f)
{
	int fd = -1;
	int r = proc_file_open_mapped(getpid(), f->map, &fd, NULL);
	struct stat st;

	if (r == 0 && (fstat(fd, &st) < 0 || st.st_ino != f->inode))
		return 98;
	return -r;
}

static void file_is_found_by_name_without_privileges(void **state)
{
	struct fixture f;

	(void)state;
	if (geteuid() != 0)
		skip();
	fixture_init(&f);
	assert_int_equal(as_nobody(open_by_name, &f), 0);
	fixture_release(&f);
}

static void file_of_the_same_name_is_never_taken_for_it(void **state)
{
	struct fixture f;
	char away[128];

	(void)state;
	if (geteuid() != 0)
		skip();
	fixture_init(&f);
	(void)snprintf(away, sizeof(away), "%s.away", f.path);
	assert_int_equal(rename(f.path, away), 0);
	assert_int_equal(as_nobody(open_by_name, &f), ENOENT);
	write_file(f.path, "another");
	assert_int_equal(as_nobody(open_by_name, &f), ESTALE);
	assert_int_equal(unlink(f.path), 0);
	assert_int_equal(symlink("/etc/passwd", f.path), 0);
	assert_int_equal(as_nobody(open_by_name, &f), ESTALE);
	assert_int_equal(unlink(away), 0);
	fixture_reload(&f);
	assert_int_equal(as_nobody(open_by_name, &f), EPERM);
	fixture_release(&f);
}

static int open_executable(const struct fixture *f)
{
	_cleanup_(proc_maps_release) struct proc_maps maps = {0};
	const struct proc_map *map;
	int fd = -1;

	(void)f;
	if (proc_maps_read(getpid(), &maps, NULL) < 0)
		return 97;
	map = proc_maps_find(&maps, (uintptr_t)open_executable);
	return map ? -proc_file_open_mapped(getpid(), map, &fd, NULL) : 96;
}

/* Inode numbers are unique within one device only. */
static void file_of_the_same_inode_on_another_device_is_refused(void **state)
{
	struct fixture f, other;
	struct proc_map map;

	(void)state;
	if (geteuid() != 0)
		skip();
	fixture_init(&f);
	map = *f.map;
	map.dev++;
	other = f;
	other.map = &map;
	assert_int_equal(as_nobody(open_by_name, &other), ESTALE);
	fixture_release(&f);
}

static void file_of_the_executable_is_found_without_privileges(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(as_nobody(open_executable, NULL), 0);
}

static void file_named_by_a_core_must_be_regular_and_real(void **state)
{
	static const char *const wrong[] = {
		"/dev/zero", "/proc/kmsg", "/proc/self/maps", "/sys/kernel/notes", "/",
	};
	char fifo[] = "/tmp/sonde-fifo-XXXXXX";
	struct err err;
	int fd = -1;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(proc_file_open_path(wrong[i], &fd, &err), -EINVAL);
	assert_non_null(mkdtemp(fifo));
	assert_int_equal(rmdir(fifo), 0);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(proc_file_open_path(fifo, &fd, &err), -EINVAL);
	assert_int_equal(unlink(fifo), 0);
	assert_int_equal(proc_file_open_path("/no/such", &fd, &err), -ENOENT);
	assert_int_equal(proc_file_open_path("relative", &fd, &err), -ENOENT);
	assert_int_equal(proc_file_open_path("", &fd, &err), -ENOENT);
	assert_int_equal(fd, -1);
	assert_int_equal(proc_file_open_path("/etc/passwd", &fd, &err), 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_is_found_even_when_deleted_or_replaced),
		cmocka_unit_test(file_of_a_mapping_that_changed_is_refused),
		cmocka_unit_test(file_behind_anonymous_memory_does_not_exist),
		cmocka_unit_test(file_that_is_a_device_is_refused),
		cmocka_unit_test(file_is_found_by_name_without_privileges),
		cmocka_unit_test(file_of_the_same_name_is_never_taken_for_it),
		cmocka_unit_test(file_of_the_same_inode_on_another_device_is_refused),
		cmocka_unit_test(file_of_the_executable_is_found_without_privileges),
		cmocka_unit_test(file_named_by_a_core_must_be_regular_and_real),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
