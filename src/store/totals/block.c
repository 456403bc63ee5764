/* src/store/totals/block.c: see block.h. */
#include "store/totals/block.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/codec/block.h"
#include "store/codec/column.h"
#include "store/sqlite/day.h"

#define MAX_ENTRIES (1U << 20)
#define LEVEL 1

enum { LISTS, GROUPS, COUNTS, SUMS };

/* --- adding up a minute */

void store_totals_minute_release(struct store_totals_minute *m)
{
	buf_release(&m->entries);
	map_release(&m->index);
	intern_release(&m->lists);
	buf_release(&m->scratch);
	*m = (struct store_totals_minute){0};
}

size_t store_totals_minute_memory(const struct store_totals_minute *m)
{
	/* A slot of base/map takes 24 bytes. */
	return m->entries.cap + m->index.cap * 24 + m->lists.bytes.used;
}

static struct store_totals_entry *find_entry(struct buf *entries, struct map *index, uint32_t type,
					     uint32_t service)
{
	const struct store_totals_entry fresh = {.type = type, .service = service};
	uint64_t key = (uint64_t)type << 32 | service, at = entries->len / sizeof(fresh);

	if (!map_get(index, key, &at) &&
	    (map_put(index, key, at) < 0 || buf_append(entries, &fresh, sizeof(fresh)) < 0))
		return NULL;
	return (struct store_totals_entry *)(void *)entries->data + at;
}

/* 1: the list with one more time is in m->scratch; 0: it has it already. */
static int extend_list(struct store_totals_minute *m, struct view list, uint16_t ms)
{
	size_t at = list.len;
	uint16_t known;

	for (; at > 0; at -= sizeof(known)) {
		memcpy(&known, list.data + at - sizeof(known), sizeof(known));
		if (known == ms)
			return 0;
		if (known < ms)
			break;
	}
	buf_clear(&m->scratch);
	if (buf_append(&m->scratch, list.data, at) < 0 ||
	    buf_append(&m->scratch, &ms, sizeof(ms)) < 0 ||
	    buf_append(&m->scratch, list.data + at, list.len - at) < 0)
		return -ENOMEM;
	return 1;
}

static int add_time(struct store_totals_minute *m, uint32_t *list, uint16_t ms)
{
	uint32_t before = *list;
	int r;

	if (m->lists.len > 0 && before == m->list_before && ms == m->list_ms &&
	    m->list_after != before) {
		*list = m->list_after;
		return 0;
	}
	r = extend_list(m, intern_get(&m->lists, before), ms);
	if (r > 0)
		r = intern_add(&m->lists, buf_view(&m->scratch), list);
	m->list_before = before;
	m->list_after = *list;
	m->list_ms = ms;
	return MIN(r, 0);
}

int store_totals_minute_add(struct store_totals_minute *m, const struct store_totals_entry *entry,
			    uint32_t ms)
{
	struct store_totals_entry *e;
	uint32_t empty;

	/* List 0 is empty: of an entry that is new. */
	if (m->lists.len == 0 && intern_add(&m->lists, view_str(""), &empty) < 0)
		return -ENOMEM;
	e = find_entry(&m->entries, &m->index, entry->type, entry->service);
	if (!e)
		return -ENOMEM;
	e->sum = store_block_add(e->sum, entry->sum);
	e->points += entry->points;
	m->changed = true;
	return add_time(m, &e->times, (uint16_t)ms);
}

/* --- writing */

static int compare_entries(const void *va, const void *vb)
{
	const struct store_totals_entry *a = va, *b = vb;

	if (a->type != b->type)
		return a->type < b->type ? -1 : 1;
	return a->service < b->service ? -1 : a->service > b->service;
}

/* The columns of one type, behind what they have; divides by what its sums have in common. */
static int put_group(const struct store_totals_entry *e, size_t n, struct buf columns[3])
{
	uint64_t divisor = 0;
	uint32_t before = 0;
	uint8_t *p;

	for (size_t i = 0; i < n; i++)
		divisor = store_block_gcd(divisor, e[i].sum);
	/* What does not fit a signed number divides nothing else. */
	divisor = divisor == 0 || divisor > INT64_MAX ? 1 : divisor;
	if (buf_reserve(&columns[0], n * 5 + 64) < 0 || buf_reserve(&columns[1], n * 10 + 1) < 0 ||
	    buf_reserve(&columns[2], n * 10 + 1) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		p = store_put_varint(columns[1].data + columns[1].len, e[i].times);
		p = store_put_varint(p, e[i].points);
		columns[1].len = (size_t)(p - columns[1].data);
		p = store_put_varint(columns[2].data + columns[2].len,
				     store_zigzag(e[i].sum / (int64_t)divisor));
		columns[2].len = (size_t)(p - columns[2].data);
	}
	p = store_put_varint(columns[0].data + columns[0].len, e[0].type);
	p = store_put_varint(p, n);
	p = store_put_varint(p, divisor);
	for (size_t i = 0; i < n; i++) {
		p = store_put_varint(p, e[i].service - before);
		before = e[i].service;
	}
	columns[0].len = (size_t)(p - columns[0].data);
	return 0;
}

