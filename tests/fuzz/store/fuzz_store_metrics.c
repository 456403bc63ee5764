/*
 * tests/fuzz/store/fuzz_store_metrics.c: any bytes as blocks of metrics. The first byte chooses the
 * decoder; the seal is made right, so that the checksum does not keep the fuzzer out. What decodes
 * is encoded again and must come to the same numbers. Bytes are also taken as numbers to be
 * written.
 */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/crc.h"
#include "store/metrics/cells.h"
#include "store/metrics/define.h"
#include "store/metrics/numbers.h"

#define MAX_VALUES 512U

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Finite numbers come back to the bit. */
static void feed_values(const uint8_t *data, size_t size, bool whole)
{
	_cleanup_(buf_release) struct buf out = {0};
	double values[MAX_VALUES], again[MAX_VALUES];
	size_t n = 0;

	for (size_t at = 0; at + 8 <= size && n < MAX_VALUES; at += 8) {
		int64_t number;

		memcpy(&number, data + at, sizeof(number));
		if (whole)
			values[n] = (double)(number >> (number & 63));
		else
			memcpy(&values[n], data + at, sizeof(*values));
		n += isfinite(values[n]);
	}
	if (n == 0)
		return;
	assert(store_numbers_encode(values, n, &out) == 0);
	assert(store_numbers_decode(buf_view(&out), again, n));
	assert(memcmp(values, again, n * sizeof(*values)) == 0);
}

static void feed_reading(struct view block)
{
	_cleanup_(store_cells_release) struct store_cells cells = {0};
	_cleanup_(buf_release) struct buf out = {0};
	struct store_metrics_reading r;
	struct store_metrics_cell cell;
	size_t n = 0, again = 0;

	if (store_cells_add_reading(&cells, block, 0) < 0)
		return;
	n = cells.len;
	assert(store_cells_encode_reading(&cells, &out) == 0);
	assert(store_metrics_open_reading(buf_view(&out), &r) == 0);
	while (store_metrics_next_cell(&r, &cell) > 0) {
		assert(cell.width > 0 && cell.width <= STORE_METRICS_MAX_WIDTH);
		for (uint32_t i = 0; i < cell.width; i++)
			assert(isfinite(cell.values[i]));
		again++;
	}
	/* Equal columns became one. */
	assert(again <= n && again == cells.len);
}

static void feed_hour(struct view block, size_t n_times)
{
	_cleanup_(store_codec_release) struct store_codec c = {0};
	static struct store_metrics_hour h;
	static double values[STORE_METRICS_MAX_TIMES];

	if (store_metrics_open_hour(block, &h) < 0 || store_metrics_read_hour(&c, &h, n_times) < 0)
		return;
	assert(h.width > 0 && h.width <= STORE_METRICS_MAX_WIDTH && h.n_present <= n_times);
	for (uint32_t i = 0; i < h.width; i++) {
		size_t present = 0;

		if (store_metrics_hour_values(&h, i, values) < 0)
			return;
		for (size_t k = 0; k < n_times; k++) {
			assert(isnan(values[k]) || isfinite(values[k]));
			present += !isnan(values[k]);
		}
		assert(present == h.n_present);
	}
}

static void feed_times(struct view block)
{
	_cleanup_(buf_release) struct buf out = {0};
	static struct store_metrics_times t, again;
	uint32_t set, before = 0;

	if (store_metrics_decode_times(block, &t) < 0)
		return;
	assert(t.n_times > 0 && t.n_times <= STORE_METRICS_MAX_TIMES);
	for (size_t i = 0; i < t.n_times; i++)
		assert(t.times_ms[i] < STORE_METRICS_HOUR_MS &&
		       (i == 0 || t.times_ms[i] >= t.times_ms[i - 1]));
	assert(store_metrics_encode_times(t.times_ms, t.n_times, NULL, 0, &out) == 0);
	assert(store_metrics_decode_times(buf_view(&out), &again) == 0);
	assert(again.n_times == t.n_times &&
	       memcmp(again.times_ms, t.times_ms, t.n_times * sizeof(*t.times_ms)) == 0);
	while (store_metrics_next_labelset(&t, &set) > 0) {
		assert(set >= before && set <= STORE_METRICS_MAX_LABELSET);
		before = set;
	}
}

static void feed_definition(struct view block)
{
	struct store_definition d = {0}, again = {0};
	struct metric m = {0};
	_cleanup_(buf_release) struct buf out = {0};

	if (store_define_decode(block, &d) < 0)
		return;
	m = (struct metric){.name = d.name,
			    .kind = d.kind,
			    .unit = d.unit,
			    .stream = d.stream,
			    .bounds = d.bounds,
			    .n_bounds = d.n_bounds};
	for (size_t i = 0; i < d.n_keys; i++)
		m.attributes[i] = d.keys[i];
	assert(store_define_encode(&m, &out) == 0);
	assert(store_define_decode(buf_view(&out), &again) == 0);
	assert(strcmp(d.name, again.name) == 0 && again.n_keys == d.n_keys);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ uint8_t *block = malloc(size + 8);
	double values[MAX_VALUES];
	struct view v;
	uint32_t crc;

	if (!block || size < 1)
		return 0;
	for (size_t i = 0; i < 4; i++) {
		struct view value;

		(void)store_define_attribute(view_of(data, size), i, &value);
	}
	(void)store_numbers_decode(view_of(data, size), values, 1 + size % MAX_VALUES);
	block[0] = STORE_CODEC_VERSION;
	block[1] = STORE_CODEC_READING;
	memcpy(block + 6, data + 1, size - 1);
	v = view_of(block, size + 5);
	crc = crc32c(view_of(block + 6, size - 1));
	memcpy(block + 2, &crc, sizeof(crc));
	switch (data[0] % 6) {
	case 0:
		feed_reading(v);
		break;
	case 1:
		block[1] = STORE_CODEC_HOUR;
		feed_hour(v, 1 + size % STORE_METRICS_MAX_TIMES);
		break;
	case 2:
		block[1] = STORE_CODEC_METRIC;
		feed_definition(v);
		break;
	case 3:
		block[1] = STORE_CODEC_TIMES;
		feed_times(v);
		break;
	default:
		feed_values(data + 1, size - 1, data[0] % 6 == 4);
	}
	return 0;
}
