/* src/query/function.c: one function of one or two windows: lines, callers, callees. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sum.h"
#include "profile/frames.h"
#include "query/sums.h"

/* The bytes of a line's key: its number, then its file. */
#define KEY_LINE sizeof(int64_t)

/* Sums of one line or neighbour, by window. */
struct tally {
	int64_t self[2];
	int64_t total[2];
	uint64_t sample; /* the last that was counted, from 1 */
};

/* Tallies by name, or by line. */
struct tallies {
	struct intern keys;
	struct buf items; /* struct tally, by id of the key */
};

struct function_build {
	const struct store_function *function;
	struct tallies lines, callers, callees;
	struct tally whole; /* of the function */
	struct buf key;	    /* scratch */
	uint64_t sample;
	/* The window being added. */
	struct profile_frames frames;
	const struct profile *profile;
	bool *matches; /* by function of the profile */
	size_t index;
};

static void tallies_release(struct tallies *t)
{
	intern_release(&t->keys);
	buf_release(&t->items);
}

static void build_release(struct function_build *b)
{
	tallies_release(&b->lines);
	tallies_release(&b->callers);
	tallies_release(&b->callees);
	buf_release(&b->key);
	profile_frames_release(&b->frames);
	free(b->matches);
}

static struct tally *tally_at(const struct tallies *t, uint32_t id)
{
	return (struct tally *)(void *)t->items.data + id;
}

static int tally_of(struct tallies *t, struct view key, struct tally **ret_tally)
{
	const struct tally none = {0};
	uint32_t id;
	int r = intern_add(&t->keys, key, &id);

	if (r == 0 && id == t->items.len / sizeof(none))
		r = buf_append(&t->items, &none, sizeof(none));
	if (r == 0)
		*ret_tally = tally_at(t, id);
	return r;
}

/* A stack counts once, however often it has the line. */
static void count(struct function_build *b, struct tally *t, int64_t value)
{
	if (t->sample != b->sample)
		t->total[b->index] = sum_add(t->total[b->index], value);
	t->sample = b->sample;
}

static struct view frame_name(const struct function_build *b, const struct profile_line *frame)
{
	return profile_string(b->profile, b->frames.function_names[frame->function]);
}

static int count_neighbour(struct function_build *b, struct tallies *of,
			   const struct profile_line *frame, int64_t value)
{
	struct tally *t;
	int r = frame ? tally_of(of, frame_name(b, frame), &t) : 0;

	if (r == 0 && frame)
		count(b, t, value);
	return r;
}

static int count_line(struct function_build *b, const struct profile_line *frame, bool leaf,
		      int64_t value)
{
	const struct profile_function *f = profile_function_at(b->profile, frame->function);
	struct view file = profile_string(b->profile, f->file);
	struct tally *t = NULL;
	int r;

	buf_clear(&b->key);
	r = buf_append(&b->key, &frame->line, KEY_LINE);
	if (r == 0)
		r = buf_append(&b->key, file.data, file.len);
	if (r == 0)
		r = tally_of(&b->lines, buf_view(&b->key), &t);
	if (r < 0)
		return r;
	count(b, t, value);
	if (leaf)
		t->self[b->index] = sum_add(t->self[b->index], value);
	return 0;
}

/* Of the frames of a stack, from the root: where we are, and what was met before. */
struct walk {
	const struct profile_line *before;
	bool inside;	  /* the outermost frame of the function was met */
	bool after_first; /* it was the frame before this one */
	bool is_leaf;	  /* the last frame met is the function's */
};

static int walk_frame(struct function_build *b, struct walk *w, const struct profile_line *frame,
		      bool leaf, int64_t value)
{
	bool matches = b->matches[frame->function];
	int r = 0;

	if (w->after_first)
		r = count_neighbour(b, &b->callees, frame, value);
	w->after_first = matches && !w->inside;
	if (r == 0 && w->after_first)
		r = count_neighbour(b, &b->callers, w->before, value);
	if (r == 0 && matches)
		r = count_line(b, frame, leaf, value);
	w->inside |= matches;
	w->is_leaf = matches;
	w->before = frame;
	return r;
}

static int add_sample(struct function_build *b, const struct profile_sample *s)
{
	int64_t value = s->values[0];
	struct walk w = {0};
	uint32_t n;
	const uint32_t *locations = profile_stack_at(b->profile, s->stack, &n);
	int r = 0;

	b->sample++;
	for (uint32_t i = n; r == 0 && i-- > 0;) {
		const struct profile_location *l = profile_location_at(b->profile, locations[i]);

		for (uint32_t k = l->n_lines; r == 0 && k-- > 0;)
			r = walk_frame(b, &w, &l->lines[k], i == 0 && k == 0, value);
	}
	if (w.inside)
		count(b, &b->whole, value);
	if (w.is_leaf)
		b->whole.self[b->index] = sum_add(b->whole.self[b->index], value);
	return r;
}

static int find_matches(struct function_build *b)
{
	const struct profile *p = b->profile;

	free(b->matches);
	b->matches = calloc(profile_n_functions(p) + 1, sizeof(*b->matches));
	if (!b->matches)
		return -ENOMEM;
	for (size_t i = 0; i < profile_n_functions(p); i++) {
		const struct profile_function *f = profile_function_at(p, i);

		b->matches[i] = view_eq(profile_string(p, b->frames.function_names[i]),
					view_str(b->function->name)) &&
				(!b->function->file ||
				 view_eq(profile_string(p, f->file), view_str(b->function->file)));
	}
	return 0;
}

