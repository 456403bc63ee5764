/* tests/unit/cpu/test_perfmap.c: perf maps: their text, how they grow, and which are trusted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cpu/symbols/jit.h"
#include "cpu/symbols/perfmap.h"

#define SEC 1000000000ULL

struct map {
	int fd; /* to write with */
	struct cpu_perfmap *map;
};

static void append(const struct map *m, const char *text)
{
	assert_int_equal(write(m->fd, text, strlen(text)), strlen(text));
}

static struct map map_new(const char *text)
{
	struct map m = {.fd = memfd_create("map", MFD_CLOEXEC)};

	assert_true(m.fd >= 0);
	append(&m, text);
	assert_int_equal(cpu_perfmap_open_take(fcntl(m.fd, F_DUPFD_CLOEXEC, 0), &m.map, NULL), 0);
	return m;
}

static void map_release(struct map *m)
{
	cpu_perfmap_close(m->map);
	close(m->fd);
}

static void expect(const struct map *m, uint64_t addr, const char *name)
{
	char text[256] = "";

	assert_int_equal(cpu_perfmap_lookup(m->map, addr, text, sizeof(text)), name ? 0 : -ENOENT);
	assert_string_equal(text, name ? name : "");
}

static void functions_have_a_start_a_size_and_a_name_with_blanks(void **state)
{
	_cleanup_(map_release) struct map m = map_new("7f0000002000 20 second\n"
						      "7f0000001000 10 LazyCompile:*main app.js:1\n"
						      "0x7f0000003000 0x10 with a prefix\r\n");

	(void)state;
	assert_true(cpu_perfmap_refresh(m.map, SEC));
	expect(&m, 0x7f0000000fff, NULL);
	expect(&m, 0x7f0000001000, "LazyCompile:*main app.js:1");
	expect(&m, 0x7f000000100f, "LazyCompile:*main app.js:1");
	expect(&m, 0x7f0000001010, NULL);
	expect(&m, 0x7f000000201f, "second");
	expect(&m, 0x7f0000003001, "with a prefix");
}

static void of_lines_that_overlap_the_later_one_holds(void **state)
{
	_cleanup_(map_release) struct map m = map_new("1000 100 old\n"
						      "1040 10 new inside\n"
						      "1000 20 new at the start\n"
						      "2000 10 inner\n"
						      "1f00 200 around it\n");

	(void)state;
	(void)cpu_perfmap_refresh(m.map, SEC);
	expect(&m, 0x1010, "new at the start");
	expect(&m, 0x1045, "new inside");
	expect(&m, 0x2005, "around it");
}

static void garbled_lines_are_left_out(void **state)
{
	_cleanup_(map_release) struct map m = map_new("\n"
						      "zzz 10 no number\n"
						      "1000\n"
						      "1000 10\n"
						      "1000 10 \n"
						      "1000  10 two blanks\n"
						      "1000 0 no size\n"
						      "1000 1ffffffff too large\n"
						      "ffffffffffffffff 2 past the end\n"
						      "10000000000001000 10 too long\n"
						      "-1000 10 negative\n"
						      "3000 10 bell\a\x1b[0m\n"
						      "4000 10 unfinished");

	(void)state;
	(void)cpu_perfmap_refresh(m.map, SEC);
	expect(&m, 0x1000, NULL);
	expect(&m, UINT64_MAX, NULL);
	expect(&m, 0x3000, "bell??[0m");
	expect(&m, 0x4000, NULL);
}

static void what_is_appended_is_read_after_a_while(void **state)
{
	_cleanup_(map_release) struct map m = map_new("1000 10 first\n2000 10 unfini");

	(void)state;
	assert_true(cpu_perfmap_refresh(m.map, SEC));
	expect(&m, 0x2000, NULL);
	append(&m, "shed\n3000 10 third\n");
	assert_false(cpu_perfmap_refresh(m.map, SEC + SEC / 2));
	expect(&m, 0x3000, NULL);
	assert_true(cpu_perfmap_refresh(m.map, 3 * SEC));
	expect(&m, 0x1000, "first");
	expect(&m, 0x2000, "unfinished");
	expect(&m, 0x3000, "third");
	assert_false(cpu_perfmap_refresh(m.map, 9 * SEC)); /* nothing new */
}

