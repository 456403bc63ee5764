/*
 * tests/unit/cpu/test_processes.c: how many processes and mappings of how many users there may be.
 * Needs root, for processes of others.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "cpu/sampler/processes.h"
#include "cpu_possible.h"
#include "proc/maps.h"

#define USER 1000
#define OTHER 1001
/* Given to USER. */
#define GIVEN 100000
#define MAPPINGS 1000U

struct fixture {
	struct elf_unwind_rule *rules;
	struct cpu_tables *tables;
	struct cpu_sampler_file *shared;
	struct cpu_sampler_mapping *mappings;
	struct interp_layout rows[INTERP_LAYOUTS];
	struct interp_layouts layouts;
	struct proc_subuids subuids;
	struct cpu_files *files;
	struct cpu_processes *processes;
	int fd;
	uint32_t n; /* processes made up */
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct cpu_process_tables tables;

	assert_non_null(f);
	f->rules = calloc(CPU_SAMPLER_RULES, sizeof(*f->rules));
	f->shared = calloc(CPU_FILES_MAX, sizeof(*f->shared));
	f->mappings = calloc(CPU_SAMPLER_MAPPINGS, sizeof(*f->mappings));
	assert_non_null(f->rules);
	assert_non_null(f->shared);
	assert_non_null(f->mappings);
	f->layouts.rows = f->rows;
	proc_subuids_parse(&f->subuids, "1000:100000:65536\n");
	f->fd = bpf_map_create(BPF_MAP_TYPE_HASH, "test", sizeof(uint32_t),
			       sizeof(struct cpu_sampler_process), CPU_SAMPLER_PROCESSES, NULL);
	assert_true(f->fd >= 0);
	assert_int_equal(cpu_tables_new(f->rules, -1, &f->tables, NULL), 0);
	assert_int_equal(cpu_files_new(f->shared, f->tables, &f->layouts, &f->files, NULL), 0);
	tables = (struct cpu_process_tables){
		.mappings = f->mappings, .n_mappings = CPU_SAMPLER_MAPPINGS, .fd = f->fd};
	assert_int_equal(
		cpu_processes_new(&tables, f->files, &f->layouts, &f->subuids, &f->processes, NULL),
		0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	cpu_processes_free(f->processes);
	cpu_files_free(f->files);
	cpu_tables_free(f->tables);
	(void)close(f->fd);
	free(f->mappings);
	free(f->shared);
	free(f->rules);
	free(f);
	return 0;
}

/* Alternately executable and not, or they would be one mapping. */
static void map_code(uint32_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *at = mmap(NULL, 2 * n * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (uint32_t i = 0; at != MAP_FAILED && i < n; i++)
		(void)mprotect(at + 2 * i * page, page, PROT_READ | PROT_EXEC);
}

/* A process of this user with that many executable mappings and some more. */
static pid_t start(uid_t uid, uint32_t n)
{
	int ready[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		map_code(n);
		if (setuid(uid) < 0)
			_exit(1);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)!write(ready[1], "", 1);
		for (;;)
			(void)pause();
	}
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	return pid;
}

static void end(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* How many mappings of its parent it has. */
static uint32_t inherit(struct fixture *f, const struct cpu_sampler_thread *thread, pid_t parent,
			uid_t uid)
{
	struct cpu_layout layout = {.parent = parent, .uid = uid};
	_cleanup_(proc_maps_release) struct proc_maps maps = {0};

	assert_int_equal(proc_maps_read(parent, &maps, NULL), 0);
	for (size_t i = 0; i < maps.len; i++) {
		if ((maps.maps[i].flags & PROC_MAP_EXEC) && !maps.maps[i].path[0])
			layout.start_code = maps.maps[i].start;
		if (strcmp(maps.maps[i].path, "[stack]") == 0)
			layout.start_stack = maps.maps[i].start;
	}
	return cpu_processes_inherit(f->processes, thread, &layout).n;
}

/* As if it had forked one that is gone. */
static uint32_t fork_one(struct fixture *f, pid_t parent, uid_t uid)
{
	const struct cpu_sampler_thread thread = {.tgid = ++f->n, .tid = f->n, .start_ns = 1};

	return inherit(f, &thread, parent, uid);
}

static uint32_t fork_all(struct fixture *f, pid_t parent, uid_t uid)
{
	uint32_t n = 0, one;

	for (;;) {
		one = fork_one(f, parent, uid);
		n += one;
		if (one < MAPPINGS)
			return n;
	}
}

static void on_gone(void *context, const struct cpu_process *process)
{
	(void)context;
	(void)process;
}

static void a_user_cannot_take_all_mappings(void **state)
{
	struct fixture *f = *state;
	pid_t user = start(USER, MAPPINGS), other = start(OTHER, MAPPINGS),
	      root = start(0, MAPPINGS);
	uint32_t n = fork_all(f, user, USER);

	assert_in_range(n, CPU_SAMPLER_MAPPINGS / 4, CPU_SAMPLER_MAPPINGS / 2);
	assert_true(cpu_processes_lost(f->processes) > 0);
	assert_in_range(fork_all(f, other, OTHER), n / 4, n);
	/* A server's, which has forked it as root. */
	assert_in_range(fork_one(f, root, USER), 0, MAPPINGS / 2);
	assert_in_range(fork_all(f, root, 0), n / 4, CPU_SAMPLER_MAPPINGS / 2);
	/* When they are gone, it has its share again. */
	cpu_processes_next_epoch(f->processes);
	cpu_processes_sweep(f->processes, on_gone, NULL);
	assert_int_equal(fork_all(f, user, USER), n);
	end(user);
	end(other);
	end(root);
}

static void ids_that_a_user_was_given_have_no_mappings_of_their_own(void **state)
{
	struct fixture *f = *state;
	pid_t user = start(USER, MAPPINGS), other = start(OTHER, MAPPINGS);
	uint32_t n = fork_all(f, user, USER);

	for (uid_t uid = GIVEN; uid < GIVEN + 3; uid++) {
		pid_t given = start(uid, MAPPINGS);

		assert_in_range(fork_all(f, given, uid), 0, MAPPINGS);
		end(given);
	}
	assert_in_range(fork_all(f, other, OTHER), n / 4, n);
	end(user);
	end(other);
}

/* As if BPF had sampled another program of the process. */
static int sample(struct fixture *f, pid_t pid, struct cpu_sampler_thread *ret)
{
	const struct cpu_sampler_thread thread = {
		.tgid = (uint32_t)pid, .tid = (uint32_t)pid, .start_ns = 1, .exec_id = ++f->n};
	const struct cpu_sampler_process fresh = {.start_ns = thread.start_ns,
						  .exec_id = thread.exec_id};

	assert_int_equal(bpf_map_update_elem(f->fd, &thread.tgid, &fresh, BPF_ANY), 0);
	*ret = thread;
	return cpu_processes_load(f->processes, &thread, 0);
}

/* Or every sample of it would read its parent's again. */
static void process_without_room_for_its_mappings_has_not_its_parents(void **state)
{
	struct fixture *f = *state;
	pid_t user = start(USER, MAPPINGS);
	struct cpu_sampler_process shared;
	struct cpu_sampler_thread thread;

	(void)fork_all(f, user, USER);
	for (int i = 0; i < 8; i++)
		(void)fork_all(f, user, USER);
	assert_int_equal(sample(f, user, &thread), 0);
	assert_int_equal(bpf_map_lookup_elem(f->fd, &thread.tgid, &shared), 0);
	assert_int_equal(shared.n, 0);
	assert_true(shared.loaded_ns > 0);
	cpu_processes_next_epoch(f->processes);
	cpu_processes_sweep(f->processes, on_gone, NULL);
	assert_int_equal(inherit(f, &thread, user, USER), 0);
	end(user);
}

static void a_user_cannot_take_all_processes(void **state)
{
	struct fixture *f = *state;
	pid_t user = start(USER, 0), given = start(GIVEN, 0), other = start(OTHER, 0);
	struct cpu_sampler_process shared;
	struct cpu_sampler_thread thread;
	uint64_t lost = 0;
	uint32_t n = 0;
	int r = 0;

	while (n < CPU_SAMPLER_PROCESSES) {
		lost = cpu_processes_lost(f->processes);
		r = sample(f, user, &thread);
		if (r < 0)
			break;
		n++;
	}
	assert_int_equal(r, -EDQUOT);
	assert_in_range(n, CPU_SAMPLER_PROCESSES / 4, CPU_SAMPLER_PROCESSES / 2);
	assert_int_equal(cpu_processes_lost(f->processes), lost + 1);
	/* It leaves its place, too. */
	assert_int_not_equal(bpf_map_lookup_elem(f->fd, &thread.tgid, &shared), 0);
	assert_int_equal(sample(f, given, &thread), -EDQUOT);
	assert_int_equal(sample(f, other, &thread), 0);
	assert_int_equal(cpu_processes_get(f->processes, &thread)->owner, OTHER);
	assert_int_equal(bpf_map_lookup_elem(f->fd, &thread.tgid, &shared), 0);
	assert_true(shared.n > 0);
	/* When they have ended, it has its share again. */
	cpu_processes_end(f->processes, &(struct cpu_sampler_thread){.tgid = (uint32_t)user},
			  false);
	assert_int_equal(sample(f, given, &thread), 0);
	assert_int_equal(cpu_processes_get(f->processes, &thread)->uid, GIVEN);
	assert_int_equal(cpu_processes_get(f->processes, &thread)->owner, USER);
	end(user);
	end(given);
	end(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_user_cannot_take_all_mappings, setup, teardown),
		cmocka_unit_test_setup_teardown(
			ids_that_a_user_was_given_have_no_mappings_of_their_own, setup, teardown),
		cmocka_unit_test_setup_teardown(
			process_without_room_for_its_mappings_has_not_its_parents, setup, teardown),
		cmocka_unit_test_setup_teardown(a_user_cannot_take_all_processes, setup, teardown),
	};

	if (!cpu_is_possible())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
