/* src/store/totals/about.c: see about.h. */
#include "store/totals/about.h"

#include <errno.h>
#include <string.h>

#include "store/codec/codec.h"
#include "store/codec/labels.h"
#include "store/sqlite/writer.h"

/* Label sets not seen for twice this long are forgotten, so that memory is bounded. */
#define FORGET_MINUTES 2

/* --- on disk */

static int put_text(struct buf *out, const char *text)
{
	int r = buf_append_varint(out, strlen(text));

	return r < 0 ? r : buf_append_str(out, text);
}

int store_about_encode(const struct store_about *a, struct buf *out)
{
	int r = store_codec_begin(out, STORE_CODEC_ABOUT);

	if (r == 0)
		r = buf_append_varint(out, a->lived);
	if (r == 0)
		r = put_text(out, a->runtime);
	if (r == 0)
		r = put_text(out, a->parent);
	if (r == 0)
		store_codec_end(out);
	return r;
}

static bool get_text(struct store_cursor *c, char *dst, size_t size)
{
	uint64_t len;

	if (!store_cursor_varint(c, &len) || len >= size || len > store_cursor_left(c) ||
	    memchr(c->at, '\0', len))
		return false;
	memcpy(dst, c->at, len);
	dst[len] = '\0';
	c->at += len;
	return true;
}

int store_about_decode(struct view block, struct store_about *ret)
{
	struct store_about a = {0};
	struct store_cursor c;
	uint64_t lived;
	int r = store_codec_open(block, STORE_CODEC_ABOUT, &c);

	if (r < 0)
		return r;
	if (!store_cursor_varint(&c, &lived) || lived > 1 ||
	    !get_text(&c, a.runtime, sizeof(a.runtime)) ||
	    !get_text(&c, a.parent, sizeof(a.parent)) || store_cursor_left(&c) > 0)
		return -EBADMSG;
	a.lived = lived;
	*ret = a;
	return 0;
}

/* --- what is known */

static void set_text(struct store_about *a, char *dst, size_t size, struct view value)
{
	size_t len = MIN(value.len, size - 1);

	if (strlen(dst) == len && memcmp(dst, value.data, len) == 0)
		return;
	memcpy(dst, value.data, len);
	dst[len] = '\0';
	a->changed = true;
}

static int learn_label(void *ctx, struct view key, struct view value)
{
	struct store_about *a = ctx;

	if (view_eq(key, view_str(STORE_ABOUT_RUNTIME)))
		set_text(a, a->runtime, sizeof(a->runtime), value);
	else if (view_eq(key, view_str(STORE_ABOUT_PARENT)))
		set_text(a, a->parent, sizeof(a->parent), value);
	return 0;
}

void store_about_learn(struct store_about *a, struct view labels)
{
	(void)store_labels_each(labels, learn_label, a);
}

static void forget(struct store_totals_writer *t, uint32_t minute)
{
	if (minute < t->seen_minute + FORGET_MINUTES)
		return;
	map_release(&t->seen_before);
	t->seen_before = t->seen;
	t->seen = (struct map){0};
	t->seen_minute = minute;
}

int store_about_see(struct store_writer *w, struct store_dict *d, uint32_t labelset, int64_t ms,
		    struct err *err)
{
	struct store_totals_writer *t = &w->totals;
	uint64_t first = (uint64_t)ms;

	/* Label set 0 stands for many processes. */
	if (d->about.lived || labelset == 0 || !store_day_has_totals(&w->day))
		return 0;
	forget(t, (uint32_t)(ms / STORE_TOTALS_MINUTE_MS));
	if (!map_get(&t->seen, labelset, &first)) {
		(void)map_get(&t->seen_before, labelset, &first);
		if (map_put(&t->seen, labelset, first) < 0)
			return err_oom(err);
	}
	if (ms - (int64_t)first >= STORE_ABOUT_LIVED_MS)
		d->about.lived = d->about.changed = true;
	return 0;
}

int store_about_load(struct store_writer *w, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(&w->day, STORE_DAY_ABOUTS, NULL, 0, &stmt, err);

	while (r == 0 && (r = store_day_next(&w->day, stmt, err)) > 0) {
		uint64_t known;

		r = 0;
		if (map_get(&w->by_id, (uint64_t)sqlite3_column_int64(stmt, 0), &known))
			r = store_about_decode(store_day_blob(stmt, 1),
					       &((struct store_dict *)(uintptr_t)known)->about);
		if (r == -EBADMSG) {
			store_day_done(stmt);
			(void)err_set(err, r, "%s: what is known of a service is damaged",
				      w->day.path);
		}
	}
	return r;
}

int store_about_flush(struct store_writer *w, struct store_writer_tools *t, struct err *err)
{
	int r = 0;

	for (struct store_dict *d = w->dicts; r == 0 && d; d = d->next) {
		if (!d->about.changed || !store_day_has_totals(&w->day))
			continue;
		r = store_about_encode(&d->about, &t->block);
		if (r == 0)
			r = store_day_put(&w->day, STORE_DAY_PUT_ABOUT, d->service,
					  buf_view(&t->block), err);
		d->about.changed = r < 0;
	}
	return r;
}
