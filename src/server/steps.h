/* src/server/steps.h: how long the steps of a series are, and how many there are. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

#define STEPS_MAX 10000
#define STEPS_USUAL 300

struct steps {
	int64_t step_ns;
	size_t n;
};

/*
 * About so many points, in steps that people like; never shorter than the interval of collection,
 * which would leave holes.
 */
struct steps steps_about(int64_t from_ns, int64_t to_ns, uint64_t points, uint64_t interval_ns);
/* The last step may be cut short by the end of the window. */
struct steps steps_of(int64_t from_ns, int64_t to_ns, int64_t step_ns);
