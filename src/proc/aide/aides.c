/*
 * src/proc/aide/aides.c: see aides.h.
 *
 * The spawner is forked before there are threads, and does nothing but fork aides: each starts as
 * small as it did. An aide serves one request at a time, of whatever thread has taken it from the
 * list of idle ones.
 */
#include "proc/aide/aides.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "proc/aide/account.h"
#include "proc/aide/budget.h"
#include "proc/aide/serve.h"
#include "proc/aide/wire.h"
#include "proc/caps.h"
#include "proc/stat.h"
#include "proc/status.h"

_Static_assert(PROC_AIDES_READ_MAX == PROC_AIDE_DATA_BYTES, "one reading fits");

#define AIDES_PATIENCE_NS (2 * NS_PER_SEC)
/* To fork, in terms of patience: the spawner touches no target, but a machine may be starved. */
#define AIDES_SPAWN_PATIENCE 5
/* For an answer, where the aide does not get a CPU. */
#define AIDES_STARVED_PATIENCE 5
/* What a busy machine makes late looks like a target that hangs. */
#define AIDES_NICE (-10)
#define AIDES_IDLE_MAX 4
/* The last one on the list is the one that is needed least. */
#define AIDES_IDLE_NS (30 * NS_PER_SEC)
#define AIDES_NOBODY ((uid_t)-2) /* no user has that number */
#define AIDES_FDS_MAX 65536
/* All that aides do is read: memory, what is mapped, and with a target's rights what it names. */
#define AIDES_CAPS                                                                                 \
	(PROC_CAP(CAP_SYS_PTRACE) | PROC_CAP(CAP_DAC_READ_SEARCH) |                                \
	 PROC_CAP(CAP_CHECKPOINT_RESTORE) | PROC_CAP(CAP_SETUID) | PROC_CAP(CAP_SETGID))

struct aide {
	struct aide *next;
	int sock;
	int pidfd;
	struct proc_aide_shared *shared;
	uint64_t cpu_ns;      /* as of its last answer */
	uint64_t patience_ns; /* of its socket */
	uint64_t idle_ns;     /* since when it is idle */
};

static struct {
	pthread_mutex_t lock;
	bool on;
	int spawner; /* socket */
	struct aide *idle;
	size_t n_idle;
	size_t n_aides;
	struct proc_aide_budget budget;
	uint64_t unanswered;
	bool spawner_ended;
	_Atomic uint64_t cpu_ns;
} aides = {.lock = PTHREAD_MUTEX_INITIALIZER, .spawner = -1};

/* For whom an aide has opened a file, by descriptor: the pid, then the user. */
static _Atomic uint64_t aides_opened_for[AIDES_FDS_MAX];

static _Thread_local uint64_t patience_ns = AIDES_PATIENCE_NS;

/* --- the spawner's process ------------------------------------------------------------------ */

/* Signals of the terminal and of service managers are sonde's affair: it ends, and so do we. */
static void aide_settle(const char *name)
{
	static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGCHLD};
	sigset_t none;

	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		(void)signal(ignored[i], SIG_IGN);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)prctl(PR_SET_NAME, name);
}

/*
 * Keeps one descriptor, as number 3. The standard ones lead nowhere: whoever reads sonde's output
 * until its end must not wait for an aide that hangs.
 */
static int keep_only(int fd)
{
	int kept = fcntl(fd, F_DUPFD_CLOEXEC, 4), nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int standard = 0; standard < 3; standard++)
		if (kept < 0 || nowhere < 0 || dup2(nowhere, standard) < 0)
			return -1;
	if (dup3(kept, 3, O_CLOEXEC) < 0)
		return -1;
	return syscall(SYS_close_range, 4U, ~0U, 0) < 0 ? -1 : 3;
}

static void aide_run(int sock)
{
	struct proc_aide_shared *shared;
	int memory, own = keep_only(sock);
	char byte;

	aide_settle("sonde-aide");
	if (own < 0 || proc_aide_receive(own, &byte, 1, &memory) != 1 || memory < 0)
		_exit(1);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	if (shared != MAP_FAILED) {
		shared->pid = getpid();
		proc_aide_serve(own, shared);
	}
	_exit(0);
}

