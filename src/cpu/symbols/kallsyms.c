/*
 * src/cpu/symbols/kallsyms.c: see kallsyms.h.
 *
 *   starts   u32 s0 s1 s2 ... ascending, from base
 *   blobs    frames of zstd, each the names of KALLSYMS_BLOCK functions with their NULs
 *   blocks   where each blob begins
 */
#include "cpu/symbols/kallsyms.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zstd.h>

#include "base/buf.h"
#include "base/io.h"
#include "cpu/symbols/kallsyms_parse.h"
#include "proc/host.h"
#include "proc/text.h"

#define KALLSYMS_BLOCK 128
#define KALLSYMS_LEVEL 3
/* No function is larger; farther on, an address belongs to an unknown module. */
#define KALLSYMS_MAX_FUNCTION ((uint32_t)1 << 20)

struct cpu_kallsyms {
	char *path;
	uint64_t base;
	uint64_t core_end; /* addresses above belong to modules */
	uint32_t *starts;
	size_t len;
	uint32_t *blocks;
	struct buf blobs;
	uint32_t epoch;
	uint64_t read_ns;
};

int cpu_kallsyms_new(const char *path, struct cpu_kallsyms **ret_kallsyms, struct err *err)
{
	struct cpu_kallsyms *k = calloc(1, sizeof(*k));

	if (!k)
		return err_oom(err);
	k->path = strdup(path);
	if (!k->path) {
		free(k);
		return err_oom(err);
	}
	*ret_kallsyms = k;
	return 0;
}

static void kallsyms_clear(struct cpu_kallsyms *k)
{
	free(k->starts);
	free(k->blocks);
	buf_release(&k->blobs);
	k->starts = k->blocks = NULL;
	k->blobs = (struct buf){0};
	k->len = 0;
	k->core_end = 0;
}

void cpu_kallsyms_free(struct cpu_kallsyms *kallsyms)
{
	if (!kallsyms)
		return;
	kallsyms_clear(kallsyms);
	free(kallsyms->path);
	free(kallsyms);
}

/* Compresses the names of one block and appends them. */
static int kallsyms_pack(struct cpu_kallsyms *k, ZSTD_CCtx *zstd, struct buf *names)
{
	size_t bound = ZSTD_compressBound(names->len), n;
	int r = buf_reserve(&k->blobs, bound);

	if (r < 0)
		return r;
	n = ZSTD_compressCCtx(zstd, k->blobs.data + k->blobs.len, bound, names->data, names->len,
			      KALLSYMS_LEVEL);
	if (ZSTD_isError(n))
		return -ENOMEM;
	k->blobs.len += n;
	buf_clear(names);
	return 0;
}

static int kallsyms_pack_all(struct cpu_kallsyms *k, const struct cpu_ksyms *ksyms, ZSTD_CCtx *zstd,
			     struct buf *names)
{
	for (size_t i = 0; i < ksyms->len; i++) {
		const char *name = (char *)ksyms->names.data + ksyms->list[i].name;
		int r;

		if (i % KALLSYMS_BLOCK == 0)
			k->blocks[i / KALLSYMS_BLOCK] = (uint32_t)k->blobs.len;
		k->starts[i] = ksyms->list[i].start;
		r = buf_append(names, name, strlen(name) + 1);
		if (r == 0 && (i % KALLSYMS_BLOCK == KALLSYMS_BLOCK - 1 || i + 1 == ksyms->len))
			r = kallsyms_pack(k, zstd, names);
		if (r < 0)
			return r;
	}
	k->blocks[(ksyms->len + KALLSYMS_BLOCK - 1) / KALLSYMS_BLOCK] = (uint32_t)k->blobs.len;
	return 0;
}

static void kallsyms_shrink(struct buf *b)
{
	uint8_t *data = b->len ? realloc(b->data, b->len) : NULL;

	if (data) {
		b->data = data;
		b->cap = b->len;
	}
}

static int kallsyms_build(struct cpu_kallsyms *k, const struct cpu_ksyms *ksyms)
{
	size_t n_blocks = (ksyms->len + KALLSYMS_BLOCK - 1) / KALLSYMS_BLOCK;
	ZSTD_CCtx *zstd = ZSTD_createCCtx();
	struct buf names = {0};
	int r = -ENOMEM;

	k->starts = malloc((ksyms->len + 1) * sizeof(*k->starts));
	k->blocks = malloc((n_blocks + 1) * sizeof(*k->blocks));
	if (zstd && k->starts && k->blocks)
		r = kallsyms_pack_all(k, ksyms, zstd, &names);
	ZSTD_freeCCtx(zstd);
	buf_release(&names);
	if (r < 0) {
		kallsyms_clear(k);
		return r;
	}
	kallsyms_shrink(&k->blobs);
	k->base = ksyms->base;
	k->core_end = ksyms->core_end;
	k->len = ksyms->len;
	return 0;
}

static int kptr_restrict(void)
{
	_cleanup_(buf_release) struct buf text = buf_with_max(4096);
	const char *s = NULL;

	if (io_read_file(AT_FDCWD, "/proc/sys/kernel/kptr_restrict", &text, NULL) == 0)
		s = buf_cstr(&text);
	return s ? (int)strtol(s, NULL, 10) : 0;
}

