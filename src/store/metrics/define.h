/*
 * src/store/metrics/define.h: the definition of a metric in a day file, so that the file stays
 * readable when the registry changes or drops it.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "pipeline/registry/registry.h"
#include "store/metrics/block.h"
#include "store/sqlite/day.h"

#define STORE_DEFINE_MAX_TEXT 128U  /* of a name, unit, key or stream, with NUL */
#define STORE_DEFINE_MAX_VALUE 256U /* of an attribute's value; longer ones are truncated */

enum store_define_part {
	STORE_PART_VALUE, /* the value, the increase or the buckets */
	STORE_PART_SUM,	  /* of the values in the buckets */
};

struct store_definition {
	uint32_t id; /* in the day file */
	char name[STORE_DEFINE_MAX_TEXT];
	char unit[STORE_DEFINE_MAX_TEXT];
	char stream[STORE_DEFINE_MAX_TEXT]; /* "": none */
	char keys[METRIC_MAX_ATTRIBUTES][STORE_DEFINE_MAX_TEXT];
	size_t n_keys;
	enum metric_kind kind;
	double bounds[STORE_METRICS_MAX_WIDTH];
	size_t n_bounds;
};

/* -E2BIG: too long, or too many bounds for the store. */
int store_define_encode(const struct metric *metric, struct buf *out);
int store_define_decode(struct view block, struct store_definition *ret);
/* Whether kind, unit, keys and bounds are the same, so that the numbers are compatible. */
bool store_define_agrees(const struct store_definition *a, const struct store_definition *b);

/* The values of attributes: per key varint length + 1 and the bytes, or 0 if not set. */
int store_define_put_attributes(const struct metric *metric, const char *const *values,
				struct buf *out);
/* The value of key i; data NULL if not set. False if damaged. */
bool store_define_attribute(struct view attributes, size_t i, struct view *ret_value);

/* One column of a service. */
struct store_define_column {
	uint32_t column;
	const struct store_definition *metric;
	enum store_define_part part;
	struct view attributes; /* in the dictionary's memory */
};

/* The columns of one service and day. */
struct store_dictionary {
	struct store_definition *metrics;
	size_t n_metrics;
	struct store_define_column *columns; /* by number, ascending */
	size_t n_columns;
	uint8_t *texts;
};
/* Damaged rows are skipped and counted. */
int store_dictionary_load(struct store_dictionary *d, struct store_day *day, uint32_t service,
			  struct err *err);
void store_dictionary_release(struct store_dictionary *d);
