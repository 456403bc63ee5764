/* tests/unit/store/test_numbers.c: values of series are the same after they were written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/metrics/block.h"
#include "store/metrics/numbers.h"

#define N 240

/* Writes and reads them; returns how many bytes they took. */
static size_t round_trip(const double *values, size_t n)
{
	_cleanup_(buf_release) struct buf out = {0};
	double again[N];

	assert_true(n <= N);
	assert_int_equal(store_numbers_encode(values, n, &out), 0);
	assert_true(store_numbers_decode(buf_view(&out), again, n));
	assert_memory_equal(again, values, n * sizeof(*values));
	/* Shorter, they are refused or other numbers, and never read past their end. */
	for (size_t len = 0; len < out.len; len++) {
		_cleanup_free_ uint8_t *cut = malloc(len + 1);

		assert_non_null(cut);
		memcpy(cut, out.data, len);
		cut = realloc(cut, len ? len : 1);
		(void)store_numbers_decode(view_of(cut, len), again, n);
	}
	return out.len;
}

static double noise(uint64_t *state, double range)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(*state >> 33) / 2147483648.0 * range;
}

static void whole_numbers_take_the_bits_they_need(void **state)
{
	uint64_t seed = 1;
	double v[N];

	(void)state;
	for (size_t i = 0; i < N; i++)
		v[i] = 42;
	assert_true(round_trip(v, N) <= 4);
	for (size_t i = 0; i < N; i++)
		v[i] = 1000000 + (double)i * 4096;
	assert_true(round_trip(v, N) <= 80);
	/* Ten bits, in units of 8192. */
	for (size_t i = 0; i < N; i++)
		v[i] = 8192 * floor(noise(&seed, 1024));
	assert_in_range(round_trip(v, N), 290, 320);
	/* A large number now and then. */
	for (size_t i = 0; i < N; i++)
		v[i] = i % 12 == 0 ? floor(noise(&seed, 1 << 20)) : 0;
	assert_in_range(round_trip(v, N), 60, 100);
	/* A level that is left now and then. */
	for (size_t i = 0; i < N; i++)
		v[i] = i % 30 == 0 ? floor(noise(&seed, 1 << 24)) : v[i - 1];
	assert_in_range(round_trip(v, N), 30, 70);
}

static void all_numbers_come_back_to_the_bit(void **state)
{
	const double odd[] = {-0.0,
			      0.0,
			      1,
			      -1,
			      0.1,
			      1e-300,
			      1e300,
			      5e-324,
			      9007199254740992.0,
			      -9007199254740992.0,
			      9007199254740993.0,
			      0.123456789,
			      -1e9,
			      3.5,
			      1e18};
	uint64_t seed = 7;
	double v[N];

	(void)state;
	(void)round_trip(odd, ARRAY_SIZE(odd));
	/* With the digits that the second needs, the first is not exact any more. */
	(void)round_trip((const double[]){-143492424.0859375, -57762657.25493535}, 2);
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++)
		(void)round_trip(&odd[i], 1);
	for (size_t i = 0; i < N; i++)
		v[i] = round(noise(&seed, 100) * 1000) / 1000;
	assert_in_range(round_trip(v, N), 400, 560);
	for (size_t i = 0; i < N; i++)
		v[i] = 100 + noise(&seed, 10) / 3;
	assert_in_range(round_trip(v, N), 1300, 1500);
	v[17] = 1e15;
	v[18] = -1e15;
	(void)round_trip(v, N);
	for (size_t i = 0; i < N; i++)
		v[i] = i == 100 ? 9e15 : -9e15 + (double)i;
	(void)round_trip(v, N);
}