static void a_map_that_is_written_anew_is_read_anew(void **state)
{
	_cleanup_(map_release) struct map m = map_new("1000 10 first\n2000 10 second\n");

	(void)state;
	(void)cpu_perfmap_refresh(m.map, SEC);
	assert_int_equal(ftruncate(m.fd, 0), 0);
	assert_int_equal(lseek(m.fd, 0, SEEK_SET), 0);
	append(&m, "5000 10 other\n");
	expect(&m, 0x2000, NULL); /* never a name that is not there any more */
	assert_true(cpu_perfmap_refresh(m.map, 3 * SEC));
	expect(&m, 0x1000, NULL);
	expect(&m, 0x5000, "other");

	/* Longer than before: a lookup finds out. */
	assert_int_equal(lseek(m.fd, 0, SEEK_SET), 0);
	append(&m, "6000 10 one\n7000 10 two\n8000 10 three\n");
	(void)cpu_perfmap_refresh(m.map, 6 * SEC);
	expect(&m, 0x5000, NULL);
	assert_true(cpu_perfmap_refresh(m.map, 9 * SEC));
	expect(&m, 0x6000, "one");
	expect(&m, 0x8000, "three");
}

static void a_large_map_has_to_wait_longer_and_stays_within_its_limit(void **state)
{
	_cleanup_(map_release) struct map m = map_new("");
	FILE *f = fdopen(fcntl(m.fd, F_DUPFD_CLOEXEC, 0), "w");
	char text[32];

	(void)state;
	assert_non_null(f);
	for (size_t i = 0; i < CPU_PERFMAP_MAX_FUNCTIONS + 10; i++)
		(void)fprintf(f, "%zx 10 f%zu\n", (i + 1) << 4, i);
	(void)fclose(f);
	assert_true(cpu_perfmap_refresh(m.map, SEC));
	append(&m, "ff0000000 10 late\n");
	assert_false(cpu_perfmap_refresh(m.map, 4 * SEC));
	(void)snprintf(text, sizeof(text), "f%zu", CPU_PERFMAP_MAX_FUNCTIONS - 1);
	expect(&m, CPU_PERFMAP_MAX_FUNCTIONS << 4, text);
	expect(&m, (CPU_PERFMAP_MAX_FUNCTIONS + 5) << 4, NULL);
	assert_true(cpu_perfmap_memory(m.map) < CPU_PERFMAP_MAX_FUNCTIONS * 20);
}

static void a_line_without_end_is_skipped(void **state)
{
	_cleanup_(map_release) struct map m = map_new("1000 10 first\n");
	char *line = malloc(200001);

	(void)state;
	assert_non_null(line);
	memset(line, 'x', 200000);
	line[200000] = 0;
	append(&m, line);
	append(&m, "\n2000 10 second\n");
	free(line);
	(void)cpu_perfmap_refresh(m.map, SEC);
	expect(&m, 0x1000, "first");
	expect(&m, 0x2000, "second");
}

/* A process that waits, whose map can be put where it would put it itself. */
struct process {
	pid_t pid;
	char path[64];
};

static struct process process_new(uid_t uid)
{
	struct process p = {.pid = fork()};

	if (p.pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (uid && setresuid(uid, uid, uid) < 0)
			_exit(1);
		for (;;)
			pause();
	}
	assert_true(p.pid > 0);
	(void)snprintf(p.path, sizeof(p.path), "/tmp/perf-%d.map", (int)p.pid);
	return p;
}

static void process_release(struct process *p)
{
	(void)unlink(p->path);
	(void)kill(p->pid, SIGKILL);
	(void)waitpid(p->pid, NULL, 0);
}

