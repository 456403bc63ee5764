/*
 * src/cpu/symbols/kallsyms_parse.c: see kallsyms_parse.h. Lines are
 *
 *   ffffffff81000000 T _stext
 *   ffffffffc0201000 t e1000_open	[e1000]
 */
#include "cpu/symbols/kallsyms_parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define KSYMS_CHUNK ((size_t)64 << 10)
/* The kernel's half of the addresses. */
#define KSYMS_LOWEST ((uint64_t)1 << 63)

void cpu_ksyms_release(struct cpu_ksyms *ksyms)
{
	free(ksyms->list);
	buf_release(&ksyms->names);
	*ksyms = (struct cpu_ksyms){0};
}

/* Up to 16 digits, followed by a blank. */
static bool ksyms_address(struct view line, size_t *off, uint64_t *ret)
{
	uint64_t value = 0;
	size_t i = 0;

	for (; i < line.len && line.data[i] != ' '; i++) {
		uint8_t c = line.data[i] | 0x20;

		if (i == 16 || !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
			return false;
		value = value << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	if (i == 0 || i == line.len)
		return false;
	*off = i + 1;
	*ret = value;
	return true;
}

/*
 * Ranks the names of an address: markers ("__entry_text_end") and 32-bit system calls last, global
 * before local, without leading underscore before with.
 */
static uint8_t ksyms_rank(char type, struct view name)
{
	if (view_starts_with(name, "__ia32_") || memmem(name.data, name.len, "_text_", 6))
		return 0;
	return (uint8_t)(1 + (type == 'T') * 2 + (name.data[0] != '_'));
}

static int ksyms_push(struct cpu_ksyms *ksyms, uint64_t addr, char type, struct view name)
{
	size_t at = ksyms->names.len;
	int r;

	if (ksyms->len == ksyms->cap) {
		size_t cap = ksyms->cap ? ksyms->cap * 2 : 4096;
		struct cpu_ksym *list = realloc(ksyms->list, cap * sizeof(*list));

		if (!list)
			return -ENOMEM;
		ksyms->list = list;
		ksyms->cap = cap;
	}
	r = buf_append(&ksyms->names, name.data, name.len);
	if (r == 0)
		r = buf_append_byte(&ksyms->names, 0);
	if (r < 0)
		return r == -E2BIG ? 0 : r;
	ksyms->list[ksyms->len++] = (struct cpu_ksym){
		.start = (uint32_t)(addr - ksyms->base),
		.name = (uint32_t)at,
		.rank = ksyms_rank(type, name),
	};
	return 0;
}

/* The first address is the lowest: the kernel proper comes first and is sorted. */
static bool ksyms_place(struct cpu_ksyms *ksyms, uint64_t addr, bool is_module)
{
	if (addr < KSYMS_LOWEST) {
		ksyms->n_hidden += addr == 0;
		return false;
	}
	if (ksyms->base == 0)
		ksyms->base = addr & ~(uint64_t)0x3fffffff;
	if (addr < ksyms->base || addr - ksyms->base > UINT32_MAX || ksyms->len == CPU_KSYMS_MAX)
		return false;
	if (!is_module)
		ksyms->core_end = MAX(ksyms->core_end, addr + 1);
	return true;
}

static int ksyms_line(struct cpu_ksyms *ksyms, struct view line)
{
	uint8_t spaced[CPU_KSYMS_MAX_NAME];
	const uint8_t *tab;
	uint64_t addr;
	size_t off;
	struct view name;

	if (!ksyms_address(line, &off, &addr) || !view_has(line, off, 3) ||
	    line.data[off + 1] != ' ' || !strchr("tTwW", line.data[off]) || line.data[off] == 0 ||
	    !view_sub(line, off + 2, line.len - off - 2, &name) || name.len >= sizeof(spaced) ||
	    memchr(name.data, 0, name.len))
		return 0;
	tab = memchr(name.data, '\t', name.len);
	if (!ksyms_place(ksyms, addr, tab != NULL))
		return 0;
	if (tab) {
		memcpy(spaced, name.data, name.len);
		spaced[tab - name.data] = ' ';
		name.data = spaced;
	}
	return ksyms_push(ksyms, addr, (char)line.data[off], name);
}

/* Parses the complete lines; returns their length in bytes. */
static ssize_t ksyms_lines(struct cpu_ksyms *ksyms, struct view text)
{
	struct view rest = text, line;

	while (view_take_line(&rest, &line)) {
		int r = ksyms_line(ksyms, line);

		if (r < 0)
			return r;
	}
	return (ssize_t)(text.len - rest.len);
}

static int ksym_compare(const void *a, const void *b)
{
	const struct cpu_ksym *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

static void ksyms_sort(struct cpu_ksyms *ksyms)
{
	size_t n = 0;

	if (ksyms->len == 0)
		return;
	qsort(ksyms->list, ksyms->len, sizeof(*ksyms->list), ksym_compare);
	for (size_t i = 1; i < ksyms->len; i++)
		if (ksyms->list[i].start != ksyms->list[n].start)
			ksyms->list[++n] = ksyms->list[i];
	ksyms->len = n + 1;
}

static int ksyms_read(int fd, size_t enough, struct cpu_ksyms *ret_ksyms)
{
	_cleanup_free_ uint8_t *chunk = malloc(KSYMS_CHUNK);
	struct cpu_ksyms ksyms = {0};
	size_t have = 0;
	ssize_t n = 0, used = 0;

	if (!chunk)
		return -ENOMEM;
	while (ksyms.len < enough && (n = read(fd, chunk + have, KSYMS_CHUNK - have)) > 0) {
		have += (size_t)n;
		used = ksyms_lines(&ksyms, view_of(chunk, have));
		if (used < 0)
			break;
		/* A line that fills the whole buffer is not the kernel's. */
		if (used == 0 && have == KSYMS_CHUNK)
			used = (ssize_t)have;
		have -= (size_t)used;
		memmove(chunk, chunk + used, have);
	}
	if (n < 0 || used < 0) {
		n = n < 0 ? -errno : used;
		cpu_ksyms_release(&ksyms);
		return (int)n;
	}
	ksyms_sort(&ksyms);
	*ret_ksyms = ksyms;
	return 0;
}

int cpu_ksyms_read(int fd, struct cpu_ksyms *ret_ksyms)
{
	return ksyms_read(fd, SIZE_MAX, ret_ksyms);
}

int cpu_ksyms_read_some(int fd, struct cpu_ksyms *ret_ksyms)
{
	return ksyms_read(fd, 1, ret_ksyms);
}