static void single_numbers_come_back(void **state)
{
	const double some[] = {0, -0.0, 1, -1, 127, 1e15, 0.1, -1e300, 9007199254740992.0};
	_cleanup_(buf_release) struct buf out = {0};
	double value;
	size_t at = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(some); i++)
		assert_int_equal(store_numbers_put(&out, some[i]), 0);
	for (size_t i = 0; i < ARRAY_SIZE(some); i++) {
		assert_true(store_numbers_get(buf_view(&out), &at, &value));
		assert_memory_equal(&value, &some[i], sizeof(value));
	}
	assert_int_equal(at, out.len);
	assert_false(store_numbers_get(buf_view(&out), &at, &value));
}

static void an_hour_keeps_its_gaps(void **state)
{
	_cleanup_(store_codec_release) struct store_codec c = {0};
	_cleanup_(buf_release) struct buf out = {0};
	_cleanup_free_ struct store_metrics_hour *h = calloc(1, sizeof(*h));
	static double values[3][2 * N];
	double again[N];
	struct store_metrics_column columns[] = {
		{3, 1, values[0], N}, {4, 2, values[1], N}, {70, 1, values[2], N}};

	(void)state;
	assert_non_null(h);
	for (uint32_t i = 0; i < N; i++) {
		values[0][i] = i < 100 ? NAN : i;
		values[1][i] = i % 7 == 3 ? NAN : i * i;
		values[1][N + i] = i % 7 == 3 ? NAN : 5;
		values[2][i] = NAN;
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(columns); i++) {
		assert_int_equal(store_metrics_encode_hour(&c, 7 + i, &columns[i], &out), 0);
		assert_int_equal(store_metrics_open_hour(buf_view(&out), h), 0);
		assert_int_equal(h->list, 7 + i);
		assert_int_equal(h->width, columns[i].width);
		assert_int_equal(store_metrics_read_hour(&c, h, N), 0);
		for (uint32_t k = 0; k < h->width; k++) {
			assert_int_equal(store_metrics_hour_values(h, k, again), 0);
			for (size_t t = 0; t < N; t++)
				assert_true(isnan(values[i][k * N + t])
						    ? isnan(again[t])
						    : again[t] == values[i][k * N + t]);
		}
		/* Any wrong byte is noticed. */
		for (size_t k = 0; k < out.len; k++) {
			out.data[k] ^= 0x10;
			assert_int_equal(store_metrics_open_hour(buf_view(&out), h), -EBADMSG);
			out.data[k] ^= 0x10;
		}
	}
}

static void times_keep_who_was_read_at_them(void **state)
{
	_cleanup_(buf_release) struct buf out = {0};
	_cleanup_free_ struct store_metrics_times *t = calloc(1, sizeof(*t));
	const uint32_t sets[] = {0, 1, 77, STORE_METRICS_MAX_LABELSET};
	uint32_t times[N], set;

	(void)state;
	assert_non_null(t);
	for (uint32_t i = 0; i < N; i++)
		times[i] = i * 15000 - i % 3 + 2;
	for (size_t n = 1; n <= N; n += N - 1) {
		assert_int_equal(store_metrics_encode_times(times, n, sets, ARRAY_SIZE(sets), &out),
				 0);
		assert_int_equal(store_metrics_decode_times(buf_view(&out), t), 0);
		assert_int_equal(t->n_times, n);
		assert_memory_equal(t->times_ms, times, n * sizeof(*times));
		for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
			assert_int_equal(store_metrics_next_labelset(t, &set), 1);
			assert_int_equal(set, sets[i]);
		}
		assert_int_equal(store_metrics_next_labelset(t, &set), 0);
	}
	/* Some bits each, whatever the interval is. */
	assert_in_range(out.len, 50, 120);
	assert_int_equal(store_metrics_encode_times(times, 0, sets, 1, &out), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_numbers_take_the_bits_they_need),
		cmocka_unit_test(all_numbers_come_back_to_the_bit),
		cmocka_unit_test(single_numbers_come_back),
		cmocka_unit_test(an_hour_keeps_its_gaps),
		cmocka_unit_test(times_keep_who_was_read_at_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
