/* src/golang/goroutine/labels.c: see labels.h. */
#include "golang/goroutine/labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "golang/grow.h"

/* runtime/pprof has no limits; these are for forged labels. */
#define LABELS_MAX_SETS ((size_t)20000)
#define LABELS_MAX_PAIRS ((uint64_t)256)
#define LABELS_MAX_TEXT ((uint64_t)4096)
#define LABELS_MAX_LOG_BUCKETS 8
#define LABELS_MAX_BUCKETS ((size_t)1024)
#define LABELS_MEMORY ((size_t)32 << 20)
/*
 * For one set; and for the strings of all sets, each of which takes a system call: a third of a
 * second.
 */
#define LABELS_SET_BYTES ((size_t)256 << 10)
#define LABELS_MAX_STRINGS ((size_t)1 << 19)
#define MAP_SLOTS 8
#define MAP_BUCKET_BYTES 272
#define MAP_OVERFLOW 264
/* runtime/map.go: a top hash below this means that the slot is empty or has moved. */
#define MAP_MIN_TOP_HASH 5

struct go_string {
	uint64_t data;
	uint64_t len;
};

void golang_labels_init(struct golang_labels *l, struct proc_mem *mem, bool is_map)
{
	*l = (struct golang_labels){
		.mem = mem,
		.is_map = is_map,
		.sets = {.bytes = {.max = LABELS_MEMORY}},
		.arena = {.max = LABELS_MEMORY},
		.strings_left = LABELS_MAX_STRINGS,
	};
}

void golang_labels_release(struct golang_labels *l)
{
	map_release(&l->by_address);
	intern_release(&l->sets);
	arena_release(&l->arena);
	free(l->lists);
}

void golang_labels_clear(struct golang_labels *l)
{
	struct proc_mem *mem = l->mem;
	bool is_map = l->is_map;

	golang_labels_release(l);
	golang_labels_init(l, mem, is_map);
}

/* Appends the text and a NUL; a NUL in the text ends it. */
static int text_append(struct golang_labels *l, const struct go_string *s, struct buf *out)
{
	char text[LABELS_MAX_TEXT];
	int r;

	if (s->len > sizeof(text))
		return -EBADMSG;
	if (l->strings_left == 0)
		return -E2BIG;
	l->strings_left--;
	if (s->len && proc_mem_read(l->mem, s->data, text, s->len, NULL) < 0)
		return -EBADMSG;
	r = buf_append(out, text, strnlen(text, s->len));
	return r < 0 ? r : buf_append_byte(out, 0);
}

static int pair_append(struct golang_labels *l, const struct go_string *key,
		       const struct go_string *value, struct buf *out)
{
	int r = text_append(l, key, out);

	return r < 0 ? r : text_append(l, value, out);
}

static int slice_read(struct golang_labels *l, uint64_t addr, struct buf *out)
{
	struct go_string pairs[LABELS_MAX_PAIRS][2];
	struct go_string slice;
	int r = 0;

	if (proc_mem_read(l->mem, addr, &slice, sizeof(slice), NULL) < 0 ||
	    slice.len > LABELS_MAX_PAIRS ||
	    (slice.len &&
	     proc_mem_read(l->mem, slice.data, pairs, slice.len * sizeof(pairs[0]), NULL) < 0))
		return -EBADMSG;
	for (uint64_t i = 0; i < slice.len && r == 0; i++)
		r = pair_append(l, &pairs[i][0], &pairs[i][1], out);
	return r;
}

struct map_bucket {
	uint8_t top[MAP_SLOTS];
	struct go_string keys[MAP_SLOTS];
	struct go_string values[MAP_SLOTS];
	uint64_t overflow;
};
_Static_assert(sizeof(struct map_bucket) == MAP_BUCKET_BYTES, "as runtime/map.go has it");

/* One bucket and its overflow buckets; *left limits the buckets of the whole map. */
static int bucket_read(struct golang_labels *l, uint64_t addr, size_t *left, struct buf *out)
{
	struct map_bucket b;

	for (; addr; addr = b.overflow) {
		if (*left == 0 || proc_mem_read(l->mem, addr, &b, sizeof(b), NULL) < 0)
			return -EBADMSG;
		--*left;
		for (size_t i = 0; i < MAP_SLOTS; i++) {
			int r = b.top[i] < MAP_MIN_TOP_HASH
					? 0
					: pair_append(l, &b.keys[i], &b.values[i], out);

			if (r < 0)
				return r;
		}
	}
	return 0;
}

