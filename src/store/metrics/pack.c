/*
 * src/store/metrics/pack.c: see pack.h. The readings of a service are split into columns, one label
 * set at a time; label sets read at the same times share one list of times.
 */
#include "store/metrics/pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/metrics/block.h"
#include "store/sqlite/writer.h"

#define MAX_VALUES ((size_t)1 << 19) /* in memory; 4 MB */

/* A list of times, and the label sets read at them. */
struct list {
	uint32_t number;
	bool changed;
	struct buf times;     /* uint32_t, ms in the hour */
	struct buf labelsets; /* uint32_t */
};

struct packing {
	struct store_writer *w;
	struct store_writer_tools *tools;
	uint32_t service;
	unsigned int hour;
	uint32_t labelset;
	struct buf keys;     /* int64_t: readings of the service, by label set, then time */
	struct buf times_ms; /* uint32_t: of the readings taken */
	struct buf lists;    /* struct list */
	uint32_t list;	     /* number of the current one */
	struct err *err;
};

static struct list *lists_of(struct packing *p, size_t *ret_n)
{
	*ret_n = p->lists.len / sizeof(struct list);
	return (void *)p->lists.data;
}

static void clear_lists(struct packing *p)
{
	size_t n;
	struct list *lists = lists_of(p, &n);

	for (size_t i = 0; i < n; i++) {
		buf_release(&lists[i].times);
		buf_release(&lists[i].labelsets);
	}
	buf_clear(&p->lists);
}

static void packing_release(struct packing *p)
{
	clear_lists(p);
	buf_release(&p->lists);
	buf_release(&p->keys);
	buf_release(&p->times_ms);
}

static int compare_keys(const void *va, const void *vb)
{
	int64_t a = *(const int64_t *)va, b = *(const int64_t *)vb;
	uint32_t set_a = store_day_key_labelset(a), set_b = store_day_key_labelset(b);

	if (set_a != set_b)
		return set_a < set_b ? -1 : 1;
	return a < b ? -1 : a > b;
}

static int list_keys(struct packing *p)
{
	int64_t begin = (int64_t)p->hour * STORE_METRICS_HOUR_MS;
	const int64_t range[] = {store_day_key(p->service, begin, 0),
				 store_day_key(p->service, begin + STORE_METRICS_HOUR_MS, 0)};
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(&p->w->day, STORE_DAY_READING_KEYS, range, 2, &stmt, p->err);

	buf_clear(&p->keys);
	while (r == 0 && (r = store_day_next(&p->w->day, stmt, p->err)) > 0) {
		int64_t key = sqlite3_column_int64(stmt, 0);

		r = buf_append(&p->keys, &key, sizeof(key));
	}
	if (r == 0 && p->keys.len > 0)
		qsort(p->keys.data, p->keys.len / sizeof(int64_t), sizeof(int64_t), compare_keys);
	return r;
}

/* --- lists of times */

static int new_list(struct packing *p, uint32_t number, struct view times)
{
	struct list list = {.number = number};
	int r = buf_append(&list.times, times.data, times.len);

	if (r == 0)
		r = buf_append(&p->lists, &list, sizeof(list));
	if (r < 0)
		buf_release(&list.times);
	return r;
}

static int load_list(struct packing *p, uint32_t number, struct view block)
{
	_cleanup_free_ struct store_metrics_times *t = malloc(sizeof(*t));
	uint32_t labelset;
	struct list *lists;
	size_t n;
	int r = t ? store_metrics_decode_times(block, t) : -ENOMEM;

	if (r == 0)
		r = new_list(p, number, view_of(t->times_ms, t->n_times * sizeof(uint32_t)));
	if (r < 0)
		return r;
	lists = lists_of(p, &n);
	while (r == 0 && (r = store_metrics_next_labelset(t, &labelset)) > 0)
		r = buf_append(&lists[n - 1].labelsets, &labelset, sizeof(labelset));
	return r;
}

