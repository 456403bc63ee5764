/*
 * src/proc/aide/serve.c: see serve.h. Single-threaded, and any call here may hang: that is what an
 * aide is for. It trusts sonde, and nothing that belongs to the target.
 */
#include "proc/aide/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "proc/aide/account.h"
#include "proc/aide/foreign.h"
#include "proc/file.h"
#include "proc/mem_write.h"
#include "proc/named.h"
#include "proc/public.h"

#define SERVE_SLOW_NS (20 * NS_PER_MS)

struct serve {
	const struct proc_aide_request *request;
	struct proc_aide_shared *shared;
	int fd; /* of the request; -1: none */
	struct proc_aide_answer answer;
	int answer_fd; /* -1: none */
	uint64_t *queued_ns;
};

static int serve_read(struct serve *s)
{
	struct iovec local[PROC_AIDE_RANGES_MAX], remote[PROC_AIDE_RANGES_MAX];
	size_t n = MIN(s->request->n_ranges, PROC_AIDE_RANGES_MAX), at = 0;
	ssize_t got;
	char byte;

	for (size_t i = 0; i < n; i++) {
		uint64_t len = s->shared->ranges[i].len;

		if (len > PROC_AIDE_DATA_BYTES - at)
			return -EINVAL;
		local[i] = (struct iovec){.iov_base = s->shared->data + at, .iov_len = len};
		remote[i] = (struct iovec){.iov_base = (void *)(uintptr_t)s->shared->ranges[i].addr,
					   .iov_len = len};
		at += len;
	}
	got = process_vm_readv(s->request->pid, local, n, remote, n, 0);
	if (got >= 0)
		s->answer.bytes = (uint64_t)got;
	else
		s->answer.code = -errno;
	/* By pid it could be the memory of a program that came later. */
	s->answer.gone = pread(s->fd, &byte, 1, 0) == 0;
	return s->answer.code;
}