static int map_read(struct golang_labels *l, uint64_t addr, struct buf *out)
{
	struct {
		uint64_t count;
		uint8_t flags;
		uint8_t log_buckets;
		uint8_t rest[6];
		uint64_t buckets;
		uint64_t old_buckets;
	} h;
	size_t left = LABELS_MAX_BUCKETS, n, n_old;
	uint64_t pointer;
	int r = 0;

	/* Labels are a pointer to a labelMap, which itself is a pointer to the map's header. */
	if (proc_mem_read(l->mem, addr, &pointer, sizeof(pointer), NULL) < 0)
		return -EBADMSG;
	if (pointer == 0)
		return 0;
	if (proc_mem_read(l->mem, pointer, &h, sizeof(h), NULL) < 0 ||
	    h.log_buckets > LABELS_MAX_LOG_BUCKETS || h.count > LABELS_MAX_PAIRS)
		return -EBADMSG;
	n = h.count ? (size_t)1 << h.log_buckets : 0;
	/* While a map grows, entries not moved yet are in the old buckets, half as many. */
	n_old = h.old_buckets ? MAX(n / 2, (size_t)1) : 0;
	for (size_t i = 0; i < n && r == 0; i++)
		r = bucket_read(l, h.buckets + i * MAP_BUCKET_BYTES, &left, out);
	for (size_t i = 0; i < n_old && r == 0; i++)
		r = bucket_read(l, h.old_buckets + i * MAP_BUCKET_BYTES, &left, out);
	return r;
}

/* Sorts pairs by key, so that equal sets compare equal. */
static int pair_compare(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(x[0], y[0]);
}

static int list_keep(struct golang_labels *l, const struct buf *text, int64_t *ret_set)
{
	_cleanup_(buf_release) struct buf sorted = {0};
	const char *pairs[2 * LABELS_MAX_PAIRS + 2];
	const char **list;
	size_t n = 0, had = l->lists_cap;
	uint32_t id = 0;
	int r = 0;

	for (size_t at = 0; at < text->len && n < 2 * LABELS_MAX_PAIRS;
	     at += strlen((const char *)text->data + at) + 1)
		pairs[n++] = (const char *)text->data + at;
	qsort(pairs, n / 2, 2 * sizeof(pairs[0]), pair_compare);
	for (size_t i = 0; i < n && r == 0; i++)
		r = buf_append(&sorted, pairs[i], strlen(pairs[i]) + 1);
	if (r == 0)
		r = intern_add(&l->sets, buf_view(&sorted), &id);
	if (r == 0)
		r = golang_grow(&l->lists, &l->lists_cap, (size_t)id + 1, sizeof(*l->lists),
				LABELS_MAX_SETS + 256);
	if (r < 0)
		return r;
	if (l->lists_cap > had)
		memset(l->lists + had, 0, (l->lists_cap - had) * sizeof(*l->lists));
	*ret_set = (int64_t)id + 1;
	if (l->lists[id])
		return 0;
	list = arena_alloc(&l->arena, (n + 1) * sizeof(*list));
	if (!list)
		return -E2BIG;
	for (size_t i = 0, at = 0; i < n; i++) {
		const char *s = (const char *)intern_get(&l->sets, id).data + at;

		list[i] = s;
		at += strlen(s) + 1;
	}
	l->lists[id] = list;
	return 0;
}

static bool still_there(struct golang_labels *l, uint64_t addr, uint64_t g_labels, uint64_t g_goid,
			uint64_t goid)
{
	uint64_t labels = 0, id = 0;
	const struct proc_range ranges[] = {
		{.addr = g_goid, .dst = &id, .len = sizeof(id)},
		{.addr = g_labels, .dst = &labels, .len = sizeof(labels)},
	};

	return proc_mem_readv(l->mem, ranges, ARRAY_SIZE(ranges), NULL) == 0 && labels == addr &&
	       id == goid;
}

int64_t golang_labels_at(struct golang_labels *l, uint64_t addr, uint64_t g_labels, uint64_t g_goid,
			 uint64_t goid)
{
	_cleanup_(buf_release) struct buf text = buf_with_max(LABELS_SET_BYTES);
	uint64_t known;
	int64_t set = 0;
	int r;

	if (addr == 0)
		return 0;
	if (map_get(&l->by_address, addr, &known))
		return (int64_t)known;
	if (l->by_address.len >= LABELS_MAX_SETS)
		return -E2BIG;
	r = l->is_map ? map_read(l, addr, &text) : slice_read(l, addr, &text);
	if (r == 0 && !still_there(l, addr, g_labels, g_goid, goid))
		r = -EBADMSG;
	if (r == 0 && text.len)
		r = list_keep(l, &text, &set);
	if (r == 0)
		r = map_put(&l->by_address, addr, (uint64_t)set);
	return r < 0 ? r : set;
}

const char *const *golang_labels_list(const struct golang_labels *l, uint32_t set)
{
	static const char *const none[] = {NULL};

	return set && set <= l->sets.len ? l->lists[set - 1] : none;
}