/*
 * Each request brings the socket of a new aide. The answer, a handle of its process, goes there,
 * too: whoever has given up waiting cannot take it for that of another. Its shared memory follows.
 */
static void spawner_run(int sock)
{
	aide_settle("sonde-spawner");
	(void)setpriority(PRIO_PROCESS, 0, AIDES_NICE);
	if (proc_caps_keep(proc_caps_to_read(AIDES_CAPS), NULL) < 0)
		_exit(1);
	for (;;) {
		_cleanup_close_ int fd = -1, pidfd = -1;
		char byte;
		pid_t pid;

		if (proc_aide_receive(sock, &byte, 1, &fd) != 1 || fd < 0)
			_exit(0);
		pid = fork();
		if (pid == 0)
			aide_run(fd);
		if (pid > 0)
			pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
		if (pidfd >= 0)
			(void)proc_aide_send(fd, "", 1, pidfd);
	}
}

/* --- our side -------------------------------------------------------------------------------- */

int proc_aides_find(pid_t pid, struct proc_aides_target *ret_target)
{
	struct proc_status status;
	int r = proc_status_read(pid, &status, NULL);

	if (r < 0)
		return r;
	*ret_target = (struct proc_aides_target){
		.pid = pid,
		.uid = proc_aide_account(pid, status.uid),
	};
	return 0;
}

static void aide_free(struct aide *a)
{
	if (!a)
		return;
	closep(&a->sock);
	closep(&a->pidfd);
	if (a->shared)
		(void)munmap(a->shared, sizeof(*a->shared));
	free(a);
}

static bool readable(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int n;

	do
		n = poll(&p, 1, ms);
	while (n < 0 && errno == EINTR);
	return n > 0;
}

/* Takes the other end of its socket: nobody but the aide must have it, or we would not see its end.
 */
static int aide_fork_take(struct aide *a, int theirs)
{
	int sent = proc_aide_send(aides.spawner, "", 1, theirs);
	char byte;

	close(theirs);
	if (sent != 1)
		return -EPIPE;
	if (!readable(a->sock, (int)MIN(AIDES_SPAWN_PATIENCE * patience_ns / NS_PER_MS,
					(uint64_t)INT_MAX)) ||
	    proc_aide_receive(a->sock, &byte, 1, &a->pidfd) != 1 || a->pidfd < 0)
		return -EAGAIN;
	return 0;
}

static int aide_share(struct aide *a)
{
	_cleanup_close_ int memory = memfd_create("sonde-aide", MFD_CLOEXEC);

	if (memory < 0 || ftruncate(memory, sizeof(*a->shared)) < 0)
		return -errno;
	a->shared = mmap(NULL, sizeof(*a->shared), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	if (a->shared == MAP_FAILED) {
		a->shared = NULL;
		return -errno;
	}
	return proc_aide_send(a->sock, "", 1, memory) == 1 ? 0 : -EAGAIN;
}

static int aide_new(struct aide **ret_aide)
{
	struct aide *a = calloc(1, sizeof(*a));
	int socks[2], r;

	if (!a)
		return -ENOMEM;
	a->sock = a->pidfd = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks) < 0) {
		free(a);
		return -EAGAIN;
	}
	a->sock = socks[0];
	r = aide_fork_take(a, socks[1]);
	if (r == 0)
		r = aide_share(a);
	if (r < 0) {
		aide_free(a);
		return r;
	}
	*ret_aide = a;
	return 0;
}

/* NULL if all are busy. */
static int aide_take_idle(const struct proc_aides_target *target, struct aide **ret_aide)
{
	int r = 0;

	(void)pthread_mutex_lock(&aides.lock);
	*ret_aide = NULL;
	if (!proc_aide_budget_allows(&aides.budget, target)) {
		aides.unanswered++;
		r = -EBUSY;
	} else if (aides.idle) {
		*ret_aide = aides.idle;
		aides.idle = aides.idle->next;
		aides.n_idle--;
	}
	(void)pthread_mutex_unlock(&aides.lock);
	return r;
}

