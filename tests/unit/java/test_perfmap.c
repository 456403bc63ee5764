/* tests/unit/java/test_perfmap.c: perf maps of JVMs: their names, and which files are ours. */
#include "java/perfmap/perfmap.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "java/perfmap/files.h"
#include "java/perfmap/text.h"
#include "test_state.h"

static void expect_name(const char *name, const char *wanted)
{
	_cleanup_(buf_release) struct buf out = {};

	assert_int_equal(java_perfmap_name(&out, view_str(name)), 0);
	assert_string_equal(buf_cstr(&out), wanted);
}

static void methods_are_called_as_in_recordings(void **state)
{
	(void)state;
	expect_name("int java.lang.String.hashCode()", "java.lang.String.hashCode");
	expect_name("java.lang.Object[] Spin.run(long, java.lang.String)", "Spin.run");
	expect_name("void java.util.HashMap.<init>(int)", "java.util.HashMap.<init>");
	expect_name("void Load$$Lambda$2+0x00007f26c4001450.run()", "Load$$Lambda.run");
	expect_name("void Load$$Lambda.0x000000007d041238.run()", "Load$$Lambda.run");
	expect_name("void Load$$Lambda/0x000000007d041238.run()", "Load$$Lambda.run");
	expect_name("void jdk.proxy2.$Proxy17.close()", "jdk.proxy.$Proxy.close");
	expect_name("java.lang.Object jdk.internal.reflect.GeneratedMethodAccessor12.invoke("
		    "java.lang.Object, java.lang.Object[])",
		    "jdk.internal.reflect.GeneratedMethodAccessor.invoke");
}

