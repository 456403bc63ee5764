/*
 * src/store/metrics/define.h: the definition of a metric in a day file, so that the file stays
 * readable when the registry changes or drops it.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "pipeline/registry/registry.h"
#include "store/metrics/block.h"
#include "store/metrics/damage.h"
#include "store/sqlite/day.h"

#define DEFINE_MAX_TEXT 128U  /* of a name, unit, key or stream, with NUL */
#define DEFINE_MAX_VALUE 256U /* of an attribute's value; longer ones are truncated */

enum define_part {
	PART_VALUE, /* the value, the increase or the buckets */
	PART_SUM,   /* of the values in the buckets */
};

struct definition {
	uint32_t id; /* in the day file */
	char name[DEFINE_MAX_TEXT];
	char unit[DEFINE_MAX_TEXT];
	char stream[DEFINE_MAX_TEXT]; /* "": none */
	char keys[METRIC_MAX_ATTRIBUTES][DEFINE_MAX_TEXT];
	size_t n_keys;
	enum metric_kind kind;
	double bounds[METRICS_MAX_WIDTH];
	size_t n_bounds;
};

/* -E2BIG: too long, or too many bounds for the store. */
int define_encode(const struct metric *metric, struct buf *out);
int define_decode(struct view block, struct definition *ret);
/* Whether kind, unit, keys and bounds are the same, so that the numbers are compatible. */
bool define_agrees(const struct definition *a, const struct definition *b);

/* The values of attributes: per key varint length + 1 and the bytes, or 0 if not set. */
int define_put_attributes(const struct metric *metric, const char *const *values, struct buf *out);
/* The value of key i; data NULL if not set. False if damaged. */
bool define_attribute(struct view attributes, size_t i, struct view *ret_value);

/* One column of a service. */
struct define_column {
	uint32_t column;
	const struct definition *metric;
	enum define_part part;
	struct view attributes; /* in the dictionary's memory */
};

/* The columns of one service and day. */
struct dictionary {
	struct definition *metrics;
	size_t n_metrics;
	struct define_column *columns; /* by number, ascending */
	size_t n_columns;
	uint8_t *texts;
};
/* Damaged rows are skipped and counted. */
int dictionary_load(struct dictionary *d, struct day *day, uint32_t service, struct damage *damage,
		    struct err *err);
void dictionary_release(struct dictionary *d);
