/*
 * src/java/jfr/totals.h: makes the allocation samples of a thread add up to what it has allocated.
 *
 * The weight of a jdk.ObjectAllocationSample is what its thread allocated since its previous
 * sample. So the sum lacks what came after the last one, and of a thread older than the recording
 * also what came before its second one: in a quiet JVM that is most of it.
 * jdk.ThreadAllocationStatistics gives the true count of each thread now and then. Between two
 * takes a thread gets what it has allocated until its last count, less what it got before, spread
 * over its samples by their weight.
 *
 * Samples after its last count have their own weight; the next count corrects them.
 *
 * The JVM counts all of its threads at a time, so one that is in none of the last rounds of counts
 * has ended, and is forgotten.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/map.h"

#define JAVA_JFR_TOTALS_ROUNDS 2

/* Empty if zeroed; may be released. */
struct java_jfr_totals {
	uint64_t round;	 /* of counts; a settle ends it */
	bool is_counted; /* some thread, in this round */
	struct map by_thread;
	struct buf threads; /* of struct totals_thread */
	struct buf samples; /* of struct totals_sample, since the last settle */
};

void java_jfr_totals_release(struct java_jfr_totals *t);
/* sum: where it was added. */
int java_jfr_totals_sample(struct java_jfr_totals *t, uint64_t thread, int64_t time_ns,
			   int64_t weight, size_t sum);
/*
 * What the thread has allocated by then. is_born: it started during the last rounds; otherwise its
 * first count is where it began. 1 if it has allocated since the last one.
 */
int java_jfr_totals_count(struct java_jfr_totals *t, uint64_t thread, int64_t time_ns,
			  int64_t allocated, bool is_born);
/* Where to add what a thread without any sample has allocated; until the next settle. */
void java_jfr_totals_spare(struct java_jfr_totals *t, uint64_t thread, size_t sum);
/* The weight of that sample is wrong, and has been taken off. */
void java_jfr_totals_drop(struct java_jfr_totals *t, uint64_t thread, int64_t time_ns);
/* Calls add for each sum that must change. */
void java_jfr_totals_settle(struct java_jfr_totals *t,
			    void (*add)(void *arg, size_t sum, int64_t bytes), void *arg);
