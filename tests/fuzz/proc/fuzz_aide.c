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

enum { WITH_FILE = 8, WITH_PIPE = 16, ODD_LENGTH = 32, ASTRAY = 64, MUCH = 128 };

/* Of an aide that waits for the next question: its socket and its handle. */
#define IDLE_FDS 2
#define FDS_MAX 32

struct answer {
	struct proc_aide_answer bytes;
	size_t len;
	uint8_t flags;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int spawner = -1; /* the end of who would start aides */
static int theirs = -1;	 /* the aide's end */
static int dead = -1;	 /* a process that has exited */
static struct answer next;
static bool is_spoilt; /* somebody has been waited for, which is remembered */
static uint8_t *large;

static void hang_up(void)
{
	closep(&theirs);
	theirs = -1;
}

/* What comes with an answer; -1: nothing. */
static int answer_fd(void)
{
	static int file = -1, ends[2] = {-1, -1};

	if (file < 0) {
		file = memfd_create("contents", MFD_CLOEXEC);
		assert(file >= 0 && write(file, "contents", 8) == 8 && pipe2(ends, O_CLOEXEC) == 0);
		close(ends[1]);
	}
	return next.flags & WITH_FILE ? file : next.flags & WITH_PIPE ? ends[0] : -1;
}

static bool send_answer(void)
{
	return theirs >= 0 && proc_aide_send(theirs, &next.bytes, next.len, answer_fd()) >= 0;
}

/* What was asked, memory to be shared, and sockets of new aides. */
static void drain(int sock)
{
	char bytes[sizeof(struct proc_aide_request)];
	int fd, n;

	do {
		n = sock < 0 ? 0 : proc_aide_receive(sock, bytes, sizeof(bytes), &fd);
		if (n > 0)
			closep(&fd);
	} while (n > 0);
}

static int other_end(int fd)
{
	int end = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	assert(end >= 0 && fcntl(end, F_SETFL, O_NONBLOCK) == 0);
	return end;
}

/* The first is the spawner's. Of an aide its handle comes first. */
int socketpair(int domain, int type, int protocol, int fds[2])
{
	int r = (int)syscall(SYS_socketpair, domain, type, protocol, fds);

	if (r < 0)
		return r;
	if (spawner < 0) {
		spawner = other_end(fds[1]);
		return 0;
	}
	hang_up();
	theirs = other_end(fds[1]);
	assert(proc_aide_send(theirs, "", 1, dead) == 1 && send_answer());
	return 0;
}

pid_t fork(void)
{
	return getpid();
}

/* Open descriptors that belong to no aide. */
static int n_open(void)
{
	struct proc_aides_status status;
	int n = 0;

	proc_aides_status(&status);
	for (int fd = 0; fd < FDS_MAX; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n - IDLE_FDS * (int)status.aides - (int)status.lost - (theirs >= 0);
}

static void begin(void)
{
	if (!large) {
		pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

		if (child == 0)
			(void)syscall(SYS_exit_group, 0);
		dead = (int)syscall(SYS_pidfd_open, child, 0);
		large = malloc(2 * LARGE);
		assert(dead >= 0 && large && answer_fd() == -1);
	}
	assert(proc_aides_start(true, NULL) == 0);
	proc_aides_set_patience(NS_PER_MS);
}

static void read_memory(struct proc_aides_target *target, size_t len)
{
	struct iovec local[] = {{large, len}, {large + len, len}};
	ssize_t n = proc_aides_readv(target, 0, local, local, ARRAY_SIZE(local));

	assert(n <= (ssize_t)MIN(2 * len, PROC_AIDES_READ_MAX));
}

static void ask(unsigned int which, bool much)
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
		read_memory(&target, much ? LARGE : 1);
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
	proc_aides_stop();
	hang_up();
	closep(&spawner);
	spawner = -1;
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
	/* Else most answers would be the last of an aide. */
	if (!(data[0] & ASTRAY)) {
		next.bytes.asleep_ns = 0;
		if (next.bytes.code > 0)
			next.bytes.code = -next.bytes.code;
	}
	is_spoilt |= next.len != sizeof(next.bytes) || next.bytes.code > 0 || next.bytes.asleep_ns;
	return 2 + len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int n_before;

	if (spawner < 0)
		begin();
	n_before = n_open();
	for (size_t i = 0; i < QUESTIONS_MAX && size >= 2; i++) {
		size_t n = prepare(data, size);

		/* Nobody listens any more: the next aide will say it. */
		if (!send_answer())
			hang_up();
		/* Costs more than all the rest, so it comes alone. */
		ask(data[0] & 7, i == 0 && n == size && data[0] & MUCH);
		drain(theirs);
		drain(spawner);
		data += n;
		size -= n;
	}
	assert(n_open() == n_before);
	if (is_spoilt)
		end();
	return 0;
}
