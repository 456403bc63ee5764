/*
 * src/golang/contention/clock.c: converts a program's delay ticks to seconds.
 *
 * On amd64 they are ticks of the time stamp counter, which runs at one rate for the whole machine;
 * on arm64 the runtime counts nanoseconds. A program whose profile was ever read knows the rate.
 * For others, measure it the way they would: since their start, or over a short time if they do not
 * record that.
 */
#include <elf.h>
#include <math.h>

#include "base/clock.h"
#include "golang/contention/state.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define CLOCK_MEASURE_NS (20 * NS_PER_MS)
/* Two measurements may differ by this much; beyond that, the start uses another clock. */
#define CLOCK_TOLERANCE 1e-3
/* Limits for the rate of a time stamp counter. */
#define TICKS_MIN 1000000LL
#define TICKS_MAX 100000000000LL

struct moment {
	uint64_t ns;
	uint64_t ticks;
};

#if defined(__x86_64__)
/* The closest of a few pairs: we may lose the CPU between two clocks. */
static struct moment moment_now(void)
{
	struct moment best = {0};
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 8; i++) {
		uint64_t before = clock_mono_ns();
		uint64_t ticks = __rdtsc();
		uint64_t after = clock_mono_ns();

		if (after - before >= least)
			continue;
		least = after - before;
		best = (struct moment){.ns = before + least / 2, .ticks = ticks};
	}
	return best;
}

static double ticks_between(struct moment from, struct moment to)
{
	return to.ns > from.ns && to.ticks > from.ticks
		       ? (double)(to.ticks - from.ticks) * 1e9 / (double)(to.ns - from.ns)
		       : 0;
}

static void clock_measure(struct golang_contention *c, const struct golang_contention_ticks *t)
{
	const struct moment start = {.ns = (uint64_t)t->start_time_ns,
				     .ticks = (uint64_t)t->start_ticks};
	struct moment before = moment_now(), now;
	double rate, since_start;

	clock_sleep_ns(CLOCK_MEASURE_NS);
	now = moment_now();
	rate = ticks_between(before, now);
	if (proc_mem_pid(c->process->mem) == 0) {
		c->stats.ticks_per_second = rate;
		c->stats.ticks_how = "this machine's; the core does not record it";
		return;
	}
	c->stats.ticks_per_second = rate;
	c->stats.ticks_how = "measured";
	since_start = start.ticks ? ticks_between(start, now) : 0;
	if (fabs(since_start - rate) > rate * CLOCK_TOLERANCE)
		return;
	c->stats.ticks_per_second = since_start;
	c->stats.ticks_how = "measured since its start";
}
#else
static void clock_measure(struct golang_contention *c, const struct golang_contention_ticks *t)
{
	(void)t;
	c->stats.ticks_per_second = 1e9;
	c->stats.ticks_how = "unknown; assumed to be nanoseconds";
}
#endif

/* Sleeps briefly if it must measure. */
static void contention_clock_from(struct golang_contention *c,
				  const struct golang_contention_ticks *t)
{
	if (t->per_second >= TICKS_MIN && t->per_second <= TICKS_MAX) {
		c->stats.ticks_per_second = (double)t->per_second;
		c->stats.ticks_how = "the program's own";
		return;
	}
	if (c->stats.ticks_per_second > 0)
		return;
	if (proc_mem_machine(c->process->mem) != EM_X86_64) {
		c->stats.ticks_per_second = 1e9;
		c->stats.ticks_how = "nanoseconds";
		return;
	}
	clock_measure(c, t);
}

int golang_contention_clock(struct golang_contention *c, struct err *err)
{
	const struct golang_ticks_layout l = golang_ticks_layout(c->process->layout->minor);
	struct golang_contention_ticks t = {0};
	const struct proc_range ranges[] = {
		{.addr = c->vars.ticks + (uint64_t)l.value,
		 .dst = &t.per_second,
		 .len = sizeof(t.per_second)},
		{.addr = c->vars.ticks + (uint64_t)l.start_ticks,
		 .dst = &t.start_ticks,
		 .len = sizeof(t.start_ticks)},
		{.addr = c->vars.ticks + (uint64_t)l.start_time,
		 .dst = &t.start_time_ns,
		 .len = sizeof(t.start_time_ns)},
	};
	int r = 0;

	if (c->vars.ticks)
		r = proc_mem_readv(c->process->mem, ranges, l.start_ticks < 0 ? 1 : 3, err);
	if (r < 0)
		return r;
	contention_clock_from(c, &t);
	return 0;
}
