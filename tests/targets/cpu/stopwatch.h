/*
 * stopwatch.h: the CPU time of a thread, by what it was spent on.
 *
 * Time, not units of work: the same loop may run at twice the speed, depending on who called it and
 * on where the compiler put it.
 */
#pragma once

#include <stdint.h>
#include <time.h>

#define STOPWATCH_PARTS 3

struct stopwatch {
	uint64_t last_ns;
	uint64_t spent_ns[STOPWATCH_PARTS];
	double best[STOPWATCH_PARTS]; /* nanoseconds a unit */
};

static inline uint64_t stopwatch_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline void stopwatch_start(struct stopwatch *w)
{
	w->last_ns = stopwatch_now();
}

/*
 * Since the last call it was this part. What takes many times as long as usual was not run
 * meanwhile: the clock of a virtual machine runs on.
 */
static inline void stopwatch_count(struct stopwatch *w, int part, unsigned long units)
{
	uint64_t now = stopwatch_now(), ns = now - w->last_ns;
	double each = (double)ns / (double)units;

	if (w->best[part] <= 0 || each < w->best[part])
		w->best[part] = each;
	if (each > 4 * w->best[part])
		ns = (uint64_t)(4 * w->best[part] * (double)units);
	w->spent_ns[part] += ns;
	w->last_ns = now;
}