static int aide_take(const struct proc_aides_target *target, struct aide **ret_aide)
{
	int r = aide_take_idle(target, ret_aide);

	if (r < 0 || *ret_aide)
		return r;
	r = aide_new(ret_aide);
	(void)pthread_mutex_lock(&aides.lock);
	aides.n_aides += r == 0;
	aides.unanswered += r < 0;
	aides.spawner_ended = r == -EPIPE;
	(void)pthread_mutex_unlock(&aides.lock);
	return r == -EPIPE ? -EAGAIN : r;
}

/* With the lock held: the one that has been idle longest, if that is too long. */
static struct aide *idle_retire(uint64_t now_ns)
{
	struct aide **at = &aides.idle, *a = aides.idle;

	while (a && a->next) {
		at = &a->next;
		a = a->next;
	}
	if (!a || now_ns - a->idle_ns < AIDES_IDLE_NS)
		return NULL;
	*at = NULL;
	aides.n_idle--;
	aides.n_aides--;
	return a;
}

static void aide_give_back(struct aide *a, const struct proc_aides_target *target,
			   const struct proc_aide_answer *answer)
{
	struct aide *retired;

	a->idle_ns = clock_mono_ns();
	(void)pthread_mutex_lock(&aides.lock);
	retired = idle_retire(a->idle_ns);
	if (answer->asleep_ns)
		proc_aide_budget_waited(&aides.budget, target->uid, answer->asleep_ns);
	if (aides.n_idle < AIDES_IDLE_MAX) {
		a->next = aides.idle;
		aides.idle = a;
		aides.n_idle++;
		a = NULL;
	} else {
		aides.n_aides--;
	}
	(void)pthread_mutex_unlock(&aides.lock);
	aide_free(a);
	aide_free(retired);
}

/* It hangs, or is gone. The process may have changed its user since. */
static void aide_leave(struct aide *a, struct proc_aides_target *target)
{
	(void)proc_aides_find(target->pid, target);
	(void)syscall(SYS_pidfd_send_signal, a->pidfd, SIGKILL, NULL, 0);
	(void)pthread_mutex_lock(&aides.lock);
	aides.n_aides--;
	aides.unanswered++;
	proc_aide_budget_waited(&aides.budget, target->uid, patience_ns);
	proc_aide_budget_lost_take(&aides.budget, target, TAKE_FD(a->pidfd));
	(void)pthread_mutex_unlock(&aides.lock);
	aide_free(a);
}