static int add_window(struct function_build *b, const struct store_sum *sum, size_t index)
{
	int r;

	b->profile = sum->profile;
	b->index = index;
	profile_frames_release(&b->frames);
	r = profile_frames_init(&b->frames, sum->profile, NULL);
	if (r == 0)
		r = find_matches(b);
	for (size_t i = 0; r == 0 && i < profile_n_samples(b->profile); i++) {
		const struct profile_sample *s = profile_sample_at(b->profile, i);

		if (s->values[0] != 0)
			r = add_sample(b, s);
	}
	return r;
}

static int compare_totals(double a, double a_before, double b, double b_before)
{
	double x = fmax(fabs(a), fabs(a_before)), y = fmax(fabs(b), fabs(b_before));

	return (x < y) - (x > y);
}

static int compare_lines(const void *va, const void *vb)
{
	const struct query_line *a = va, *b = vb;
	int c = compare_totals(a->total, a->before_total, b->total, b->before_total);

	if (c == 0)
		c = strcmp(a->file, b->file);
	return c ? c : (a->line > b->line) - (a->line < b->line);
}

static int compare_neighbours(const void *va, const void *vb)
{
	const struct query_neighbour *a = va, *b = vb;
	int c = compare_totals(a->total, a->before_total, b->total, b->before_total);

	return c ? c : strcmp(a->name, b->name);
}

static int take_lines(struct query_function *f, const struct tallies *t, const uint64_t divisors[2])
{
	f->lines = calloc((size_t)t->keys.len + 1, sizeof(*f->lines));
	if (!f->lines)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->keys.len; i++) {
		const struct tally *from = tally_at(t, i);
		const uint8_t *key = intern_get(&t->keys, i).data;
		struct query_line *to = &f->lines[f->n_lines++];

		memcpy(&to->line, key, KEY_LINE);
		to->file = (const char *)key + KEY_LINE;
		to->self = query_value(from->self[0], divisors[0]);
		to->total = query_value(from->total[0], divisors[0]);
		to->before_self = query_value(from->self[1], divisors[1]);
		to->before_total = query_value(from->total[1], divisors[1]);
	}
	qsort(f->lines, f->n_lines, sizeof(*f->lines), compare_lines);
	return 0;
}

static int take_neighbours(const struct tallies *t, const uint64_t divisors[2],
			   struct query_neighbour **ret, size_t *ret_n)
{
	struct query_neighbour *all = calloc((size_t)t->keys.len + 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->keys.len; i++) {
		const struct tally *from = tally_at(t, i);

		all[i] = (struct query_neighbour){
			.name = (const char *)intern_get(&t->keys, i).data,
			.total = query_value(from->total[0], divisors[0]),
			.before_total = query_value(from->total[1], divisors[1]),
		};
	}
	qsort(all, t->keys.len, sizeof(*all), compare_neighbours);
	*ret = all;
	*ret_n = t->keys.len;
	return 0;
}

static int take_all(struct function_build *b, const struct query_sums *sums,
		    struct query_function *f)
{
	const uint64_t divisors[] = {query_divisor(&sums->sum[0]), query_divisor(&sums->sum[1])};
	int r = take_lines(f, &b->lines, divisors);

	if (r == 0)
		r = take_neighbours(&b->callers, divisors, &f->callers, &f->n_callers);
	if (r == 0)
		r = take_neighbours(&b->callees, divisors, &f->callees, &f->n_callees);
	f->self = query_value(b->whole.self[0], divisors[0]);
	f->total = query_value(b->whole.total[0], divisors[0]);
	f->before_self = query_value(b->whole.self[1], divisors[1]);
	f->before_total = query_value(b->whole.total[1], divisors[1]);
	f->file = "";
	for (size_t i = 0; i < f->n_lines && !*f->file; i++)
		f->file = f->lines[i].file;
	f->window_total = query_total(&sums->sum[0]);
	f->window_before_total = sums->n > 1 ? query_total(&sums->sum[1]) : 0;
	query_sums_describe(sums, &f->about);
	return r;
}

int query_function(struct store *store, const struct store_window *window,
		   const struct store_window *before, const struct store_function *function,
		   struct query_function *ret_function, struct err *err)
{
	_cleanup_(query_sums_release) struct query_sums sums = {0};
	_cleanup_free_ struct function_build *b = calloc(1, sizeof(*b));
	struct query_function f = {.memory = b};
	int r;

	if (!b)
		return err_oom(err);
	b->function = function;
	r = query_sums_read(store, window, before, &sums, err);
	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < sums.n; i++)
		r = add_window(b, &sums.sum[i], i);
	if (r == 0)
		r = take_all(b, &sums, &f);
	TAKE_PTR(b);
	if (r < 0) {
		query_function_release(&f);
		return err_oom(err);
	}
	*ret_function = f;
	return 0;
}

void query_function_release(struct query_function *function)
{
	if (function->memory)
		build_release(function->memory);
	free(function->memory);
	free(function->lines);
	free(function->callers);
	free(function->callees);
	*function = (struct query_function){0};
}