/* Lists written by an earlier run; a damaged one still occupies its number. */
static int load_lists(struct packing *p)
{
	const int64_t range[] = {store_day_times_key(p->service, p->hour, 0),
				 store_day_times_key(p->service, p->hour + 1, 0)};
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(&p->w->day, STORE_DAY_TIMES, range, 2, &stmt, p->err);

	clear_lists(p);
	while (r == 0 && (r = store_day_next(&p->w->day, stmt, p->err)) > 0) {
		int64_t key = sqlite3_column_int64(stmt, 0);
		uint32_t number = (uint32_t)(key - range[0]);

		r = load_list(p, number, store_day_blob(stmt, 1));
		if (r == -EBADMSG) {
			store_day_damaged(&p->w->day, STORE_DAY_TIMES, key);
			r = new_list(p, number, view_of(NULL, 0));
		}
	}
	return r;
}

static int compare_u32(const void *va, const void *vb)
{
	uint32_t a = *(const uint32_t *)va, b = *(const uint32_t *)vb;

	return a < b ? -1 : a > b;
}

static int write_lists(struct packing *p)
{
	size_t n;
	struct list *lists = lists_of(p, &n);
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		struct list *l = &lists[i];
		size_t n_sets = l->labelsets.len / sizeof(uint32_t);

		if (!l->changed)
			continue;
		qsort(l->labelsets.data, n_sets, sizeof(uint32_t), compare_u32);
		r = store_metrics_encode_times((void *)l->times.data,
					       l->times.len / sizeof(uint32_t),
					       (void *)l->labelsets.data, n_sets, &p->tools->block);
		if (r == 0)
			r = store_day_put(&p->w->day, STORE_DAY_PUT_TIMES,
					  store_day_times_key(p->service, p->hour, l->number),
					  buf_view(&p->tools->block), p->err);
	}
	return r;
}

/* The list with these times; created if missing. */
static int find_list(struct packing *p)
{
	size_t n, i = 0;
	struct list *lists = lists_of(p, &n);
	uint32_t number = n ? lists[n - 1].number + 1 : 0;
	int r = 0;

	while (i < n && !view_eq(buf_view(&lists[i].times), buf_view(&p->times_ms)))
		i++;
	if (i == n)
		r = number < STORE_DAY_MAX_LISTS ? new_list(p, number, buf_view(&p->times_ms))
						 : -E2BIG;
	if (r < 0)
		return r;
	lists = lists_of(p, &n);
	lists[i].changed = true;
	p->list = lists[i].number;
	return buf_append(&lists[i].labelsets, &p->labelset, sizeof(p->labelset));
}

/* --- series */

/* The next part of a series's hour; STORE_DAY_MAX_HOUR_PARTS if there is none left. */
static int next_part(struct packing *p, uint32_t column, unsigned int *ret_part)
{
	int64_t first = store_day_hour_key(p->service, column, p->hour, p->labelset);
	const int64_t range[] = {first, first + STORE_DAY_MAX_HOUR_PARTS};
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(&p->w->day, STORE_DAY_HOUR_LAST, range, 2, &stmt, p->err);

	if (r == 0)
		r = store_day_next(&p->w->day, stmt, p->err);
	if (r <= 0)
		return r;
	*ret_part = 0;
	if (sqlite3_column_type(stmt, 0) != SQLITE_NULL)
		*ret_part = (unsigned int)(sqlite3_column_int64(stmt, 0) - first) + 1;
	store_day_done(stmt);
	return 0;
}

static int check_room(void *ctx, const struct store_metrics_column *column)
{
	unsigned int part = STORE_DAY_MAX_HOUR_PARTS;
	int r = next_part(ctx, column->column, &part);

	return r == 0 && part == STORE_DAY_MAX_HOUR_PARTS ? -E2BIG : r;
}

static int put_column(void *ctx, const struct store_metrics_column *column)
{
	struct packing *p = ctx;
	unsigned int part = 0;
	int r = next_part(p, column->column, &part);

	if (r == 0)
		r = store_metrics_encode_hour(&p->tools->codec, p->list, column, &p->tools->block);
	if (r < 0)
		return r;
	return store_day_put(&p->w->day, STORE_DAY_PUT_HOUR,
			     store_day_hour_key(p->service, column->column, p->hour, p->labelset) +
				     part,
			     buf_view(&p->tools->block), p->err);
}