/* Files of foreign file systems come as a mere path: opening them may hang, and closing, too. */
static int serve_pread(struct serve *s)
{
	size_t len = MIN(s->shared->ranges[0].len, PROC_AIDE_DATA_BYTES);
	_cleanup_close_ int opened = -1;
	int flags = fcntl(s->fd, F_GETFL);
	char link[64];
	ssize_t n;

	if (flags < 0)
		return -errno;
	if (flags & O_PATH) {
		(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", s->fd);
		opened = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (opened < 0)
			return -errno;
	}
	n = pread(flags & O_PATH ? opened : s->fd, s->shared->data, len,
		  (off_t)s->shared->ranges[0].addr);
	if (n < 0)
		return -errno;
	s->answer.bytes = (uint64_t)n;
	return 0;
}

/* Contents that do not fit into the shared memory go by a file in memory. */
static int serve_contents(struct serve *s, struct view contents)
{
	s->answer.bytes = contents.len;
	if (contents.len <= PROC_AIDE_DATA_BYTES) {
		memcpy(s->shared->data, contents.data, contents.len);
		return 0;
	}
	s->answer_fd = memfd_create("sonde-aide", MFD_CLOEXEC);
	return s->answer_fd < 0 ? -errno : io_write_full(s->answer_fd, contents.data, contents.len);
}

static void serve_path(const struct serve *s, char *dst, size_t cap)
{
	(void)snprintf(dst, cap, "/proc/%d/%s", (int)s->request->pid, s->shared->text);
}

static int serve_proc_file(struct serve *s)
{
	_cleanup_(buf_release) struct buf text = buf_with_max((size_t)s->request->max);
	char path[PROC_AIDE_TEXT_BYTES + 32];
	int r, told;

	serve_path(s, path, sizeof(path));
	r = io_read_file(AT_FDCWD, path, &text, NULL);
	/* What is longer than wanted is cut, and the caller told. */
	if (r < 0 && r != -E2BIG)
		return r;
	told = serve_contents(s, buf_view(&text));
	return told < 0 ? told : r;
}

static int serve_proc_link(struct serve *s)
{
	char path[PROC_AIDE_TEXT_BYTES + 32];
	ssize_t n;

	serve_path(s, path, sizeof(path));
	n = readlink(path, (char *)s->shared->data, MIN(s->request->max, PROC_AIDE_DATA_BYTES));
	if (n < 0)
		return -errno;
	s->answer.bytes = (uint64_t)n;
	return 0;
}

static int serve_proc_open(struct serve *s)
{
	char path[PROC_AIDE_TEXT_BYTES + 32];

	serve_path(s, path, sizeof(path));
	s->answer_fd = open(path, (int)s->request->flags | O_CLOEXEC);
	return s->answer_fd < 0 ? -errno : 0;
}

static int serve_account(struct serve *s)
{
	uid_t uid;
	int r = proc_aide_account(s->request->pid, &uid);

	s->answer.bytes = uid;
	return r;
}

/* Of a foreign file only the path is handed over. */
static int serve_file(struct serve *s, int path_fd)
{
	if (!proc_aide_is_foreign(path_fd, s->request->pid))
		return proc_file_reopen(path_fd, &s->answer_fd);
	s->answer_fd = fcntl(path_fd, F_DUPFD_CLOEXEC, 0);
	return s->answer_fd < 0 ? -errno : 0;
}

static int serve_open_mapped(struct serve *s)
{
	const struct proc_map map = {
		.start = s->request->start,
		.end = s->request->end,
		.dev = s->request->dev,
		.inode = s->request->inode,
		.flags = s->request->flags,
		.path = s->shared->text,
	};
	_cleanup_close_ int fd = -1;
	int r = proc_file_find_mapped(s->request->pid, &map, &fd);

	return r < 0 ? r : serve_file(s, fd);
}

static int serve_open_named(struct serve *s)
{
	const char *dir = s->shared->text, *name = dir + strlen(dir) + 1;
	_cleanup_close_ int fd = -1;
	int r = proc_named_find(s->request->pid, dir, name, &fd);

	return r < 0 ? r : serve_file(s, fd);
}

static int serve_read_public(struct serve *s)
{
	_cleanup_(buf_release) struct buf text = buf_with_max((size_t)s->request->max);
	int r = proc_public_read_here(s->request->pid, s->shared->text, &text,
				      &s->answer.modified_ns);

	return r < 0 ? r : serve_contents(s, buf_view(&text));
}

/* How long this process has waited for a CPU; 0 if the kernel does not count it. */
static uint64_t serve_queued_ns(void)
{
	_cleanup_(buf_release) struct buf text = buf_with_max(256);
	const char *blank, *s = NULL;

	/* Time on a CPU, then time waiting for one. */
	if (io_read_file(AT_FDCWD, "/proc/self/schedstat", &text, NULL) == 0)
		s = buf_cstr(&text);
	blank = s ? strchr(s, ' ') : NULL;
	return blank ? strtoull(blank, NULL, 10) : 0;
}

/* Of what took so long; queued_ns is kept from one time to the next. */
static uint64_t serve_asleep_ns(uint64_t took_ns, uint64_t cpu_ns, uint64_t *queued_ns)
{
	uint64_t before = *queued_ns, awake;

	if (took_ns < SERVE_SLOW_NS)
		return 0;
	*queued_ns = serve_queued_ns();
	awake = cpu_ns + (*queued_ns - before);
	return took_ns > awake ? took_ns - awake : 0;
}

/* What one takes is charged to its user. */
static int serve_stats(struct serve *s)
{
	struct proc_aide_stat *stats = (void *)s->shared->data;
	uint64_t began_ns = clock_mono_ns();

	if (s->request->n_ranges > PROC_AIDE_RANGES_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < s->request->n_ranges; i++) {
		const pid_t pid = (pid_t)s->shared->ranges[i].addr;
		uint64_t now_ns;

		atomic_store(&s->shared->at, i);
		proc_stat_read_many(&pid, 1, &stats[i].reading);
		now_ns = clock_mono_ns();
		stats[i].asleep_ns = serve_asleep_ns(now_ns - began_ns, 0, s->queued_ns);
		began_ns = now_ns;
	}
	return 0;
}

static int serve_write(struct serve *s)
{
	uint64_t len = s->shared->ranges[0].len;

	if (len > PROC_MEM_WRITE_MAX)
		return -EINVAL;
	return proc_mem_write_at(s->request->pid, s->fd, s->shared->ranges[0].addr, s->shared->data,
				 s->shared->data + len, len);
}

static const struct {
	int (*run)(struct serve *s);
} serve_ops[] = {
	[PROC_AIDE_READ] = {serve_read},
	[PROC_AIDE_PREAD] = {serve_pread},
	[PROC_AIDE_PROC_FILE] = {serve_proc_file},
	[PROC_AIDE_PROC_LINK] = {serve_proc_link},
	[PROC_AIDE_PROC_OPEN] = {serve_proc_open},
	[PROC_AIDE_STATS] = {serve_stats},
	[PROC_AIDE_ACCOUNT] = {serve_account},
	[PROC_AIDE_OPEN_MAPPED] = {serve_open_mapped},
	[PROC_AIDE_OPEN_NAMED] = {serve_open_named},
	[PROC_AIDE_READ_PUBLIC] = {serve_read_public},
	[PROC_AIDE_WRITE] = {serve_write},
};

static int serve_run(struct serve *s, enum proc_aide_kind kind)
{
	uint32_t op = s->request->op;

	if (op >= ARRAY_SIZE(serve_ops) || (op == PROC_AIDE_WRITE) != (kind == PROC_AIDE_WRITER))
		return -ENOSYS;
	return serve_ops[op].run(s);
}

void proc_aide_serve(int sock, enum proc_aide_kind kind, struct proc_aide_shared *shared)
{
	struct proc_aide_request request;
	uint64_t queued_ns = 0, used_ns = 0; /* CPU time as of the last answer */

	for (;;) {
		struct serve s = {.request = &request,
				  .shared = shared,
				  .answer_fd = -1,
				  .queued_ns = &queued_ns};
		uint64_t began_ns;

		if (proc_aide_receive(sock, &request, sizeof(request), &s.fd) != sizeof(request))
			return;
		began_ns = clock_mono_ns();
		s.answer.code = serve_run(&s, kind);
		s.answer.cpu_ns = clock_cpu_ns();
		s.answer.asleep_ns = serve_asleep_ns(clock_mono_ns() - began_ns,
						     s.answer.cpu_ns - used_ns, &queued_ns);
		used_ns = s.answer.cpu_ns;
		if (proc_aide_send(sock, &s.answer, sizeof(s.answer), s.answer_fd) < 0)
			return;
		closep(&s.fd);
		closep(&s.answer_fd);
	}
}
