/* src/store/sqlite/rebuild.c: see rebuild.h. Nothing that a page says is taken on trust. */
#include "store/sqlite/rebuild.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define PAGE STORE_SEAL_PAGE
#define USABLE (PAGE - STORE_SEAL_BYTES)
#define ENTRY 5
#define ENTRIES (USABLE / ENTRY)
#define MAP_FIRST 2
#define MAP_ROOT 1 /* kinds of entries */
#define MAP_CHILD 5
#define INTERIOR 0x05 /* kinds of pages, their first byte */
#define LEAF 0x0d
#define LEAF_HEAD 8
#define INTERIOR_HEAD 12
#define MAX_CHILDREN (USABLE / 7) /* a cell has at least 5 bytes, its place 2 */
#define MAX_DEPTH 20		  /* SQLite's own */
#define MAX_READS (1U << 16)	  /* of pages, for one that is made */
/* In the header of a file. */
#define HEAD_PAGES 28
#define HEAD_FREE 32
#define HEAD_FREE_BYTES 8

struct child {
	uint32_t page;
	int64_t last; /* the largest key below it, in any version */
};

struct rebuilding {
	const struct store_rebuild *from;
	unsigned int depth;
	unsigned int *reads; /* of all that is made for one page */
	size_t n;
	struct child children[MAX_CHILDREN];
};

static uint32_t get_16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static uint32_t get_32(const uint8_t *p)
{
	return get_16(p) << 16 | get_16(p + 2);
}

static void put_16(uint8_t *p, uint32_t value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}

static void put_32(uint8_t *p, uint32_t value)
{
	put_16(p, value >> 16);
	put_16(p + 2, value);
}

/* SQLite's: seven bits a byte, the largest first; a ninth byte has eight. Returns its length, or 0.
 */
static size_t get_varint(const uint8_t *p, const uint8_t *end, uint64_t *ret)
{
	uint64_t value = 0;

	for (size_t i = 0; i < 9 && p + i < end; i++) {
		value = i == 8 ? value << 8 | p[i] : value << 7 | (p[i] & 0x7f);
		if (i == 8 || !(p[i] & 0x80)) {
			*ret = value;
			return i + 1;
		}
	}
	return 0;
}

static size_t put_varint(uint8_t *p, uint64_t value)
{
	size_t n = 1, last;

	while (n < 9 && value >> (7 * n) > 0)
		n++;
	last = n - 1;
	p[last] = (uint8_t)(n == 9 ? value : value & 0x7f);
	value >>= n == 9 ? 8 : 7;
	for (size_t i = last; i-- > 0; value >>= 7)
		p[i] = (uint8_t)(value | 0x80);
	return n;
}

/* --- the largest key below a page */

/* That of its last cell. False if it has none, or is no page of a table. */
static bool last_key(const uint8_t *page, int64_t *ret)
{
	size_t head = page[0] == LEAF ? LEAF_HEAD : INTERIOR_HEAD;
	size_t n = get_16(page + 3), at, len = 4;
	const uint8_t *end = page + USABLE;
	uint64_t value;

	if ((page[0] != LEAF && page[0] != INTERIOR) || n == 0 || head + 2 * n > USABLE)
		return false;
	at = get_16(page + head + 2 * (n - 1));
	if (at < head + 2 * n || at + len > USABLE)
		return false;
	/* Before it: the length of a row, or a page. */
	if (page[0] == LEAF)
		len = get_varint(page + at, end, &value);
	if (len == 0 || get_varint(page + at + len, end, &value) == 0)
		return false;
	*ret = (int64_t)value;
	return true;
}

static bool may_read(const struct rebuilding *b)
{
	return *b->reads < MAX_READS && ++*b->reads > 0;
}

static bool make(const struct store_rebuild *from, uint32_t number, unsigned int depth,
		 unsigned int *reads, uint8_t *page);

/* A version of a page; one that is lost as well, and has no other, is made first. */
static int read_page(const struct rebuilding *b, uint32_t number, unsigned int version,
		     unsigned int depth, uint8_t *page)
{
	const struct store_rebuild *from = b->from;
	int r;

	if (depth == MAX_DEPTH || number == 0 || number > from->n_pages || !may_read(b))
		return -ENOENT;
	r = from->read(from->ctx, number, version, page);
	if (r != 0 || version > 0 || from->read(from->ctx, number, 1, page) != -ENOENT)
		return r;
	return make(from, number, depth, b->reads, page);
}

/* Returns whether any version could be read. */
static bool last_below(const struct rebuilding *b, uint32_t number, unsigned int depth,
		       int64_t *last)
{
	uint8_t page[PAGE];
	bool found = false;
	int r;

	for (unsigned int i = 0; (r = read_page(b, number, i, depth, page)) != -ENOENT; i++) {
		int64_t key;

		if (r == 0 || !last_key(page, &key))
			continue;
		/* What the last child of a page held does not matter if it is lost, too. */
		*last = found ? MAX(*last, key) : key;
		found = true;
		if (page[0] == INTERIOR && last_below(b, get_32(page + 8), depth + 1, &key))
			*last = MAX(*last, key);
	}
	return found;
}

