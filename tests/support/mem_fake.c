/* tests/support/mem_fake.c: see mem_fake.h. */
#include "mem_fake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proc/mem_source.h"
#include "proc/ranges.h"

#define FAKE_SEGMENTS_MAX 4096

struct fake_segment {
	uint64_t start;
	uint64_t end;
	const uint8_t *data;
};

struct mem_fake {
	struct proc_mem mem;
	struct fake_segment *segments; /* sorted, disjoint */
	size_t len;
};

/* The index of the first segment that ends after addr; len if none. */
static size_t fake_from(const struct mem_fake *f, uint64_t addr)
{
	return proc_ranges_from(f->segments, f->len, sizeof(*f->segments), addr);
}

static ssize_t fake_read_some(struct proc_mem *mem, uint64_t addr, void *dst, size_t len)
{
	struct mem_fake *f = (struct mem_fake *)mem;
	size_t i = fake_from(f, addr);
	const struct fake_segment *s;

	if (i == f->len || addr < f->segments[i].start)
		return 0;
	s = &f->segments[i];
	len = MIN(len, s->end - addr);
	memcpy(dst, s->data + (addr - s->start), len);
	mem->stats.bytes += len;
	return (ssize_t)len;
}

static uint64_t fake_gap(const struct proc_mem *mem, uint64_t addr)
{
	const struct mem_fake *f = (const struct mem_fake *)mem;
	size_t i = fake_from(f, addr);

	if (i == f->len)
		return UINT64_MAX;
	return addr < f->segments[i].start ? f->segments[i].start - addr : 0;
}

static int fake_explain(struct proc_mem *mem, uint64_t addr, int code, struct err *err)
{
	(void)code;
	return proc_mem_bad_address(mem, addr, err);
}

static void fake_close(struct proc_mem *mem)
{
	struct mem_fake *f = (struct mem_fake *)mem;

	free(f->segments);
	free(f);
}

static const struct proc_mem_ops fake_ops = {
	.read_some = fake_read_some,
	.gap = fake_gap,
	.explain = fake_explain,
	.close = fake_close,
};

int proc_mem_open_fake(struct proc_mem **ret_mem, struct err *err)
{
	struct mem_fake *f = calloc(1, sizeof(*f));

	if (!f)
		return err_oom(err);
	f->mem.ops = &fake_ops;
	f->mem.machine = proc_mem_own_machine();
	strcpy(f->mem.who, "made-up memory");
	*ret_mem = &f->mem;
	return 0;
}

/* The mapping of each segment, in the same order as the segments. */
static int fake_add_map(struct proc_maps *maps, size_t at, uint64_t start, uint64_t end)
{
	struct proc_map m = {
		.start = start, .end = end, .flags = PROC_MAP_READ | PROC_MAP_WRITE, .path = ""};
	int r = proc_maps_add(maps, &m, NULL);

	if (r < 0)
		return r;
	memmove(&maps->maps[at + 1], &maps->maps[at], (maps->len - 1 - at) * sizeof(m));
	maps->maps[at] = m;
	return 0;
}

int proc_mem_fake_add(struct proc_mem *mem, uint64_t addr, const void *data, size_t len)
{
	struct mem_fake *f = (struct mem_fake *)mem;
	struct fake_segment *grown;
	uint64_t end;
	size_t at;
	int r;

	if (mem->ops != &fake_ops || __builtin_add_overflow(addr, len, &end))
		return -EINVAL;
	if (len == 0)
		return 0;
	at = fake_from(f, addr);
	if (at < f->len && f->segments[at].start < end)
		return -EEXIST;
	if (f->len == FAKE_SEGMENTS_MAX)
		return -E2BIG;
	grown = reallocarray(f->segments, f->len + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	f->segments = grown;
	r = fake_add_map(&mem->maps, at, addr, end);
	if (r < 0)
		return r;
	memmove(&f->segments[at + 1], &f->segments[at], (f->len - at) * sizeof(*grown));
	f->segments[at] = (struct fake_segment){.start = addr, .end = end, .data = data};
	f->len++;
	return 0;
}
