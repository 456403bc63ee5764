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
#include "proc/aide/aide.h"
#include "proc/aide/budget.h"
#include "proc/aide/serve.h"
#include "proc/aide/wire.h"
#include "proc/caps.h"
#include "proc/status.h"

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
/* Most aides only read: memory, what is mapped, and with a target's rights what it names. */
#define AIDES_CAPS                                                                                 \
	(PROC_CAP(CAP_SYS_PTRACE) | PROC_CAP(CAP_DAC_READ_SEARCH) |                                \
	 PROC_CAP(CAP_CHECKPOINT_RESTORE) | PROC_CAP(CAP_SETUID) | PROC_CAP(CAP_SETGID))
/* What the spawner keeps for those that write, and no other aide gets. */
#define AIDES_WRITER_CAPS (AIDES_CAPS | PROC_CAP(CAP_DAC_OVERRIDE))

static struct {
	pthread_mutex_t lock;
	bool on;
	int spawner; /* socket */
	struct proc_aide *idle;
	size_t n_idle;
	size_t n_aides;
	struct proc_aide_budget budget;
	uint64_t unanswered;
	bool spawner_ended;
	_Atomic uint64_t cpu_ns;
} aides = {.lock = PTHREAD_MUTEX_INITIALIZER, .spawner = -1};

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

static void aide_run(int sock, enum proc_aide_kind kind)
{
	struct proc_aide_shared *shared;
	int memory, own = keep_only(sock);
	char byte;

	aide_settle("sonde-aide");
	if (kind != PROC_AIDE_WRITER && proc_caps_keep(proc_caps_to_read(AIDES_CAPS), NULL) < 0)
		_exit(1);
	if (own < 0 || proc_aide_receive(own, &byte, 1, &memory) != 1 || memory < 0)
		_exit(1);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	if (shared != MAP_FAILED) {
		shared->pid = getpid();
		proc_aide_serve(own, kind, shared);
	}
	_exit(0);
}

/*
 * Each request brings the socket of a new aide. The answer, a handle of its process, goes there,
 * too: whoever has given up waiting cannot take it for that of another. Its shared memory follows.
 */
static void spawner_run(int sock, bool can_write)
{
	aide_settle("sonde-spawner");
	(void)setpriority(PRIO_PROCESS, 0, AIDES_NICE);
	if (proc_caps_keep(proc_caps_to_read(can_write ? AIDES_WRITER_CAPS : AIDES_CAPS), NULL) < 0)
		_exit(1);
	for (;;) {
		_cleanup_close_ int fd = -1, pidfd = -1;
		char kind;
		pid_t pid;

		if (proc_aide_receive(sock, &kind, 1, &fd) != 1 || fd < 0)
			_exit(0);
		pid = fork();
		if (pid == 0)
			aide_run(fd, can_write && kind == PROC_AIDE_WRITER ? PROC_AIDE_WRITER
									   : PROC_AIDE_READER);
		if (pid > 0)
			pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
		if (pidfd >= 0)
			(void)proc_aide_send(fd, "", 1, pidfd);
	}
}

/* --- our side -------------------------------------------------------------------------------- */

static void aide_free(struct proc_aide *a)
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
static int aide_fork_take(struct proc_aide *a, int theirs)
{
	char kind = (char)a->kind, byte;
	int sent = proc_aide_send(aides.spawner, &kind, 1, theirs);

	close(theirs);
	if (sent != 1)
		return -EPIPE;
	if (!readable(a->sock, (int)MIN(AIDES_SPAWN_PATIENCE * patience_ns / NS_PER_MS,
					(uint64_t)INT_MAX)) ||
	    proc_aide_receive(a->sock, &byte, 1, &a->pidfd) != 1 || a->pidfd < 0)
		return -EAGAIN;
	return 0;
}

static int aide_share(struct proc_aide *a)
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

