/* tests/unit/proc/test_mem_live.c: the memory of real processes that exit, exec and hide. */
#include "proc/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "child.h"

#define PAGE ((size_t)4096)
#define NOBODY 65534

/* A fork has these at the same address as its parent, with contents of its own. */
static volatile uint64_t words[3000];
static char *pages;

static uint64_t addr_of(const volatile void *p)
{
	return (uintptr_t)p;
}

static void fill_words(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		words[i] = 0x1000000 + i;
}

static struct proc_mem *open_child(const struct child *c)
{
	struct proc_mem *mem = NULL;
	struct err err = {};
	int r = proc_mem_open(c->pid, &mem, &err);

	if (r < 0)
		fail_msg("%s", err.text);
	return mem;
}

static void mem_reads_many_ranges_in_few_system_calls(void **state)
{
	static struct proc_range ranges[ARRAY_SIZE(words)];
	static uint64_t got[ARRAY_SIZE(words)];
	struct child c = child_start(fill_words, child_nothing);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = open_child(&c);
	struct proc_mem_stats before = proc_mem_stats(mem), after;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		ranges[i] = (struct proc_range){addr_of(&words[2999 - i]), &got[i], 8};
	assert_int_equal(proc_mem_readv(mem, ranges, ARRAY_SIZE(ranges), &err), 0);
	after = proc_mem_stats(mem);
	assert_int_equal(after.syscalls - before.syscalls, 3);
	assert_int_equal(after.bytes - before.bytes, sizeof(got));
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		assert_int_equal(got[i], 0x1000000 + 2999 - i);
	assert_int_equal(words[0], 0);
	assert_int_equal(proc_mem_pid(mem), c.pid);
	child_end(&c);
}

static void mem_readv_skips_empty_ranges(void **state)
{
	struct child c = child_start(fill_words, child_nothing);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = open_child(&c);
	uint64_t a = 0, b = 0;
	struct proc_range ranges[] = {
		{.addr = 1}, {addr_of(&words[1]), &a, 8}, {.addr = 2},
		{.addr = 3}, {addr_of(&words[2]), &b, 8}, {.addr = 4},
	};
	struct err err;

	(void)state;
	assert_int_equal(proc_mem_readv(mem, ranges, ARRAY_SIZE(ranges), &err), 0);
	assert_int_equal(a, 0x1000001);
	assert_int_equal(b, 0x1000002);
	assert_int_equal(proc_mem_readv(mem, ranges, 1, &err), 0);
	assert_int_equal(proc_mem_readv(mem, NULL, 0, &err), 0);
	child_end(&c);
}

static void mem_reads_what_exceeds_one_call(void **state)
{
	size_t len = (size_t)40 << 20;
	char *big = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *got = malloc(len);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct proc_mem_stats before;
	struct proc_range ranges[2];
	struct child c;
	struct err err;

	(void)state;
	assert_true(big != MAP_FAILED && got);
	for (size_t i = 0; i < len; i += PAGE)
		memcpy(big + i, &i, sizeof(i));
	c = child_start(child_nothing, child_nothing);
	mem = open_child(&c);
	before = proc_mem_stats(mem);
	assert_int_equal(proc_mem_read(mem, addr_of(big), got, len, &err), 0);
	assert_int_equal(proc_mem_stats(mem).syscalls - before.syscalls, 2);
	assert_memory_equal(got, big, len);

	/* The same in two ranges, which would fit one call by their number. */
	memset(got, 0, len);
	ranges[0] = (struct proc_range){addr_of(big), got, len / 2};
	ranges[1] = (struct proc_range){addr_of(big + len / 2), got + len / 2, len / 2};
	before = proc_mem_stats(mem);
	assert_int_equal(proc_mem_readv(mem, ranges, 2, &err), 0);
	assert_int_equal(proc_mem_stats(mem).syscalls - before.syscalls, 2);
	assert_memory_equal(got, big, len);
	child_end(&c);
	free(got);
	munmap(big, len);
}

static void make_a_hole(void)
{
	(void)munmap(pages + 2 * PAGE, PAGE);
}

