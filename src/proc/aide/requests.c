/* src/proc/aide/requests.c: what aides are asked for; see aides.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "proc/aide/account.h"
#include "proc/aide/aide.h"
#include "proc/mem_write.h"
#include "proc/status.h"

_Static_assert(PROC_AIDES_READ_MAX == PROC_AIDE_DATA_BYTES, "one reading fits");

/* No user has these numbers: nobody's; of namespaces whose owner cannot be asked for. */
#define REQUESTS_NOBODY ((uid_t)-2)
#define REQUESTS_STRANGER ((uid_t)-3)
/* Of one process's stat among many: twice as long, and its reader hangs. */
#define REQUESTS_STAT_NS (50 * NS_PER_MS)
#define REQUESTS_STAT_STARVED (10 * NS_PER_SEC / REQUESTS_STAT_NS)
#define REQUESTS_FDS_MAX 65536

/* For whom an aide has opened a file, by descriptor: the pid, then the user. */
static _Atomic uint64_t opened_for_by_fd[REQUESTS_FDS_MAX];

static struct proc_aide_request request_for(enum proc_aide_op op,
					    const struct proc_aides_target *target)
{
	return (struct proc_aide_request){.op = op, .pid = target->pid};
}

/* Whom to charge is not known before: all of these share what they cost. */
static int target_find_owner(struct proc_aides_target *target)
{
	struct proc_aides_target stranger = {.pid = target->pid, .uid = REQUESTS_STRANGER};
	const struct proc_aide_request request = request_for(PROC_AIDE_ACCOUNT, target);
	struct proc_aide_answer answer = {};
	struct proc_aide *a;
	int r = proc_aide_take(&stranger, &a);

	if (r == 0)
		r = proc_aide_ask(a, &stranger, &request, -1, &answer, NULL);
	if (r < 0)
		return r;
	proc_aide_give_back(a, &stranger, &answer);
	if (answer.code == 0)
		target->uid = (uid_t)answer.bytes;
	return 0;
}

int proc_aides_find(pid_t pid, struct proc_aides_target *ret_target)
{
	struct proc_aides_target target = {.pid = pid};
	struct proc_status status;
	int r = proc_status_read(pid, &status, NULL);

	if (r < 0)
		return r;
	target.uid = status.uid;
	if (proc_aides_are_on() && proc_aide_account_has_ids(pid))
		r = target_find_owner(&target);
	if (r < 0)
		return r;
	*ret_target = target;
	return 0;
}

ssize_t proc_aides_readv(struct proc_aides_target *target, int mem_fd, const struct iovec *local,
			 const struct iovec *remote, size_t n)
{
	struct proc_aide_request request = request_for(PROC_AIDE_READ, target);
	struct proc_aide_answer answer;
	size_t at = 0;
	struct proc_aide *a;
	int r = proc_aide_take(target, &a);

	if (r < 0)
		return r;
	request.n_ranges = (uint32_t)MIN(n, PROC_AIDE_RANGES_MAX);
	for (size_t i = 0; i < request.n_ranges; i++) {
		a->shared->ranges[i].addr = (uintptr_t)remote[i].iov_base;
		a->shared->ranges[i].len = remote[i].iov_len;
	}
	r = proc_aide_ask(a, target, &request, mem_fd, &answer, NULL);
	if (r < 0)
		return r;
	/* It may have gone astray. */
	answer.bytes = MIN(answer.bytes, PROC_AIDE_DATA_BYTES);
	for (size_t i = 0; i < request.n_ranges && at < answer.bytes; i++) {
		size_t len = MIN(local[i].iov_len, answer.bytes - at);

		memcpy(local[i].iov_base, a->shared->data + at, len);
		at += len;
	}
	proc_aide_give_back(a, target, &answer);
	if (answer.gone)
		return -ESRCH;
	return answer.code < 0 ? answer.code : (ssize_t)at;
}

