/*
 * src/golang/metrics/gc_check.c: whether these can be the figures of a garbage collector.
 *
 * gcMarkTermination (runtime/mgc.go) writes them together while the world is stopped: the time, the
 * pause into the ring and into the total, then the count. So they confirm each other, in every
 * reading, and those of two readings confirm each other again.
 */
#include "base/cleanup.h"
#include "golang/metrics/layout.h"

/* Go is younger than 2009, and these clocks end before 2116. */
#define OLDEST_UNIX_NS UINT64_C(1230768000000000000)
#define NEWEST_UNIX_NS ((uint64_t)1 << 62)

#define RING 256
/* A count that has grown by more than this has been set back. */
#define MAX_GROWTH ((uint32_t)1 << 31)

/* The sum of the newest n pauses; a forged one may wrap. */
static uint64_t newest_pauses(const struct golang_metrics_gc *gc, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t i = 1; i <= n; i++)
		sum += gc->pauses_ns[(gc->n_gc - i) % RING];
	return sum;
}

static const char *doubt_none_yet(const struct golang_metrics_gc *gc)
{
	if (gc->last_unix_ns || gc->pause_total_ns || gc->n_forced)
		return "there were no garbage collections, but pauses";
	return NULL;
}

static const char *doubt_some(const struct golang_metrics_gc *gc)
{
	uint64_t known = newest_pauses(gc, MIN(gc->n_gc, (uint32_t)RING));

	if (gc->last_unix_ns < OLDEST_UNIX_NS || gc->last_unix_ns > NEWEST_UNIX_NS)
		return "the time of the last garbage collection is impossible";
	if (gc->pause_ends[(gc->n_gc - 1) % RING] != gc->last_unix_ns)
		return "the last garbage collection has two different times";
	if (gc->n_gc <= RING ? known != gc->pause_total_ns : known > gc->pause_total_ns)
		return "the pauses of garbage collections do not add up";
	return NULL;
}

static const char *doubt_growth(const struct golang_metrics_gc *gc,
				const struct golang_metrics_gc_mark *before)
{
	uint32_t grown = gc->n_gc - before->n_gc;
	uint64_t paused = gc->pause_total_ns - before->pause_total_ns;

	if (grown > MAX_GROWTH || gc->pause_total_ns < before->pause_total_ns)
		return "the number of garbage collections, or their pauses, decreased";
	if (grown == 0 && gc->last_unix_ns != before->last_unix_ns)
		return "the last garbage collection has two different times";
	if (grown <= RING && newest_pauses(gc, grown) != paused)
		return "the pauses of garbage collections do not add up";
	return NULL;
}

const char *golang_metrics_gc_doubt(const struct golang_metrics_gc *gc,
				    const struct golang_metrics_gc_mark *before)
{
	const char *doubt;

	if (gc->n_forced > gc->n_gc)
		return "more garbage collections were forced than there were";
	doubt = gc->n_gc ? doubt_some(gc) : doubt_none_yet(gc);
	if (!doubt && before && before->valid)
		doubt = doubt_growth(gc, before);
	return doubt;
}

struct golang_metrics_gc_mark golang_metrics_gc_mark(const struct golang_metrics_gc *gc)
{
	return (struct golang_metrics_gc_mark){
		.valid = true,
		.n_gc = gc->n_gc,
		.pause_total_ns = gc->pause_total_ns,
		.last_unix_ns = gc->last_unix_ns,
	};
}