/* --- children */

static int by_last(const void *a, const void *b)
{
	const struct child *x = a, *y = b;

	return (x->last > y->last) - (x->last < y->last);
}

/* Those in one page of the map. False if there are more than can be. */
static bool find_children(struct rebuilding *b, const uint8_t *map, uint32_t first, uint32_t parent)
{
	for (uint32_t i = 0; i < ENTRIES && first + i <= b->from->n_pages; i++) {
		const uint8_t *entry = map + (size_t)i * ENTRY;

		if (entry[0] != MAP_CHILD || get_32(entry + 1) != parent || first + i == parent)
			continue;
		if (b->n == MAX_CHILDREN)
			return false;
		b->children[b->n++] = (struct child){.page = first + i};
	}
	return true;
}

/* The map in the file fits the page, which has not changed since. */
static bool find_all(struct rebuilding *b, uint32_t parent)
{
	uint8_t map[PAGE];

	for (uint32_t at = MAP_FIRST; at <= b->from->n_pages; at += ENTRIES + 1) {
		if (!may_read(b))
			return false;
		/* Children that it names are lost with it. */
		if (b->from->read(b->from->ctx, at, 0, map) <= 0)
			b->from->lost(b->from->ctx, at);
		else if (!find_children(b, map, at + 1, parent))
			return false;
	}
	return b->n > 0;
}

/* In their order, without those that are lost. */
static bool order(struct rebuilding *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->n; i++) {
		struct child *c = &b->children[i];

		if (last_below(b, c->page, b->depth + 1, &c->last))
			b->children[n++] = *c;
		else
			b->from->lost(b->from->ctx, c->page);
	}
	if (*b->reads == MAX_READS)
		return false;
	b->n = n;
	qsort(b->children, n, sizeof(*b->children), by_last);
	for (size_t i = 1; i < n; i++)
		if (b->children[i].last == b->children[i - 1].last)
			return false;
	return n > 0;
}

/* The last child has no key. */
static bool put_children(const struct rebuilding *b, uint8_t *page)
{
	size_t n = b->n - 1, places = INTERIOR_HEAD, end = USABLE;

	memset(page, 0, PAGE);
	for (size_t i = 0; i < n; i++, places += 2) {
		uint8_t cell[4 + 9];
		size_t len = 4;

		put_32(cell, b->children[i].page);
		len += put_varint(cell + 4, (uint64_t)b->children[i].last);
		if (INTERIOR_HEAD + 2 * n + len > end)
			return false;
		end -= len;
		memcpy(page + end, cell, len);
		put_16(page + places, (uint32_t)end);
	}
	page[0] = INTERIOR;
	put_16(page + 3, (uint32_t)n);
	put_16(page + 5, (uint32_t)end);
	put_32(page + 8, b->children[n].page);
	return true;
}

/* SQLite wants two children: a single one takes the place of the page. */
static bool put_child(const struct rebuilding *b, uint8_t *page)
{
	uint32_t number = b->children[0].page;

	return b->from->read(b->from->ctx, number, 1, page) == -ENOENT &&
	       read_page(b, number, 0, b->depth + 1, page) > 0;
}

static bool make(const struct store_rebuild *from, uint32_t number, unsigned int depth,
		 unsigned int *reads, uint8_t *page)
{
	_cleanup_free_ struct rebuilding *b = calloc(1, sizeof(*b));

	if (!b)
		return false;
	b->from = from;
	b->depth = depth;
	b->reads = reads;
	return find_all(b, number) && order(b) &&
	       (b->n > 1 ? put_children(b, page) : put_child(b, page));
}

bool store_rebuild_interior(const struct store_rebuild *r, uint32_t number, uint8_t *page)
{
	unsigned int reads = 0;

	return make(r, number, 0, &reads, page);
}

/* --- the first page */

/* Its tables are the first pages after the map. */
static bool has_roots(const struct store_rebuild *r, uint32_t n)
{
	uint8_t map[PAGE];

	if (r->read(r->ctx, MAP_FIRST, 0, map) <= 0)
		return false;
	for (uint32_t i = 0; i < ENTRIES && MAP_FIRST + 1 + i <= r->n_pages; i++)
		if ((map[(size_t)i * ENTRY] == MAP_ROOT) != (i < n))
			return false;
	return n <= r->n_pages - MAP_FIRST;
}

bool store_rebuild_first(const struct store_rebuild *r, const uint8_t *fresh, uint8_t *page)
{
	uint32_t n_tables = get_16(fresh + 100 + 3);

	if (r->n_pages < MAP_FIRST || !has_roots(r, n_tables))
		return false;
	memcpy(page, fresh, PAGE);
	put_32(page + HEAD_PAGES, r->n_pages);
	/* Which pages are free is lost; nobody who only reads asks. */
	memset(page + HEAD_FREE, 0, HEAD_FREE_BYTES);
	return true;
}
