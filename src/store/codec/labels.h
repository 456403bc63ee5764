/*
 * src/store/codec/labels.h: a label set as bytes on disk, sorted by key: varint n, then n times
 * varint length, key, varint length, value.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "store/store.h"

#define STORE_LABELS_MAX 64U
#define STORE_LABELS_MAX_BYTES 16384U

/* -E2BIG with a message past the limits. */
int store_labels_encode(const struct label *labels, size_t n, struct buf *out, struct err *err);
/* Whether every filter is among them; -EBADMSG. */
int store_labels_match(struct view kv, const struct label *filters, size_t n);
/* Calls fn for each; -EBADMSG, or fn's negative return value. */
typedef int store_labels_fn(void *ctx, struct view key, struct view value);
int store_labels_each(struct view kv, store_labels_fn *fn, void *ctx);