/* How long to wait for its answers. The kernel knows it from the last time, mostly. */
static int aide_set_patience(struct aide *a)
{
	const struct timeval patience = {
		.tv_sec = (time_t)(patience_ns / NS_PER_SEC),
		.tv_usec = (suseconds_t)(patience_ns % NS_PER_SEC / 1000),
	};

	if (a->patience_ns == patience_ns)
		return 0;
	if (setsockopt(a->sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
		return -errno;
	a->patience_ns = patience_ns;
	return 0;
}

/* Whether it waits for a CPU, or uses one: then it is not the target that makes us wait. */
static bool aide_is_starved(const struct aide *a)
{
	pid_t pid = atomic_load(&a->shared->pid);
	struct proc_stat st;

	return !pid || (proc_stat_read(pid, &st, NULL) == 0 && st.state == 'R');
}

static int aide_receive(struct aide *a, struct proc_aide_answer *ret_answer, int *ret_fd)
{
	int n = -EAGAIN;

	for (int i = 0; i < AIDES_STARVED_PATIENCE && n == -EAGAIN; i++) {
		n = proc_aide_receive(a->sock, ret_answer, sizeof(*ret_answer), ret_fd);
		if (n == -EAGAIN && !aide_is_starved(a))
			break;
	}
	return n;
}

/* The answer to what is in the shared memory; on failure the aide is gone. */
static int aide_ask(struct aide *a, struct proc_aides_target *target,
		    const struct proc_aide_request *request, int fd,
		    struct proc_aide_answer *ret_answer, int *ret_fd)
{
	int n = 0;

	if (aide_set_patience(a) == 0 &&
	    proc_aide_send(a->sock, request, sizeof(*request), fd) == sizeof(*request))
		n = aide_receive(a, ret_answer, ret_fd);
	if (n != sizeof(*ret_answer) || ret_answer->code > 0) {
		aide_leave(a, target);
		return n == -EAGAIN ? -ETIMEDOUT : -EAGAIN;
	}
	aides.cpu_ns += ret_answer->cpu_ns - a->cpu_ns;
	a->cpu_ns = ret_answer->cpu_ns;
	return 0;
}

static struct proc_aide_request request_for(enum proc_aide_op op,
					    const struct proc_aides_target *target)
{
	return (struct proc_aide_request){.op = op, .pid = target->pid};
}

ssize_t proc_aides_readv(struct proc_aides_target *target, int mem_fd, const struct iovec *local,
			 const struct iovec *remote, size_t n)
{
	struct proc_aide_request request = request_for(PROC_AIDE_READ, target);
	_cleanup_close_ int none = -1;
	struct proc_aide_answer answer;
	size_t at = 0;
	struct aide *a;
	int r = aide_take(target, &a);

	if (r < 0)
		return r;
	request.n_ranges = (uint32_t)MIN(n, PROC_AIDE_RANGES_MAX);
	for (size_t i = 0; i < request.n_ranges; i++) {
		a->shared->ranges[i].addr = (uintptr_t)remote[i].iov_base;
		a->shared->ranges[i].len = remote[i].iov_len;
	}
	r = aide_ask(a, target, &request, mem_fd, &answer, &none);
	if (r < 0)
		return r;
	answer.bytes = MIN(answer.bytes, PROC_AIDE_DATA_BYTES);
	for (size_t i = 0; i < request.n_ranges && at < answer.bytes; i++) {
		size_t len = MIN(local[i].iov_len, answer.bytes - at);

		memcpy(local[i].iov_base, a->shared->data + at, len);
		at += len;
	}
	aide_give_back(a, target, &answer);
	if (answer.gone)
		return -ESRCH;
	return answer.code < 0 ? answer.code : (ssize_t)at;
}

ssize_t proc_aides_pread(struct proc_aides_target *target, int fd, void *dst, size_t len,
			 uint64_t off)
{
	struct proc_aide_request request = request_for(PROC_AIDE_PREAD, target);
	_cleanup_close_ int none = -1;
	struct proc_aide_answer answer;
	struct aide *a;
	int r = aide_take(target, &a);

	if (r < 0)
		return r;
	len = MIN(len, PROC_AIDE_DATA_BYTES);
	a->shared->ranges[0].addr = off;
	a->shared->ranges[0].len = len;
	r = aide_ask(a, target, &request, fd, &answer, &none);
	if (r < 0)
		return r;
	if (answer.code == 0) {
		answer.bytes = MIN(answer.bytes, len);
		memcpy(dst, a->shared->data, answer.bytes);
	}
	aide_give_back(a, target, &answer);
	return answer.code < 0 ? answer.code : (ssize_t)answer.bytes;
}

/* Appends the contents, wherever they are. */
static int contents_take(const struct aide *a, const struct proc_aide_answer *answer, int fd,
			 struct buf *text)
{
	if (fd < 0)
		return buf_append(text, a->shared->data, MIN(answer->bytes, PROC_AIDE_DATA_BYTES));
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	return io_read_all(fd, text);
}

static int aides_read_file(struct proc_aides_target *target, const char *name, struct buf *text)
{
	struct proc_aide_request request = request_for(PROC_AIDE_PROC_FILE, target);
	_cleanup_close_ int fd = -1;
	struct proc_aide_answer answer;
	struct aide *a;
	int r = aide_take(target, &a);

	if (r < 0)
		return r;
	request.max = (text->max ? text->max : BUF_DEFAULT_MAX) - text->len;
	(void)snprintf(a->shared->text, sizeof(a->shared->text), "%s", name);
	r = aide_ask(a, target, &request, -1, &answer, &fd);
	if (r < 0)
		return r;
	if (answer.code == 0 || answer.code == -E2BIG)
		r = contents_take(a, &answer, fd, text);
	aide_give_back(a, target, &answer);
	return r < 0 ? r : answer.code;
}

int proc_aides_read(pid_t pid, const char *name, struct buf *text)
{
	struct proc_aides_target target;
	char path[96];
	int r;

	if (aides.on) {
		r = proc_aides_find(pid, &target);
		return r < 0 ? r : aides_read_file(&target, name, text);
	}
	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return io_read_file(AT_FDCWD, path, text, NULL);
}

/* Asks for a descriptor, with the texts in place. */
static int aide_open(struct aide *a, struct proc_aides_target *target,
		     const struct proc_aide_request *request, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	struct proc_aide_answer answer;
	int r = aide_ask(a, target, request, -1, &answer, &fd);

	if (r < 0)
		return r;
	aide_give_back(a, target, &answer);
	if (answer.code < 0)
		return answer.code;
	if (fd < 0)
		return -EMFILE; /* received, but there was no room for it */
	if (fd < AIDES_FDS_MAX)
		aides_opened_for[fd] = (uint64_t)target->pid << 32 | target->uid;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int proc_aides_open_mapped(struct proc_aides_target *target, const struct proc_map *map,
			   int *ret_fd)
{
	struct proc_aide_request request = request_for(PROC_AIDE_OPEN_MAPPED, target);
	struct aide *a;
	int r;

	if (strlen(map->path) >= PROC_AIDE_TEXT_BYTES)
		return -ENAMETOOLONG;
	r = aide_take(target, &a);
	if (r < 0)
		return r;
	request.start = map->start;
	request.end = map->end;
	request.dev = map->dev;
	request.inode = map->inode;
	request.map_flags = map->flags;
	memcpy(a->shared->text, map->path, strlen(map->path) + 1);
	return aide_open(a, target, &request, ret_fd);
}

int proc_aides_open_named(struct proc_aides_target *target, const char *dir, const char *name,
			  int *ret_fd)
{
	const struct proc_aide_request request = request_for(PROC_AIDE_OPEN_NAMED, target);
	size_t n = strlen(dir) + 1;
	struct aide *a;
	int r;

	if (n + strlen(name) >= PROC_AIDE_TEXT_BYTES)
		return -ENAMETOOLONG;
	r = aide_take(target, &a);
	if (r < 0)
		return r;
	memcpy(a->shared->text, dir, n);
	memcpy(a->shared->text + n, name, strlen(name) + 1);
	return aide_open(a, target, &request, ret_fd);
}

static ssize_t aides_read_path(int fd, void *dst, size_t len, uint64_t off)
{
	uint64_t opened_for = fd < AIDES_FDS_MAX ? aides_opened_for[fd] : AIDES_NOBODY;
	struct proc_aides_target owner = {.pid = (pid_t)(opened_for >> 32),
					  .uid = (uid_t)opened_for};

	return proc_aides_pread(&owner, fd, dst, len, off);
}

void proc_aides_set_patience(uint64_t ns)
{
	patience_ns = MAX(ns, NS_PER_MS); /* none at all would mean for ever */
}

bool proc_aides_are_on(void)
{
	return aides.on;
}

void proc_aides_status(struct proc_aides_status *ret_status)
{
	(void)pthread_mutex_lock(&aides.lock);
	*ret_status = (struct proc_aides_status){
		.aides = aides.n_aides,
		.lost = proc_aide_budget_n_lost(&aides.budget),
		.unanswered = aides.unanswered,
		.spawner_ended = aides.spawner_ended,
		.cpu_ns = aides.cpu_ns,
	};
	(void)pthread_mutex_unlock(&aides.lock);
}

int proc_aides_start(struct err *err)
{
	int socks[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks) < 0)
		return err_set(err, -errno, "cannot make a socket: %s", strerror(errno));
	pid = fork();
	if (pid == 0) {
		int own = keep_only(socks[1]);

		if (own >= 0)
			spawner_run(own);
		_exit(1);
	}
	close(socks[1]);
	if (pid < 0) {
		int r = -errno;

		close(socks[0]);
		return err_set(err, r, "cannot start a process: %s", strerror(-r));
	}
	io_set_path_reader(aides_read_path);
	aides.spawner = socks[0];
	aides.on = true;
	return 0;
}

void proc_aides_stop(void)
{
	struct aide *next;

	io_set_path_reader(NULL);
	aides.on = false;
	for (struct aide *a = aides.idle; a; a = next) {
		next = a->next;
		aide_free(a);
	}
	proc_aide_budget_release(&aides.budget);
	closep(&aides.spawner);
	aides.spawner = -1;
	aides.idle = NULL;
	aides.n_idle = aides.n_aides = 0;
	aides.spawner_ended = false;
}