static int explain_hidden(struct err *err)
{
	int level = kptr_restrict();

	if (level >= 2)
		return err_lack(err, -EPERM, ERR_CAUSE_HIDDEN, "sysctl kernel.kptr_restrict=1",
				"the kernel hides its addresses (kernel.kptr_restrict is %d)",
				level);
	if (!proc_host_has_cap(CAP_SYSLOG))
		return err_lack(err, -EPERM, ERR_CAUSE_PRIVILEGE,
				geteuid() == 0 ? "run the container with --cap-add=SYSLOG"
					       : "run as root, or with CAP_SYSLOG",
				"the kernel hides its addresses without CAP_SYSLOG "
				"(kernel.kptr_restrict is %d)",
				level);
	return err_lack(err, -EPERM, ERR_CAUSE_HIDDEN,
			"run as root on the host, not in a rootless container",
			"the kernel hides its addresses (kernel.kptr_restrict is %d)", level);
}

static int explain_missing(const char *path, int code, struct err *err)
{
	char dir[256], remedy[sizeof(dir) + 16];

	(void)snprintf(remedy, sizeof(remedy), "use a kernel with CONFIG_KALLSYMS=y");
	if (strncmp(path, "/proc/", 6) == 0 && proc_host_check_proc(err) < 0)
		return -ENOENT;
	if (proc_host_is_covered(path, "/proc", dir, sizeof(dir))) {
		(void)snprintf(remedy, sizeof(remedy), "umount %s", dir);
		return err_lack(err, -ENOENT, ERR_CAUSE_HIDDEN, remedy,
				"%s is hidden by a mount on %s", path, dir);
	}
	if (code < 0)
		return err_lack(err, code, ERR_CAUSE_HIDDEN, remedy, "cannot read %s: %s", path,
				strerror(-code));
	return err_lack(err, -ENOENT, ERR_CAUSE_KERNEL, remedy, "%s lists no functions", path);
}

int cpu_kallsyms_check(const char *path, struct err *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_(cpu_ksyms_release) struct cpu_ksyms ksyms = {0};
	int r = fd < 0 ? -errno : cpu_ksyms_read_some(fd, &ksyms);

	if (r == 0 && ksyms.len)
		return 0;
	if (r == 0 && ksyms.n_hidden)
		return explain_hidden(err);
	return explain_missing(path, r, err);
}

static void kallsyms_read(struct cpu_kallsyms *k, uint64_t now_ns)
{
	_cleanup_close_ int fd = open(k->path, O_RDONLY | O_CLOEXEC);
	struct cpu_ksyms ksyms = {0};
	int r = fd < 0 ? -errno : cpu_ksyms_read(fd, &ksyms);

	kallsyms_clear(k);
	/* On failure there are no names; cpu_kallsyms_check() tells why. */
	if (r == 0)
		(void)kallsyms_build(k, &ksyms);
	cpu_ksyms_release(&ksyms);
	k->read_ns = now_ns;
	k->epoch++;
}

/* The index of the function, or -1. */
static ssize_t kallsyms_find(const struct cpu_kallsyms *k, uint64_t addr)
{
	size_t low = 0, high = k->len;

	if (addr < k->base || addr - k->base > UINT32_MAX)
		return -1;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (k->starts[mid] <= addr - k->base)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == 0 || addr - k->base - k->starts[low - 1] >= KALLSYMS_MAX_FUNCTION)
		return -1;
	return (ssize_t)low - 1;
}

static int kallsyms_name(const struct cpu_kallsyms *k, size_t i, char *dst, size_t cap)
{
	const uint32_t *block = &k->blocks[i / KALLSYMS_BLOCK];
	const uint8_t *blob = k->blobs.data + block[0];
	size_t blob_len = block[1] - block[0], at = 0;
	unsigned long long len = ZSTD_getFrameContentSize(blob, blob_len);
	_cleanup_free_ char *names = NULL;
	struct view name = {0};

	if (len > (unsigned long long)KALLSYMS_BLOCK * CPU_KSYMS_MAX_NAME)
		return -ENOENT;
	names = malloc(len + 1);
	if (!names)
		return -ENOMEM;
	if (ZSTD_decompress(names, len, blob, blob_len) != len)
		return -ENOENT;
	for (size_t n = 0; n <= i % KALLSYMS_BLOCK; n++) {
		if (!view_cstr(view_of(names, len), at, &name))
			return -ENOENT;
		at += name.len + 1;
	}
	proc_text_copy(dst, cap, name);
	return 0;
}

static bool kallsyms_is_due(const struct cpu_kallsyms *k, uint64_t addr, ssize_t found,
			    uint64_t now_ns)
{
	uint64_t age = now_ns - k->read_ns;

	if (k->epoch == 0)
		return true;
	/* If the kernel hides addresses, all are unknown: do not retry. */
	if (found < 0 && k->len > 0 && age >= CPU_KALLSYMS_RETRY_NS)
		return true;
	return addr >= k->core_end && age >= CPU_KALLSYMS_AGE_NS;
}

int cpu_kallsyms_lookup(struct cpu_kallsyms *kallsyms, uint64_t addr, uint64_t now_ns, char *dst,
			size_t cap)
{
	ssize_t found = kallsyms_find(kallsyms, addr);

	if (kallsyms_is_due(kallsyms, addr, found, now_ns)) {
		kallsyms_read(kallsyms, now_ns);
		found = kallsyms_find(kallsyms, addr);
	}
	return found < 0 ? -ENOENT : kallsyms_name(kallsyms, (size_t)found, dst, cap);
}

uint32_t cpu_kallsyms_epoch(const struct cpu_kallsyms *kallsyms)
{
	return kallsyms->epoch;
}