ssize_t proc_aides_pread(struct proc_aides_target *target, int fd, void *dst, size_t len,
			 uint64_t off)
{
	struct proc_aide_request request = request_for(PROC_AIDE_PREAD, target);
	struct proc_aide_answer answer;
	struct proc_aide *a;
	int r = proc_aide_take(target, &a);

	if (r < 0)
		return r;
	len = MIN(len, PROC_AIDE_DATA_BYTES);
	a->shared->ranges[0].addr = off;
	a->shared->ranges[0].len = len;
	r = proc_aide_ask(a, target, &request, fd, &answer, NULL);
	if (r < 0)
		return r;
	if (answer.code == 0) {
		answer.bytes = MIN(answer.bytes, len);
		memcpy(dst, a->shared->data, answer.bytes);
	}
	proc_aide_give_back(a, target, &answer);
	return answer.code < 0 ? answer.code : (ssize_t)answer.bytes;
}

int proc_aides_write(struct proc_aides_target *target, int mem_fd, uint64_t addr, const void *old,
		     const void *src, size_t len)
{
	const struct proc_aide_request request = request_for(PROC_AIDE_WRITE, target);
	struct proc_aide_answer answer;
	struct proc_aide *a;
	int r;

	if (len > PROC_MEM_WRITE_MAX)
		return -EINVAL;
	r = proc_aide_take_writer(target, &a);
	if (r < 0)
		return r;
	a->shared->ranges[0].addr = addr;
	a->shared->ranges[0].len = len;
	memcpy(a->shared->data, old, len);
	memcpy(a->shared->data + len, src, len);
	r = proc_aide_ask(a, target, &request, mem_fd, &answer, NULL);
	if (r < 0)
		return r;
	proc_aide_give_back(a, target, &answer);
	return answer.code;
}

/* Appends the contents, wherever they are. */
static int contents_take(const struct proc_aide *a, const struct proc_aide_answer *answer, int fd,
			 struct buf *text)
{
	if (fd < 0)
		return buf_append(text, a->shared->data, MIN(answer->bytes, PROC_AIDE_DATA_BYTES));
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	return io_read_all(fd, text);
}

static int aides_read_text(enum proc_aide_op op, pid_t pid, const char *name, struct buf *text,
			   struct proc_aide_answer *ret_answer)
{
	_cleanup_close_ int fd = -1;
	struct proc_aide_request request;
	struct proc_aides_target target;
	struct proc_aide *a;
	int r = strlen(name) < PROC_AIDE_TEXT_BYTES ? 0 : -ENAMETOOLONG;

	if (r == 0)
		r = proc_aides_find(pid, &target);
	if (r == 0)
		r = proc_aide_take(&target, &a);
	if (r < 0)
		return r;
	request = request_for(op, &target);
	request.max = (text->max ? text->max : BUF_DEFAULT_MAX) - text->len;
	memcpy(a->shared->text, name, strlen(name) + 1);
	r = proc_aide_ask(a, &target, &request, -1, ret_answer, &fd);
	if (r < 0)
		return r;
	if (ret_answer->code == 0 || (ret_answer->code == -E2BIG && op == PROC_AIDE_PROC_FILE))
		r = contents_take(a, ret_answer, fd, text);
	proc_aide_give_back(a, &target, ret_answer);
	return r < 0 ? r : ret_answer->code;
}

static void proc_path(pid_t pid, const char *name, char *dst, size_t cap)
{
	(void)snprintf(dst, cap, "/proc/%d/%s", (int)pid, name);
}

int proc_aides_read(pid_t pid, const char *name, struct buf *text)
{
	struct proc_aide_answer answer;
	char path[96];

	if (proc_aides_are_on())
		return aides_read_text(PROC_AIDE_PROC_FILE, pid, name, text, &answer);
	proc_path(pid, name, path, sizeof(path));
	return io_read_file(AT_FDCWD, path, text, NULL);
}

