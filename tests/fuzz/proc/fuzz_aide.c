/*
 * tests/fuzz/proc/fuzz_aide.c: any answers of an aide, which may have gone astray: whatever it says
 * of lengths, codes and files, nothing is read that it has not, and no descriptor is left open.
 *
 * It never runs: fork() is ours, and so is the other end of each socket. The input is a list of
 * questions, each with its answer: which (u8), with flags; how long the answer is (u8); its bytes.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "proc/aide/aides.h"
#include "proc/aide/wire.h"

#define QUESTIONS_MAX 8
#define LARGE ((size_t)700 << 10)

enum { WITH_FILE = 8, WITH_PIPE = 16, ODD_LENGTH = 32, ASLEEP = 64 };

/* Of an aide that waits for the next question: both ends of its socket, and its handle. */
#define IDLE_FDS 3

struct answer {
	struct proc_aide_answer bytes;
	size_t len;
	uint8_t flags;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int theirs = -1; /* the aide's end */
static int dead = -1;	/* a process that has exited */
static struct answer next;
static int first_free = -1; /* descriptor, before there is an aide; -1: they are off */
static bool is_spoilt;	    /* somebody has been waited for, which is remembered */
static uint8_t *large;

static void hang_up(void)
{
	closep(&theirs);
	theirs = -1;
}

static int answer_fd(void)
{
	int ends[2];

	if (next.flags & WITH_FILE) {
		int fd = memfd_create("contents", MFD_CLOEXEC);

		assert(fd >= 0 && write(fd, &next.bytes, sizeof(next.bytes)) > 0);
		return fd;
	}
	if (!(next.flags & WITH_PIPE) || pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	close(ends[1]);
	return ends[0];
}

static bool send_answer(void)
{
	_cleanup_close_ int fd = answer_fd();

	return theirs >= 0 && proc_aide_send(theirs, &next.bytes, next.len, fd) >= 0;
}

/* What was asked, and memory to be shared. */
static void drain(void)
{
	char bytes[sizeof(struct proc_aide_request)];
	int fd, n;

	do {
		n = theirs < 0 ? 0 : proc_aide_receive(theirs, bytes, sizeof(bytes), &fd);
		if (n > 0)
			closep(&fd);
	} while (n > 0);
}

int socketpair(int domain, int type, int protocol, int fds[2])
{
	int r = (int)syscall(SYS_socketpair, domain, type, protocol, fds);

	if (r < 0)
		return r;
	hang_up();
	theirs = fcntl(fds[1], F_DUPFD_CLOEXEC, 0);
	assert(theirs >= 0 && fcntl(theirs, F_SETFL, O_NONBLOCK) == 0);
	/* Of an aide: its handle first. The spawner's is asked for nothing. */
	if (dead >= 0) {
		assert(proc_aide_send(theirs, "", 1, dead) == 1);
		assert(send_answer());
	}
	return 0;
}

pid_t fork(void)
{
	return getpid();
}

static int first_free_now(void)
{
	int fd = dup(dead);

	close(fd);
	return fd;
}

static void begin(void)
{
	int spawner;

	if (!large) {
		pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

		if (child == 0)
			(void)syscall(SYS_exit_group, 0);
		dead = (int)syscall(SYS_pidfd_open, child, 0);
		large = malloc(2 * LARGE);
		assert(dead >= 0 && large);
	}
	spawner = TAKE_FD(dead);
	assert(proc_aides_start(NULL) == 0);
	dead = spawner;
	proc_aides_set_patience(NS_PER_MS);
	first_free = first_free_now();
}

static void read_memory(struct proc_aides_target *target, size_t len)
{
	struct iovec local[] = {{large, len}, {large + len, len}};
	ssize_t n = proc_aides_readv(target, 0, local, local, ARRAY_SIZE(local));

	assert(n <= (ssize_t)(2 * len));
}

static void ask(unsigned int which, bool is_first)
{
	struct proc_aides_target target = {.pid = getpid(), .uid = 1};
	_cleanup_(buf_release) struct buf text = buf_with_max(4096);
	const struct proc_map map = {.start = 1, .end = 2, .path = "/bin/true"};
	_cleanup_close_ int fd = -1;
	ssize_t n;

	switch (which % 6) {
	case 0:
		read_memory(&target, 48);
		break;
	case 1:
		/* Costs more than all the rest. */
		read_memory(&target, is_first ? LARGE : 1);
		break;
	case 2:
		n = proc_aides_pread(&target, 0, large, 100, 0);
		assert(n <= 100);
		break;
	case 3:
		(void)proc_aides_read(target.pid, "maps", &text);
		assert(text.len <= 4096);
		break;
	case 4:
		assert(proc_aides_open_mapped(&target, &map, &fd) < 0 || fd >= 0);
		break;
	default:
		assert(proc_aides_open_named(&target, "/tmp", "perf-1.map", &fd) < 0 || fd >= 0);
	}
}

static void end(void)
{
	assert(first_free_now() <= first_free + IDLE_FDS);
	if (!is_spoilt)
		return;
	proc_aides_stop();
	hang_up();
	assert(first_free_now() <= first_free);
	first_free = -1;
	is_spoilt = false;
}

/* Returns how many bytes of the input it takes. */
static size_t prepare(const uint8_t *data, size_t size)
{
	size_t len = MIN(MIN((size_t)data[1], size - 2), sizeof(next.bytes));

	next = (struct answer){.flags = data[0], .len = sizeof(next.bytes)};
	memcpy(&next.bytes, data + 2, len);
	if (data[0] & ODD_LENGTH)
		next.len = len ? len : 1;
	if (!(data[0] & ASLEEP))
		next.bytes.asleep_ns = 0;
	is_spoilt |= next.len != sizeof(next.bytes) || next.bytes.asleep_ns;
	return 2 + len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (first_free < 0)
		begin();
	for (size_t i = 0; i < QUESTIONS_MAX && size >= 2; i++) {
		size_t n = prepare(data, size);

		/* Nobody listens any more: the next aide will say it. */
		if (!send_answer())
			hang_up();
		ask(data[0] & 7, i == 0);
		drain();
		data += n;
		size -= n;
	}
	end();
	return 0;
}