static int put_groups(struct store_codec *c, const struct store_totals_entry *entries, size_t n,
		      struct buf *out)
{
	struct buf columns[3] = {0};
	size_t len;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i += len) {
		for (len = 1; i + len < n && entries[i + len].type == entries[i].type; len++)
			;
		r = put_group(entries + i, len, columns);
	}
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(columns); i++)
		r = store_codec_put_column(c, out, buf_view(&columns[i]), LEVEL);
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		buf_release(&columns[i]);
	return r;
}

static int put_block(struct store_codec *c, bool whole, size_t n_lists, const struct buf *lists,
		     const struct buf *entries, struct buf *out)
{
	size_t n = entries->len / sizeof(struct store_totals_entry);
	int r = store_codec_begin(out, STORE_CODEC_TOTALS);

	if (r == 0)
		r = buf_append_varint(out, whole);
	if (r == 0)
		r = buf_append_varint(out, n_lists);
	if (r == 0)
		r = buf_append_varint(out, n);
	if (r == 0)
		r = store_codec_put_column(c, out, buf_view(lists), LEVEL);
	if (r == 0)
		r = put_groups(c, (const void *)entries->data, n, out);
	if (r == 0)
		store_codec_end(out);
	return r;
}

static int put_list(struct buf *out, struct view list)
{
	size_t n = list.len / sizeof(uint16_t);
	uint16_t ms, before = 0;
	int r = buf_append_varint(out, n);

	for (size_t i = 0; r == 0 && i < n; i++) {
		memcpy(&ms, list.data + i * sizeof(ms), sizeof(ms));
		r = buf_append_varint(out, (uint64_t)(ms - before));
		before = ms;
	}
	return r;
}

/* Only the lists that entries have; they get new numbers, by which the entries go. */
static int put_lists(const struct store_totals_minute *m, uint32_t *numbers,
		     struct store_totals_entry *entries, size_t n, struct buf *out,
		     size_t *ret_n_lists)
{
	size_t n_lists = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		uint32_t *number = &numbers[entries[i].times];

		if (*number == 0) {
			*number = (uint32_t)++n_lists;
			r = put_list(out, intern_get(&m->lists, entries[i].times));
		}
		entries[i].times = *number - 1;
	}
	*ret_n_lists = n_lists;
	return r;
}

int store_totals_minute_encode(struct store_codec *c, struct store_totals_minute *m,
			       struct buf *out)
{
	_cleanup_free_ uint32_t *numbers = calloc(m->lists.len + 1, sizeof(*numbers));
	_cleanup_(buf_release) struct buf entries = {0}, lists = {0};
	size_t n = m->entries.len / sizeof(struct store_totals_entry), n_lists = 0;
	int r;

	if (n > MAX_ENTRIES)
		return -E2BIG;
	if (!numbers || buf_append(&entries, m->entries.data, m->entries.len) < 0)
		return -ENOMEM;
	if (n > 0)
		qsort(entries.data, n, sizeof(struct store_totals_entry), compare_entries);
	r = put_lists(m, numbers, (void *)entries.data, n, &lists, &n_lists);
	return r < 0 ? r : put_block(c, true, n_lists, &lists, &entries, out);
}

/* --- reading */

/* One list; ret_ms, if given, takes each of its times. */
static int get_list(struct store_cursor *c, bool whole, struct store_totals_times *ret,
		    struct buf *ret_ms)
{
	uint64_t n, v, last = 0, most = whole ? STORE_TOTALS_MINUTE_MS : STORE_TOTALS_SLOT_MS;
	uint64_t listed;

