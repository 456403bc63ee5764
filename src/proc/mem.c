/*
 * src/proc/mem.c: what all memory sources share (see mem.h): the dispatch, and files behind address
 * ranges. If a file is known, a live process is read last, because reading the file costs the
 * target nothing. A core is read first, because it has what the program changed.
 */
#include "proc/mem.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "proc/mem_source.h"
#include "proc/ranges.h"

/* Memory parts waiting for one batched read; a source takes 1024 per system call. */
#define MEM_PENDING_MAX 1024

struct mem_pending {
	struct proc_range ranges[MEM_PENDING_MAX];
	size_t n;
};

uint16_t proc_mem_own_machine(void)
{
#if defined(__x86_64__)
	return EM_X86_64;
#elif defined(__aarch64__)
	return EM_AARCH64;
#else
#error "sonde reads processes on amd64 and arm64"
#endif
}

void proc_mem_set_auxv(struct proc_mem *mem, struct view bytes)
{
	struct proc_mem_auxv pair;

	mem->n_auxv = 0;
	for (uint64_t at = 0; mem->n_auxv < PROC_MEM_AUXV_MAX; at += sizeof(pair)) {
		if (!view_copy(bytes, at, &pair, sizeof(pair)) || pair.type == AT_NULL)
			return;
		mem->auxv[mem->n_auxv++] = pair;
	}
}

int proc_mem_bad_address(const struct proc_mem *mem, uint64_t addr, struct err *err)
{
	return err_set(err, -EFAULT, "%s: nothing readable at address 0x%" PRIx64, mem->who, addr);
}

