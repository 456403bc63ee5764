/* src/store/codec/block_pack.c: the codec of an hour of collections, transposed by stack. */
#include "store/codec/block.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "store/codec/column.h"

#define ZSTD_LEVEL_PACK 1

enum { COLUMN_TIMES, COLUMN_STACKS, COLUMN_COUNTS, COLUMN_INDEX, COLUMN_VALUES, N_COLUMNS };
_Static_assert(N_COLUMNS <= STORE_CODEC_COLUMNS, "the codec has memory for all columns");

struct pack_writer {
	uint8_t *at[N_COLUMNS];
	uint64_t n_stacks;
	uint32_t stack; /* the one before */
	int64_t divisor;
	bool differences;
};

static int writer_begin(struct pack_writer *w, struct store_codec *c,
			const struct store_block_hour *hour)
{
	uint64_t divisor = 0;

	for (unsigned int i = 0; i < N_COLUMNS; i++) {
		w->at[i] = store_column_begin(
			c, i, i == COLUMN_TIMES ? hour->n_times : hour->n_samples, 0);
		if (!w->at[i])
			return -ENOMEM;
	}
	for (size_t i = 0; i < hour->n_samples && divisor != 1; i++)
		divisor = store_block_gcd(divisor, hour->samples[i].value);
	w->divisor = divisor ? (int64_t)divisor : 1;
	return 0;
}

static void writer_put_times(struct pack_writer *w, const struct store_block_hour *hour)
{
	uint32_t before = 0;

	for (size_t i = 0; i < hour->n_times; i++) {
		w->at[COLUMN_TIMES] =
			store_put_varint(w->at[COLUMN_TIMES], hour->times_ms[i] - before);
		before = hour->times_ms[i];
	}
}

/* n samples of one stack. */
static void writer_put_stack(struct pack_writer *w, const struct store_block_sample *s, size_t n)
{
	uint8_t *index = w->at[COLUMN_INDEX], *values = w->at[COLUMN_VALUES];
	uint64_t before = 0;
	uint32_t time = 0;

	w->at[COLUMN_STACKS] = store_put_varint(w->at[COLUMN_STACKS], s->stack - w->stack);
	w->at[COLUMN_COUNTS] = store_put_varint(w->at[COLUMN_COUNTS], n);
	w->stack = s->stack;
	w->n_stacks++;
	for (size_t i = 0; i < n; i++) {
		uint64_t value = (uint64_t)store_block_divide(s[i].value, w->divisor);

		index = store_put_varint(index, s[i].time - time);
		values = store_put_varint(values, store_zigzag((int64_t)(value - before)));
		time = s[i].time;
		if (w->differences)
			before = value;
	}
	w->at[COLUMN_INDEX] = index;
	w->at[COLUMN_VALUES] = values;
}

static int writer_end(struct pack_writer *w, struct store_codec *c,
		      const struct store_block_hour *hour, struct buf *out)
{
	const uint64_t header[] = {hour->n_times, w->n_stacks, hour->n_samples,
				   (uint64_t)w->divisor, w->differences};
	int r = store_codec_begin(out, STORE_CODEC_PACK);

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(header); i++)
		r = buf_append_varint(out, header[i]);
	for (unsigned int i = 0; r == 0 && i < N_COLUMNS; i++)
		r = store_column_end(c, i, w->at[i], ZSTD_LEVEL_PACK, out);
	if (r == 0)
		store_codec_end(out);
	return r;
}

int store_block_encode_pack(struct store_codec *c, const struct store_block_hour *hour,
			    bool differences, struct buf *out)
{
	struct pack_writer w = {.differences = differences};
	size_t n;
	int r;

	if (hour->n_samples > STORE_BLOCK_MAX_SAMPLES)
		return -E2BIG;
	r = writer_begin(&w, c, hour);
	if (r < 0)
		return r;
	writer_put_times(&w, hour);
	for (size_t i = 0; i < hour->n_samples; i += n) {
		for (n = 1; i + n < hour->n_samples; n++)
			if (hour->samples[i + n].stack != hour->samples[i].stack)
				break;
		writer_put_stack(&w, hour->samples + i, n);
	}
	return writer_end(&w, c, hour, out);
}

struct pack_reader {
	uint64_t n_times;
	uint64_t n_stacks;
	uint64_t n_samples;
	uint64_t divisor;
	uint64_t differences;
	uint64_t first; /* indexes of times to be added: first <= index < last */
	uint64_t last;
	bool whole;   /* all of them */
	bool by_time; /* the index of times is needed all the same */
	struct store_cursor columns[N_COLUMNS];
};

