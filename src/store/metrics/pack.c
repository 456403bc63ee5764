/* src/store/metrics/pack.c: see pack.h. */
#include "store/metrics/pack.h"

#include <errno.h>
#include <stdlib.h>

#include "store/metrics/block.h"
#include "store/metrics/damage.h"
#include "store/writer.h"

#define MAX_VALUES ((size_t)1 << 19) /* of a block on its way; 4 MB */

struct packing {
	struct writer *w;
	struct writer_tools *tools;
	uint32_t service;
	unsigned int hour;
	struct buf keys;     /* int64_t: readings of the service, by label set, then time */
	struct buf times_ms; /* uint32_t, in the hour */
	struct damage *damage;
};

static void packing_release(struct packing *p)
{
	buf_release(&p->keys);
	buf_release(&p->times_ms);
}

static int compare_keys(const void *va, const void *vb)
{
	int64_t a = *(const int64_t *)va, b = *(const int64_t *)vb;
	uint32_t set_a = day_key_labelset(a), set_b = day_key_labelset(b);

	if (set_a != set_b)
		return set_a < set_b ? -1 : 1;
	return a < b ? -1 : a > b;
}

static int list_keys(struct packing *p, struct err *err)
{
	int64_t begin = (int64_t)p->hour * METRICS_HOUR_MS;
	const int64_t range[] = {day_key(p->service, begin, 0),
				 day_key(p->service, begin + METRICS_HOUR_MS, 0)};
	sqlite3_stmt *stmt = NULL;
	int r = day_query(&p->w->day, DAY_READING_KEYS, range, 2, &stmt, err);

	buf_clear(&p->keys);
	while (r == 0 && (r = day_next(&p->w->day, stmt, err)) > 0) {
		int64_t key = sqlite3_column_int64(stmt, 0);

		r = buf_append(&p->keys, &key, sizeof(key));
	}
	if (r == 0 && p->keys.len > 0)
		qsort(p->keys.data, p->keys.len / sizeof(int64_t), sizeof(int64_t), compare_keys);
	return r;
}

static int take_reading(struct packing *p, int64_t key, struct err *err)
{
	const int64_t range[] = {key, key + 1};
	uint32_t time = (uint32_t)(p->times_ms.len / sizeof(uint32_t));
	uint32_t ms = (uint32_t)(day_key_ms(key) % METRICS_HOUR_MS);
	sqlite3_stmt *stmt = NULL;
	int r = day_query(&p->w->day, DAY_READINGS, range, 2, &stmt, err);

	if (r == 0)
		r = day_next(&p->w->day, stmt, err);
	if (r <= 0)
		return r;
	r = cells_add_reading(&p->tools->cells, day_blob(stmt, 1), time);
	day_done(stmt);
	if (r == -EBADMSG) {
		damage_add(p->damage, &p->w->day, DAY_READINGS, key);
		return 0;
	}
	if (r == 0)
		r = buf_append(&p->times_ms, &ms, sizeof(ms));
	return r < 0 ? err_oom(err) : 0;
}

static int put_hour(struct packing *p, int64_t key, struct err *err)
{
	size_t n = p->times_ms.len / sizeof(uint32_t);
	int r = cells_encode_hour(&p->tools->cells, &p->tools->codec, (void *)p->times_ms.data, n,
				  &p->tools->block);

	if (r < 0)
		return err_set(err, r, "%s: cannot pack an hour of metrics", p->w->day.path);
	buf_clear(&p->times_ms);
	cells_clear(&p->tools->cells);
	return day_put(&p->w->day, DAY_PUT_HOUR, key, buf_view(&p->tools->block), err);
}

/* The number of the next part; DAY_MAX_PARTS when there is no more room. */
static int next_part(struct packing *p, int64_t first, unsigned int *ret_part, struct err *err)
{
	const int64_t range[] = {first, first + DAY_MAX_PARTS};
	sqlite3_stmt *stmt = NULL;
	int r = day_query(&p->w->day, DAY_HOUR_LAST, range, 2, &stmt, err);

	if (r == 0)
		r = day_next(&p->w->day, stmt, err);
	if (r <= 0)
		return r;
	*ret_part = 0;
	if (sqlite3_column_type(stmt, 0) != SQLITE_NULL)
		*ret_part = (unsigned int)(sqlite3_column_int64(stmt, 0) - first) + 1;
	day_done(stmt);
	return 0;
}

static bool is_block_full(const struct packing *p)
{
	return p->times_ms.len / sizeof(uint32_t) == METRICS_MAX_TIMES ||
	       p->tools->cells.values.len / sizeof(double) >= MAX_VALUES;
}

/* n readings of one label set. */
static int pack_labelset(struct packing *p, const int64_t *keys, size_t n, struct err *err)
{
	int64_t first = day_pack_key(p->service, p->hour, day_key_labelset(keys[0]), 0);
	unsigned int part = DAY_MAX_PARTS;
	int r = next_part(p, first, &part, err);

	buf_clear(&p->times_ms);
	cells_clear(&p->tools->cells);
	for (size_t i = 0; r == 0 && i < n && part < DAY_MAX_PARTS; i++) {
		r = take_reading(p, keys[i], err);
		if (r == 0)
			r = day_exec(&p->w->day, DAY_DROP_READING, &keys[i], 1, err);
		if (r == 0 && p->times_ms.len > 0 && (i + 1 == n || is_block_full(p)))
			r = put_hour(p, first + part++, err);
	}
	return r;
}

static int pack_service(struct packing *p, struct err *err)
{
	const int64_t *keys;
	size_t n, len;
	int r = list_keys(p, err);

	if (r < 0)
		return r;
	keys = (const void *)p->keys.data;
	n = p->keys.len / sizeof(*keys);
	for (size_t i = 0; r == 0 && i < n; i += len) {
		for (len = 1; i + len < n; len++)
			if (day_key_labelset(keys[i + len]) != day_key_labelset(keys[i]))
				break;
		r = pack_labelset(p, keys + i, len, err);
	}
	return r;
}

int metrics_pack_hour(struct writer *w, struct writer_tools *t, unsigned int hour,
		      struct damage *damage, struct err *err)
{
	_cleanup_(packing_release) struct packing p = {
		.w = w, .tools = t, .hour = hour, .damage = damage};
	int r = 0;

	for (const struct dict *d = w->dicts; r == 0 && d; d = d->next) {
		p.service = d->service;
		if (d->service <= DAY_MAX_STREAMS)
			r = pack_service(&p, err);
	}
	return r;
}