static void mem_stops_at_a_hole(void **state)
{
	char got[8 * 4096];
	struct child c;
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct proc_range ranges[3];
	struct err err;
	char hole[32];

	(void)state;
	pages = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(pages != MAP_FAILED);
	memset(pages, 'p', 8 * PAGE);
	c = child_start(make_a_hole, child_nothing);
	mem = open_child(&c);
	(void)snprintf(hole, sizeof(hole), "0x%" PRIx64, addr_of(pages + 2 * PAGE));

	assert_int_equal(proc_mem_read_some(mem, addr_of(pages + 100), got, 8 * PAGE - 100),
			 2 * PAGE - 100);
	assert_int_equal(proc_mem_read_some(mem, addr_of(pages + 2 * PAGE), got, PAGE), 0);
	assert_int_equal(proc_mem_read_some(mem, addr_of(pages + 3 * PAGE), got, PAGE), PAGE);
	assert_int_equal(proc_mem_read(mem, addr_of(pages), got, 4 * PAGE, &err), -EFAULT);
	assert_non_null(strstr(err.text, hole));

	ranges[0] = (struct proc_range){addr_of(pages), got, PAGE};
	ranges[1] = (struct proc_range){addr_of(pages + 2 * PAGE), got + PAGE, 8};
	ranges[2] = (struct proc_range){addr_of(pages + 3 * PAGE), got + PAGE, 8};
	assert_int_equal(proc_mem_readv(mem, ranges, 3, &err), -EFAULT);
	assert_non_null(strstr(err.text, hole));
	assert_int_equal(proc_mem_check(mem, addr_of(pages), got, 4 * PAGE, &err), -EFAULT);
	assert_non_null(strstr(err.text, hole));
	assert_int_equal(proc_mem_check(mem, addr_of(pages), got, 2 * PAGE, &err), 0);
	child_end(&c);
	munmap(pages, 8 * PAGE);
}

static void mem_bad_addresses_are_only_bad_addresses(void **state)
{
	static const uint64_t bad[] = {
		0,
		1,
		0x7ffffffff000,
		0x800000000000,
		INT64_MAX,
		0x8000000000000000,
		UINT64_MAX - 7,
		UINT64_MAX,
	};
	struct child c = child_start(child_nothing, child_nothing);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = open_child(&c);
	struct err err;
	char got[16];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(proc_mem_read(mem, bad[i], got, 16, &err), -EFAULT);
		assert_int_equal(proc_mem_check(mem, bad[i], got, 16, &err), -EFAULT);
		assert_int_equal(proc_mem_read_some(mem, bad[i], got, 16), 0);
		assert_int_equal(proc_mem_replace(mem, bad[i], got, got, 16, &err), -EFAULT);
	}
	child_end(&c);
}

static void expect_gone(struct proc_mem *mem, const char *sentence)
{
	struct proc_range range = {addr_of(words), &(uint64_t){0}, 8};
	uint64_t got = 7;
	struct err err;
	int fd = -1;

	assert_int_equal(proc_mem_check(mem, addr_of(words), &got, 8, &err), -ESRCH);
	assert_non_null(strstr(err.text, sentence));
	assert_int_equal(proc_mem_check(mem, 0, &got, 0, &err), -ESRCH);
	assert_int_equal(proc_mem_refresh_maps(mem, &err), -ESRCH);
	assert_non_null(strstr(err.text, sentence));
	assert_int_equal(proc_mem_replace(mem, addr_of(words), &got, &got, 8, &err), -ESRCH);
	assert_non_null(strstr(err.text, sentence));
	assert_int_equal(proc_mem_readv(mem, &range, 1, &err), -ESRCH);
	assert_non_null(strstr(err.text, sentence));
	assert_int_equal(proc_mem_read_some(mem, addr_of(words), &got, 8), -ESRCH);
	assert_int_equal(proc_mem_open_file(mem, &proc_mem_maps(mem)->maps[0], &fd, &err), -ESRCH);
	assert_int_equal(fd, -1);
}

static void mem_read_fails_when_target_exits(void **state)
{
	struct child c = child_start(child_nothing, child_nothing);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = open_child(&c);
	struct proc_mem *again = NULL;
	struct err err;
	uint64_t got;

	(void)state;
	assert_int_equal(proc_mem_check(mem, addr_of(words), &got, 8, &err), 0);
	child_go(&c);
	child_wait_zombie(&c);
	expect_gone(mem, "has exited");
	assert_int_equal(proc_mem_open(c.pid, &again, &err), -ESRCH);
	assert_non_null(strstr(err.text, "has exited"));
	child_end(&c);
	expect_gone(mem, "has exited");
	assert_int_equal(proc_mem_open(c.pid, &again, &err), -ESRCH);
	assert_non_null(strstr(err.text, "no such process"));
	assert_null(again);
}