/* Which of the times are in the window. */
static bool reader_window(struct pack_reader *p, uint32_t from_ms, uint32_t to_ms)
{
	struct store_cursor times = p->columns[COLUMN_TIMES];
	uint64_t delta, time = 0;

	p->first = p->last = 0;
	for (uint64_t i = 0; i < p->n_times; i++) {
		if (!store_cursor_varint(&times, &delta) || delta >= STORE_BLOCK_HOUR_MS)
			return false;
		time += delta;
		if (time >= STORE_BLOCK_HOUR_MS)
			return false;
		p->first += time < from_ms;
		p->last += time < to_ms;
	}
	p->whole = p->first == 0 && p->last == p->n_times;
	return true;
}

static int reader_begin(struct pack_reader *p, struct view block, struct store_cursor *ret_body)
{
	struct store_cursor *body = ret_body;
	int r = store_codec_open(block, STORE_CODEC_PACK, body);

	if (r < 0)
		return r;
	if (!store_cursor_varint(body, &p->n_times) || !store_cursor_varint(body, &p->n_stacks) ||
	    !store_cursor_varint(body, &p->n_samples) || !store_cursor_varint(body, &p->divisor) ||
	    !store_cursor_varint(body, &p->differences))
		return -EBADMSG;
	return p->divisor == 0 || p->divisor > INT64_MAX ? -EBADMSG : 0;
}

/* The columns from first up to end. */
static int reader_columns(struct pack_reader *p, struct store_codec *c, struct store_cursor *body,
			  unsigned int first, unsigned int end)
{
	int r = 0;

	for (unsigned int i = first; r == 0 && i < end; i++) {
		if (i == COLUMN_INDEX && p->whole && !p->by_time)
			r = store_codec_skip_column(body);
		else
			r = store_codec_get_column(c, body, i, &p->columns[i]);
	}
	return r;
}

static int reader_open(struct pack_reader *p, struct store_codec *c, struct view block,
		       uint32_t from_ms, uint32_t to_ms)
{
	struct store_cursor body;
	int r = reader_begin(p, block, &body);

	if (r == 0)
		r = reader_columns(p, c, &body, COLUMN_TIMES, COLUMN_STACKS);
	if (r < 0)
		return r;
	if (!reader_window(p, from_ms, to_ms))
		return -EBADMSG;
	return reader_columns(p, c, &body, COLUMN_STACKS, N_COLUMNS);
}

/* Adds the values of one stack; the sum still has to be multiplied by the divisor. */
static inline bool sum_stack(struct pack_reader *p, uint64_t n, int64_t *ret_sum, uint64_t *samples)
{
	struct store_cursor values = p->columns[COLUMN_VALUES], index = p->columns[COLUMN_INDEX];
	uint64_t before = 0, time = 0, added = 0, word;
	int64_t sum = 0;

	for (uint64_t i = 0; i < n; i++) {
		int64_t value;

		if (!store_cursor_varint(&values, &word))
			return false;
		value = (int64_t)(before + (uint64_t)store_unzigzag(word));
		if (p->differences)
			before = (uint64_t)value;
		if (!p->whole) {
			if (!store_cursor_varint(&index, &word) || word >= p->n_times)
				return false;
			time += word;
			if (time < p->first || time >= p->last)
				continue;
		}
		sum = store_block_add(sum, value);
		added++;
	}
	p->columns[COLUMN_VALUES] = values;
	p->columns[COLUMN_INDEX] = index;
	*samples += added;
	*ret_sum = sum;
	return true;
}

static int64_t multiply(int64_t sum, int64_t factor)
{
	int64_t product;

	if (__builtin_mul_overflow(sum, factor, &product))
		return sum < 0 ? -INT64_MAX : INT64_MAX;
	return product;
}

/* The next stack, and how many samples it has. */
static inline bool reader_next(struct pack_reader *p, uint64_t *stack, uint64_t *ret_n)
{
	uint64_t delta;

	if (!store_cursor_varint(&p->columns[COLUMN_STACKS], &delta) ||
	    delta > STORE_BLOCK_MAX_STACK || *stack + delta > STORE_BLOCK_MAX_STACK ||
	    !store_cursor_varint(&p->columns[COLUMN_COUNTS], ret_n))
		return false;
	*stack += delta;
	return true;
}

static inline void add_sum(const struct pack_reader *p, struct store_block_sums *sums,
			   uint64_t stack, int64_t sum)
{
	store_block_sums_add(sums, (uint32_t)stack, multiply(sum, (int64_t)p->divisor));
	sums->n_stacks = MAX(sums->n_stacks, (uint32_t)stack + 1);
}

/* One by one: for differences, and for what sum_quickly() refuses. */
static int sum_slowly(struct pack_reader *p, struct store_block_sums *sums, uint64_t *samples)
{
	uint64_t stack = 0, left = p->n_samples, n;
	int64_t sum;

	for (uint64_t i = 0; i < p->n_stacks; i++) {
		if (!reader_next(p, &stack, &n) || n > left || !sum_stack(p, n, &sum, samples))
			return -EBADMSG;
		left -= n;
		add_sum(p, sums, stack, sum);
	}
	return left == 0 ? 0 : -EBADMSG;
}