	if (!store_cursor_varint(c, &n) || n == 0 || n > most)
		return -EBADMSG;
	listed = whole ? n : MIN(n, 2U);
	for (uint64_t i = 0; i < listed; i++) {
		uint16_t ms;

		if (!store_cursor_varint(c, &v) || v >= most || (i > 0 && v == 0))
			return -EBADMSG;
		last += v;
		if (last >= most)
			return -EBADMSG;
		if (i == 0)
			ret->first_ms = (uint32_t)last;
		ms = (uint16_t)last;
		if (ret_ms && buf_append(ret_ms, &ms, sizeof(ms)) < 0)
			return -ENOMEM;
	}
	ret->n = (uint32_t)n;
	ret->last_ms = (uint32_t)last;
	return 0;
}

static int get_lists(struct store_totals_block *b, struct buf *lists)
{
	struct store_cursor c = b->all_lists;
	struct store_totals_times *to;

	/* Each has at least two bytes. */
	if (b->n_lists > store_cursor_left(&c))
		return -EBADMSG;
	buf_clear(lists);
	if (buf_reserve(lists, (b->n_lists + 1) * sizeof(*to)) < 0)
		return -ENOMEM;
	to = (void *)lists->data;
	for (size_t i = 0; i < b->n_lists; i++) {
		int r = get_list(&c, b->whole, &to[i], NULL);

		if (r < 0)
			return r;
	}
	b->lists = to;
	return 0;
}

int store_totals_open(struct store_codec *c, struct view block, struct buf *lists,
		      struct store_totals_block *ret)
{
	struct store_totals_block b = {0};
	struct store_cursor body;
	uint64_t whole, n_lists, n;
	int r = store_codec_open(block, STORE_CODEC_TOTALS, &body);

	if (r < 0)
		return r;
	if (!store_cursor_varint(&body, &whole) || !store_cursor_varint(&body, &n_lists) ||
	    !store_cursor_varint(&body, &n) || whole > 1 || n > MAX_ENTRIES || n_lists > n)
		return -EBADMSG;
	b.whole = whole;
	b.n_lists = n_lists;
	b.n_left = n;
	r = store_codec_get_column(c, &body, LISTS, &b.all_lists);
	if (r == 0)
		r = store_codec_get_column(c, &body, GROUPS, &b.groups);
	if (r == 0)
		r = store_codec_get_column(c, &body, COUNTS, &b.counts);
	if (r == 0)
		r = store_codec_get_column(c, &body, SUMS, &b.sums);
	if (r == 0)
		r = get_lists(&b, lists);
	if (r == 0)
		*ret = b;
	return r;
}

int store_totals_next_type(struct store_totals_block *b)
{
	uint64_t type, n;

	if (b->n_left == 0)
		return 0;
	if (!store_cursor_varint(&b->groups, &type) || !store_cursor_varint(&b->groups, &n) ||
	    !store_cursor_varint(&b->groups, &b->divisor) || type >= STORE_TOTALS_MAX_TYPES ||
	    n == 0 || n > b->n_left || b->divisor == 0 || b->divisor > INT64_MAX)
		return -EBADMSG;
	b->type = (uint32_t)type;
	b->service = 0;
	b->n_entries = n;
	b->n_left -= n;
	return 1;
}

int store_totals_next(struct store_totals_block *b, struct store_totals_entry *ret)
{
	uint64_t service, list, points, sum;
	int64_t product;

	if (b->n_entries == 0)
		return 0;
	b->n_entries--;
	if (!store_cursor_varint(&b->groups, &service) || service == 0 ||
	    service > STORE_DAY_MAX_STREAMS - b->service)
		return -EBADMSG;
	b->service += (uint32_t)service;
	ret->type = b->type;
	ret->service = b->service;
	if (!store_cursor_varint(&b->counts, &list) || !store_cursor_varint(&b->counts, &points) ||
	    !store_cursor_varint(&b->sums, &sum) || list >= b->n_lists || points > UINT32_MAX ||
	    __builtin_mul_overflow(store_unzigzag(sum), (int64_t)b->divisor, &product))
		return -EBADMSG;
	ret->times = (uint32_t)list;
	ret->points = (uint32_t)points;
	ret->sum = product;
	return 1;
}

static int decode_lists(const struct store_totals_block *b, struct store_totals_minute *m,
			uint32_t *numbers)
{
	struct store_cursor c = b->all_lists;
	struct store_totals_times ignored;
	uint32_t empty;
	int r = intern_add(&m->lists, view_str(""), &empty);

	for (size_t i = 0; r == 0 && i < b->n_lists; i++) {
		buf_clear(&m->scratch);
		r = get_list(&c, true, &ignored, &m->scratch);
		if (r == 0)
			r = intern_add(&m->lists, buf_view(&m->scratch), &numbers[i]);
	}
	return r;
}

