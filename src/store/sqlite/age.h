/*
 * src/store/sqlite/age.h: the time by which retention judges age.
 *
 * The wall clock may jump: an empty battery, a wrong time server, a restored machine. What is
 * deleted by age is gone, so one reading of that clock is never trusted. This time advances with
 * our own running time. Where the wall clock is ahead, it follows only after that has been so for a
 * day of running time, over restarts (the file `clock`). Where it is behind, it follows at once:
 * then less is old.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct store_age {
	int64_t trusted_ns; /* since 1970; 0: nothing is known yet */
	int64_t ran_ns;	    /* our running time at the last look; -1: none since the start */
	int64_t ahead_ns;   /* how far the wall clock is ahead, at least; 0: it is not */
	int64_t stood_ns;   /* for how much running time it has been */
};

/* Looks at both clocks; returns the time to judge age by. */
int64_t store_age_look(struct store_age *age, int64_t wall_ns, int64_t ran_ns);
/* Whether people should know that the wall clock is ahead: by more than a usual restart. */
bool store_age_is_ahead(const struct store_age *age);

/* The file: one line. A line that is not ours, or makes no sense, leaves age as it is. */
#define STORE_AGE_TEXT_MAX 128
void store_age_print(const struct store_age *age, char text[STORE_AGE_TEXT_MAX]);
void store_age_parse(struct store_age *age, const char *text);
