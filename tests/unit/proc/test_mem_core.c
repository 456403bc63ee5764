/* tests/unit/proc/test_mem_core.c: cores of gcore and of the kernel against the live process. */
#include "proc/mem.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "child.h"

static char dir[32];

static void become_sleep(void)
{
	struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};

	(void)setrlimit(RLIMIT_CORE, &unlimited);
	if (chdir(dir) == 0)
		(void)execl("/bin/sleep", "sleep", "infinity", (char *)NULL);
}

static struct child start_sleep(void)
{
	struct child c;

	strcpy(dir, "/tmp/sonde-core-XXXXXX");
	assert_non_null(mkdtemp(dir));
	c = child_start(child_nothing, become_sleep);
	child_go(&c);
	child_wait_comm(&c, "sleep");
	/*
	 * Until its dynamic linker has finished. It waits for nothing rather than for a time,
	 * because the rest of an interrupted time would be written to its stack.
	 */
	for (struct proc_stat st = {0}; st.state != 'S' && st.state != 't'; child_nap())
		assert_int_equal(proc_stat_read(c.pid, &st, NULL), 0);
	(void)nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
	return c;
}

static void remove_dir(void)
{
	char command[64];

	(void)snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

/* The one file that a core was written to; false when there is none. */
static bool find_core(char *path, size_t cap)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	bool found = false;

	assert_non_null(d);
	while (!found && (entry = readdir(d))) {
		found = strncmp(entry->d_name, "core", 4) == 0;
		if (found)
			(void)snprintf(path, cap, "%s/%.64s", dir, entry->d_name);
	}
	(void)closedir(d);
	return found;
}

/* A live process's memory as it was before the core was made. */
struct snapshot {
	struct proc_mem *mem;
	char *bytes[256];
};

static void snapshot_take(struct snapshot *s, pid_t pid)
{
	const struct proc_maps *maps;
	struct err err;

	*s = (struct snapshot){0};
	assert_int_equal(proc_mem_open(pid, &s->mem, &err), 0);
	maps = proc_mem_maps(s->mem);
	assert_true(maps->len > 5 && maps->len < ARRAY_SIZE(s->bytes));
	for (size_t i = 0; i < maps->len; i++) {
		const struct proc_map *m = &maps->maps[i];
		size_t len = m->end - m->start;

		s->bytes[i] = malloc(len);
		if (!(m->flags & PROC_MAP_READ) || strncmp(m->path, "[v", 2) == 0 ||
		    proc_mem_read(s->mem, m->start, s->bytes[i], len, &err) < 0) {
			free(s->bytes[i]);
			s->bytes[i] = NULL;
		}
	}
}

static void snapshot_release(struct snapshot *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(s->bytes); i++)
		free(s->bytes[i]);
	proc_mem_close(s->mem);
}

/* Puts its file behind every mapping of the core, also behind those that the core holds whole. */
static void back_everything(struct proc_mem *core)
{
	const struct proc_maps *maps = proc_mem_maps(core);
	struct err err;

	for (size_t i = 0; i < maps->len; i++) {
		const struct proc_map *m = &maps->maps[i];
		_cleanup_close_ int fd = -1;

		if (m->path[0] != '/')
			continue;
		assert_int_equal(proc_mem_open_file(core, m, &fd, &err), 0);
		assert_int_equal(
			proc_mem_back(core, m->start, m->end - m->start, fd, m->offset, &err), 0);
	}
}

/* The last page of a mapped file goes on past the end of the file; only a process has that. */
static size_t known_len(const struct proc_map *m)
{
	struct stat st;

	if (m->path[0] != '/' || m->flags & PROC_MAP_WRITE)
		return m->end - m->start;
	assert_int_equal(stat(m->path, &st), 0);
	return MIN(m->end - m->start, (uint64_t)st.st_size - m->offset);
}

static void expect_equal(const struct snapshot *s, struct proc_mem *core)
{
	const struct proc_maps *maps = proc_mem_maps(s->mem);
	uint64_t want, got;
	size_t compared = 0;

	for (size_t i = 0; i < maps->len; i++) {
		const struct proc_map *m = &maps->maps[i];
		const struct proc_map *n = proc_maps_find(proc_mem_maps(core), m->start);
		size_t len = known_len(m);
		_cleanup_free_ char *bytes = malloc(len);
		struct err err = {};

		if (!s->bytes[i])
			continue;
		if (proc_mem_read(core, m->start, bytes, len, &err) < 0)
			fail_msg("%s: %s", m->path, err.text);
		assert_memory_equal(bytes, s->bytes[i], len);
		assert_non_null(n);
		assert_int_equal(n->start, m->start);
		assert_int_equal(n->end, m->end);
		if (m->path[0] == '/') {
			assert_string_equal(n->path, m->path);
			assert_int_equal(n->offset, m->offset);
			compared++;
		}
	}
	assert_true(compared > 5);
	assert_true(proc_mem_auxv(s->mem, AT_ENTRY, &want));
	assert_true(proc_mem_auxv(core, AT_ENTRY, &got));
	assert_int_equal(got, want);
	assert_int_equal(proc_mem_machine(core), proc_mem_machine(s->mem));
	assert_int_equal(proc_mem_pid(core), 0);
}

static void expect_core_like_live(const struct snapshot *s, const char *path)
{
	_cleanup_(proc_mem_closep) struct proc_mem *core = NULL;
	struct err err = {};
	uint64_t entry;
	char byte;

	if (proc_mem_open_core(path, &core, &err) < 0)
		fail_msg("%s", err.text);
	/* Code is clean: it was left out, and the sentence says which file would help. */
	assert_true(proc_mem_auxv(core, AT_ENTRY, &entry));
	assert_int_equal(proc_mem_read(core, entry, &byte, 1, &err), -EFAULT);
	assert_non_null(strstr(err.text, "/sleep"));
	assert_non_null(strstr(err.text, "(sleep)"));
	assert_int_equal(proc_mem_replace(core, entry, &byte, &byte, 1, &err), -ENOTSUP);
	back_everything(core);
	expect_equal(s, core);
}

static void core_of_gcore_equals_the_live_process(void **state)
{
	struct snapshot s;
	char command[128], path[128];
	struct child c;

	(void)state;
	if (system("gcore 2>/dev/null >/dev/null; test $? -ne 127") != 0)
		skip();
	c = start_sleep();
	snapshot_take(&s, c.pid);
	(void)snprintf(command, sizeof(command), "gcore -o %s/core %d >/dev/null 2>&1", dir, c.pid);
	assert_int_equal(system(command), 0);
	assert_true(find_core(path, sizeof(path)));
	expect_core_like_live(&s, path);
	snapshot_release(&s);
	child_end(&c);
	remove_dir();
}

static void core_of_the_kernel_equals_the_live_process(void **state)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/sys/kernel/core_pattern", "re");
	char pattern[128] = "", path[128];
	struct snapshot s;
	struct child c;

	(void)state;
	/* Where cores go to a program or a fixed folder, this test has nothing to read. */
	if (!f || !fgets(pattern, sizeof(pattern), f) || strncmp(pattern, "core", 4) != 0)
		skip();
	c = start_sleep();
	snapshot_take(&s, c.pid);
	assert_int_equal(kill(c.pid, SIGABRT), 0);
	child_wait_zombie(&c);
	assert_true(find_core(path, sizeof(path)));
	expect_core_like_live(&s, path);
	snapshot_release(&s);
	child_end(&c);
	remove_dir();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(core_of_gcore_equals_the_live_process),
		cmocka_unit_test(core_of_the_kernel_equals_the_live_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