#define ENDS 0x8080808080808080ULL /* these bits are 0 at the end of a varint */

/* A varint of up to four bytes; the bits above are clear. */
static inline int64_t small_value(uint64_t word)
{
	word = (word & 0x007f007fU) | (word & 0x7f007f00U) >> 1;
	word = (word & 0x3fffU) | (word & 0x3fff0000U) >> 2;
	return store_unzigzag(word);
}

/*
 * Running sums of n values: ret_sums[i] is the sum of the first i. Takes eight bytes at a time,
 * eight values or two, because their lengths are unpredictable for the CPU. False if a varint has
 * more than four bytes, of which a million could overflow, or if the column is damaged.
 */
static bool running_sums(struct store_cursor values, uint64_t n, int64_t *ret_sums)
{
	uint64_t i = 0, word, ends, next;
	int64_t sum = 0;

	while (n - i >= 8 && store_cursor_left(&values) >= sizeof(word)) {
		memcpy(&word, values.at, sizeof(word));
		word = le64toh(word);
		ends = ~word & ENDS;
		next = ends & (ends - 1);
		if (ends == ENDS) {
			for (unsigned int k = 0; k < 8; k++, word >>= 8) {
				ret_sums[i++] = sum;
				sum += store_unzigzag(word & 0xff);
			}
			values.at += 8;
			continue;
		}
		if (next == 0 || (ends & UINT32_MAX) == 0)
			return false;
		ret_sums[i++] = sum;
		sum += small_value(word & (ends ^ (ends - 1)));
		ret_sums[i++] = sum;
		values.at += (__builtin_ctzll(next) >> 3) + 1;
		word = (word & (next ^ (next - 1))) >> __builtin_ctzll(ends) >> 1;
		if (word >> 32)
			return false;
		sum += small_value(word);
	}
	for (; i < n; i++) {
		ret_sums[i] = sum;
		if (!store_cursor_varint(&values, &word) || word >> 28)
			return false;
		sum += store_unzigzag(word);
	}
	ret_sums[n] = sum;
	return true;
}

/* Whether each index of a time has one byte. */
static bool has_short_index(const struct pack_reader *p)
{
	return p->n_times <= 0x80 && store_cursor_left(&p->columns[COLUMN_INDEX]) == p->n_samples;
}

/* Which of the n samples of a stack are in the window, as a range. */
static inline bool stack_window(const struct pack_reader *p, const uint8_t *index, uint64_t n,
				uint64_t range[2])
{
	uint64_t time = 0, most = 0, first = 0, last = 0;

	for (uint64_t i = 0; i < n; i++) {
		most |= index[i] >= p->n_times;
		time += index[i];
		first += time < p->first;
		last += time < p->last;
	}
	range[0] = first;
	range[1] = last;
	return most == 0;
}

/*
 * Stacks have few samples each: with running sums, none is visited. -ENOTSUP: nothing was added;
 * use sum_slowly().
 */
static int sum_quickly(const struct pack_reader *opened, struct store_codec *c,
		       struct store_block_sums *sums, uint64_t *samples)
{
	struct pack_reader p = *opened; /* address not taken: stays in registers */
	const uint8_t *index = p.columns[COLUMN_INDEX].at;
	uint64_t stack = 0, at = 0, n;
	int64_t *running;

	if (p.differences || p.n_samples > STORE_BLOCK_MAX_SAMPLES ||
	    p.n_samples > store_cursor_left(&p.columns[COLUMN_VALUES]) ||
	    (!p.whole && !has_short_index(opened)))
		return -ENOTSUP;
	buf_clear(&c->scratch);
	if (buf_reserve(&c->scratch, (p.n_samples + 1) * sizeof(*running)) < 0)
		return -ENOMEM;
	running = (void *)c->scratch.data;
	if (!running_sums(p.columns[COLUMN_VALUES], p.n_samples, running))
		return -ENOTSUP;
	for (uint64_t i = 0; i < p.n_stacks; i++, at += n) {
		uint64_t range[2] = {0};

		if (!reader_next(&p, &stack, &n) || n > p.n_samples - at)
			return -EBADMSG;
		range[1] = n;
		if (!p.whole && !stack_window(&p, index + at, n, range))
			return -EBADMSG;
		*samples += range[1] - range[0];
		add_sum(&p, sums, stack, running[at + range[1]] - running[at + range[0]]);
	}
	return at == p.n_samples ? 0 : -EBADMSG;
}

