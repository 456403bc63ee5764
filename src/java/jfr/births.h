/*
 * src/java/jfr/births.h: which allocation samples are the first of a thread, and which threads are
 * older than the recording.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/map.h"

/* Of a thread not known when events were last settled. */
struct java_jfr_first {
	uint64_t thread;
	int64_t time_ns;
	int64_t weight;
	size_t sum; /* where it was added */
};

/* Empty if zeroed; may be released. */
struct java_jfr_births {
	struct map known;	    /* threads whose first sample has passed */
	struct map born;	    /* threads that started meanwhile, and in which round */
	struct map firsts;	    /* thread to index */
	struct buf list;	    /* of struct java_jfr_first */
	int64_t jvm_start_ms;	    /* 0 if unknown */
	int64_t recording_start_ms; /* the earliest; 0 if unknown */
	int64_t file_start_ns;
};

void java_jfr_births_release(struct java_jfr_births *b);
/* Events are not in order of time: the earliest one so far counts. */
int java_jfr_births_sample(struct java_jfr_births *b, uint64_t thread, int64_t time_ns,
			   int64_t weight, size_t sum);
int java_jfr_births_born(struct java_jfr_births *b, uint64_t thread, uint64_t round);
void java_jfr_births_recording(struct java_jfr_births *b, int64_t start_ms);
/* Calls drop for the first samples of threads older than the recording. */
void java_jfr_births_settle(struct java_jfr_births *b,
			    void (*drop)(void *arg, const struct java_jfr_first *first), void *arg);