static void mem_read_fails_when_target_is_killed(void **state)
{
	struct child c = child_start(child_nothing, child_nothing);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = open_child(&c);

	(void)state;
	assert_int_equal(kill(c.pid, SIGKILL), 0);
	child_wait_zombie(&c);
	expect_gone(mem, "has exited");
	child_end(&c);
}

static void become_sleep(void)
{
	(void)execl("/bin/sleep", "sleep", "60", (char *)NULL);
}

static void become_self(void)
{
	(void)execl("/proc/self/exe", "self", "pause", (char *)NULL);
}

static void mem_read_fails_when_target_execs_another_program(void **state)
{
	struct child c = child_start(child_nothing, become_sleep);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = open_child(&c);

	(void)state;
	child_go(&c);
	child_wait_comm(&c, "sleep");
	expect_gone(mem, "has executed another program");
	child_end(&c);
}

static void bare_mem_reads_and_is_bound_to_its_program_as_well(void **state)
{
	struct child c = child_start(fill_words, become_sleep);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct proc_range ranges[2];
	uint64_t got[2];
	struct err err;

	(void)state;
	assert_int_equal(proc_mem_open_bare(c.pid, &mem, &err), 0);
	assert_int_equal(proc_mem_maps(mem)->len, 0);
	for (size_t i = 0; i < 2; i++)
		ranges[i] = (struct proc_range){
			.addr = addr_of(&words[7 * i]), .dst = &got[i], .len = sizeof(got[i])};
	assert_int_equal(proc_mem_readv(mem, ranges, 2, &err), 0);
	assert_int_equal(got[0], 0x1000000);
	assert_int_equal(got[1], 0x1000007);
	assert_int_equal(proc_mem_read(mem, 16, &got[0], 8, &err), -EFAULT);
	child_go(&c);
	child_wait_comm(&c, "sleep");
	assert_int_equal(proc_mem_readv(mem, ranges, 2, &err), -ESRCH);
	assert_non_null(strstr(err.text, "has executed another program"));
	child_end(&c);
}

static void mem_check_notices_an_exec_of_the_same_program(void **state)
{
	struct child c = child_start(child_nothing, become_self);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = open_child(&c);
	struct err err;
	uint64_t got;

	(void)state;
	child_go(&c);
	child_wait_comm(&c, "exe");
	assert_int_equal(proc_mem_check(mem, addr_of(words), &got, 8, &err), -ESRCH);
	assert_non_null(strstr(err.text, "has executed another program"));
	child_end(&c);
}

static void mem_check_costs_one_system_call(void **state)
{
	struct child c = child_start(fill_words, child_nothing);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = open_child(&c);
	struct proc_mem_stats before = proc_mem_stats(mem);
	struct err err;
	uint64_t got[2];

	(void)state;
	assert_int_equal(proc_mem_check(mem, addr_of(words), got, 16, &err), 0);
	assert_int_equal(got[1], 0x1000001);
	assert_int_equal(proc_mem_stats(mem).syscalls - before.syscalls, 1);
	assert_int_equal(proc_mem_stats(mem).bytes - before.bytes, 16);
	child_end(&c);
}

static void exit_by_first_word(void)
{
	_exit(words[0] == 0x1122334455667788 ? 33 : 44);
}

static void mem_write_changes_the_target_only(void **state)
{
	struct child c = child_start(fill_words, exit_by_first_word);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = open_child(&c);
	uint64_t value = 0x1122334455667788, old = 0;
	struct err err;
	int status;

	(void)state;
	assert_int_equal(proc_mem_read(mem, addr_of(words), &old, 8, &err), 0);
	/* Only what is as expected is replaced. */
	assert_int_equal(proc_mem_replace(mem, addr_of(words), &value, &value, 8, &err), -ESTALE);
	assert_int_equal(proc_mem_replace(mem, addr_of(words), &old, &value, 8, &err), 0);
	assert_int_equal(words[0], 0);
	/* Code is not writable, though the kernel would let us. */
	assert_int_equal(proc_mem_replace(mem, addr_of(fill_words), &old, &value, 8, &err),
			 -EFAULT);
	child_go(&c);
	assert_int_equal(waitpid(c.pid, &status, 0), c.pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 33);
}

