/* src/store/codec/labels.c: label sets on disk. */
#include "store/codec/labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int compare_labels(const void *va, const void *vb)
{
	const struct label *a = va, *b = vb;
	int by_key = strcmp(a->key, b->key);

	return by_key ? by_key : strcmp(a->value, b->value);
}

static int put_text(struct buf *out, const char *text)
{
	int r = buf_append_varint(out, strlen(text));

	return r < 0 ? r : buf_append_str(out, text);
}

int store_labels_encode(const struct label *labels, size_t n, struct buf *out, struct err *err)
{
	struct label sorted[STORE_LABELS_MAX];
	int r;

	if (n > STORE_LABELS_MAX)
		return err_set(err, -E2BIG, "too many labels: %zu, at most %u", n,
			       STORE_LABELS_MAX);
	if (n > 0) {
		memcpy(sorted, labels, n * sizeof(*labels));
		qsort(sorted, n, sizeof(*sorted), compare_labels);
	}
	r = buf_append_varint(out, n);
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = put_text(out, sorted[i].key);
		if (r == 0)
			r = put_text(out, sorted[i].value);
	}
	if (r == 0 && out->len > STORE_LABELS_MAX_BYTES)
		r = -E2BIG;
	return r < 0 ? err_set(err, r, "the labels of a process exceed %u bytes",
			       STORE_LABELS_MAX_BYTES)
		     : 0;
}

static bool get_text(struct view kv, size_t *at, struct view *ret)
{
	uint64_t len;

	if (!view_varint(kv, at, &len) || !view_sub(kv, *at, len, ret))
		return false;
	*at += len;
	return true;
}

int store_labels_each(struct view kv, store_labels_fn *fn, void *ctx)
{
	struct view key, value;
	size_t at = 0;
	uint64_t n;
	int r = 0;

	if (!view_varint(kv, &at, &n) || n > STORE_LABELS_MAX)
		return -EBADMSG;
	for (uint64_t i = 0; r >= 0 && i < n; i++) {
		if (!get_text(kv, &at, &key) || !get_text(kv, &at, &value))
			return -EBADMSG;
		r = fn(ctx, key, value);
	}
	return r < 0 ? r : 0;
}

struct matching {
	const struct label *filter;
	bool found;
};

static int match_one(void *ctx, struct view key, struct view value)
{
	struct matching *m = ctx;

	m->found = m->found || (view_eq(key, view_str(m->filter->key)) &&
				view_eq(value, view_str(m->filter->value)));
	return 0;
}

int store_labels_match(struct view kv, const struct label *filters, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct matching m = {.filter = &filters[i]};
		int r = store_labels_each(kv, match_one, &m);

		if (r < 0)
			return r;
		if (!m.found)
			return false;
	}
	return true;
}
