/* src/java/jfr/totals.c: see totals.h. */
#include "java/jfr/totals.h"

#include "base/cleanup.h"
#include "base/sum.h"

/* Beyond these, samples keep their own weight. */
#define TOTALS_MAX_THREADS ((size_t)1 << 18)
#define TOTALS_MAX_SAMPLES ((size_t)1 << 20)
#define TOTALS_NONE SIZE_MAX
/* A forged count may be anything; this is exact as a double. */
#define TOTALS_MAX_BYTES ((int64_t)1 << 53)

struct totals_sample {
	int64_t time_ns;
	int64_t weight; /* 0 if it is wrong */
	size_t sum;
	size_t next; /* of the same thread */
};

struct totals_thread {
	uint64_t id;
	uint64_t seen; /* the last round */
	bool has_base;
	bool is_counted; /* since the last settle, and not for the first time */
	int64_t base;	 /* its count where the recording began */
	int64_t given;	 /* of what it has allocated since; or of all, without a base */
	int64_t count;	 /* its last one, and when */
	int64_t count_ns;
	size_t samples; /* the first of a list */
	size_t spare;
};

void java_jfr_totals_release(struct java_jfr_totals *t)
{
	map_release(&t->by_thread);
	buf_release(&t->threads);
	buf_release(&t->samples);
	*t = (struct java_jfr_totals){0};
}

static struct totals_thread *thread_at(struct java_jfr_totals *t, size_t i)
{
	return &((struct totals_thread *)t->threads.data)[i];
}

static struct totals_sample *sample_at(struct java_jfr_totals *t, size_t i)
{
	return &((struct totals_sample *)t->samples.data)[i];
}

/* 1 and the thread; 0 if there are too many. */
static int totals_thread(struct java_jfr_totals *t, uint64_t thread, struct totals_thread **ret)
{
	const struct totals_thread fresh = {
		.id = thread, .seen = t->round, .samples = TOTALS_NONE, .spare = TOTALS_NONE};
	uint64_t at = t->threads.len / sizeof(fresh);
	int r;

	if (map_get(&t->by_thread, thread, &at)) {
		*ret = thread_at(t, at);
		(*ret)->seen = t->round;
		return 1;
	}
	if (at >= TOTALS_MAX_THREADS)
		return 0;
	r = buf_append(&t->threads, &fresh, sizeof(fresh));
	if (r == 0)
		r = map_put(&t->by_thread, thread, at);
	if (r < 0)
		return r;
	*ret = thread_at(t, at);
	return 1;
}

int java_jfr_totals_sample(struct java_jfr_totals *t, uint64_t thread, int64_t time_ns,
			   int64_t weight, size_t sum)
{
	struct totals_sample s = {.time_ns = time_ns, .weight = weight, .sum = sum};
	size_t at = t->samples.len / sizeof(s);
	struct totals_thread *th;
	int r;

	if (at >= TOTALS_MAX_SAMPLES)
		return 0;
	r = totals_thread(t, thread, &th);
	if (r <= 0)
		return r;
	s.next = th->samples;
	r = buf_append(&t->samples, &s, sizeof(s));
	if (r == 0)
		th->samples = at;
	return r;
}

int java_jfr_totals_count(struct java_jfr_totals *t, uint64_t thread, int64_t time_ns,
			  int64_t allocated, bool is_born)
{
	struct totals_thread *th;
	int r = totals_thread(t, thread, &th);
	bool more;

	t->is_counted = true;
	if (r <= 0)
		return r;
	/* Events are not in order of time. */
	if (th->has_base && (time_ns < th->count_ns || allocated < th->count))
		return 0;
	if (!th->has_base && !is_born) {
		th->base = th->count = allocated;
		th->count_ns = time_ns;
		th->given = 0;
		th->has_base = true;
		return 0;
	}
	more = allocated > th->count;
	th->has_base = th->is_counted = true;
	th->count = allocated;
	th->count_ns = time_ns;
	return more;
}

void java_jfr_totals_spare(struct java_jfr_totals *t, uint64_t thread, size_t sum)
{
	struct totals_thread *th;

	if (totals_thread(t, thread, &th) > 0)
		th->spare = sum;
}

void java_jfr_totals_drop(struct java_jfr_totals *t, uint64_t thread, int64_t time_ns)
{
	struct totals_thread *th;

	if (totals_thread(t, thread, &th) <= 0)
		return;
	for (size_t i = th->samples; i != TOTALS_NONE; i = sample_at(t, i)->next)
		if (sample_at(t, i)->time_ns == time_ns)
			sample_at(t, i)->weight = 0;
}