int store_block_sum_pack(struct store_codec *c, struct view block, uint32_t from_ms, uint32_t to_ms,
			 struct store_block_sums *sums)
{
	struct pack_reader p = {0};
	uint64_t samples = 0;
	int r = reader_open(&p, c, block, from_ms, to_ms);

	if (r < 0 || p.first == p.last)
		return r;
	sums->torn = true;
	r = sum_quickly(&p, c, sums, &samples);
	if (r == -ENOTSUP)
		r = sum_slowly(&p, sums, &samples);
	if (r < 0)
		return r;
	sums->samples += samples;
	sums->torn = false;
	return 0;
}

static bool skip_varints(struct store_cursor *c, uint64_t n)
{
	uint64_t word;

	while (n >= 8 && store_cursor_left(c) >= sizeof(word)) {
		memcpy(&word, c->at, sizeof(word));
		n -= (uint64_t)__builtin_popcountll(~word & ENDS);
		c->at += sizeof(word);
	}
	for (; n > 0 && c->at < c->end; c->at++)
		n -= *c->at < 0x80;
	return n == 0;
}

/* The n samples of one stack, each to the reading of its time. */
static bool read_stack(struct pack_reader *p, uint64_t n, uint8_t mark,
		       struct store_block_reading *readings)
{
	struct store_cursor *values = &p->columns[COLUMN_VALUES],
			    *index = &p->columns[COLUMN_INDEX];
	uint64_t before = 0, time = 0, word;

	for (uint64_t i = 0; i < n; i++) {
		int64_t value;

		if (!store_cursor_varint(values, &word))
			return false;
		value = (int64_t)(before + (uint64_t)store_unzigzag(word));
		if (p->differences)
			before = (uint64_t)value;
		if (!store_cursor_varint(index, &word) || word >= p->n_times - time)
			return false;
		time += word;
		store_block_reading_add(&readings[time], mark,
					multiply(value, (int64_t)p->divisor));
	}
	return true;
}

static int read_marked(struct pack_reader *p, const uint8_t *marks,
		       struct store_block_reading *readings)
{
	uint64_t stack = 0, left = p->n_samples, skipped = 0, n;

	for (uint64_t i = 0; i < p->n_stacks; i++) {
		if (!reader_next(p, &stack, &n) || n > left)
			return -EBADMSG;
		left -= n;
		if (marks[stack] == STORE_BLOCK_UNMARKED) {
			skipped += n;
			continue;
		}
		if (!skip_varints(&p->columns[COLUMN_VALUES], skipped) ||
		    !skip_varints(&p->columns[COLUMN_INDEX], skipped) ||
		    !read_stack(p, n, marks[stack], readings))
			return -EBADMSG;
		skipped = 0;
	}
	return left == 0 ? 0 : -EBADMSG;
}

static bool any_marked(const struct pack_reader *p, const uint8_t *marks)
{
	struct store_cursor stacks = p->columns[COLUMN_STACKS];
	uint64_t stack = 0, delta;

	while (store_cursor_varint(&stacks, &delta) && delta <= STORE_BLOCK_MAX_STACK) {
		stack += delta;
		if (stack > STORE_BLOCK_MAX_STACK)
			break;
		if (marks[stack] != STORE_BLOCK_UNMARKED)
			return true;
	}
	return false;
}

/* A reading for each time of the pack, without values yet. */
static int read_times(const struct pack_reader *p, struct buf *out)
{
	struct store_cursor times = p->columns[COLUMN_TIMES];
	struct store_block_reading reading = {0};
	uint64_t delta, ms = 0;

	if (p->n_times > STORE_BLOCK_MAX_SAMPLES)
		return -EBADMSG;
	for (uint64_t i = 0; i < p->n_times; i++) {
		if (!store_cursor_varint(&times, &delta) || delta >= STORE_BLOCK_HOUR_MS - ms)
			return -EBADMSG;
		ms += delta;
		reading.ms = (uint32_t)ms;
		if (buf_append(out, &reading, sizeof(reading)) < 0)
			return -ENOMEM;
	}
	return 0;
}

int store_block_read_pack(struct store_codec *c, struct view block, const uint8_t *marks,
			  struct buf *out)
{
	struct pack_reader p = {.by_time = true};
	struct store_cursor body;
	size_t before = out->len;
	int r = reader_begin(&p, block, &body);

	if (r == 0)
		r = reader_columns(&p, c, &body, COLUMN_TIMES, COLUMN_COUNTS);
	if (r == 0)
		r = read_times(&p, out);
	/* Most functions are not in most hours: their values need not be decompressed. */
	if (r == 0 && any_marked(&p, marks)) {
		r = reader_columns(&p, c, &body, COLUMN_COUNTS, N_COLUMNS);
		if (r == 0)
			r = read_marked(&p, marks, (void *)(out->data + before));
	}
	if (r < 0)
		out->len = before;
	return r;
}
