/*
 * src/proc/mem_live.c: the memory of a running process (see mem.h).
 *
 * Bulk reads use process_vm_readv. It takes 1024 ranges at a time but finds the process by pid, so
 * it would also read a program that came after an exec. The descriptor of /proc/PID/mem is bound to
 * the address space at open: once that is gone, pread on it returns 0 bytes, and EIO only means
 * that nothing is mapped at the address. Both need the same permission (ptrace(2),
 * PTRACE_MODE_ATTACH); neither stops the target.
 *
 * If a read must never wait, each range is a pread of its own. For the descriptor, the kernel
 * resolves a page without sleeping for a user-space fault handler, so it fails at once;
 * process_vm_readv would sleep. No call takes many ranges of a descriptor: preadv has a single file
 * offset, and callers already merge neighbours. This costs up to 50% more.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/io.h"
#include "proc/access.h"
#include "proc/aide/aides.h"
#include "proc/file.h"
#include "proc/id.h"
#include "proc/mem_source.h"
#include "proc/mem_write.h"
#include "proc/stat.h"

#define LIVE_IOV_MAX 1024
/* Per call: the kernel holds the target's mmap lock for each batch of pages. */
#define LIVE_BYTES_MAX ((size_t)32 << 20)

struct mem_live {
	struct proc_mem mem;
	struct proc_id id;
	struct proc_aides_target target; /* with aides */
	int fd;				 /* /proc/PID/mem */
	bool no_vm_readv; /* denied (seccomp, an old kernel) or unwanted: use fd for everything */
};

static struct mem_live *live_of(struct proc_mem *mem)
{
	return (struct mem_live *)mem;
}

/* Address 0 is never mapped, so this touches no page of the target. */
static bool live_same_space(const struct mem_live *l)
{
	struct proc_aides_target target = l->target;
	char byte;
	ssize_t n;

	if (proc_aides_are_on())
		return proc_aides_pread(&target, l->fd, &byte, 1, 0) != 0;
	do
		n = pread(l->fd, &byte, 1, 0);
	while (n < 0 && errno == EINTR);
	return n != 0;
}

static int live_gone(const struct mem_live *l, struct err *err)
{
	if (!proc_id_gone(&l->id))
		return err_set(err, -ESRCH, "%s has executed another program", l->mem.who);
	return err_set(err, -ESRCH, "%s has exited", l->mem.who);
}

static bool is_no_answer(ssize_t code)
{
	return code == -ETIMEDOUT || code == -EBUSY || code == -EAGAIN;
}

/*
 * Reads the prefix through the bound descriptor: 0 for a bad address, -ESRCH if the space is gone.
 */
static ssize_t live_pread(struct mem_live *l, uint64_t addr, void *dst, size_t len)
{
	ssize_t n = -EIO;

	/* Addresses above 2^63 are negative offsets to pread: kernel space, never readable. */
	if (addr <= INT64_MAX && proc_aides_are_on()) {
		n = proc_aides_pread(&l->target, l->fd, dst, len, addr);
		l->mem.stats.syscalls++;
		l->mem.stats.bytes += n > 0 ? (uint64_t)n : 0;
	} else if (addr <= INT64_MAX) {
		n = proc_mem_pread(&l->mem, l->fd, dst, len, addr);
	}
	if (n > 0 || is_no_answer(n))
		return n;
	return n == 0 && len > 0 ? -ESRCH : 0;
}

