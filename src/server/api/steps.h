/* src/server/api/steps.h: number and length of the steps of a series. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

#define SERVER_STEPS_MAX 10000
#define SERVER_STEPS_USUAL 300

struct server_steps {
	int64_t step_ns;
	size_t n;
};

/*
 * About this many points, in round steps; never shorter than the collection interval, which would
 * leave gaps.
 */
struct server_steps server_steps_about(int64_t from_ns, int64_t to_ns, uint64_t points,
				       uint64_t interval_ns);
/* The last step may be truncated by the end of the window. */
struct server_steps server_steps_of(int64_t from_ns, int64_t to_ns, int64_t step_ns);
