/* src/store/metrics/numbers.c: see numbers.h. */
#include "store/metrics/numbers.h"

#include <errno.h>
#include <math.h>

#include "base/cleanup.h"
#include "store/codec/codec.h"
#include "store/metrics/bits.h"

#define WHOLE_MOST (1ULL << 53) /* whole numbers up to this are exact */
#define WHOLE_MAX ((double)WHOLE_MOST)
#define ESCAPE 24U /* a Rice quotient that stands for a plain number */
#define PLAIN_BITS 56U
#define MAX_DIGITS 9U

enum { HOW_SAME, HOW_WHOLE, HOW_ANY, HOW_NOISE };
enum code { CODE_WIDTH, CODE_RICE, CODE_SPARSE, N_CODES };
#define DIFFERENCES 4U

static const double powers[MAX_DIGITS + 1] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};

static bool is_whole(double value)
{
	return fabs(value) <= WHOLE_MAX && value == (double)(int64_t)value &&
	       !(value == 0 && signbit(value));
}

int store_numbers_put(struct buf *out, double value)
{
	uint64_t bits;
	int r;

	if (is_whole(value))
		return buf_append_varint(out, store_zigzag((int64_t)value) << 1);
	memcpy(&bits, &value, sizeof(bits));
	bits = htole64(bits);
	r = buf_append_varint(out, 1);
	return r < 0 ? r : buf_append(out, &bits, sizeof(bits));
}

bool store_numbers_get(struct view bytes, size_t *at, double *ret_value)
{
	uint64_t word;

	if (!view_varint(bytes, at, &word))
		return false;
	if (!(word & 1)) {
		*ret_value = (double)store_unzigzag(word >> 1);
		return fabs(*ret_value) <= WHOLE_MAX;
	}
	if (word != 1 || !view_u64(bytes, *at, &word))
		return false;
	word = le64toh(word);
	memcpy(ret_value, &word, sizeof(word));
	*at += sizeof(word);
	return isfinite(*ret_value);
}

/* --- whole numbers */

static bool has_digits(double value, unsigned int digits)
{
	double whole = nearbyint(value * powers[digits]);

	return is_whole(whole) && whole / powers[digits] == value;
}