/* Bytes or -errno, by an aide or by ourselves. */
static ssize_t live_readv_once(struct mem_live *l, struct iovec *local, struct iovec *remote,
			       size_t n)
{
	ssize_t got;

	l->mem.stats.syscalls++;
	if (proc_aides_are_on())
		return proc_aides_readv(&l->target, l->fd, local, remote, n);
	do
		got = process_vm_readv(l->id.pid, local, n, remote, n, 0);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

/*
 * One process_vm_readv. Returns the bytes read, 0 if the first address is bad, -ESRCH if the
 * process has exited, -ENOSYS if the call itself is denied while the address space is readable.
 */
static ssize_t live_vm_readv(struct mem_live *l, struct iovec *local, struct iovec *remote,
			     size_t n)
{
	ssize_t got = live_readv_once(l, local, remote, n);

	if (got >= 0) {
		l->mem.stats.bytes += (uint64_t)got;
		return got;
	}
	if (is_no_answer(got))
		return got;
	l->mem.stats.syscalls++;
	if (got == -ESRCH || !live_same_space(l))
		return -ESRCH;
	l->no_vm_readv = got == -EPERM || got == -ENOSYS;
	return got == -EFAULT ? 0 : -ENOSYS;
}

static size_t live_bytes_max(void)
{
	return proc_aides_are_on() ? PROC_AIDES_READ_MAX : LIVE_BYTES_MAX;
}

static ssize_t live_read_some(struct proc_mem *mem, uint64_t addr, void *dst, size_t len)
{
	struct mem_live *l = live_of(mem);

	len = MIN(len, live_bytes_max());
	if (!l->no_vm_readv) {
		struct iovec local = {.iov_base = dst, .iov_len = len};
		struct iovec remote = {.iov_base = (void *)(uintptr_t)addr, .iov_len = len};
		ssize_t n = live_vm_readv(l, &local, &remote, 1);

		if (n != -ENOSYS)
			return n;
	}
	return live_pread(l, addr, dst, len);
}

static int live_explain(struct proc_mem *mem, uint64_t addr, int code, struct err *err)
{
	if (code == -ESRCH)
		return live_gone(live_of(mem), err);
	if (code == -EAGAIN)
		return err_lack(err, -ETIMEDOUT, ERR_CAUSE_NO_ANSWER, "",
				"cannot read the memory of %s: no helper process starts", mem->who);
	if (is_no_answer(code))
		return err_lack(err, -ETIMEDOUT, ERR_CAUSE_NO_ANSWER, "",
				"%s is not responding: reading its memory hangs", mem->who);
	return proc_mem_bad_address(mem, addr, err);
}

/* Progress of a batched read: complete ranges, and bytes of the next one. */
struct live_cursor {
	const struct proc_range *ranges;
	size_t n;
	size_t at;
	size_t skip;
};

static size_t live_fill(const struct live_cursor *c, struct iovec *local, struct iovec *remote)
{
	size_t skip = c->skip, room = live_bytes_max(), n = 0;

	for (size_t i = c->at; i < c->n && n < LIVE_IOV_MAX && room; i++, skip = 0) {
		const struct proc_range *r = &c->ranges[i];
		size_t len = MIN(r->len - skip, room);

		if (len == 0)
			continue;
		local[n] = (struct iovec){.iov_base = (char *)r->dst + skip, .iov_len = len};
		remote[n] = (struct iovec){.iov_base = (void *)(uintptr_t)(r->addr + skip),
					   .iov_len = len};
		room -= len;
		n++;
	}
	return n;
}

static void live_advance(struct live_cursor *c, size_t got)
{
	while (c->at < c->n && got >= c->ranges[c->at].len - c->skip) {
		got -= c->ranges[c->at].len - c->skip;
		c->skip = 0;
		c->at++;
	}
	c->skip += got;
}

static int live_readv(struct proc_mem *mem, const struct proc_range *ranges, size_t n,
		      struct err *err)
{
	struct live_cursor c = {.ranges = ranges, .n = n};
	struct iovec local[LIVE_IOV_MAX], remote[LIVE_IOV_MAX];
	struct mem_live *l = live_of(mem);

	for (;;) {
		size_t iovs = live_fill(&c, local, remote);
		ssize_t got = -ENOSYS;
		uint64_t addr;

		if (iovs == 0)
			return 0;
		addr = (uintptr_t)remote[0].iov_base;
		if (!l->no_vm_readv)
			got = live_vm_readv(l, local, remote, iovs);
		if (got == -ENOSYS)
			got = live_pread(l, addr, local[0].iov_base, local[0].iov_len);
		/* A short count alone means nothing; the next call says why it was short. */
		if (got <= 0)
			return live_explain(mem, addr, (int)got, err);
		live_advance(&c, (size_t)got);
	}
}

static int live_check(struct proc_mem *mem, uint64_t addr, void *dst, size_t len, struct err *err)
{
	struct mem_live *l = live_of(mem);
	size_t done = 0;

	if (len == 0) {
		mem->stats.syscalls++;
		return live_same_space(l) ? 0 : live_gone(l, err);
	}
	while (done < len) {
		ssize_t n = live_pread(l, addr + done, (char *)dst + done, len - done);

		if (n <= 0)
			return live_explain(mem, addr + done, (int)n, err);
		done += (size_t)n;
	}
	return 0;
}

static int live_explain_write(struct mem_live *l, uint64_t addr, int code, struct err *err)
{
	const char *who = l->mem.who;

	switch (code) {
	case 0:
		return 0;
	case -EACCES:
		/* We do read it: writing takes another right. */
		return err_lack(err, -EPERM, ERR_CAUSE_DENIED,
				"run as root, or with CAP_SYS_PTRACE and CAP_DAC_OVERRIDE",
				"not enough permissions to write to %s: sonde lacks "
				"CAP_DAC_OVERRIDE",
				who);
	case -EPERM:
		return proc_access_denied(l->id.pid, who, err);
	case -ESRCH:
		return live_gone(l, err);
	case -ESTALE:
		return err_set(err, code, "%s has itself changed what is at address 0x%" PRIx64,
			       who, addr);
	default:
		break;
	}
	if (is_no_answer(code))
		return err_lack(err, -ETIMEDOUT, ERR_CAUSE_NO_ANSWER, "",
				"%s is not responding: writing to its memory hangs", who);
	return err_set(err, -EFAULT, "%s: cannot write at address 0x%" PRIx64, who, addr);
}

static int live_replace(struct proc_mem *mem, uint64_t addr, const void *old, const void *src,
			size_t len, struct err *err)
{
	const struct proc_map *map = proc_maps_find(&mem->maps, addr);
	struct mem_live *l = live_of(mem);
	int r;

	/* Through /proc/PID/mem the kernel would write to read-only pages too. */
	if (!map || !(map->flags & PROC_MAP_WRITE) || len > map->end - addr)
		return err_set(err, -EFAULT, "%s: nothing writable at address 0x%" PRIx64, mem->who,
			       addr);
	mem->stats.syscalls++;
	if (proc_aides_are_on())
		r = proc_aides_write(&l->target, l->fd, addr, old, src, len);
	else
		r = proc_mem_write_at(l->id.pid, l->fd, addr, old, src, len);
	return live_explain_write(l, addr, r, err);
}

static int live_refresh_maps(struct proc_mem *mem, struct err *err)
{
	_cleanup_(proc_maps_release) struct proc_maps maps = {0};
	struct mem_live *l = live_of(mem);
	struct proc_maps old;
	int r = proc_maps_read(l->id.pid, &maps, err);

	/* The maps file was opened by pid: it is ours only if our address space still exists. */
	mem->stats.syscalls++;
	if (!live_same_space(l))
		return live_gone(l, err);
	if (r < 0)
		return r;
	old = mem->maps;
	mem->maps = maps;
	maps = old;
	return 0;
}

static int live_open_file(const struct proc_mem *mem, const struct proc_map *map, int *ret_fd,
			  struct err *err)
{
	const struct mem_live *l = (const struct mem_live *)mem;
	_cleanup_close_ int fd = -1;
	int r = proc_file_open_mapped(l->id.pid, map, &fd, err);

	if (!live_same_space(l))
		return live_gone(l, err);
	if (r < 0)
		return r;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static void live_close(struct proc_mem *mem)
{
	struct mem_live *l = live_of(mem);

	closep(&l->fd);
	free(l);
}

static const struct proc_mem_ops live_ops = {
	.read_some = live_read_some,
	.readv = live_readv,
	.explain = live_explain,
	.check = live_check,
	.replace = live_replace,
	.refresh_maps = live_refresh_maps,
	.open_file = live_open_file,
	.close = live_close,
};

void proc_mem_never_wait(struct proc_mem *mem)
{
	/* An aide may wait: it can be left behind. */
	if (mem->ops == &live_ops && !proc_aides_are_on())
		live_of(mem)->no_vm_readv = true;
}

static void live_read_auxv(struct mem_live *l)
{
	_cleanup_(buf_release) struct buf bytes = buf_with_max(16 << 10);

	if (proc_aides_read(l->id.pid, "auxv", &bytes) == 0)
		proc_mem_set_auxv(&l->mem, buf_view(&bytes));
}

static int live_silent(const struct mem_live *l, struct err *err)
{
	return err_lack(err, -ETIMEDOUT, ERR_CAUSE_NO_ANSWER, "", "%s is not responding",
			l->mem.who);
}

static int live_bind(struct mem_live *l, bool is_bare, struct err *err)
{
	int r = proc_aides_open(l->id.pid, "mem", O_RDONLY, &l->fd);

	if (r == -EACCES || r == -EPERM)
		return proc_access_denied(l->id.pid, l->mem.who, err);
	if (r == -ENOENT || r == -ESRCH)
		return err_set(err, -ESRCH, "%s has exited", l->mem.who);
	if (is_no_answer(r))
		return live_silent(l, err);
	if (r < 0)
		return err_set(err, r, "cannot open /proc/%d/mem: %s", (int)l->id.pid,
			       strerror(-r));
	if (!is_bare) {
		live_read_auxv(l);
		/*
		 * Also verifies that the auxiliary vector, read by pid, belongs to the descriptor.
		 */
		r = live_refresh_maps(&l->mem, err);
	}
	if (r < 0)
		return r;
	/* The pid could have been reused before the descriptor was opened. */
	r = proc_id_check(&l->id, NULL);
	if (r == -ETIMEDOUT)
		return live_silent(l, err);
	return r < 0 ? err_set(err, -ESRCH, "%s has exited", l->mem.who) : 0;
}

static int live_open(pid_t pid, bool is_bare, struct proc_mem **ret_mem, struct err *err)
{
	struct proc_mem *mem;
	struct proc_stat st;
	struct mem_live *l;
	int r = proc_stat_read_alive(pid, &st, err);

	if (r < 0)
		return r;
	if (st.kernel_thread)
		return err_lack(err, -ENOTSUP, ERR_CAUSE_KERNEL_THREAD, "",
				"process %d (%s) is a kernel thread: it has no memory", (int)pid,
				st.comm);
	l = calloc(1, sizeof(*l));
	if (!l)
		return err_oom(err);
	mem = &l->mem;
	mem->ops = &live_ops;
	mem->pid = pid;
	mem->machine = proc_mem_own_machine();
	(void)snprintf(mem->who, sizeof(mem->who), "process %d (%s)", (int)pid, st.comm);
	l->id = (struct proc_id){.pid = pid, .start_ticks = st.start_ticks};
	l->fd = -1;
	l->no_vm_readv = is_bare && !proc_aides_are_on();
	r = proc_aides_are_on() ? proc_aides_find(pid, &l->target) : 0;
	if (is_no_answer(r))
		r = live_silent(l, err);
	else if (r < 0)
		r = err_set(err, -ESRCH, "%s has exited", mem->who);
	else
		r = live_bind(l, is_bare, err);
	if (r < 0) {
		proc_mem_close(mem);
		return r;
	}
	*ret_mem = mem;
	return 0;
}

int proc_mem_open(pid_t pid, struct proc_mem **ret_mem, struct err *err)
{
	return live_open(pid, false, ret_mem, err);
}

int proc_mem_open_bare(pid_t pid, struct proc_mem **ret_mem, struct err *err)
{
	return live_open(pid, true, ret_mem, err);
}