static void what_is_no_method_stays(void **state)
{
	static const char *const names[] = {
		"Interpreter",
		"StubRoutines (1)",
		"I2C/C2I adapters",
		"C1 Runtime new_instance_blob",
		"vtable stub",
		"()",
		"a (",
		" (",
		"int f()",
		"int .f()",
		"int C.()",
		"C.f()",
		"",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		expect_name(names[i], names[i]);
}

static int file_with(const char *text)
{
	int fd = memfd_create("map", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	return fd;
}

static void expect_text(int fd, const char *wanted)
{
	char text[512];
	ssize_t n = io_pread_full(fd, text, sizeof(text) - 1, 0);

	assert_true(n >= 0);
	text[n] = 0;
	assert_string_equal(text, wanted);
}

static void expect_cut_copy(const char *map, uint64_t max, uint64_t functions, const char *wanted)
{
	_cleanup_close_ int from = file_with(map), to = file_with("");
	struct java_perfmap_copied copied;

	assert_int_equal(java_perfmap_copy(from, to, max, &copied), 0);
	assert_int_equal(copied.functions, functions);
	assert_true(copied.is_cut);
	expect_text(to, wanted);
}

static void lines_keep_where_they_are_and_torn_ones_are_left_out(void **state)
{
	(void)state;
	expect_cut_copy("0x1000 0x10 int A.f()\n"
			"\n"
			"0x2000\n"
			"0x2000 0x10 \n"
			"0x3000 0x20 Interpreter\n"
			"0x4000 0x10 int B.cu",
			4096, 2, "0x1000 0x10 A.f\n0x3000 0x20 Interpreter\n");
}

static void a_map_beyond_the_limit_is_cut_at_a_line(void **state)
{
	(void)state;
	expect_cut_copy("1 1 int A.f()\n2 1 int A.g()\n", 20, 1, "1 1 A.f\n");
}

/* Many chunks, lines across their borders, and one that is longer than any. */
static void a_large_map_is_copied_line_by_line(void **state)
{
	_cleanup_close_ int from = memfd_create("map", MFD_CLOEXEC), to = file_with("");
	FILE *f = fdopen(fcntl(from, F_DUPFD_CLOEXEC, 0), "w");
	struct java_perfmap_copied copied;
	struct stat st;

	(void)state;
	assert_non_null(f);
	for (int i = 0; i < 20000; i++)
		(void)fprintf(f, "%x 10 int C.f%05d()\n", 0x10000 + i * 16, i);
	for (int i = 0; i < 300000; i++)
		(void)fputc('x', f);
	(void)fprintf(f, "\nff0000 10 int C.last()\n");
	(void)fclose(f);
	assert_int_equal(java_perfmap_copy(from, to, JAVA_PERFMAP_MAX_BYTES, &copied), 0);
	assert_int_equal(copied.functions, 20001);
	assert_false(copied.is_cut);
	assert_int_equal(fstat(to, &st), 0);
	/* Without "int " and "()" in each. */
	assert_int_equal(st.st_size,
			 20000 * strlen("10000 10 C.f00000\n") + strlen("ff0000 10 C.last\n"));
}

static struct java_target self(void)
{
	struct java_target t;
	struct proc_id id;

	assert_int_equal(proc_id_of(getpid(), &id, NULL), 0);
	assert_int_equal(java_target_read(&id, &t, NULL), 0);
	return t;
}

static struct java_perfmap_files files_new(void)
{
	const struct java_note note = {.token = 0x1234};
	struct java_perfmap_files f;
	int tmp = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_true(tmp >= 0);
	java_perfmap_files_init(&f, tmp, "perf-7.map", &note);
	return f;
}

static bool exists(const struct java_perfmap_files *f, const char *name)
{
	struct stat st;

	return fstatat(f->tmp, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void put(const struct java_perfmap_files *f, const char *name, const char *text)
{
	_cleanup_close_ int fd =
		openat(f->tmp, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

/* What the JVM does: by name, whatever is there, from its start. */
static void jvm_writes(const struct java_perfmap_files *f, const char *name, const char *text)
{
	_cleanup_close_ int fd =
		openat(f->tmp, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void expect_map(const struct java_perfmap_files *f, const char *wanted)
{
	_cleanup_close_ int fd = openat(f->tmp, f->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	assert_true(fd >= 0);
	expect_text(fd, wanted);
}

static void a_map_is_written_twice_by_either_way_and_removed(void **state)
{
	struct java_target t = self();

	(void)state;
	for (int by_name = 0; by_name < 2; by_name++) {
		_cleanup_(java_perfmap_files_release) struct java_perfmap_files f = files_new();
		struct java_perfmap_copied copied;

		for (int i = 0; i < 2; i++) {
			_cleanup_close_ int raw = -1;
			struct stat st;

			assert_int_equal(java_perfmap_files_begin(&f, &t, by_name, &raw), 0);
			/* Nobody takes it for a map before it is whole. */
			assert_int_equal(fstat(raw, &st), 0);
			assert_false(st.st_mode & S_IRUSR);
			jvm_writes(&f, by_name ? f.name : f.raw,
				   i ? "1 1 int A.g()\n" : "1 1 int A.f()\n");
			assert_int_equal(java_perfmap_files_finish(&f, &t, raw, &copied), 0);
			assert_int_equal(copied.functions, 1);
			expect_map(&f, i ? "1 1 A.g\n" : "1 1 A.f\n");
			assert_int_equal(java_perfmap_files_look(&f, &t), JAVA_PERFMAP_OURS);
			assert_false(exists(&f, f.raw) || exists(&f, f.fresh));
		}
		assert_int_equal(java_perfmap_files_remove(&f), 0);
		assert_int_equal(java_perfmap_files_look(&f, &t), JAVA_PERFMAP_NONE);
	}
}

static void what_is_not_ours_is_never_replaced_or_removed(void **state)
{
	_cleanup_(java_perfmap_files_release) struct java_perfmap_files f = files_new();
	struct java_target t = self();
	struct java_perfmap_copied copied;
	_cleanup_close_ int raw = -1;

	(void)state;
	put(&f, f.name, "1 1 theirs\n");
	assert_int_equal(java_perfmap_files_look(&f, &t), JAVA_PERFMAP_USERS);
	assert_int_equal(java_perfmap_files_begin(&f, &t, true, &raw), -EEXIST);
	/* One that comes while the JVM writes elsewhere. */
	assert_int_equal(java_perfmap_files_begin(&f, &t, false, &raw), 0);
	jvm_writes(&f, f.raw, "1 1 int A.f()\n");
	assert_int_equal(java_perfmap_files_finish(&f, &t, raw, &copied), -EEXIST);
	assert_int_equal(java_perfmap_files_remove(&f), 0);
	expect_map(&f, "1 1 theirs\n");
	assert_int_equal(unlinkat(f.tmp, f.name, 0), 0);
}

static void a_link_is_refused_and_its_target_stays(void **state)
{
	_cleanup_(java_perfmap_files_release) struct java_perfmap_files f = files_new();
	struct java_target t = self();
	_cleanup_close_ int raw = -1, precious = -1;

	(void)state;
	put(&f, "precious", "as it was\n");
	assert_int_equal(symlinkat("precious", f.tmp, f.name), 0);
	assert_int_equal(java_perfmap_files_look(&f, &t), JAVA_PERFMAP_OTHER);
	assert_int_equal(java_perfmap_files_begin(&f, &t, true, &raw), -EEXIST);
	assert_int_equal(java_perfmap_files_remove(&f), 0);
	assert_true(exists(&f, f.name));
	precious = openat(f.tmp, "precious", O_RDONLY | O_CLOEXEC);
	expect_text(precious, "as it was\n");
	assert_int_equal(unlinkat(f.tmp, f.name, 0), 0);
	assert_int_equal(unlinkat(f.tmp, "precious", 0), 0);
}

static void a_map_of_another_user_or_an_earlier_process_is_no_map_of_its_own(void **state)
{
	_cleanup_(java_perfmap_files_release) struct java_perfmap_files f = files_new();
	const struct timespec old[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
	struct java_target t = self();

	(void)state;
	put(&f, f.name, "1 1 theirs\n");
	assert_int_equal(java_perfmap_files_look(&f, &t), JAVA_PERFMAP_USERS);
	assert_int_equal(utimensat(f.tmp, f.name, old, 0), 0);
	assert_int_equal(java_perfmap_files_look(&f, &t), JAVA_PERFMAP_OTHER);
	assert_int_equal(utimensat(f.tmp, f.name, NULL, 0), 0);
	if (geteuid() == 0) {
		assert_int_equal(fchownat(f.tmp, f.name, 1234, 1234, 0), 0);
		assert_int_equal(java_perfmap_files_look(&f, &t), JAVA_PERFMAP_OTHER);
	}
	assert_int_equal(unlinkat(f.tmp, f.name, 0), 0);
}

static void a_jvm_that_writes_nothing_is_noticed(void **state)
{
	_cleanup_(java_perfmap_files_release) struct java_perfmap_files f = files_new();
	struct java_target t = self();
	struct java_perfmap_copied copied;
	_cleanup_close_ int raw = -1;

	(void)state;
	assert_int_equal(java_perfmap_files_begin(&f, &t, true, &raw), 0);
	assert_int_equal(java_perfmap_files_finish(&f, &t, raw, &copied), -ENODATA);
	assert_int_equal(java_perfmap_files_remove(&f), 0);
}

/* Killed at any moment: what is there is known by the note alone. */
static void what_a_killed_one_left_is_found_by_its_note(void **state)
{
	struct java_target t = self();

	(void)state;
	for (int moment = 0; moment < 2; moment++) {
		_cleanup_(java_perfmap_files_release) struct java_perfmap_files f = files_new();
		_cleanup_(java_perfmap_files_release) struct java_perfmap_files next = files_new();
		struct java_perfmap_copied copied;
		_cleanup_close_ int raw = -1;

		assert_int_equal(java_perfmap_files_begin(&f, &t, true, &raw), 0);
		jvm_writes(&f, f.name, "1 1 int A.f()\n");
		if (moment > 0)
			assert_int_equal(java_perfmap_files_finish(&f, &t, raw, &copied), 0);
		assert_int_equal(java_perfmap_files_remove(&next), 0);
		assert_false(exists(&f, f.name));
	}
}

static void a_process_without_java_is_refused_and_nothing_is_noted(void **state)
{
	const struct java_perfmap_options options = {.state_dir = dir};
	struct java_perfmap *map = NULL;
	struct java_target t = self();
	struct err err = {0};

	(void)state;
	assert_int_equal(java_perfmap_start(&t.id, &options, &map, &err), -ENOTSUP);
	assert_null(map);
	assert_non_null(strstr(err.text, "not a HotSpot JVM"));
	assert_int_equal(java_perfmaps_restore(dir, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(methods_are_called_as_in_recordings),
		cmocka_unit_test(what_is_no_method_stays),
		cmocka_unit_test(lines_keep_where_they_are_and_torn_ones_are_left_out),
		cmocka_unit_test(a_map_beyond_the_limit_is_cut_at_a_line),
		cmocka_unit_test(a_large_map_is_copied_line_by_line),
		cmocka_unit_test_setup_teardown(a_map_is_written_twice_by_either_way_and_removed,
						setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_not_ours_is_never_replaced_or_removed,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_link_is_refused_and_its_target_stays, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_map_of_another_user_or_an_earlier_process_is_no_map_of_its_own, setup,
			teardown),
		cmocka_unit_test_setup_teardown(a_jvm_that_writes_nothing_is_noticed, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_a_killed_one_left_is_found_by_its_note, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_process_without_java_is_refused_and_nothing_is_noted, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