static int aide_new(enum proc_aide_kind kind, struct proc_aide **ret_aide)
{
	struct proc_aide *a = calloc(1, sizeof(*a));
	int socks[2], r;

	if (!a)
		return -ENOMEM;
	a->sock = a->pidfd = -1;
	a->kind = kind;
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

/* NULL if all are busy. For many targets (NULL) it is for the caller to look at budgets. */
static int aide_take_idle(const struct proc_aides_target *target, struct proc_aide **ret_aide)
{
	int r = 0;

	(void)pthread_mutex_lock(&aides.lock);
	*ret_aide = NULL;
	if (target && !proc_aide_budget_allows(&aides.budget, target)) {
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

static int aide_begin(enum proc_aide_kind kind, struct proc_aide **ret_aide)
{
	int r = aide_new(kind, ret_aide);

	(void)pthread_mutex_lock(&aides.lock);
	aides.n_aides += r == 0;
	aides.unanswered += r < 0;
	aides.spawner_ended = r == -EPIPE;
	(void)pthread_mutex_unlock(&aides.lock);
	return r == -EPIPE ? -EAGAIN : r;
}

int proc_aide_take(const struct proc_aides_target *target, struct proc_aide **ret_aide)
{
	int r = aide_take_idle(target, ret_aide);

	return r < 0 || *ret_aide ? r : aide_begin(PROC_AIDE_READER, ret_aide);
}

int proc_aide_take_writer(const struct proc_aides_target *target, struct proc_aide **ret_aide)
{
	bool allowed;

	(void)pthread_mutex_lock(&aides.lock);
	allowed = proc_aide_budget_allows(&aides.budget, target);
	aides.unanswered += !allowed;
	(void)pthread_mutex_unlock(&aides.lock);
	return allowed ? aide_begin(PROC_AIDE_WRITER, ret_aide) : -EBUSY;
}

/* With the lock held: the one that has been idle longest, if that is too long. */
static struct proc_aide *idle_retire(uint64_t now_ns)
{
	struct proc_aide **at = &aides.idle, *a = aides.idle;

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

void proc_aide_give_back(struct proc_aide *a, const struct proc_aides_target *target,
			 const struct proc_aide_answer *answer)
{
	struct proc_aide *retired;

	a->idle_ns = clock_mono_ns();
	(void)pthread_mutex_lock(&aides.lock);
	retired = idle_retire(a->idle_ns);
	if (target && answer->asleep_ns)
		proc_aide_budget_waited(&aides.budget, target->uid, answer->asleep_ns);
	if (a->kind == PROC_AIDE_READER && aides.n_idle < AIDES_IDLE_MAX) {
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
void proc_aide_leave(struct proc_aide *a, struct proc_aides_target *target, uint64_t waited_ns)
{
	struct proc_status status;

	if (proc_status_read(target->pid, &status, NULL) == 0 &&
	    !proc_aide_account_has_ids(target->pid))
		target->uid = status.uid;
	(void)syscall(SYS_pidfd_send_signal, a->pidfd, SIGKILL, NULL, 0);
	(void)pthread_mutex_lock(&aides.lock);
	aides.n_aides--;
	aides.unanswered++;
	proc_aide_budget_waited(&aides.budget, target->uid, waited_ns);
	proc_aide_budget_lost_take(&aides.budget, target, TAKE_FD(a->pidfd));
	(void)pthread_mutex_unlock(&aides.lock);
	aide_free(a);
}

/* How long to wait for its answers. The kernel knows it from the last time, mostly. */
int proc_aide_set_patience(struct proc_aide *a, uint64_t ns)
{
	const struct timeval patience = {
		.tv_sec = (time_t)(ns / NS_PER_SEC),
		.tv_usec = (suseconds_t)(ns % NS_PER_SEC / 1000),
	};

	if (a->patience_ns == ns)
		return 0;
	if (setsockopt(a->sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
		return -errno;
	a->patience_ns = ns;
	return 0;
}

/* Whether it waits for a CPU, or uses one: then it is not the target that makes us wait. */
static bool aide_is_starved(const struct proc_aide *a)
{
	pid_t pid = atomic_load(&a->shared->pid);
	struct proc_status status;

	return !pid || (proc_status_read(pid, &status, NULL) == 0 && status.state == 'R');
}

static int aide_receive(struct proc_aide *a, struct proc_aide_answer *ret_answer, int *ret_fd)
{
	int n = -EAGAIN;

	for (int i = 0; i < AIDES_STARVED_PATIENCE && n == -EAGAIN; i++) {
		n = proc_aide_receive(a->sock, ret_answer, sizeof(*ret_answer), ret_fd);
		if (n == -EAGAIN && !aide_is_starved(a))
			break;
	}
	return n;
}

void proc_aide_count(struct proc_aide *a, const struct proc_aide_answer *answer)
{
	aides.cpu_ns += answer->cpu_ns - a->cpu_ns;
	a->cpu_ns = answer->cpu_ns;
}

/* The answer to what is in the shared memory; on failure the aide is gone. */
int proc_aide_ask(struct proc_aide *a, struct proc_aides_target *target,
		  const struct proc_aide_request *request, int fd,
		  struct proc_aide_answer *ret_answer, int *ret_fd)
{
	int n = 0;

	if (proc_aide_set_patience(a, patience_ns) == 0 &&
	    proc_aide_send(a->sock, request, sizeof(*request), fd) == sizeof(*request))
		n = aide_receive(a, ret_answer, ret_fd);
	if (n != sizeof(*ret_answer) || ret_answer->code > 0) {
		proc_aide_leave(a, target, patience_ns);
		return n == -EAGAIN ? -ETIMEDOUT : -EAGAIN;
	}
	proc_aide_count(a, ret_answer);
	return 0;
}

bool proc_aide_refuses(pid_t pid)
{
	struct proc_aides_target target = {.pid = pid};
	bool refused, has_debtor;

	(void)pthread_mutex_lock(&aides.lock);
	refused = proc_aide_budget_is_stuck(&aides.budget, pid);
	has_debtor = !refused && proc_aide_budget_has_debtor(&aides.budget);
	(void)pthread_mutex_unlock(&aides.lock);
	if (!has_debtor || proc_aides_find(pid, &target) < 0)
		return refused;
	(void)pthread_mutex_lock(&aides.lock);
	refused = !proc_aide_budget_allows(&aides.budget, &target);
	(void)pthread_mutex_unlock(&aides.lock);
	return refused;
}

void proc_aide_note_stuck(pid_t pid)
{
	struct proc_status status;

	if (proc_status_read(pid, &status, NULL) < 0)
		return;
	(void)pthread_mutex_lock(&aides.lock);
	proc_aide_budget_stuck(&aides.budget, pid, status.switches);
	(void)pthread_mutex_unlock(&aides.lock);
}

void proc_aide_charge(uid_t uid, uint64_t ns)
{
	(void)pthread_mutex_lock(&aides.lock);
	proc_aide_budget_waited(&aides.budget, uid, ns);
	(void)pthread_mutex_unlock(&aides.lock);
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

int proc_aides_start(bool can_write, struct err *err)
{
	int socks[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks) < 0)
		return err_set(err, -errno, "cannot make a socket: %s", strerror(errno));
	pid = fork();
	if (pid == 0) {
		int own = keep_only(socks[1]);

		if (own >= 0)
			spawner_run(own, can_write);
		_exit(1);
	}
	close(socks[1]);
	if (pid < 0) {
		int r = -errno;

		close(socks[0]);
		return err_set(err, r, "cannot start a process: %s", strerror(-r));
	}
	io_set_path_reader(proc_aide_read_path);
	aides.spawner = socks[0];
	aides.on = true;
	return 0;
}

void proc_aides_stop(void)
{
	struct proc_aide *next;

	io_set_path_reader(NULL);
	aides.on = false;
	for (struct proc_aide *a = aides.idle; a; a = next) {
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