/* The samples of a thread until its last count, or after it. */
struct totals_part {
	bool is_after;
	size_t n;
	int64_t weight;
};

static bool part_has(const struct totals_part *p, const struct totals_thread *th,
		     const struct totals_sample *s)
{
	return p->is_after == (s->time_ns > th->count_ns);
}

static struct totals_part part_of(struct java_jfr_totals *t, const struct totals_thread *th,
				  bool is_after)
{
	struct totals_part p = {.is_after = is_after};

	for (size_t i = th->samples; i != TOTALS_NONE; i = sample_at(t, i)->next) {
		const struct totals_sample *s = sample_at(t, i);

		if (!part_has(&p, th, s))
			continue;
		p.n++;
		p.weight = sum_add(p.weight, s->weight);
	}
	return p;
}

/* Spreads bytes over the samples, by weight; evenly if no weight is known. */
static void part_spread(struct java_jfr_totals *t, const struct totals_thread *th,
			const struct totals_part *p, int64_t bytes,
			void (*add)(void *arg, size_t sum, int64_t bytes), void *arg)
{
	int64_t left = bytes;
	size_t n = p->n;

	for (size_t i = th->samples; i != TOTALS_NONE; i = sample_at(t, i)->next) {
		const struct totals_sample *s = sample_at(t, i);
		int64_t share;

		if (!part_has(p, th, s))
			continue;
		share = p->weight
				? (int64_t)((double)bytes * ((double)s->weight / (double)p->weight))
				: bytes / (int64_t)p->n;
		/* The last one gets what rounding left. */
		share = --n == 0 ? left : MIN(share, left);
		left -= share;
		if (share != s->weight)
			add(arg, s->sum, share - s->weight);
	}
}

static void thread_settle(struct java_jfr_totals *t, struct totals_thread *th,
			  void (*add)(void *arg, size_t sum, int64_t bytes), void *arg)
{
	struct totals_part before = part_of(t, th, false), after = part_of(t, th, true);
	int64_t owed, tail;

	if (!th->is_counted) {
		th->given = sum_add(th->given, after.weight);
		if (!th->has_base)
			th->given = sum_add(th->given, before.weight);
		return;
	}
	owed = MIN(MAX(th->count - th->base - th->given, INT64_C(0)), TOTALS_MAX_BYTES);
	/* The first sample after the count has the weight of what came before it, too. */
	tail = MAX(after.weight - MAX(owed - before.weight, INT64_C(0)), INT64_C(0));
	tail = MIN(tail, TOTALS_MAX_BYTES);
	if (before.n) {
		part_spread(t, th, &before, owed, add, arg);
		if (after.n)
			part_spread(t, th, &after, tail, add, arg);
	} else if (after.n) {
		part_spread(t, th, &after, owed + tail, add, arg);
	} else if (th->spare != TOTALS_NONE) {
		add(arg, th->spare, owed);
	} else {
		owed = 0;
	}
	th->given = sum_add(th->given, owed + tail);
}

/* If out of memory, all are kept. */
static void totals_forget(struct java_jfr_totals *t)
{
	size_t n = t->threads.len / sizeof(struct totals_thread);
	_cleanup_(map_release) struct map by_thread = {0};
	_cleanup_(buf_release) struct buf threads = {0};

	for (size_t i = 0; i < n; i++) {
		const struct totals_thread *th = thread_at(t, i);

		if (t->round - th->seen >= JAVA_JFR_TOTALS_ROUNDS)
			continue;
		if (map_put(&by_thread, th->id, threads.len / sizeof(*th)) < 0 ||
		    buf_append(&threads, th, sizeof(*th)) < 0)
			return;
	}
	if (threads.len == t->threads.len)
		return;
	map_release(&t->by_thread);
	t->by_thread = by_thread;
	by_thread = (struct map){0};
	buf_release(&t->threads);
	t->threads = threads;
	threads = (struct buf){0};
}

void java_jfr_totals_settle(struct java_jfr_totals *t,
			    void (*add)(void *arg, size_t sum, int64_t bytes), void *arg)
{
	for (size_t i = 0; i < t->threads.len / sizeof(struct totals_thread); i++) {
		struct totals_thread *th = thread_at(t, i);

		if (th->is_counted || th->samples != TOTALS_NONE)
			thread_settle(t, th, add, arg);
		th->is_counted = false;
		th->samples = th->spare = TOTALS_NONE;
	}
	buf_clear(&t->samples);
	if (!t->is_counted)
		return;
	totals_forget(t);
	t->is_counted = false;
	t->round++;
}