ssize_t proc_mem_pread(struct proc_mem *mem, int fd, void *dst, size_t len, uint64_t off)
{
	ssize_t n;

	if (off > INT64_MAX)
		return -EINVAL;
	do {
		n = pread(fd, dst, len, (off_t)off);
		mem->stats.syscalls++;
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	mem->stats.bytes += (uint64_t)n;
	return n;
}

/* The first backing that ends after addr: it contains addr or is the next one. */
static const struct proc_mem_backing *mem_backing_from(const struct proc_mem *mem, uint64_t addr)
{
	size_t i = proc_ranges_from(mem->backings, mem->n_backings, sizeof(mem->backings[0]), addr);

	return i < mem->n_backings ? &mem->backings[i] : NULL;
}

static size_t mem_min_len(size_t len, uint64_t limit)
{
	return limit < len ? (size_t)limit : len;
}

/*
 * Reads from the file behind addr, if any. Returns the bytes read, or 0 with *ret_source_len set to
 * the number of bytes that only the source can provide.
 */
static size_t mem_read_file(struct proc_mem *mem, uint64_t addr, void *dst, size_t len,
			    size_t *ret_source_len)
{
	const struct proc_mem_backing *b = mem_backing_from(mem, addr);
	ssize_t n;

	if (!b || b->addr > addr) {
		*ret_source_len = b ? mem_min_len(len, b->addr - addr) : len;
		return 0;
	}
	len = mem_min_len(len, b->end - addr);
	n = proc_mem_pread(mem, b->fd, dst, len, b->off + (addr - b->addr));
	/* The file may have been truncated; the mapping is then the better source. */
	*ret_source_len = n > 0 ? 0 : len;
	return n > 0 ? (size_t)n : 0;
}

static ssize_t mem_step_file_first(struct proc_mem *mem, uint64_t addr, void *dst, size_t len)
{
	size_t source_len;
	size_t n = mem_read_file(mem, addr, dst, len, &source_len);

	return n ? (ssize_t)n : mem->ops->read_some(mem, addr, dst, source_len);
}

static ssize_t mem_step_source_first(struct proc_mem *mem, uint64_t addr, void *dst, size_t len)
{
	const struct proc_mem_backing *b;
	ssize_t n = mem->ops->read_some(mem, addr, dst, len);

	if (n != 0 || mem->n_backings == 0)
		return n;
	b = mem_backing_from(mem, addr);
	if (!b || b->addr > addr)
		return 0;
	len = mem_min_len(mem_min_len(len, b->end - addr), mem->ops->gap(mem, addr));
	n = len ? proc_mem_pread(mem, b->fd, dst, len, b->off + (addr - b->addr)) : 0;
	return n < 0 ? 0 : n;
}

ssize_t proc_mem_read_some(struct proc_mem *mem, uint64_t addr, void *dst, size_t len)
{
	size_t done = 0;

	len = mem_min_len(MIN(len, (size_t)SSIZE_MAX), UINT64_MAX - addr);
	while (done < len) {
		void *to = (char *)dst + done;
		ssize_t n = mem->ops->readv
				    ? mem_step_file_first(mem, addr + done, to, len - done)
				    : mem_step_source_first(mem, addr + done, to, len - done);

		/* Data from a file is valid even if the process has exited. */
		if (n < 0 && done == 0)
			return n;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static int mem_read_all(struct proc_mem *mem, const struct proc_range *range, struct err *err)
{
	ssize_t n;

	if (range->len > SSIZE_MAX)
		return err_set(err, -E2BIG, "%s: a read of %zu bytes", mem->who, range->len);
	n = proc_mem_read_some(mem, range->addr, range->dst, range->len);
	if (n < 0)
		return mem->ops->explain(mem, range->addr, (int)n, err);
	if ((size_t)n < range->len)
		return mem->ops->explain(mem, range->addr + (uint64_t)n, 0, err);
	return 0;
}

static int mem_pending_flush(struct proc_mem *mem, struct mem_pending *p, struct err *err)
{
	int r = p->n ? mem->ops->readv(mem, p->ranges, p->n, err) : 0;

	p->n = 0;
	return r;
}

/* Reads the file parts of a range immediately, and queues the memory parts. */
static int mem_split_range(struct proc_mem *mem, struct proc_range range, struct mem_pending *p,
			   struct err *err)
{
	while (range.len) {
		size_t source_len;
		size_t n = mem_read_file(mem, range.addr, range.dst, range.len, &source_len);

		if (n == 0) {
			if (p->n == MEM_PENDING_MAX) {
				int r = mem_pending_flush(mem, p, err);

				if (r < 0)
					return r;
			}
			n = source_len;
			p->ranges[p->n] = range;
			p->ranges[p->n++].len = n;
		}
		range.addr += n;
		range.dst = (char *)range.dst + n;
		range.len -= n;
	}
	return 0;
}

static int mem_readv_split(struct proc_mem *mem, const struct proc_range *ranges, size_t n,
			   struct err *err)
{
	struct mem_pending pending;
	int r;

	pending.n = 0;
	for (size_t i = 0; i < n; i++) {
		if (ranges[i].len > UINT64_MAX - ranges[i].addr)
			return proc_mem_bad_address(mem, ranges[i].addr, err);
		r = mem_split_range(mem, ranges[i], &pending, err);
		if (r < 0)
			return r;
	}
	return mem_pending_flush(mem, &pending, err);
}

int proc_mem_readv(struct proc_mem *mem, const struct proc_range *ranges, size_t n, struct err *err)
{
	if (mem->ops->readv) {
		if (mem->n_backings)
			return mem_readv_split(mem, ranges, n, err);
		return mem->ops->readv(mem, ranges, n, err);
	}
	for (size_t i = 0; i < n; i++) {
		int r = mem_read_all(mem, &ranges[i], err);

		if (r < 0)
			return r;
	}
	return 0;
}

int proc_mem_read(struct proc_mem *mem, uint64_t addr, void *dst, size_t len, struct err *err)
{
	struct proc_range range = {.addr = addr, .dst = dst, .len = len};

	return proc_mem_readv(mem, &range, 1, err);
}

int proc_mem_check(struct proc_mem *mem, uint64_t addr, void *dst, size_t len, struct err *err)
{
	if (!mem->ops->check)
		return proc_mem_read(mem, addr, dst, len, err);
	return mem->ops->check(mem, addr, dst, len, err);
}

int proc_mem_replace(struct proc_mem *mem, uint64_t addr, const void *old, const void *src,
		     size_t len, struct err *err)
{
	if (!mem->ops->replace)
		return err_set(err, -ENOTSUP, "cannot write to %s: it is not a live process",
			       mem->who);
	return mem->ops->replace(mem, addr, old, src, len, err);
}

int proc_mem_back(struct proc_mem *mem, uint64_t addr, uint64_t len, int fd, uint64_t off,
		  struct err *err)
{
	const struct proc_mem_backing *next = mem_backing_from(mem, addr);
	size_t at = next ? (size_t)(next - mem->backings) : mem->n_backings;
	uint64_t end, file_end;
	struct stat st;
	int own;

	if (len == 0 || __builtin_add_overflow(addr, len, &end) ||
	    __builtin_add_overflow(off, len, &file_end) || file_end > INT64_MAX)
		return err_set(err, -EINVAL, "%s: no file can be behind 0x%" PRIx64, mem->who,
			       addr);
	if (next && next->addr < end)
		return err_set(err, -EEXIST, "%s: a file is behind 0x%" PRIx64 " already", mem->who,
			       MAX(addr, next->addr));
	if (mem->n_backings == PROC_MEM_BACKINGS_MAX)
		return err_set(err, -E2BIG, "%s: more than %d files behind its memory", mem->who,
			       PROC_MEM_BACKINGS_MAX);
	if (io_stat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "%s: only a regular file can be behind memory",
			       mem->who);
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own < 0)
		return err_set(err, -errno, "cannot duplicate a descriptor: %s", strerror(errno));
	memmove(&mem->backings[at + 1], &mem->backings[at],
		(mem->n_backings - at) * sizeof(mem->backings[0]));
	mem->backings[at] =
		(struct proc_mem_backing){.addr = addr, .end = end, .off = off, .fd = own};
	mem->n_backings++;
	return 0;
}

const struct proc_maps *proc_mem_maps(const struct proc_mem *mem)
{
	return &mem->maps;
}

int proc_mem_refresh_maps(struct proc_mem *mem, struct err *err)
{
	return mem->ops->refresh_maps ? mem->ops->refresh_maps(mem, err) : 0;
}

bool proc_mem_auxv(const struct proc_mem *mem, uint64_t type, uint64_t *ret_value)
{
	for (size_t i = 0; i < mem->n_auxv; i++) {
		if (mem->auxv[i].type == type) {
			*ret_value = mem->auxv[i].value;
			return true;
		}
	}
	return false;
}

int64_t proc_mem_time_ns(const struct proc_mem *mem)
{
	return mem->written_ns ? mem->written_ns : (int64_t)clock_unix_ns();
}

uint16_t proc_mem_machine(const struct proc_mem *mem)
{
	return mem->machine;
}

pid_t proc_mem_pid(const struct proc_mem *mem)
{
	return mem->pid;
}

bool proc_mem_thread(const struct proc_mem *mem, uint64_t tid, struct proc_thread *ret_thread)
{
	return mem->ops->thread && mem->ops->thread(mem, tid, ret_thread);
}

int proc_mem_open_file(const struct proc_mem *mem, const struct proc_map *map, int *ret_fd,
		       struct err *err)
{
	if (!mem->ops->open_file)
		return err_set(err, -ENOENT, "%s: no files behind it", mem->who);
	return mem->ops->open_file(mem, map, ret_fd, err);
}

struct proc_mem_stats proc_mem_stats(const struct proc_mem *mem)
{
	return mem->stats;
}

void proc_mem_close(struct proc_mem *mem)
{
	if (!mem)
		return;
	for (size_t i = 0; i < mem->n_backings; i++)
		closep(&mem->backings[i].fd);
	proc_maps_release(&mem->maps);
	mem->ops->close(mem);
}