int proc_aides_read_link(pid_t pid, const char *name, struct buf *text)
{
	char path[96], link[PATH_MAX];
	struct proc_aide_answer answer;
	ssize_t n;

	if (proc_aides_are_on())
		return aides_read_text(PROC_AIDE_PROC_LINK, pid, name, text, &answer);
	proc_path(pid, name, path, sizeof(path));
	n = readlink(path, link, sizeof(link));
	return n < 0 ? -errno : buf_append(text, link, (size_t)n);
}

int proc_aides_read_public(pid_t pid, const char *path, struct buf *text, int64_t *ret_modified_ns)
{
	struct proc_aide_answer answer;
	int r = aides_read_text(PROC_AIDE_READ_PUBLIC, pid, path, text, &answer);

	if (r == 0)
		*ret_modified_ns = answer.modified_ns;
	return r;
}

/* Asks for a descriptor, with the texts in place. */
static int aide_open(struct proc_aide *a, struct proc_aides_target *target,
		     const struct proc_aide_request *request, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	struct proc_aide_answer answer;
	int r = proc_aide_ask(a, target, request, -1, &answer, &fd);

	if (r < 0)
		return r;
	proc_aide_give_back(a, target, &answer);
	if (answer.code < 0)
		return answer.code;
	if (fd < 0)
		return -EMFILE; /* received, but there was no room for it */
	if (fd < REQUESTS_FDS_MAX)
		opened_for_by_fd[fd] = (uint64_t)target->pid << 32 | target->uid;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int proc_aides_open(pid_t pid, const char *name, int flags, int *ret_fd)
{
	struct proc_aide_request request;
	struct proc_aides_target target;
	char path[96];
	struct proc_aide *a;
	int r;

	if (!proc_aides_are_on()) {
		proc_path(pid, name, path, sizeof(path));
		r = open(path, flags | O_CLOEXEC);
		if (r < 0)
			return -errno;
		*ret_fd = r;
		return 0;
	}
	r = proc_aides_find(pid, &target);
	if (r == 0)
		r = proc_aide_take(&target, &a);
	if (r < 0)
		return r;
	request = request_for(PROC_AIDE_PROC_OPEN, &target);
	request.flags = (uint32_t)flags;
	(void)snprintf(a->shared->text, sizeof(a->shared->text), "%s", name);
	return aide_open(a, &target, &request, ret_fd);
}

/* -EAGAIN if it sleeps over one of them. */
static int stats_receive(const struct proc_aide *a, struct proc_aide_answer *ret_answer)
{
	uint32_t before = UINT32_MAX;
	int n;

	for (uint64_t starved = 0; starved < REQUESTS_STAT_STARVED; starved++) {
		pid_t pid = atomic_load(&a->shared->pid);
		uint32_t at = atomic_load(&a->shared->at);
		struct proc_status status;

		n = proc_aide_receive(a->sock, ret_answer, sizeof(*ret_answer), NULL);
		if (n != -EAGAIN)
			return n;
		if (at == before && pid && proc_status_read(pid, &status, NULL) == 0 &&
		    status.state == 'D')
			break;
		if (at != before)
			starved = 0;
		before = at;
	}
	return -EAGAIN;
}

/* Takes what it has read so far. Sleeping is charged to the users of those it slept for. */
static void stats_take(const struct proc_aide *a, const pid_t *pids, size_t n,
		       struct proc_stat_reading *readings)
{
	const struct proc_aide_stat *stats = (const void *)a->shared->data;
	struct proc_aides_target target;

	for (size_t i = 0; i < n; i++) {
		readings[i] = stats[i].reading;
		if (!stats[i].asleep_ns || proc_aides_find(pids[i], &target) < 0)
			continue;
		proc_aide_charge(target.uid, stats[i].asleep_ns);
	}
}

/* Up to the first that hangs, and that one. Returns how many. */
static size_t stats_ask(struct proc_aide *a, const pid_t *pids, size_t n,
			struct proc_stat_reading *readings)
{
	const struct proc_aide_request request = {.op = PROC_AIDE_STATS, .n_ranges = (uint32_t)n};
	struct proc_aides_target target = {.uid = REQUESTS_STRANGER};
	struct proc_aide_answer answer = {};
	size_t at;
	int r = 0;

	for (size_t i = 0; i < n; i++)
		a->shared->ranges[i].addr = (uint64_t)pids[i];
	atomic_store(&a->shared->at, 0);
	if (proc_aide_set_patience(a, REQUESTS_STAT_NS) == 0 &&
	    proc_aide_send(a->sock, &request, sizeof(request), -1) == sizeof(request))
		r = stats_receive(a, &answer);
	if (r == sizeof(answer) && answer.code == 0) {
		proc_aide_count(a, &answer);
		stats_take(a, pids, n, readings);
		proc_aide_give_back(a, NULL, &answer);
		return n;
	}
	at = MIN(atomic_load(&a->shared->at), n - 1);
	stats_take(a, pids, at, readings);
	readings[at] = (struct proc_stat_reading){.code = r == -EAGAIN ? -ETIMEDOUT : -EAGAIN};
	if (r == -EAGAIN)
		proc_aide_note_stuck(pids[at]);
	target.pid = pids[at];
	proc_aide_leave(a, &target, 2 * REQUESTS_STAT_NS);
	return at + 1;
}

void proc_aides_read_stats(const pid_t *pids, size_t n, struct proc_stat_reading *readings)
{
	struct proc_aide *a;

	for (size_t at = 0; at < n;) {
		size_t some = 0, max = MIN(n - at, PROC_AIDE_RANGES_MAX);

		while (some < max && !proc_aide_refuses(pids[at + some]))
			some++;
		if (some == 0)
			readings[at++].code = -EBUSY;
		else if (proc_aide_take(NULL, &a) == 0)
			at += stats_ask(a, pids + at, some, readings + at);
		else
			while (some--)
				readings[at++].code = -EAGAIN;
	}
}

int proc_aides_open_mapped(struct proc_aides_target *target, const struct proc_map *map,
			   int *ret_fd)
{
	struct proc_aide_request request = request_for(PROC_AIDE_OPEN_MAPPED, target);
	struct proc_aide *a;
	int r;

	if (strlen(map->path) >= PROC_AIDE_TEXT_BYTES)
		return -ENAMETOOLONG;
	r = proc_aide_take(target, &a);
	if (r < 0)
		return r;
	request.start = map->start;
	request.end = map->end;
	request.dev = map->dev;
	request.inode = map->inode;
	request.flags = map->flags;
	memcpy(a->shared->text, map->path, strlen(map->path) + 1);
	return aide_open(a, target, &request, ret_fd);
}

int proc_aides_open_named(struct proc_aides_target *target, const char *dir, const char *name,
			  int *ret_fd)
{
	const struct proc_aide_request request = request_for(PROC_AIDE_OPEN_NAMED, target);
	size_t n = strlen(dir) + 1;
	struct proc_aide *a;
	int r;

	if (n + strlen(name) >= PROC_AIDE_TEXT_BYTES)
		return -ENAMETOOLONG;
	r = proc_aide_take(target, &a);
	if (r < 0)
		return r;
	memcpy(a->shared->text, dir, n);
	memcpy(a->shared->text + n, name, strlen(name) + 1);
	return aide_open(a, target, &request, ret_fd);
}

ssize_t proc_aide_read_path(int fd, void *dst, size_t len, uint64_t off)
{
	uint64_t opened_for = fd < REQUESTS_FDS_MAX ? opened_for_by_fd[fd] : REQUESTS_NOBODY;
	struct proc_aides_target owner = {.pid = (pid_t)(opened_for >> 32),
					  .uid = (uid_t)opened_for};

	return proc_aides_pread(&owner, fd, dst, len, off);
}
