/* src/store/sqlite/rollup.c: the sums of a whole day, by stream and label set. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/codec/block.h"
#include "store/sqlite/state.h"

struct rolling {
	struct store_writer *w;
	struct store_writer_tools *tools;
	struct store_block_sums sums;
	uint32_t stream;
	uint64_t collections;
	struct buf sets; /* uint32_t: label sets of the stream, ascending */
};

static int is_rolled(struct rolling *r, struct err *err)
{
	const int64_t id = r->stream;
	sqlite3_stmt *stmt = NULL;
	int ret = store_day_query(&r->w->day, STORE_DAY_ROLLED, &id, 1, &stmt, err);

	if (ret == 0)
		ret = store_day_next(&r->w->day, stmt, err);
	if (ret > 0)
		store_day_done(stmt);
	return ret;
}

static int compare_u32(const void *va, const void *vb)
{
	uint32_t a = *(const uint32_t *)va, b = *(const uint32_t *)vb;

	return a < b ? -1 : a > b;
}

/* Counts the collection times and lists the label sets, from the points. */
static int scan_points(struct rolling *r, struct err *err)
{
	_cleanup_free_ uint8_t *seen = calloc(1, STORE_DAY_MAX_LABELSETS / 8 + 1);
	const int64_t range[] = {store_day_key(r->stream, 0, 0),
				 store_day_key(r->stream + 1, 0, 0)};
	int64_t last = -1;
	sqlite3_stmt *stmt = NULL;
	int ret = seen ? store_day_query(&r->w->day, STORE_DAY_POINTS, range, 2, &stmt, err)
		       : err_oom(err);

	while (ret == 0 && (ret = store_day_next(&r->w->day, stmt, err)) > 0) {
		int64_t key = sqlite3_column_int64(stmt, 0);
		uint32_t set = store_day_key_labelset(key);

		r->collections += store_day_key_ms(key) != last;
		last = store_day_key_ms(key);
		ret = 0;
		if (!(seen[set / 8] >> set % 8 & 1))
			ret = buf_append(&r->sets, &set, sizeof(set));
		seen[set / 8] |= (uint8_t)(1U << set % 8);
	}
	if (ret == 0 && r->sets.len > 0)
		qsort(r->sets.data, r->sets.len / sizeof(uint32_t), sizeof(uint32_t), compare_u32);
	return ret;
}

static int sum_hour(struct rolling *r, unsigned int hour, uint32_t set, struct err *err)
{
	int64_t first = store_day_pack_key(r->stream, hour, set, 0);
	const int64_t range[] = {first, first + STORE_DAY_MAX_PARTS};
	sqlite3_stmt *stmt = NULL;
	int ret = store_day_query(&r->w->day, STORE_DAY_PACKS, range, 2, &stmt, err);

	while (ret == 0 && (ret = store_day_next(&r->w->day, stmt, err)) > 0)
		ret = store_block_sum_pack(&r->tools->codec, store_day_blob(stmt, 1), 0,
					   STORE_BLOCK_HOUR_MS, &r->sums);
	return ret;
}

static int put_sums(struct rolling *r, uint32_t set, struct err *err)
{
	struct store_writer_tools *t = r->tools;
	struct store_block_value v;
	int ret = 0;

	buf_clear(&t->values);
	for (v.stack = 0; ret == 0 && v.stack < r->sums.n_stacks; v.stack++) {
		v.value = r->sums.values[v.stack];
		if (v.value != 0)
			ret = buf_append(&t->values, &v, sizeof(v));
	}
	if (ret == 0)
		ret = store_block_encode_sums(&t->codec, (void *)t->values.data,
					      t->values.len / sizeof(v), r->sums.samples,
					      &t->block);
	if (ret < 0)
		return err_set(err, ret, "%s: cannot roll up a day", r->w->day.path);
	store_block_sums_clear(&r->sums);
	return store_day_put(&r->w->day, STORE_DAY_PUT_ROLLUP, store_day_rollup_key(r->stream, set),
			     buf_view(&t->block), err);
}

/* Whether some collections could not be packed: then there is no roll-up. */
static int has_rows(struct rolling *r, struct err *err)
{
	const int64_t range[] = {store_day_key(r->stream, 0, 0),
				 store_day_key(r->stream + 1, 0, 0)};
	sqlite3_stmt *stmt = NULL;
	int ret = store_day_query(&r->w->day, STORE_DAY_PROFILE_KEYS, range, 2, &stmt, err);

	if (ret == 0)
		ret = store_day_next(&r->w->day, stmt, err);
	if (ret > 0)
		store_day_done(stmt);
	return ret;
}

static int roll_up(struct rolling *r, struct err *err)
{
	const uint32_t *sets;
	int ret = is_rolled(r, err);

	if (ret == 0)
		ret = has_rows(r, err);
	if (ret != 0)
		return MIN(ret, 0);
	ret = scan_points(r, err);
	sets = (const void *)r->sets.data;
	for (size_t i = 0; ret == 0 && i < r->sets.len / sizeof(*sets); i++) {
		for (unsigned int hour = 0; ret == 0 && hour < 24; hour++)
			ret = sum_hour(r, hour, sets[i], err);
		/* Without one, answers come from the hours that are left. */
		if (ret == -EBADMSG) {
			store_day_damaged(&r->w->day, STORE_DAY_PACKS,
					  store_day_rollup_key(r->stream, sets[i]));
			return 0;
		}
		if (ret == 0)
			ret = put_sums(r, sets[i], err);
	}
	return ret < 0 ? ret
		       : store_day_exec(&r->w->day, STORE_DAY_PUT_ROLLED,
					(const int64_t[]){r->stream, (int64_t)r->collections}, 2,
					err);
}

int store_sqlite_roll_up(struct store_writer *w, struct store_writer_tools *t, uint32_t stream,
			 struct err *err)
{
	struct rolling r = {.w = w, .tools = t, .stream = stream};
	int ret;

	r.sums.values = malloc((STORE_BLOCK_MAX_STACK + 1) * sizeof(*r.sums.values));
	ret = r.sums.values ? roll_up(&r, err) : err_oom(err);
	free(r.sums.values);
	buf_release(&r.sets);
	return ret;
}