static void process_write(const struct process *p, const char *text)
{
	int fd = open(p->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static int open_code(const struct process *p)
{
	_cleanup_(cpu_perfmap_closep) struct cpu_perfmap *map = NULL;

	return cpu_perfmap_open(p->pid, &map, NULL);
}

static void the_map_of_a_process_is_found(void **state)
{
	_cleanup_(process_release) struct process p = process_new(0);
	_cleanup_(cpu_perfmap_closep) struct cpu_perfmap *map = NULL;
	struct err err = {0};
	char text[64];

	(void)state;
	assert_int_equal(open_code(&p), -ENOENT);
	process_write(&p, "1000 10 main\n");
	assert_int_equal(cpu_perfmap_open(p.pid, &map, &err), 0);
	(void)cpu_perfmap_refresh(map, SEC);
	assert_int_equal(cpu_perfmap_lookup(map, 0x1008, text, sizeof(text)), 0);
	assert_string_equal(text, "main");
}

static void a_map_that_is_being_written_is_none_yet(void **state)
{
	_cleanup_(process_release) struct process p = process_new(0);

	(void)state;
	process_write(&p, "1000 10 main\n");
	assert_int_equal(chmod(p.path, 0200), 0);
	assert_int_equal(open_code(&p), -EAGAIN);
	assert_int_equal(chmod(p.path, 0600), 0);
	assert_int_equal(open_code(&p), 0);
}

static void a_map_that_was_replaced_is_told_when_it_is_time_and_holds(void **state)
{
	_cleanup_(process_release) struct process p = process_new(0);
	_cleanup_(cpu_perfmap_closep) struct cpu_perfmap *map = NULL;
	char text[64];

	(void)state;
	process_write(&p, "1000 10 main\n");
	assert_int_equal(cpu_perfmap_open(p.pid, &map, NULL), 0);
	(void)cpu_perfmap_refresh(map, SEC);
	assert_false(cpu_perfmap_is_replaced(map, 9 * SEC));
	assert_int_equal(unlink(p.path), 0);
	assert_false(cpu_perfmap_is_replaced(map, SEC + SEC / 2));
	assert_true(cpu_perfmap_is_replaced(map, 9 * SEC));
	assert_int_equal(cpu_perfmap_lookup(map, 0x1008, text, sizeof(text)), 0);
	assert_string_equal(text, "main");
}

/* Names are looked up again when another map has come, and the old ones hold until then. */
static void another_map_takes_the_place_of_the_one_before(void **state)
{
	_cleanup_(process_release) struct process p = process_new(0);
	_cleanup_(cpu_symbols_jits_release) struct cpu_symbols_jits jits = {.max_bytes = 1 << 20};
	struct cpu_symbols_jit *j;
	uint32_t epoch;
	char text[64];

	(void)state;
	process_write(&p, "1000 10 first\n");
	j = cpu_symbols_jits_get(&jits, p.pid, 1, SEC);
	assert_non_null(j->map);
	epoch = j->epoch;
	assert_int_equal(unlink(p.path), 0);
	j = cpu_symbols_jits_get(&jits, p.pid, 1, 3 * SEC);
	assert_int_equal(j->epoch, epoch);
	assert_int_equal(cpu_perfmap_lookup(j->map, 0x1008, text, sizeof(text)), 0);
	assert_string_equal(text, "first");
	process_write(&p, "1000 10 second\n");
	j = cpu_symbols_jits_get(&jits, p.pid, 1, 5 * SEC);
	assert_int_not_equal(j->epoch, epoch);
	assert_int_equal(cpu_perfmap_lookup(j->map, 0x1008, text, sizeof(text)), 0);
	assert_string_equal(text, "second");
}

static void links_pipes_and_folders_are_no_maps(void **state)
{
	_cleanup_(process_release) struct process p = process_new(0);

	(void)state;
	assert_int_equal(symlink("/etc/passwd", p.path), 0);
	assert_int_equal(open_code(&p), -EPERM);
	assert_int_equal(unlink(p.path), 0);
	assert_int_equal(mkfifo(p.path, 0600), 0);
	assert_int_equal(open_code(&p), -EPERM); /* without waiting for a writer */
	assert_int_equal(unlink(p.path), 0);
	assert_int_equal(mkdir(p.path, 0700), 0);
	assert_int_equal(open_code(&p), -EPERM);
	assert_int_equal(rmdir(p.path), 0);
}

static void a_map_of_another_user_is_not_read(void **state)
{
	_cleanup_(process_release) struct process p = process_new(0);

	(void)state;
	if (geteuid() != 0)
		skip();
	process_write(&p, "1000 10 main\n");
	assert_int_equal(chown(p.path, 1234, 1234), 0);
	assert_int_equal(open_code(&p), -EAGAIN);
	assert_int_equal(chmod(p.path, 0644), 0);
	assert_int_equal(open_code(&p), -EPERM);
}

static void a_map_of_the_processs_own_user_is_read(void **state)
{
	_cleanup_(process_release) struct process p = {0};

	(void)state;
	if (geteuid() != 0)
		skip();
	p = process_new(1234);
	process_write(&p, "1000 10 main\n");
	assert_int_equal(chown(p.path, 1234, 1234), 0);
	/* The child may not have changed its user yet; then the file is another's. */
	for (int i = 0; i < 100000 && open_code(&p) != 0; i++)
		(void)usleep(1000);
	assert_int_equal(open_code(&p), 0);
	/* Root's is fine too, where the process could read it itself. */
	assert_int_equal(chown(p.path, 0, 0), 0);
	assert_int_equal(open_code(&p), -EAGAIN);
	assert_int_equal(chmod(p.path, 0644), 0);
	assert_int_equal(open_code(&p), 0);
}

/* The first process of a pid namespace, with a root directory of its own; writes its pid here. */
static void become_container(const char *root, int ready)
{
	pid_t pid;

	if (chroot(root) < 0 || chdir("/") < 0 || unshare(CLONE_NEWPID) < 0)
		_exit(1);
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	if (write(ready, &pid, sizeof(pid)) != sizeof(pid))
		_exit(1);
	for (;;)
		pause();
}

static void write_file(const char *root, const char *name, const char *text)
{
	char path[128];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", root, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* Its /tmp is a link, which means a folder inside the container. */
static void a_containers_map_is_found_in_its_root_by_its_own_number(void **state)
{
	_cleanup_(cpu_perfmap_closep) struct cpu_perfmap *map = NULL;
	char root[] = "/tmp/test-perfmap-XXXXXX", path[128], text[64];
	int ready[2], r;
	pid_t outer, inner = -1;
	ssize_t n;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_non_null(mkdtemp(root));
	(void)snprintf(path, sizeof(path), "%s/real", root);
	assert_int_equal(mkdir(path, 0700), 0);
	write_file(root, "real/perf-1.map", "1000 10 inside\n");
	(void)snprintf(path, sizeof(path), "%s/tmp", root);
	assert_int_equal(symlink("/../real", path), 0);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	outer = fork();
	if (outer == 0)
		become_container(root, ready[1]);
	close(ready[1]);
	n = read(ready[0], &inner, sizeof(inner));
	close(ready[0]);
	r = n == sizeof(inner) ? cpu_perfmap_open(inner, &map, NULL) : -ENOTSUP;
	/* It may not have asked yet to end with its parent. */
	if (inner > 0)
		(void)kill(inner, SIGKILL);
	(void)kill(outer, SIGKILL);
	(void)waitpid(outer, NULL, 0);
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/real/perf-1.map", root);
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/real", root);
	(void)rmdir(path);
	(void)rmdir(root);
	assert_int_equal(r, 0);
	(void)cpu_perfmap_refresh(map, SEC);
	assert_int_equal(cpu_perfmap_lookup(map, 0x1008, text, sizeof(text)), 0);
	assert_string_equal(text, "inside");
}

static void a_process_that_is_gone_has_no_map(void **state)
{
	struct process p = process_new(0);

	(void)state;
	process_release(&p);
	assert_int_equal(open_code(&p), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_have_a_start_a_size_and_a_name_with_blanks),
		cmocka_unit_test(of_lines_that_overlap_the_later_one_holds),
		cmocka_unit_test(garbled_lines_are_left_out),
		cmocka_unit_test(what_is_appended_is_read_after_a_while),
		cmocka_unit_test(a_map_that_is_written_anew_is_read_anew),
		cmocka_unit_test(a_large_map_has_to_wait_longer_and_stays_within_its_limit),
		cmocka_unit_test(a_line_without_end_is_skipped),
		cmocka_unit_test(the_map_of_a_process_is_found),
		cmocka_unit_test(a_map_that_is_being_written_is_none_yet),
		cmocka_unit_test(a_map_that_was_replaced_is_told_when_it_is_time_and_holds),
		cmocka_unit_test(another_map_takes_the_place_of_the_one_before),
		cmocka_unit_test(links_pipes_and_folders_are_no_maps),
		cmocka_unit_test(a_map_of_another_user_is_not_read),
		cmocka_unit_test(a_map_of_the_processs_own_user_is_read),
		cmocka_unit_test(a_containers_map_is_found_in_its_root_by_its_own_number),
		cmocka_unit_test(a_process_that_is_gone_has_no_map),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
