/* tests/unit/proc/test_public.c: a file is read for everybody only if everybody may read it. */
#include "proc/public.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "child.h"
#include "proc/aide/aides.h"
#include "run.h"

#define NOBODY 65534
#define TEXT_MAX 64

static char folder[64];

static void make_file(const char *name, uid_t uid, mode_t mode, const char *text)
{
	char path[128];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(io_write_full(fd, text, strlen(text)), 0);
	assert_int_equal(fchown(fd, uid, uid), 0);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static int make_folder(void **state)
{
	(void)state;
	(void)snprintf(folder, sizeof(folder), "/tmp/test_public.XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chmod(folder, 0755), 0);
	run_in(folder, "mkdir private open dir && chmod 0700 private && chmod 0755 open dir");
	run_in(folder, "mkfifo pipe && chmod 0666 pipe && ln -s public link && ln -s open to-open");
	make_file("public", 0, 0644, "fine");
	make_file("private/public", 0, 0644, "secret");
	make_file("open/public", 0, 0644, "fine");
	make_file("root", 0, 0600, "secret");
	make_file("nobody", NOBODY, 0600, "secret");
	make_file("group", 0, 0640, "secret");
	make_file("others", 0, 0604, "secret");
	make_file("covered", 0, 0644, "fine");
	make_file("cover", 0, 0644, "another");
	make_file("fits", 0, 0644,
		  "0123456789012345678901234567890123456789012345678901234567890123");
	make_file("large", 0, 0644,
		  "01234567890123456789012345678901234567890123456789012345678901234");
	return 0;
}

static int start(void **state)
{
	struct err err = {};

	(void)make_folder(state);
	assert_int_equal(proc_aides_start(false, &err), 0);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	proc_aides_stop();
	run_in("/tmp", "rm -rf %s", folder);
	return 0;
}

/* What was read, or -errno with nothing. */
static int read_file(pid_t pid, const char *path, struct buf *text)
{
	int64_t modified_ns = 0;
	int r;

	*text = buf_with_max(TEXT_MAX);
	r = proc_public_read(pid, path, text, &modified_ns);
	assert_int_equal(modified_ns > 0, r == 0);
	if (r < 0)
		assert_int_equal(text->len, 0);
	return r;
}

static int read_named(pid_t pid, const char *name)
{
	_cleanup_(buf_release) struct buf text = {};
	char path[128];
	int r;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	r = read_file(pid, path, &text);
	if (r == 0)
		assert_string_equal(buf_cstr(&text), "fine");
	return r;
}

static int read_path(pid_t pid, const char *path)
{
	_cleanup_(buf_release) struct buf text = {};

	return read_file(pid, path, &text);
}

static int read_bytes(pid_t pid, const char *name)
{
	_cleanup_(buf_release) struct buf text = {};
	char path[128];
	int r;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	r = read_file(pid, path, &text);
	return r < 0 ? r : (int)text.len;
}

/* The target is root, whose rights would be enough for all of them. */
static void check_files(pid_t pid)
{
	assert_int_equal(read_named(pid, "public"), 0);
	assert_int_equal(read_named(pid, "open/public"), 0);
	assert_int_equal(read_named(pid, "to-open/public"), 0);
	assert_int_equal(read_named(pid, "private/public"), -EACCES);
	assert_int_equal(read_named(pid, "root"), -EACCES);
	assert_int_equal(read_named(pid, "nobody"), -EACCES);
	assert_int_equal(read_named(pid, "group"), -EACCES);
	assert_int_equal(read_named(pid, "others"), -EACCES);
	assert_int_equal(read_named(pid, "link"), -EINVAL);
	assert_int_equal(read_named(pid, "dir"), -EINVAL);
	assert_int_equal(read_named(pid, "pipe"), -EINVAL);
	assert_int_equal(read_named(pid, "none"), -ENOENT);
	assert_int_equal(read_bytes(pid, "fits"), TEXT_MAX);
	assert_int_equal(read_bytes(pid, "large"), -E2BIG);
	assert_int_equal(read_path(pid, "/dev/zero"), -EINVAL);
	assert_int_equal(read_path(pid, "/etc/shadow"), -EACCES);
	assert_int_equal(read_path(pid, "etc/passwd"), -EINVAL);
	assert_int_equal(read_path(pid, ""), -EINVAL);
	/* Whose contents depend on who opens them. */
	assert_int_equal(read_path(pid, "/proc/self/status"), -EINVAL);
	assert_int_equal(read_path(pid, "/proc/kallsyms"), -EINVAL);
	assert_true(read_path(pid, "/proc/self/root/etc/passwd") < 0);
	assert_true(read_path(pid, "/proc/1/environ") < 0);
}

static void only_what_everybody_may_read(void **state)
{
	struct child c = child_start(child_nothing, child_nothing);

	(void)state;
	check_files(c.pid);
	child_end(&c);
	assert_int_equal(read_named(c.pid, "public"), -ESRCH);
}

/* And our own rights are back afterwards. */
static void the_same_without_aides(void **state)
{
	struct child c = child_start(child_nothing, child_nothing);

	(void)state;
	proc_aides_stop();
	check_files(c.pid);
	assert_int_equal(access("/etc/shadow", R_OK), 0);
	assert_int_equal(eaccess("/etc/shadow", R_OK), 0);
	child_end(&c);
}

static void mount_over(void)
{
	char from[128], to[128];

	(void)snprintf(from, sizeof(from), "%s/cover", folder);
	(void)snprintf(to, sizeof(to), "%s/covered", folder);
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount(from, to, NULL, MS_BIND, NULL) < 0)
		_exit(77);
}

static void go_into_a_root_of_its_own(void)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/private", folder);
	if (chroot(path) < 0 || chdir("/") < 0)
		_exit(77);
}

/* Everybody may read each of them, and outside only what lies there. */
static void only_where_the_target_sees_the_same_file(void **state)
{
	struct child mounted = child_start(mount_over, child_nothing);
	struct child caged = child_start(go_into_a_root_of_its_own, child_nothing);

	(void)state;
	assert_int_equal(read_named(getpid(), "covered"), 0);
	assert_int_equal(read_named(mounted.pid, "covered"), -EXDEV);
	assert_int_equal(read_named(mounted.pid, "public"), 0);
	/* In its root it may be read by everybody; who else gets there? */
	assert_int_equal(read_path(caged.pid, "/public"), -ENOENT);
	assert_int_equal(read_named(caged.pid, "public"), -EXDEV);
	child_end(&mounted);
	child_end(&caged);
}

#define WITH_AIDES(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_AIDES(only_what_everybody_may_read),
		WITH_AIDES(the_same_without_aides),
		WITH_AIDES(only_where_the_target_sees_the_same_file),
	};

	if (geteuid() != 0)
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
