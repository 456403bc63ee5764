/* tests/unit/proc/test_aides.c: aides read in our place, and those that hang are left behind. */
#include "proc/aide/aides.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/io.h"
#include "child.h"
#include "proc/aide/account.h"
#include "proc/aide/aide.h"
#include "proc/aide/budget.h"
#include "proc/aide/foreign.h"
#include "proc/aide/wire.h"
#include "proc/id.h"
#include "proc/mem.h"
#include "proc/named.h"
#include "proc/ns.h"
#include "proc/status.h"
#include "run.h"

#define PAGE ((size_t)4096)
#define NOBODY 65534

static uint8_t *unanswered; /* a page that the child withholds */
static volatile uint64_t words[200000];
static char folder[64];

static void fill_words(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		words[i] = 7000000 + i;
}

static void withhold(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_register range = {.range = {.start = (uintptr_t)unanswered, .len = PAGE},
					.mode = UFFDIO_REGISTER_MODE_MISSING};

	fill_words();
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) < 0 || ioctl(fd, UFFDIO_REGISTER, &range) < 0)
		_exit(77);
}

static void withhold_as_nobody(void)
{
	withhold();
	if (setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0)
		_exit(77);
}

static int start(void **state)
{
	struct err err = {};

	(void)state;
	(void)snprintf(folder, sizeof(folder), "/tmp/test_aides.XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chmod(folder, 0755), 0);
	unanswered = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(unanswered != MAP_FAILED);
	assert_int_equal(proc_aides_start(true, &err), 0);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	proc_aides_stop();
	proc_aides_set_patience(2 * NS_PER_SEC);
	(void)munmap(unanswered, PAGE);
	run_in("/tmp", "rm -rf %s", folder);
	return 0;
}

static struct proc_mem *open_child(const struct child *c)
{
	struct proc_mem *mem = NULL;
	struct err err = {};

	if (proc_mem_open(c->pid, &mem, &err) < 0)
		fail_msg("%s", err.text);
	return mem;
}

static int read_unanswered(struct proc_mem *mem, struct err *err)
{
	uint64_t word;

	return proc_mem_read(mem, (uintptr_t)unanswered, &word, sizeof(word), err);
}

static struct proc_aides_status status(void)
{
	struct proc_aides_status s;

	proc_aides_status(&s);
	return s;
}

static void aides_read_memory_and_mappings(void **state)
{
	static uint64_t got[ARRAY_SIZE(words)];
	struct child c = child_start(fill_words, child_nothing);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = open_child(&c);
	struct proc_range ranges[3000];
	struct err err = {};
	uint64_t word;

	(void)state;
	assert_true(proc_mem_maps(mem)->len > 5);
	/* More than one message holds. */
	assert_int_equal(proc_mem_read(mem, (uintptr_t)words, got, sizeof(got), &err), 0);
	assert_int_equal(got[0], 7000000);
	assert_int_equal(got[ARRAY_SIZE(words) - 1], 7000000 + ARRAY_SIZE(words) - 1);
	memset(got, 0, sizeof(got));
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		ranges[i] = (struct proc_range){(uintptr_t)&words[i * 60], &got[i], sizeof(got[i])};
	assert_int_equal(proc_mem_readv(mem, ranges, ARRAY_SIZE(ranges), &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		assert_int_equal(got[i], 7000000 + i * 60);
	assert_int_equal(proc_mem_read(mem, 16, &word, sizeof(word), &err), -EFAULT);
	assert_int_equal(proc_mem_check(mem, (uintptr_t)&words[3], &word, sizeof(word), &err), 0);
	assert_int_equal(word, 7000003);
	assert_int_equal(status().aides, 1);
	child_end(&c);
	assert_int_equal(proc_mem_read(mem, (uintptr_t)words, &word, sizeof(word), &err), -ESRCH);
}

static void target_that_hangs_costs_an_aide(void **state)
{
	struct child c = child_start(withhold_as_nobody, child_nothing);
	struct child other = child_start(withhold, child_nothing);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = open_child(&c);
	_cleanup_(proc_mem_closep) struct proc_mem *of_root = open_child(&other);
	struct err err = {};
	uint64_t word;

	(void)state;
	proc_aides_set_patience(50 * NS_PER_MS);
	assert_int_equal(read_unanswered(mem, &err), -ETIMEDOUT);
	assert_int_equal(err.cause, ERR_CAUSE_NO_ANSWER);
	assert_int_equal(status().unanswered, 1);
	/* Killed, the aide ends: what it waits for here can be interrupted. */
	while (status().lost)
		clock_sleep_ns(NS_PER_MS);
	/* The rest of its memory, and that of others, is read. */
	proc_aides_set_patience(20 * NS_PER_SEC);
	assert_int_equal(proc_mem_read(mem, (uintptr_t)words, &word, sizeof(word), &err), 0);
	assert_int_equal(proc_mem_read(of_root, (uintptr_t)words, &word, sizeof(word), &err), 0);
	assert_int_equal(word, 7000000);
	child_end(&c);
	child_end(&other);
	while (status().lost)
		clock_sleep_ns(NS_PER_MS);
}

static void *read_in_thread(void *arg)
{
	uint64_t word;

	for (int i = 0; i < 200; i++)
		if (proc_mem_read(arg, (uintptr_t)&words[i], &word, sizeof(word), NULL) < 0 ||
		    word != 7000000 + (uint64_t)i)
			return arg;
	return NULL;
}

static void threads_have_aides_of_their_own(void **state)
{
	struct child c = child_start(fill_words, child_nothing);
	struct proc_mem *mems[4];
	pthread_t threads[4];
	void *wrong;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(mems); i++) {
		mems[i] = open_child(&c);
		assert_int_equal(pthread_create(&threads[i], NULL, read_in_thread, mems[i]), 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(mems); i++) {
		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
		proc_mem_close(mems[i]);
	}
	assert_in_range(status().aides, 1, 4);
	child_end(&c);
}

static int replace_word(struct proc_mem *mem, uint64_t addr, uint64_t old, uint64_t word,
			struct err *err)
{
	return proc_mem_replace(mem, addr, &old, &word, sizeof(word), err);
}

static void aides_write_what_replaces_something_expected(void **state)
{
	struct child c = child_start(fill_words, child_nothing);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = open_child(&c);
	struct err err = {};
	uint64_t word;

	(void)state;
	assert_int_equal(replace_word(mem, (uintptr_t)words, 1, 2, &err), -ESTALE);
	assert_int_equal(replace_word(mem, (uintptr_t)words, 7000000, 2, &err), 0);
	assert_int_equal(proc_mem_read(mem, (uintptr_t)words, &word, sizeof(word), &err), 0);
	assert_int_equal(word, 2);
	assert_int_equal(replace_word(mem, (uintptr_t)fill_words, 0, 2, &err), -EFAULT);
	/* Those that wrote are gone. */
	assert_int_equal(status().aides, 1);
	child_end(&c);
	assert_int_equal(replace_word(mem, (uintptr_t)words, 2, 3, &err), -ESRCH);
}

/* As after an exec: its files in /proc are its own. */
static void fill_words_as_nobody(void)
{
	fill_words();
	if (setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0 ||
	    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		_exit(77);
}

static void aides_write_to_other_users_processes(void **state)
{
	struct child c = child_start(fill_words_as_nobody, child_nothing);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = open_child(&c);
	struct err err = {};
	uint64_t word;

	(void)state;
	if (replace_word(mem, (uintptr_t)words, 7000000, 2, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(proc_mem_read(mem, (uintptr_t)words, &word, sizeof(word), &err), 0);
	assert_int_equal(word, 2);
	child_end(&c);
}

static void aides_without_the_right_write_nothing(void **state)
{
	struct child c = child_start(fill_words, child_nothing);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct err err = {};
	uint64_t word;

	(void)state;
	proc_aides_stop();
	assert_int_equal(proc_aides_start(false, &err), 0);
	mem = open_child(&c);
	assert_true(replace_word(mem, (uintptr_t)words, 7000000, 2, &err) < 0);
	assert_int_equal(proc_mem_read(mem, (uintptr_t)words, &word, sizeof(word), &err), 0);
	assert_int_equal(word, 7000000);
	child_end(&c);
}

/* A file system of files without an end, and no read of them is ever answered. */
static void serve_silence(int fd)
{
	static uint8_t request[1 << 18];
	const struct fuse_attr folder_attr = {.ino = 1, .mode = S_IFDIR | 0755, .nlink = 2};
	const struct fuse_attr file_attr = {
		.ino = 2, .mode = S_IFREG | 0755, .nlink = 1, .size = 16 * PAGE};
	const struct fuse_in_header *in = (const void *)request;

	while (read(fd, request, sizeof(request)) >= (ssize_t)sizeof(*in)) {
		struct {
			struct fuse_out_header head;
			union {
				struct fuse_init_out init;
				struct fuse_entry_out entry;
				struct fuse_attr_out attr;
				struct fuse_open_out open;
			};
		} out = {.head.unique = in->unique};
		size_t len = 0;

		switch (in->opcode) {
		case FUSE_INIT:
			out.init = (struct fuse_init_out){.major = 7, .minor = 31};
			out.init.max_write = PAGE;
			len = sizeof(out.init);
			break;
		case FUSE_LOOKUP:
			out.entry = (struct fuse_entry_out){.nodeid = 2, .attr = file_attr};
			len = sizeof(out.entry);
			break;
		case FUSE_GETATTR:
			out.attr.attr = in->nodeid == 1 ? folder_attr : file_attr;
			len = sizeof(out.attr);
			break;
		case FUSE_OPEN:
			len = sizeof(out.open);
			break;
		case FUSE_READ:
		case FUSE_FORGET:
		case FUSE_BATCH_FORGET:
		case FUSE_INTERRUPT:
			continue;
		default:
			out.head.error = -ENOSYS;
		}
		out.head.len = (uint32_t)(sizeof(out.head) + len);
		if (write(fd, &out, out.head.len) < 0)
			return;
	}
}

/* Returns who serves it, once it is mounted on the folder; -1 where that cannot be. */
static pid_t mount_silence(void)
{
	_cleanup_close_ int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[96];
	pid_t pid;

	(void)snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	if (fd < 0 || mount("silence", folder, "fuse", MS_NOSUID | MS_NODEV, options) < 0)
		return -1;
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		serve_silence(fd);
		_exit(0);
	}
	return pid;
}

/* In place of the page that is withheld otherwise. */
static void map_silence(void)
{
	char path[96];
	int fd;

	fill_words();
	(void)snprintf(path, sizeof(path), "%s/file", folder);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || mmap(unanswered, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd,
			   0) != unanswered)
		_exit(77);
}

static void write_that_hangs_costs_an_aide(void **state)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	pid_t server = mount_silence();
	struct err err = {};
	struct child c;

	(void)state;
	if (server < 0) {
		print_message("[  SKIPPED ] there is no FUSE here\n");
		skip();
	}
	c = child_start(map_silence, child_nothing);
	mem = open_child(&c);
	proc_aides_set_patience(50 * NS_PER_MS);
	assert_int_equal(replace_word(mem, (uintptr_t)unanswered, 0, 2, &err), -ETIMEDOUT);
	assert_int_equal(err.cause, ERR_CAUSE_NO_ANSWER);
	assert_int_equal(status().lost, 1);
	/* Nobody hangs a second time. */
	assert_int_equal(replace_word(mem, (uintptr_t)unanswered, 0, 2, &err), -ETIMEDOUT);
	assert_int_equal(status().lost, 1);
	assert_int_equal(kill(server, SIGKILL), 0);
	assert_int_equal(waitpid(server, NULL, 0), server);
	while (status().lost)
		clock_sleep_ns(NS_PER_MS);
	child_end(&c);
	assert_int_equal(umount2(folder, MNT_DETACH), 0);
}

static int pidfd_of_the_dead(void)
{
	pid_t pid = fork();
	int pidfd;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(0);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	assert_true(pidfd >= 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pidfd;
}

/*
 * The next aide to be taken has gone astray: its answer is there before it is asked. Behind its
 * memory nothing can be read. Returns the other end of its socket.
 */
static int send_astray(const struct proc_aide_answer *answer, int fd)
{
	const size_t bytes = (sizeof(struct proc_aide_shared) + PAGE - 1) & ~(PAGE - 1);
	struct proc_aide *a = calloc(1, sizeof(*a));
	int socks[2];

	assert_non_null(a);
	a->shared = mmap(NULL, bytes + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	assert_true((void *)a->shared != MAP_FAILED);
	assert_int_equal(mprotect((uint8_t *)a->shared + bytes, PAGE, PROT_NONE), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks), 0);
	a->sock = socks[0];
	a->pidfd = pidfd_of_the_dead();
	proc_aide_give_back(a, NULL, &(struct proc_aide_answer){});
	assert_int_equal(proc_aide_send(socks[1], answer, sizeof(*answer), fd), sizeof(*answer));
	return socks[1];
}

static void no_more_is_taken_from_an_aide_than_it_can_have(void **state)
{
	static uint8_t dst[4 * PROC_AIDES_READ_MAX];
	const struct proc_aide_answer much = {.bytes = sizeof(dst)};
	struct proc_aides_target target = {.pid = getpid()};
	_cleanup_(buf_release) struct buf text = {0};
	struct iovec range = {dst, sizeof(dst)};
	int sock = send_astray(&much, -1);

	(void)state;
	assert_int_equal(proc_aides_readv(&target, 0, &range, &range, 1), PROC_AIDES_READ_MAX);
	assert_int_equal(proc_aide_send(sock, &much, sizeof(much), -1), sizeof(much));
	assert_int_equal(proc_aides_pread(&target, 0, dst, 100, 0), 100);
	assert_int_equal(proc_aide_send(sock, &much, sizeof(much), -1), sizeof(much));
	assert_int_equal(proc_aides_read(getpid(), "maps", &text), 0);
	assert_int_equal(text.len, PROC_AIDES_READ_MAX);
	close(sock);
}

static void answers_that_no_aide_gives_are_its_last(void **state)
{
	const struct proc_aide_answer odd = {.code = 100, .bytes = 100};
	struct proc_aides_target target = {.pid = getpid()};
	int sock = send_astray(&odd, -1);
	char dst[8];

	(void)state;
	assert_int_equal(proc_aides_pread(&target, 0, dst, sizeof(dst), 0), -EAGAIN);
	/* It was left behind. */
	assert_true(proc_aide_send(sock, &odd, sizeof(odd), -1) < 0);
	close(sock);
}

static void descriptors_that_nobody_asked_for_are_closed(void **state)
{
	const struct proc_aide_answer answer = {.bytes = 1};
	struct proc_aides_target target = {.pid = getpid()};
	int ends[2], sock;
	char byte;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	sock = send_astray(&answer, ends[1]);
	close(ends[1]);
	assert_int_equal(proc_aides_pread(&target, 0, &byte, 1, 0), 1);
	/* Nobody has the other end any more. */
	assert_int_equal(read(ends[0], &byte, 1), 0);
	close(ends[0]);
	close(sock);
}

/* Our youngest child. */
static pid_t spawner_pid(void)
{
	_cleanup_(buf_release) struct buf text = buf_with_max(4096);
	const char *last;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	assert_int_equal(io_read_file(AT_FDCWD, path, &text, NULL), 0);
	text.len -= text.len > 0; /* ends with a blank */
	last = strrchr(buf_cstr(&text), ' ');
	return (pid_t)strtol(last ? last : buf_cstr(&text), NULL, 10);
}

/* One that comes too late is nobody's: the next has a process of its own. */
static void spawner_that_is_late_mixes_nothing_up(void **state)
{
	pid_t spawner = spawner_pid();
	struct child c = child_start(fill_words, child_nothing);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct err err = {};
	uint64_t word;

	(void)state;
	proc_aides_set_patience(20 * NS_PER_MS);
	assert_int_equal(kill(spawner, SIGSTOP), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(proc_mem_open_bare(c.pid, &mem, &err), -ETIMEDOUT);
	assert_int_equal(status().aides, 0);
	assert_false(status().spawner_ended);
	proc_aides_set_patience(20 * NS_PER_SEC);
	assert_int_equal(kill(spawner, SIGCONT), 0);
	assert_int_equal(proc_mem_open_bare(c.pid, &mem, &err), 0);
	assert_int_equal(proc_mem_read(mem, (uintptr_t)words, &word, sizeof(word), &err), 0);
	assert_int_equal(word, 7000000);
	assert_int_equal(status().aides, 1);
	child_end(&c);
}

static void spawner_that_was_killed_is_told(void **state)
{
	pid_t spawner = spawner_pid();
	struct child c = child_start(fill_words, child_nothing);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct err err = {};

	(void)state;
	assert_int_equal(kill(spawner, SIGKILL), 0);
	assert_int_equal(waitpid(spawner, NULL, 0), spawner);
	assert_int_equal(proc_mem_open_bare(c.pid, &mem, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.text, "no helper process starts"));
	assert_true(status().spawner_ended);
	child_end(&c);
}

/* Root gives the parent's namespace ids from 100000 on, once that exists. */
static void map_ids_of_parent(const int tell[2])
{
	static const char text[] = "0 100000 10";
	char path[64], byte;
	int fd;

	/* Else nobody would notice that the parent has given up. */
	close(tell[1]);
	if (read(tell[0], &byte, 1) != 1)
		_exit(1);
	(void)snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)getppid());
	fd = open(path, O_WRONLY | O_CLOEXEC);
	_exit(fd < 0 || write(fd, text, sizeof(text) - 1) < 0);
}

/* As who may use ids that were given to them (subuid(5)). */
static void take_another_id(void)
{
	int tell[2], status;
	pid_t helper;

	if (pipe(tell) < 0)
		_exit(77);
	helper = fork();
	if (helper == 0)
		map_ids_of_parent(tell);
	if (setresuid(1234, 1234, 1234) < 0 || unshare(CLONE_NEWUSER) < 0 ||
	    write(tell[1], "", 1) != 1 || waitpid(helper, &status, 0) != helper || status != 0 ||
	    setresuid(3, 3, 3) < 0)
		_exit(77);
}

static void many_ids_of_one_user_are_one_account(void **state)
{
	struct child c = child_start(take_another_id, child_nothing);
	struct child own = child_start(child_nothing, child_nothing);
	struct proc_aides_target target;
	struct proc_status its;

	(void)state;
	assert_int_equal(proc_status_read(c.pid, &its, NULL), 0);
	assert_int_equal(its.uid, 100003);
	assert_int_equal(proc_aides_find(c.pid, &target), 0);
	assert_int_equal(target.uid, 1234);
	assert_int_equal(proc_aides_find(own.pid, &target), 0);
	assert_int_equal(target.uid, getuid());
	child_end(&c);
	child_end(&own);
}

static void maps_of_many_ids_are_told_from_others(void **state)
{
	(void)state;
	assert_false(proc_aide_account_maps_ids("         0          0 4294967295\n"));
	assert_false(proc_aide_account_maps_ids("         0       1000          1\n"));
	assert_false(proc_aide_account_maps_ids(""));
	assert_true(proc_aide_account_maps_ids("         0     100000      65536\n"));
	assert_true(proc_aide_account_maps_ids("         0       1000          1\n"
					       "         1     100000          1\n"));
}

/* --- who is there ----------------------------------------------------------------------------- */

static void stats_of_many_are_read_in_order(void **state)
{
	struct child c = child_start(child_nothing, child_nothing);
	static struct proc_stat_reading readings[PROC_AIDE_RANGES_MAX + 100];
	static pid_t pids[ARRAY_SIZE(readings)];
	struct proc_id id;

	(void)state;
	/* The largest pid is never used. */
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
		pids[i] = i % 3 == 0 ? c.pid : i % 3 == 1 ? 1 << 22 : getpid();
	proc_stat_read_many(pids, ARRAY_SIZE(pids), readings);
	assert_int_equal(proc_id_of(c.pid, &id, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		assert_int_equal(readings[i].code, i % 3 == 1 ? -ESRCH : 0);
		if (i % 3 == 0)
			assert_int_equal(readings[i].stat.start_ticks, id.start_ticks);
		if (i % 3 == 2)
			assert_string_equal(readings[i].stat.comm, "test_proc_aides");
	}
	assert_int_equal(status().aides, 1);
	child_end(&c);
	assert_true(proc_id_gone(&id));
	assert_false(proc_id_alive(&id));
}

static void links_and_descriptors_come_from_aides(void **state)
{
	struct child c = child_start(child_nothing, child_nothing);
	_cleanup_(buf_release) struct buf its = {}, ours = {};
	uint64_t its_number, our_number;
	int fd;

	(void)state;
	assert_int_equal(proc_aides_read_link(c.pid, "exe", &its), 0);
	assert_int_equal(proc_aides_read_link(getpid(), "exe", &ours), 0);
	assert_string_equal(buf_cstr(&its), buf_cstr(&ours));
	assert_int_equal(proc_ns_read(c.pid, "mnt", &its_number), 0);
	assert_int_equal(proc_ns_read(getpid(), "mnt", &our_number), 0);
	assert_true(its_number == our_number && its_number);
	assert_int_equal(proc_aides_open(c.pid, "root", O_PATH | O_DIRECTORY, &fd), 0);
	close(fd);
	child_end(&c);
	assert_int_equal(proc_ns_read(c.pid, "mnt", &its_number), -ESRCH);
	assert_int_equal(proc_aides_open(c.pid, "mem", O_RDONLY, &fd), -ESRCH);
}

/* --- what waiting costs ----------------------------------------------------------------------- */

/* As the pidfd of an aide that hangs: never readable. */
static int pidfd_of_none(void)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void processes_and_users_have_so_many_that_hang(void **state)
{
	struct proc_aide_budget b = {};
	const struct proc_aides_target root = {.pid = 1, .uid = 0};
	struct proc_aides_target t = {.uid = NOBODY};

	(void)state;
	for (t.pid = 10; t.pid < 10 + PROC_AIDES_LOST_PER_USER; t.pid++) {
		assert_true(proc_aide_budget_allows(&b, &t));
		proc_aide_budget_lost_take(&b, &t, pidfd_of_none());
		assert_false(proc_aide_budget_allows(&b, &t));
	}
	assert_false(proc_aide_budget_allows(&b, &t));
	assert_true(proc_aide_budget_allows(&b, &root));
	t.uid = NOBODY - 1;
	assert_true(proc_aide_budget_allows(&b, &t));
	assert_int_equal(proc_aide_budget_n_lost(&b), PROC_AIDES_LOST_PER_USER);
	proc_aide_budget_release(&b);
	t.uid = NOBODY;
	assert_true(proc_aide_budget_allows(&b, &t));
}

static void process_that_is_stuck_is_left_alone_until_it_runs(void **state)
{
	struct proc_aide_budget b = {};
	struct proc_status its = {};
	struct child c = child_start(child_nothing, child_nothing);
	struct proc_aides_target target = {.pid = c.pid, .uid = NOBODY};

	(void)state;
	while (its.state != 'S')
		assert_int_equal(proc_status_read(c.pid, &its, NULL), 0);
	assert_true(proc_aide_budget_allows(&b, &target));
	proc_aide_budget_stuck(&b, c.pid, its.switches);
	/* Only the time can be in doubt on a machine that is stalled. */
	b.stuck[0].noted_ns = clock_mono_ns();
	b.stuck[0].pause_ns = UINT64_MAX;
	assert_false(proc_aide_budget_allows(&b, &target));
	/* It is asked again after a while, and the next while is longer. */
	b.stuck[0].pause_ns = 0;
	assert_true(proc_aide_budget_allows(&b, &target));
	b.stuck[0].pause_ns = NS_PER_SEC;
	proc_aide_budget_stuck(&b, c.pid, its.switches);
	assert_int_equal(b.stuck[0].pause_ns, 2 * NS_PER_SEC);
	assert_int_equal(b.stuck[1].pid, 0);
	/* It has run. */
	b.stuck[0].pause_ns = UINT64_MAX;
	b.stuck[0].switches--;
	assert_true(proc_aide_budget_allows(&b, &target));
	assert_int_equal(b.stuck[0].pid, 0);
	/* However many there are. */
	for (pid_t pid = 1; pid <= 3 * PROC_AIDE_STUCK_MAX; pid++)
		proc_aide_budget_stuck(&b, pid, 0);
	child_end(&c);
}

static void whoever_is_slow_waits_and_root_does_not(void **state)
{
	const struct proc_aides_target slow = {.pid = 10, .uid = NOBODY},
				       other = {.pid = 11, .uid = NOBODY - 1},
				       root = {.pid = 12, .uid = 0};
	struct proc_aide_budget b = {};

	(void)state;
	for (int i = 0; i < 50; i++) {
		proc_aide_budget_waited(&b, slow.uid, 100 * NS_PER_MS);
		proc_aide_budget_waited(&b, root.uid, 100 * NS_PER_MS);
		proc_aide_budget_waited(&b, other.uid, NS_PER_MS);
	}
	assert_false(proc_aide_budget_allows(&b, &slow));
	assert_true(proc_aide_budget_allows(&b, &other));
	assert_true(proc_aide_budget_allows(&b, &root));
	/* Many who owe a little do not push out one who owes much. */
	for (uid_t uid = 1000; uid < 1000 + 2 * PROC_AIDE_SLOW_MAX; uid++)
		proc_aide_budget_waited(&b, uid, NS_PER_MS);
	assert_false(proc_aide_budget_allows(&b, &slow));
}

/* --- file systems ----------------------------------------------------------------------------- */

static void write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		_exit(77);
	close(fd);
}

/* Mounts layers in a namespace of its own, and hands out a file there. */
static void layer_and_send(int sock, bool own_users)
{
	char options[128], path[96];
	int fd;

	if (unshare(CLONE_NEWNS | (own_users ? CLONE_NEWUSER : 0)) < 0)
		_exit(77);
	if (own_users) {
		write_to("/proc/self/setgroups", "deny");
		write_to("/proc/self/uid_map", "0 0 1");
	}
	(void)snprintf(options, sizeof(options), "lowerdir=%s/a:%s/b", folder, folder);
	(void)snprintf(path, sizeof(path), "%s/merged", folder);
	if (mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("layers", path, "overlay", 0, options) < 0)
		_exit(77);
	(void)snprintf(path, sizeof(path), "%s/merged/file", folder);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	_exit(fd < 0 || proc_aide_send(sock, "", 1, fd) != 1);
}

static int file_of_layers(bool own_users)
{
	int socks[2], fd = -1, status;
	char byte;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks), 0);
	pid = fork();
	if (pid == 0)
		layer_and_send(socks[1], own_users);
	close(socks[1]);
	(void)proc_aide_receive(socks[0], &byte, 1, &fd);
	close(socks[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip(); /* no overlayfs here */
	assert_true(fd >= 0);
	return fd;
}

/* Whoever mounts layers may serve them: only those are trusted that the process could not mount. */
static void layers_from_elsewhere_are_foreign(void **state)
{
	(void)state;
	run_in(folder, "mkdir a b merged && echo text > a/file");
	for (int own_users = 0; own_users < 2; own_users++) {
		_cleanup_close_ int fd = file_of_layers(own_users);

		assert_true(proc_aide_is_foreign(fd, getpid()));
	}
}

static void own_files_are_not_foreign(void **state)
{
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_false(proc_aide_is_foreign(fd, getpid()));
}

static void mounts_are_found_by_number(void **state)
{
	static const char text[] = "22 1 0:20 / / rw - overlay o rw\n"
				   "123 22 0:21 / /12 rw - tmpfs t rw\n";

	(void)state;
	assert_true(proc_aide_has_mount(text, 22));
	assert_true(proc_aide_has_mount(text, 123));
	assert_false(proc_aide_has_mount(text, 12));
	assert_false(proc_aide_has_mount(text, 1));
	assert_false(proc_aide_has_mount("", 0));
}

/* --- names ------------------------------------------------------------------------------------ */

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

static void become_nobody(void)
{
	if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
		_exit(77);
}

/* Its own mount namespace, in which root's file lies over its own. */
static void mount_over_and_become_nobody(void)
{
	char from[128], to[128];

	(void)snprintf(from, sizeof(from), "%s/secret", folder);
	(void)snprintf(to, sizeof(to), "%s/covered", folder);
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount(from, to, NULL, MS_BIND, NULL) < 0)
		_exit(77);
	become_nobody();
}

static int open_named(const struct child *c, const char *name)
{
	_cleanup_close_ int fd = -1;
	char text[16] = "";
	int r = proc_named_open(c->pid, folder, name, &fd);

	if (r < 0)
		return r;
	assert_true(io_pread_full(fd, text, sizeof(text) - 1, 0) > 0);
	assert_string_equal(text, "fine");
	return 0;
}

static void make_files(void)
{
	make_file("own", NOBODY, 0600, "fine");
	make_file("secret", 0, 0600, "secret");
	make_file("covered", NOBODY, 0600, "fine");
	make_file("public", 0, 0644, "fine");
	make_file("unreadable", NOBODY, 0, "secret");
	run_in(folder, "ln -s own link && ln -s secret to-secret && mkdir dir && mkfifo pipe && "
		       "chmod 0666 pipe");
}

static void names_are_opened_with_the_targets_rights(void **state)
{
	struct child c, covered, root;

	(void)state;
	make_files();
	c = child_start(become_nobody, child_nothing);
	covered = child_start(mount_over_and_become_nobody, child_nothing);
	root = child_start(child_nothing, child_nothing);
	assert_int_equal(open_named(&c, "own"), 0);
	assert_int_equal(open_named(&c, "public"), 0);
	assert_int_equal(open_named(&c, "covered"), 0);
	assert_int_equal(open_named(&c, "secret"), -EACCES);
	assert_int_equal(open_named(&c, "unreadable"), -EACCES);
	assert_int_equal(open_named(&c, "link"), -EINVAL);
	assert_int_equal(open_named(&c, "to-secret"), -EINVAL);
	assert_int_equal(open_named(&c, "dir"), -EINVAL);
	assert_int_equal(open_named(&c, "pipe"), -EINVAL);
	assert_int_equal(open_named(&c, "none"), -ENOENT);
	assert_int_equal(open_named(&c, "../../etc/shadow"), -EXDEV);
	/* What it has mounted there is not looked at, whoever may read it. */
	assert_int_equal(open_named(&covered, "covered"), -EXDEV);
	assert_int_equal(open_named(&covered, "own"), 0);
	/* Root without capabilities is no more than the owner of its files. */
	assert_int_equal(open_named(&root, "own"), -EACCES);
	assert_int_equal(open_named(&root, "public"), 0);
	child_end(&c);
	child_end(&covered);
	child_end(&root);
}

/* Our own rights are back afterwards. */
static void rights_return(void **state)
{
	struct child c;
	int fd;

	(void)state;
	proc_aides_stop();
	make_files();
	c = child_start(become_nobody, child_nothing);
	assert_int_equal(open_named(&c, "secret"), -EACCES);
	assert_int_equal(open_named(&c, "own"), 0);
	fd = open("/etc/shadow", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	close(fd);
	child_end(&c);
}

#define WITH_AIDES(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_AIDES(aides_read_memory_and_mappings),
		WITH_AIDES(target_that_hangs_costs_an_aide),
		WITH_AIDES(aides_write_what_replaces_something_expected),
		WITH_AIDES(aides_write_to_other_users_processes),
		WITH_AIDES(aides_without_the_right_write_nothing),
		WITH_AIDES(write_that_hangs_costs_an_aide),
		WITH_AIDES(threads_have_aides_of_their_own),
		WITH_AIDES(no_more_is_taken_from_an_aide_than_it_can_have),
		WITH_AIDES(answers_that_no_aide_gives_are_its_last),
		WITH_AIDES(descriptors_that_nobody_asked_for_are_closed),
		WITH_AIDES(spawner_that_is_late_mixes_nothing_up),
		WITH_AIDES(spawner_that_was_killed_is_told),
		WITH_AIDES(many_ids_of_one_user_are_one_account),
		cmocka_unit_test(maps_of_many_ids_are_told_from_others),
		WITH_AIDES(stats_of_many_are_read_in_order),
		WITH_AIDES(links_and_descriptors_come_from_aides),
		cmocka_unit_test(process_that_is_stuck_is_left_alone_until_it_runs),
		WITH_AIDES(layers_from_elsewhere_are_foreign),
		cmocka_unit_test(own_files_are_not_foreign),
		cmocka_unit_test(mounts_are_found_by_number),
		cmocka_unit_test(processes_and_users_have_so_many_that_hang),
		cmocka_unit_test(whoever_is_slow_waits_and_root_does_not),
		WITH_AIDES(names_are_opened_with_the_targets_rights),
		WITH_AIDES(rights_return),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
