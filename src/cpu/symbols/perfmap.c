/*
 * src/cpu/symbols/perfmap.c: see perfmap.h; perfmap_open.c finds the file and decides whether to
 * trust it.
 */
#include "cpu/symbols/perfmap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/view.h"
#include "proc/text.h"

#define PERFMAP_CHUNK ((size_t)64 << 10)
/* How far a lookup goes back for a function that encloses nearer ones. */
#define PERFMAP_MAX_OVERLAP 256
#define PERFMAP_MAX_LINE 2048
/* The cost of sorting a function, in bytes read. */
#define PERFMAP_SORT_COST 64

struct perfmap_function {
	uint64_t start;
	uint32_t size;
	uint32_t line; /* where its line begins in the file */
};

struct cpu_perfmap {
	int fd;
	struct perfmap_function *list;
	size_t len;
	size_t cap;
	uint64_t done; /* bytes of complete lines read */
	/* State of the file at the last check. */
	uint64_t size;
	struct timespec mtime;
	uint64_t next_ns; /* no refresh before this */
	bool is_read;
	bool is_stale; /* a lookup found that it was rewritten */
};

int cpu_perfmap_open_take(int fd, struct cpu_perfmap **ret_map, struct err *err)
{
	struct cpu_perfmap *map = calloc(1, sizeof(*map));

	if (!map) {
		closep(&fd);
		return err_oom(err);
	}
	map->fd = fd;
	*ret_map = map;
	return 0;
}

void cpu_perfmap_close(struct cpu_perfmap *map)
{
	if (!map)
		return;
	closep(&map->fd);
	free(map->list);
	free(map);
}