int store_totals_minute_decode(struct store_codec *c, struct view block,
			       struct store_totals_minute *m)
{
	_cleanup_(buf_release) struct buf lists = {0};
	_cleanup_free_ uint32_t *numbers = NULL;
	struct store_totals_block b = {0};
	struct store_totals_entry e = {0}, *to;
	int r = store_totals_open(c, block, &lists, &b);

	if (r < 0 || !b.whole)
		return r < 0 ? r : -EBADMSG;
	numbers = calloc(b.n_lists + 1, sizeof(*numbers));
	r = numbers ? decode_lists(&b, m, numbers) : -ENOMEM;
	while (r == 0 && (r = store_totals_next_type(&b)) > 0)
		while ((r = store_totals_next(&b, &e)) > 0) {
			to = find_entry(&m->entries, &m->index, e.type, e.service);
			if (!to)
				return -ENOMEM;
			*to = e;
			to->times = numbers[e.times];
		}
	return r;
}

/* --- ten minutes */

void store_totals_slot_release(struct store_totals_slot *s)
{
	buf_release(&s->entries);
	buf_release(&s->spans);
	map_release(&s->index);
	*s = (struct store_totals_slot){0};
}

static int slot_add_entry(struct store_totals_slot *s, const struct store_totals_entry *e,
			  const struct store_totals_times *times, uint32_t begin_ms)
{
	size_t n = s->entries.len / sizeof(*e), at;
	struct store_totals_entry *to = find_entry(&s->entries, &s->index, e->type, e->service);
	const struct store_totals_times fresh = {.first_ms = UINT32_MAX};
	struct store_totals_times *span;

	if (!to)
		return -ENOMEM;
	at = (size_t)(to - (struct store_totals_entry *)(void *)s->entries.data);
	if (at == n && buf_append(&s->spans, &fresh, sizeof(fresh)) < 0)
		return -ENOMEM;
	span = (struct store_totals_times *)(void *)s->spans.data + at;
	to->sum = store_block_add(to->sum, e->sum);
	to->points += e->points;
	span->n += times->n;
	span->first_ms = MIN(span->first_ms, begin_ms + times->first_ms);
	span->last_ms = MAX(span->last_ms, begin_ms + times->last_ms);
	return 0;
}

int store_totals_slot_add(struct store_codec *c, struct store_totals_slot *s, struct view block,
			  uint32_t minute)
{
	uint32_t begin_ms = minute % STORE_TOTALS_SLOT_MINUTES * STORE_TOTALS_MINUTE_MS;
	_cleanup_(buf_release) struct buf lists = {0};
	struct store_totals_block b = {0};
	struct store_totals_entry e = {0};
	int r = store_totals_open(c, block, &lists, &b);

	if (r < 0 || !b.whole)
		return r < 0 ? r : -EBADMSG;
	while (r == 0 && (r = store_totals_next_type(&b)) > 0)
		for (r = 0; r == 0 && (r = store_totals_next(&b, &e)) > 0;)
			r = slot_add_entry(s, &e, &b.lists[e.times], begin_ms);
	return r;
}

/* Equal spans become one list. */
static int put_spans(const struct store_totals_slot *s, struct intern *known,
		     struct store_totals_entry *entries, size_t n, struct buf *out)
{
	const struct store_totals_times *spans = (const void *)s->spans.data;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		uint32_t before = known->len;

		r = intern_add(known, view_of(&spans[i], sizeof(spans[i])), &entries[i].times);
		if (r < 0 || known->len == before)
			continue;
		r = buf_append_varint(out, spans[i].n);
		if (r == 0)
			r = buf_append_varint(out, spans[i].first_ms);
		if (r == 0 && spans[i].n > 1)
			r = buf_append_varint(out, spans[i].last_ms - spans[i].first_ms);
	}
	return r;
}

int store_totals_slot_encode(struct store_codec *c, struct store_totals_slot *s, struct buf *out)
{
	size_t n = s->entries.len / sizeof(struct store_totals_entry);
	_cleanup_(buf_release) struct buf entries = {0}, lists = {0};
	struct intern known = {0};
	int r = n > MAX_ENTRIES ? -E2BIG : buf_append(&entries, s->entries.data, s->entries.len);

	if (r == 0)
		r = put_spans(s, &known, (void *)entries.data, n, &lists);
	if (r == 0 && n > 0)
		qsort(entries.data, n, sizeof(struct store_totals_entry), compare_entries);
	if (r == 0)
		r = put_block(c, false, known.len, &lists, &entries, out);
	intern_release(&known);
	return r;
}