/* How many decimal digits make all of them whole; over MAX_DIGITS: none. */
static unsigned int digits_of(const double *values, size_t n)
{
	unsigned int digits = 0;

	for (size_t i = 0; i < n && digits <= MAX_DIGITS; i++)
		while (digits <= MAX_DIGITS && !has_digits(values[i], digits))
			digits++;
	/* With more digits, earlier whole ones may become too large. */
	for (size_t i = 0; i < n && digits <= MAX_DIGITS; i++)
		if (!has_digits(values[i], digits))
			digits = MAX_DIGITS + 1;
	return digits;
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

struct whole {
	int64_t *values;
	size_t n;
	int64_t least;
	uint64_t most; /* above the minimum */
	uint64_t divisor;
};

/* Number i, as written. */
static inline uint64_t whole_at(const struct whole *w, size_t i, bool differences)
{
	int64_t d = (int64_t)w->divisor;

	if (differences)
		return store_zigzag((w->values[i] - w->values[i - 1]) / d);
	return (uint64_t)(w->values[i] - w->least) / w->divisor;
}

static void whole_measure(struct whole *w)
{
	w->least = w->values[0];
	for (size_t i = 1; i < w->n; i++)
		w->least = MIN(w->least, w->values[i]);
	w->divisor = 0;
	w->most = 0;
	for (size_t i = 0; i < w->n; i++) {
		uint64_t above = (uint64_t)(w->values[i] - w->least);

		w->most = MAX(w->most, above);
		if (w->divisor != 1)
			w->divisor = gcd(w->divisor, above);
	}
	if (w->divisor == 0)
		w->divisor = 1;
}

static unsigned int width_of(uint64_t value)
{
	return value ? 64U - (unsigned int)__builtin_clzll(value) : 0;
}

static uint64_t rice_bits(uint64_t value, unsigned int k)
{
	uint64_t quotient = value >> k;

	return quotient < ESCAPE ? quotient + 1 + k : ESCAPE + 1 + PLAIN_BITS;
}

/* How a series is encoded: which numbers, in which code. */
struct plan {
	bool differences;
	enum code code;
	unsigned int parameter;
	uint64_t bits;
};

static void plan_better(struct plan *best, const struct plan *p)
{
	if (p->bits < best->bits)
		*best = *p;
}

/* The size in bits of a Rice code with parameter k, for all numbers or the nonzero ones. */
static uint64_t rice_cost(const struct whole *w, const struct plan *p)
{
	uint64_t bits = 0;

	for (size_t i = p->differences; i < w->n; i++) {
		uint64_t v = whole_at(w, i, p->differences);

		if (p->code == CODE_RICE)
			bits += rice_bits(v, p->parameter);
		else
			bits += v ? 1 + rice_bits(v - 1, p->parameter) : 1;
	}
	return bits;
}

static void plan_rice(const struct whole *w, struct plan p, double mean, struct plan *best)
{
	/* Best for a geometric distribution: about log2 of the mean times ln 2. */
	int k = mean > 1 ? (int)log2(mean * 0.69) : 0;

	for (int i = MAX(k - 1, 0); i <= MIN(k + 1, 48); i++) {
		p.parameter = (unsigned int)i;
		p.bits = rice_cost(w, &p);
		plan_better(best, &p);
	}
}

static void plan_numbers(const struct whole *w, bool differences, struct plan *best)
{
	struct plan p = {.differences = differences, .code = CODE_WIDTH};
	uint64_t most = 0, some = 0;
	double sum = 0;

	for (size_t i = differences; i < w->n; i++) {
		uint64_t v = whole_at(w, i, differences);

		most = MAX(most, v);
		some += v != 0;
		sum += (double)v;
	}
	p.parameter = width_of(most);
	p.bits = (w->n - differences) * p.parameter;
	if (p.parameter <= STORE_BITS_MAX)
		plan_better(best, &p);
	p.code = CODE_RICE;
	plan_rice(w, p, sum / (double)(w->n - differences), best);
	p.code = CODE_SPARSE;
	if (some > 0)
		plan_rice(w, p, sum / (double)some, best);
}

static int put_rice(struct store_bits_writer *b, uint64_t value, unsigned int k)
{
	uint64_t quotient = value >> k;
	int r;

	if (quotient >= ESCAPE) {
		r = store_bits_put(b, 1ULL << ESCAPE, ESCAPE + 1);
		return r < 0 ? r : store_bits_put(b, value, PLAIN_BITS);
	}
	r = store_bits_put(b, 1ULL << quotient, (unsigned int)quotient + 1);
	return r < 0 ? r : store_bits_put(b, value & ((1ULL << k) - 1), k);
}

static int put_code(struct store_bits_writer *b, const struct plan *p, uint64_t value)
{
	int r;

	if (p->code == CODE_WIDTH)
		return store_bits_put(b, value, p->parameter);
	if (p->code == CODE_RICE)
		return put_rice(b, value, p->parameter);
	r = store_bits_put(b, value != 0, 1);
	return r < 0 || value == 0 ? r : put_rice(b, value - 1, p->parameter);
}

static int encode_whole(struct whole *w, unsigned int digits, struct buf *out)
{
	struct plan p = {.bits = UINT64_MAX};
	struct store_bits_writer b = {.out = out};
	uint8_t head[4] = {HOW_WHOLE, (uint8_t)digits};
	int r;

	whole_measure(w);
	plan_numbers(w, false, &p);
	if (w->n > 1)
		plan_numbers(w, true, &p);
	head[2] = (uint8_t)(p.code | (p.differences ? DIFFERENCES : 0));
	head[3] = (uint8_t)p.parameter;
	r = buf_append(out, head, sizeof(head));
	if (r == 0)
		r = buf_append_varint(out, store_zigzag(p.differences ? w->values[0] : w->least));
	if (r == 0)
		r = buf_append_varint(out, w->divisor);
	for (size_t i = p.differences; r == 0 && i < w->n; i++)
		r = put_code(&b, &p, whole_at(w, i, p.differences));
	return r < 0 ? r : store_bits_end(&b);
}

/* --- any numbers */

static uint64_t bits_of(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* Up to 64 bits, in two halves. */
static int put_wide(struct store_bits_writer *b, uint64_t value, unsigned int width)
{
	int r = store_bits_put(b, value & UINT32_MAX, MIN(width, 32U));

	return r < 0 || width <= 32 ? r : store_bits_put(b, value >> 32, width - 32);
}

static uint64_t take_wide(struct store_bits_reader *b, unsigned int width)
{
	uint64_t low = store_bits_take(b, MIN(width, 32U));

	return width <= 32 ? low : low | store_bits_take(b, width - 32) << 32;
}

static int encode_noise(const double *values, size_t n, struct buf *out)
{
	uint64_t first = bits_of(values[0]), all = 0, stored = htole64(first);
	struct store_bits_writer b = {.out = out};
	uint8_t head[2];
	int r = buf_append_byte(out, HOW_NOISE);

	for (size_t i = 1; i < n; i++)
		all |= bits_of(values[i]) ^ first;
	head[1] = all ? (uint8_t)__builtin_ctzll(all) : 0;
	head[0] = (uint8_t)width_of(all >> head[1]);
	if (r == 0)
		r = buf_append(out, &stored, sizeof(stored));
	if (r == 0)
		r = buf_append(out, head, sizeof(head));
	for (size_t i = 1; r == 0 && i < n; i++)
		r = put_wide(&b, (bits_of(values[i]) ^ first) >> head[1], head[0]);
	return r < 0 ? r : store_bits_end(&b);
}

static bool decode_noise(struct view bytes, double *values, size_t n)
{
	struct store_bits_reader b = {.bytes = bytes, .at = 80};
	uint8_t width, zeros;
	uint64_t first;

	if (!view_u64(bytes, 0, &first) || !view_u8(bytes, 8, &width) ||
	    !view_u8(bytes, 9, &zeros) || width + zeros > 64 || zeros > 63)
		return false;
	first = le64toh(first);
	for (size_t i = 0; i < n; i++) {
		uint64_t bits = i == 0 ? first : first ^ take_wide(&b, width) << zeros;

		memcpy(&values[i], &bits, sizeof(bits));
		if (!isfinite(values[i]))
			return false;
	}
	return store_bits_ok(&b);
}

static int encode_xor(const double *values, size_t n, struct buf *out)
{
	struct store_bits_writer b = {.out = out};
	unsigned int lead = 64, trail = 0;
	uint64_t before, bits;
	int r = buf_append_byte(out, HOW_ANY);

	memcpy(&before, &values[0], sizeof(before));
	bits = htole64(before);
	if (r == 0)
		r = buf_append(out, &bits, sizeof(bits));
	for (size_t i = 1; r == 0 && i < n; i++) {
		uint64_t x;

		memcpy(&bits, &values[i], sizeof(bits));
		x = bits ^ before;
		before = bits;
		r = store_bits_put(&b, x != 0, 1);
		if (r < 0 || x == 0)
			continue;
		/* If it fits between the previous zeros, they are not repeated. */
		if (lead < 64 && (unsigned int)__builtin_clzll(x) >= lead &&
		    (unsigned int)__builtin_ctzll(x) >= trail) {
			r = store_bits_put(&b, 0, 1);
		} else {
			lead = (unsigned int)__builtin_clzll(x);
			trail = (unsigned int)__builtin_ctzll(x);
			r = store_bits_put(&b, 1 | lead << 1 | trail << 7, 13);
		}
		if (r == 0)
			r = put_wide(&b, x >> trail, 64 - lead - trail);
	}
	return r < 0 ? r : store_bits_end(&b);
}

/* The shorter of both. */
static int encode_any(const double *values, size_t n, struct buf *out)
{
	_cleanup_(buf_release) struct buf noise = {0};
	size_t begin = out->len;
	int r = encode_xor(values, n, out);

	if (r == 0)
		r = encode_noise(values, n, &noise);
	if (r < 0 || noise.len >= out->len - begin)
		return r;
	out->len = begin;
	return buf_append(out, noise.data, noise.len);
}

static bool decode_any(struct view bytes, double *values, size_t n)
{
	struct store_bits_reader b = {.bytes = bytes, .at = 64};
	unsigned int lead = 0, trail = 0;
	uint64_t bits;

	if (!view_u64(bytes, 0, &bits))
		return false;
	bits = le64toh(bits);
	for (size_t i = 0; i < n; i++) {
		if (i > 0 && store_bits_take(&b, 1)) {
			if (store_bits_take(&b, 1)) {
				lead = (unsigned int)store_bits_take(&b, 6);
				trail = (unsigned int)store_bits_take(&b, 6);
				if (lead + trail > 63)
					return false;
			}
			bits ^= take_wide(&b, 64 - lead - trail) << trail;
		}
		memcpy(&values[i], &bits, sizeof(bits));
		if (!isfinite(values[i]))
			return false;
	}
	return store_bits_ok(&b);
}

/* --- both */

/* Tells 0 from -0. */
static bool is_same(double a, double b)
{
	return a == b && signbit(a) == signbit(b);
}

int store_numbers_encode(const double *values, size_t n, struct buf *out)
{
	_cleanup_free_ int64_t *whole = NULL;
	struct whole w = {.n = n};
	unsigned int digits;
	size_t same = 1;
	int r;

	while (same < n && is_same(values[same], values[0]))
		same++;
	if (same == n) {
		r = buf_append_byte(out, HOW_SAME);
		return r < 0 ? r : store_numbers_put(out, values[0]);
	}
	digits = digits_of(values, n);
	if (digits > MAX_DIGITS)
		return encode_any(values, n, out);
	w.values = whole = calloc(n + 1, sizeof(*whole));
	if (!whole)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		whole[i] = (int64_t)nearbyint(values[i] * powers[digits]);
	return encode_whole(&w, digits, out);
}

/* A number in Rice's code; word has the bits after the first few. */
static inline __attribute__((always_inline)) uint64_t
take_rice(struct store_bits_reader *b, uint64_t word, unsigned int before, unsigned int k)
{
	/* The escape is its own bit: so there always is one, and a quotient below. */
	unsigned int quotient = (unsigned int)__builtin_ctzll(word | 1ULL << ESCAPE);

	if (quotient == ESCAPE) {
		b->at += before + ESCAPE + 1;
		return store_bits_take(b, PLAIN_BITS);
	}
	if (before + quotient + 1 + k <= STORE_BITS_MAX) {
		b->at += before + quotient + 1 + k;
		return (uint64_t)quotient << k | (word >> (quotient + 1) & ((1ULL << k) - 1));
	}
	b->at += before + quotient + 1;
	return (uint64_t)quotient << k | store_bits_take(b, k);
}

static inline __attribute__((always_inline)) uint64_t
take_code(struct store_bits_reader *b, enum code code, unsigned int parameter)
{
	uint64_t word;

	if (code == CODE_WIDTH)
		return store_bits_take(b, parameter);
	word = store_bits_peek(b);
	if (code == CODE_RICE)
		return take_rice(b, word, 0, parameter);
	if (word & 1)
		return take_rice(b, word >> 1, 1, parameter) + 1;
	b->at++;
	return 0;
}

struct whole_head {
	double power;
	bool differences;
	enum code code;
	unsigned int parameter;
	int64_t base;
	uint64_t divisor;
};

/* Inlined into each caller, so that reader and code stay in registers. */
static inline __attribute__((always_inline)) bool decode_code(struct store_bits_reader b,
							      const struct whole_head *h,
							      enum code code, double *values,
							      size_t n)
{
	uint64_t base = (uint64_t)h->base, value = base, divisor = h->divisor, wrong = 0;
	unsigned int parameter = h->parameter;
	bool differences = h->differences;

	/* Wraparound is harmless: impossible values are rejected afterwards. */
	for (size_t i = 0; i < n; i++) {
		if (!differences)
			value = base + take_code(&b, code, parameter) * divisor;
		else if (i > 0)
			value += (uint64_t)store_unzigzag(take_code(&b, code, parameter)) * divisor;
		wrong |= value + WHOLE_MOST > 2 * WHOLE_MOST;
		values[i] = (double)(int64_t)value;
	}
	for (size_t i = 0; h->power != 1 && i < n; i++)
		values[i] /= h->power;
	return !wrong && store_bits_ok(&b);
}

static bool decode_whole(struct view bytes, double *values, size_t n)
{
	struct whole_head h;
	struct view rest;
	uint64_t base;
	size_t at = 3;

	if (bytes.len < 3 || bytes.data[0] > MAX_DIGITS || (bytes.data[1] & 3) >= N_CODES ||
	    bytes.data[1] > 7 || bytes.data[2] > STORE_BITS_MAX ||
	    !view_varint(bytes, &at, &base) || !view_varint(bytes, &at, &h.divisor) ||
	    !view_sub(bytes, at, bytes.len - at, &rest))
		return false;
	h.power = powers[bytes.data[0]];
	h.code = bytes.data[1] & 3;
	h.differences = bytes.data[1] & DIFFERENCES;
	h.parameter = bytes.data[2];
	h.base = store_unzigzag(base);
	const struct store_bits_reader b = {.bytes = rest};
	switch (h.code) {
	case CODE_WIDTH:
		return decode_code(b, &h, CODE_WIDTH, values, n);
	case CODE_RICE:
		return decode_code(b, &h, CODE_RICE, values, n);
	default:
		return decode_code(b, &h, CODE_SPARSE, values, n);
	}
}

bool store_numbers_decode(struct view bytes, double *values, size_t n)
{
	struct view rest;
	size_t at = 0;

	if (n == 0 || bytes.len == 0 || !view_sub(bytes, 1, bytes.len - 1, &rest))
		return false;
	switch (bytes.data[0]) {
	case HOW_SAME:
		if (!store_numbers_get(rest, &at, &values[0]))
			return false;
		for (size_t i = 1; i < n; i++)
			values[i] = values[0];
		return true;
	case HOW_WHOLE:
		return decode_whole(rest, values, n);
	case HOW_ANY:
		return decode_any(rest, values, n);
	case HOW_NOISE:
		return decode_noise(rest, values, n);
	default:
		return false;
	}
}