static int take_reading(struct packing *p, int64_t key)
{
	const int64_t range[] = {key, key + 1};
	uint32_t time = (uint32_t)(p->times_ms.len / sizeof(uint32_t));
	uint32_t ms = (uint32_t)(store_day_key_ms(key) % STORE_METRICS_HOUR_MS);
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(&p->w->day, STORE_DAY_READINGS, range, 2, &stmt, p->err);

	if (r == 0)
		r = store_day_next(&p->w->day, stmt, p->err);
	if (r <= 0)
		return r;
	r = store_cells_add_reading(&p->tools->cells, store_day_blob(stmt, 1), time);
	store_day_done(stmt);
	if (r == -EBADMSG) {
		store_day_damaged(&p->w->day, STORE_DAY_READINGS, key);
		return 0;
	}
	return r < 0 ? r : buf_append(&p->times_ms, &ms, sizeof(ms));
}

static bool is_full(const struct packing *p)
{
	return p->times_ms.len / sizeof(uint32_t) == STORE_METRICS_MAX_TIMES ||
	       p->tools->cells.values.len / sizeof(double) >= MAX_VALUES;
}

/* Writes what was taken as series; if one does not fit, all stay readings. */
static int put_taken(struct packing *p, const int64_t *keys, size_t n)
{
	size_t n_times = p->times_ms.len / sizeof(uint32_t);
	int r = store_cells_each_column(&p->tools->cells, n_times, check_room, p);

	if (r == -E2BIG)
		return 0;
	if (r == 0 && n_times > 0)
		r = find_list(p);
	if (r == 0)
		r = store_cells_each_column(&p->tools->cells, n_times, put_column, p);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = store_day_exec(&p->w->day, STORE_DAY_DROP_READING, &keys[i], 1, p->err);
	return r;
}

/* n readings of one label set. */
static int pack_labelset(struct packing *p, const int64_t *keys, size_t n)
{
	size_t done = 0;
	int r = 0;

	p->labelset = store_day_key_labelset(keys[0]);
	buf_clear(&p->times_ms);
	store_cells_clear(&p->tools->cells);
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = take_reading(p, keys[i]);
		if (r < 0 || (i + 1 < n && !is_full(p)))
			continue;
		r = put_taken(p, keys + done, i + 1 - done);
		done = i + 1;
		buf_clear(&p->times_ms);
		store_cells_clear(&p->tools->cells);
	}
	return r;
}

static int pack_service(struct packing *p)
{
	const int64_t *keys;
	size_t n, len;
	int r = list_keys(p);

	n = p->keys.len / sizeof(*keys);
	if (r == 0 && n > 0)
		r = load_lists(p);
	if (r < 0 || n == 0)
		return r;
	keys = (const void *)p->keys.data;
	for (size_t i = 0; r == 0 && i < n; i += len) {
		for (len = 1; i + len < n; len++)
			if (store_day_key_labelset(keys[i + len]) !=
			    store_day_key_labelset(keys[i]))
				break;
		r = pack_labelset(p, keys + i, len);
	}
	return r < 0 ? r : write_lists(p);
}

int store_metrics_pack_hour(struct store_writer *w, struct store_writer_tools *t, unsigned int hour,
			    struct err *err)
{
	_cleanup_(packing_release) struct packing p = {
		.w = w, .tools = t, .hour = hour, .err = err};
	int r = 0;

	for (const struct store_dict *d = w->dicts; r == 0 && d; d = d->next) {
		p.service = d->service;
		if (d->service <= STORE_DAY_MAX_STREAMS)
			r = pack_service(&p);
	}
	return r == -ENOMEM || r == -E2BIG
		       ? err_set(err, r, "%s: cannot pack an hour of metrics", w->day.path)
		       : r;
}
