/* tests/support/cpu_possible.h: whether the CPU can be sampled here, and why not. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "cpu/sampler/sampler.h"

static inline bool cpu_is_possible(void)
{
	struct cpu_sampler_options options = {.hz = 49};
	_cleanup_(cpu_sampler_closep) struct cpu_sampler *s = NULL;
	struct err err = {0};

	if (cpu_sampler_open(&options, &s, &err) >= 0)
		return true;
	(void)fprintf(stderr, "skipped: %s\n", err.text);
	return false;
}