static void mem_knows_the_auxiliary_vector_and_the_machine(void **state)
{
	struct child c = child_start(child_nothing, child_nothing);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = open_child(&c);
	const struct proc_map *map;
	uint64_t value;

	(void)state;
	assert_true(proc_mem_auxv(mem, AT_ENTRY, &value));
	assert_int_equal(value, getauxval(AT_ENTRY));
	assert_true(proc_mem_auxv(mem, AT_PAGESZ, &value));
	assert_int_equal(value, PAGE);
	assert_false(proc_mem_auxv(mem, 0x7fffffff, &value));
	assert_true(proc_mem_machine(mem) == 62 || proc_mem_machine(mem) == 183);
	map = proc_maps_find(proc_mem_maps(mem), addr_of(fill_words));
	assert_non_null(map);
	assert_true(map->flags & PROC_MAP_EXEC);
	child_end(&c);
}

static void map_more(void)
{
	if (mmap(pages, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != pages)
		_exit(1);
	(void)raise(SIGSTOP);
}

static void mem_refresh_sees_new_mappings(void **state)
{
	struct child c;
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	const struct proc_maps *maps;
	struct err err;

	(void)state;
	pages = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(pages != MAP_FAILED);
	munmap(pages, PAGE);
	c = child_start(child_nothing, map_more);
	mem = open_child(&c);
	maps = proc_mem_maps(mem);
	assert_null(proc_maps_find(maps, addr_of(pages)));
	child_go(&c);
	assert_int_equal(waitpid(c.pid, NULL, WUNTRACED), c.pid);
	assert_int_equal(proc_mem_refresh_maps(mem, &err), 0);
	assert_non_null(proc_maps_find(maps, addr_of(pages)));
	child_end(&c);
}

static void mem_kernel_threads_have_no_memory(void **state)
{
	struct proc_mem *mem = NULL;
	struct proc_stat st;
	struct err err;

	(void)state;
	if (proc_stat_read(2, &st, NULL) < 0 || !st.kernel_thread)
		skip();
	assert_int_equal(proc_mem_open(2, &mem, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "kernel thread"));
}

/* The file holds other bytes than the memory, so that each byte says where it came from. */
static void mem_reads_backed_ranges_from_the_file(void **state)
{
	_cleanup_close_ int fd = memfd_create("backing", MFD_CLOEXEC);
	char file[2 * 4096], got[4 * 4096], one[10], two[10];
	struct child c;
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct proc_mem_stats before;
	struct proc_range ranges[4];
	struct err err;

	(void)state;
	pages = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(pages != MAP_FAILED);
	memset(pages, 'm', 4 * PAGE);
	memset(file, 'f', sizeof(file));
	assert_int_equal(write(fd, file, sizeof(file)), sizeof(file));
	c = child_start(child_nothing, child_nothing);
	mem = open_child(&c);
	/* The second page from the file; of the third only 100 bytes are in the file. */
	assert_int_equal(proc_mem_back(mem, addr_of(pages + PAGE), PAGE, fd, 0, &err), 0);
	assert_int_equal(
		proc_mem_back(mem, addr_of(pages + 2 * PAGE), PAGE, fd, 2 * PAGE - 100, &err), 0);

	before = proc_mem_stats(mem);
	assert_int_equal(proc_mem_read(mem, addr_of(pages + PAGE), got, PAGE, &err), 0);
	assert_memory_equal(got, file, PAGE);
	assert_int_equal(proc_mem_stats(mem).syscalls - before.syscalls, 1);

	for (int way = 0; way < 2; way++) {
		memset(got, 0, sizeof(got));
		if (way == 0)
			assert_int_equal(proc_mem_read(mem, addr_of(pages), got, 4 * PAGE, &err),
					 0);
		else
			assert_int_equal(proc_mem_read_some(mem, addr_of(pages), got, 4 * PAGE),
					 4 * PAGE);
		for (size_t i = 0; i < 4 * PAGE; i++)
			assert_int_equal(got[i], i >= PAGE && i < 2 * PAGE + 100 ? 'f' : 'm');
	}

	/* Two memory parts still go in one call, beside one pread for each file part. */
	ranges[0] = (struct proc_range){addr_of(pages), one, 10};
	ranges[1] = (struct proc_range){addr_of(pages + PAGE - 5), got, 10};
	ranges[2] = (struct proc_range){addr_of(pages + 2 * PAGE - 5), got + 10, 10};
	ranges[3] = (struct proc_range){addr_of(pages + 3 * PAGE), two, 10};
	before = proc_mem_stats(mem);
	assert_int_equal(proc_mem_readv(mem, ranges, 4, &err), 0);
	assert_int_equal(proc_mem_stats(mem).syscalls - before.syscalls, 4);
	assert_memory_equal(one, "mmmmmmmmmm", 10);
	assert_memory_equal(got, "mmmmmffffffffffffffff", 20);
	assert_memory_equal(two, "mmmmmmmmmm", 10);

	/* The address space is what a check reads, never the file. */
	assert_int_equal(proc_mem_check(mem, addr_of(pages + PAGE), got, 4, &err), 0);
	assert_memory_equal(got, "mmmm", 4);
	child_end(&c);
	munmap(pages, 4 * PAGE);
}

static void mem_readv_splits_more_parts_than_one_call_takes(void **state)
{
	_cleanup_close_ int fd = memfd_create("backing", MFD_CLOEXEC);
	static struct proc_range ranges[2500];
	static uint64_t got[2500];
	struct child c = child_start(fill_words, child_nothing);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = open_child(&c);
	struct proc_mem_stats before;
	uint64_t other = 0xf11e;
	struct err err;

	(void)state;
	assert_int_equal(write(fd, &other, 8), 8);
	assert_int_equal(proc_mem_back(mem, addr_of(&words[1234]), 8, fd, 0, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		ranges[i] = (struct proc_range){addr_of(&words[i]), &got[i], 8};
	before = proc_mem_stats(mem);
	assert_int_equal(proc_mem_readv(mem, ranges, ARRAY_SIZE(ranges), &err), 0);
	assert_int_equal(proc_mem_stats(mem).syscalls - before.syscalls, 4);
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		assert_int_equal(got[i], i == 1234 ? other : 0x1000000 + i);
	child_end(&c);
}

/* What a process with other rights found; it runs in a fork and answers through shared memory. */
struct verdict {
	int r;
	struct err err;
	uint64_t value;
};

static struct verdict *verdict;

static void ask(void (*question)(pid_t target), pid_t target)
{
	pid_t pid;
	int status;

	if (!verdict)
		verdict =
			mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(verdict != MAP_FAILED);
	*verdict = (struct verdict){.r = 12345};
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		question(target);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void become_nobody(void)
{
	if (setgroups(0, NULL) < 0 || setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
		_exit(9);
}

static void become_readable_nobody(void)
{
	become_nobody();
	fill_words();
	(void)prctl(PR_SET_DUMPABLE, 1);
}

static void open_as_nobody(pid_t target)
{
	struct proc_mem *mem = NULL;

	become_nobody();
	verdict->r = proc_mem_open(target, &mem, &verdict->err);
	if (verdict->r == 0)
		verdict->r = proc_mem_read(mem, addr_of(words), &verdict->value, 8, &verdict->err);
}

static bool yama_restricts(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");

	return f && fgetc(f) != '0';
}

static void mem_of_another_user_names_the_missing_capability(void **state)
{
	struct child c = child_start(child_nothing, child_nothing);

	(void)state;
	if (geteuid() != 0)
		skip();
	ask(open_as_nobody, c.pid);
	assert_int_equal(verdict->r, -EPERM);
	assert_non_null(
		strstr(verdict->err.text, "belongs to user 0, and sonde runs as user 65534"));
	assert_non_null(strstr(verdict->err.text, "CAP_SYS_PTRACE"));
	child_end(&c);
}

static void mem_of_the_same_user_needs_a_dumpable_process(void **state)
{
	struct child hidden, open;

	(void)state;
	if (geteuid() != 0)
		skip();
	hidden = child_start(become_nobody, child_nothing);
	ask(open_as_nobody, hidden.pid);
	assert_int_equal(verdict->r, -EPERM);
	assert_non_null(
		strstr(verdict->err.text, yama_restricts() ? "ptrace_scope" : "not dumpable"));
	child_end(&hidden);
	if (yama_restricts())
		return;
	open = child_start(become_readable_nobody, child_nothing);
	ask(open_as_nobody, open.pid);
	assert_int_equal(verdict->r, 0);
	assert_int_equal(verdict->value, 0x1000000);
	child_end(&open);
}

static void forbid_vm_readv(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {.len = ARRAY_SIZE(code), .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) < 0)
		_exit(9);
}

static void read_without_vm_readv(pid_t target)
{
	struct proc_mem *mem = NULL;
	uint64_t got[3] = {0}, before = 0;
	struct proc_range ranges[] = {
		{addr_of(&words[1]), &got[0], 8}, {.addr = 1}, {addr_of(&words[9]), &got[1], 16}};

	forbid_vm_readv();
	verdict->r = proc_mem_open(target, &mem, &verdict->err);
	if (verdict->r == 0)
		verdict->r = proc_mem_readv(mem, ranges, 3, &verdict->err);
	/* The refusal is remembered: from now on a read is one call again. */
	if (verdict->r == 0)
		before = proc_mem_stats(mem).syscalls;
	if (verdict->r == 0 && proc_mem_read_some(mem, addr_of(words), &got[0], 8) != 8)
		verdict->r = -1;
	if (verdict->r == 0 && proc_mem_stats(mem).syscalls - before != 1)
		verdict->r = -3;
	if (verdict->r == 0 && proc_mem_read(mem, 8, &got[2], 8, &verdict->err) != -EFAULT)
		verdict->r = -2;
	verdict->value = got[0] + got[1] + got[2];
	(void)kill(target, SIGKILL);
	while (verdict->r == 0)
		verdict->r = proc_mem_read(mem, addr_of(words), got, 8, &verdict->err);
}

static void mem_is_readable_where_seccomp_forbids_batches(void **state)
{
	struct child c = child_start(fill_words, child_nothing);

	(void)state;
	ask(read_without_vm_readv, c.pid);
	assert_int_equal(verdict->value, 0x1000000 + 0x1000009 + 0x100000a);
	assert_int_equal(verdict->r, -ESRCH);
	assert_non_null(strstr(verdict->err.text, "has exited"));
	child_end(&c);
}

/* A page of which the child itself would have to bring the contents, and does not. */
static uint8_t *unanswered;

static void map_unanswered(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_register range = {.range = {.start = (uintptr_t)unanswered, .len = 4096},
					.mode = UFFDIO_REGISTER_MODE_MISSING};

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) < 0 || ioctl(fd, UFFDIO_REGISTER, &range) < 0)
		_exit(77);
}

static void mem_that_never_answers_is_not_waited_for(void **state)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct err err = {0};
	struct child c;
	uint64_t word;

	(void)state;
	unanswered = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(unanswered != MAP_FAILED);
	c = child_start(map_unanswered, child_nothing);
	assert_int_equal(proc_mem_open(c.pid, &mem, &err), 0);
	proc_mem_never_wait(mem);
	assert_int_equal(proc_mem_read(mem, addr_of(unanswered), &word, sizeof(word), &err),
			 -EFAULT);
	child_end(&c);
	(void)munmap(unanswered, 4096);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mem_reads_many_ranges_in_few_system_calls),
		cmocka_unit_test(mem_readv_skips_empty_ranges),
		cmocka_unit_test(mem_reads_what_exceeds_one_call),
		cmocka_unit_test(mem_stops_at_a_hole),
		cmocka_unit_test(mem_bad_addresses_are_only_bad_addresses),
		cmocka_unit_test(mem_read_fails_when_target_exits),
		cmocka_unit_test(mem_read_fails_when_target_is_killed),
		cmocka_unit_test(mem_read_fails_when_target_execs_another_program),
		cmocka_unit_test(mem_check_notices_an_exec_of_the_same_program),
		cmocka_unit_test(mem_check_costs_one_system_call),
		cmocka_unit_test(mem_write_changes_the_target_only),
		cmocka_unit_test(mem_knows_the_auxiliary_vector_and_the_machine),
		cmocka_unit_test(mem_refresh_sees_new_mappings),
		cmocka_unit_test(mem_kernel_threads_have_no_memory),
		cmocka_unit_test(mem_reads_backed_ranges_from_the_file),
		cmocka_unit_test(mem_readv_splits_more_parts_than_one_call_takes),
		cmocka_unit_test(mem_of_another_user_names_the_missing_capability),
		cmocka_unit_test(mem_of_the_same_user_needs_a_dumpable_process),
		cmocka_unit_test(mem_is_readable_where_seccomp_forbids_batches),
		cmocka_unit_test(mem_that_never_answers_is_not_waited_for),
		cmocka_unit_test(bare_mem_reads_and_is_bound_to_its_program_as_well),
	};

	(void)argv;
	if (argc > 1)
		return pause();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