static bool perfmap_hex(struct view line, size_t *off, uint64_t *ret)
{
	uint64_t value = 0;
	size_t i = *off;

	if (line.len - i > 2 && line.data[i] == '0' && (line.data[i + 1] | 0x20) == 'x')
		i += 2;
	for (size_t digits = 0; i < line.len && line.data[i] != ' '; i++, digits++) {
		uint8_t c = line.data[i] | 0x20;

		if (digits == 16 || !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
			return false;
		value = value << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	if (i == *off || i >= line.len)
		return false;
	*off = i + 1;
	*ret = value;
	return true;
}

/* START SIZE NAME, numbers in hex; false if invalid. */
static bool perfmap_parse(struct view line, uint64_t *ret_start, uint64_t *ret_size,
			  struct view *ret_name)
{
	size_t off = 0;

	if (line.len && line.data[line.len - 1] == '\r')
		line.len--;
	return perfmap_hex(line, &off, ret_start) && perfmap_hex(line, &off, ret_size) &&
	       *ret_size > 0 && *ret_size <= UINT32_MAX &&
	       *ret_size - 1 <= UINT64_MAX - *ret_start && off < line.len &&
	       view_sub(line, off, line.len - off, ret_name);
}

/* -E2BIG: no room for more. */
static int perfmap_add(struct cpu_perfmap *map, struct view line, uint64_t at)
{
	uint64_t start, size;
	struct view name;

	if (!perfmap_parse(line, &start, &size, &name))
		return 0;
	if (map->len == CPU_PERFMAP_MAX_FUNCTIONS)
		return -E2BIG;
	if (map->len == map->cap) {
		size_t cap = map->cap ? map->cap * 2 : 256;
		struct perfmap_function *list = realloc(map->list, cap * sizeof(*list));

		if (!list)
			return -ENOMEM;
		map->list = list;
		map->cap = cap;
	}
	map->list[map->len++] = (struct perfmap_function){
		.start = start, .size = (uint32_t)size, .line = (uint32_t)at};
	return 0;
}

/*
 * Parses the complete lines of text, found at offset `at` of the file; returns their length in
 * bytes.
 */
static ssize_t perfmap_lines(struct cpu_perfmap *map, struct view text, uint64_t at)
{
	struct view rest = text, line;

	while (view_take_line(&rest, &line)) {
		int r = perfmap_add(map, line, at + (uint64_t)(line.data - text.data));

		if (r < 0)
			return r;
	}
	return (ssize_t)(text.len - rest.len);
}

/* Equal starts: the later line first. */
static int perfmap_compare(const void *a, const void *b)
{
	const struct perfmap_function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->line > y->line ? -1 : x->line < y->line;
}

static void perfmap_sort(struct cpu_perfmap *map)
{
	size_t n = 0;

	if (map->len == 0)
		return;
	qsort(map->list, map->len, sizeof(*map->list), perfmap_compare);
	for (size_t i = 1; i < map->len; i++)
		if (map->list[i].start != map->list[n].start)
			map->list[++n] = map->list[i];
	map->len = n + 1;
}

/* Reads from where it stopped up to end, or as far as there is room. */
static void perfmap_read(struct cpu_perfmap *map, uint64_t end)
{
	_cleanup_free_ uint8_t *chunk = malloc(PERFMAP_CHUNK);

	if (!chunk)
		return;
	while (map->done < end) {
		size_t want = MIN(PERFMAP_CHUNK, end - map->done);
		ssize_t n = io_pread_full(map->fd, chunk, want, map->done), used;

		if (n <= 0)
			break;
		used = perfmap_lines(map, view_of(chunk, (size_t)n), map->done);
		if (used < 0)
			break;
		/*
		 * An incomplete line is read again next time; one that fills the chunk is skipped.
		 */
		if (used == 0 && (size_t)n < PERFMAP_CHUNK)
			break;
		map->done += (uint64_t)(used ? used : n);
	}
	perfmap_sort(map);
}

bool cpu_perfmap_refresh(struct cpu_perfmap *map, uint64_t now_ns)
{
	uint64_t before, size;
	struct stat st;

	if (map->is_read && now_ns < map->next_ns)
		return false;
	map->next_ns = now_ns + CPU_PERFMAP_RETRY_NS;
	if (io_stat(map->fd, &st) < 0)
		return false;
	size = MIN((uint64_t)st.st_size, CPU_PERFMAP_MAX_BYTES);
	if (map->is_read && !map->is_stale && size == map->size &&
	    st.st_mtim.tv_sec == map->mtime.tv_sec && st.st_mtim.tv_nsec == map->mtime.tv_nsec)
		return false;
	/* Rewritten, not appended to. */
	if (size <= map->size || map->is_stale) {
		map->len = 0;
		map->done = 0;
	}
	map->is_read = true;
	map->is_stale = false;
	map->size = size;
	map->mtime = st.st_mtim;
	before = map->done;
	perfmap_read(map, size);
	/* All functions must be sorted again, the old ones too. */
	before = map->done - before + map->len * PERFMAP_SORT_COST;
	map->next_ns += before * NS_PER_SEC / CPU_PERFMAP_BYTES_PER_SEC;
	return true;
}

bool cpu_perfmap_is_replaced(const struct cpu_perfmap *map, uint64_t now_ns)
{
	struct stat st;

	return now_ns >= map->next_ns && io_stat(map->fd, &st) == 0 && st.st_nlink == 0;
}

/* Of the functions that contain the address, the one whose line comes last. */
static const struct perfmap_function *perfmap_find(const struct cpu_perfmap *map, uint64_t addr)
{
	const struct perfmap_function *found = NULL;
	size_t low = 0, high = map->len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (map->list[mid].start <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	for (size_t i = low; i > 0 && low - i < PERFMAP_MAX_OVERLAP; i--) {
		const struct perfmap_function *f = &map->list[i - 1];

		if (addr - f->start < f->size && (!found || f->line > found->line))
			found = f;
	}
	return found;
}

int cpu_perfmap_lookup(struct cpu_perfmap *map, uint64_t addr, char *dst, size_t cap)
{
	const struct perfmap_function *found = perfmap_find(map, addr);
	uint64_t start, size;
	uint8_t text[PERFMAP_MAX_LINE];
	const uint8_t *end;
	struct view name;
	ssize_t n;

	if (!found)
		return -ENOENT;
	n = io_pread_full(map->fd, text, sizeof(text), found->line);
	n = MAX(n, 0);
	end = memchr(text, '\n', (size_t)n);
	/* The file may have been rewritten since: then that line is another function's. */
	if (!perfmap_parse(view_of(text, end ? (size_t)(end - text) : (size_t)n), &start, &size,
			   &name) ||
	    start != found->start || size != found->size) {
		map->is_stale = true;
		return -ENOENT;
	}
	proc_text_copy(dst, cap, name);
	return 0;
}

size_t cpu_perfmap_memory(const struct cpu_perfmap *map)
{
	return sizeof(*map) + map->cap * sizeof(*map->list);
}
