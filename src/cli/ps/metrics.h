/* src/cli/ps/metrics.h: Go runtime statistics for a row of `sonde ps -l`. */
#pragma once

#include <stddef.h>

#include "base/json.h"
#include "golang/metrics/metrics.h"

enum ps_metrics_column {
	PS_METRICS_LIVE,
	PS_METRICS_GOAL,
	PS_METRICS_LIMIT,
	PS_METRICS_GCS,
	PS_METRICS_PAUSE,
	PS_METRICS_CPU,
	PS_METRICS_PROCS,
	PS_METRICS_GOROUTINES,
	PS_METRICS_COLUMNS,
};

extern const char *const ps_metrics_titles[PS_METRICS_COLUMNS];

/* "-" if unknown. */
void ps_metrics_cell(const struct golang_metrics *m, enum ps_metrics_column column, char *dst,
		     size_t len);
/* An object with all statistics; null for unknown ones. */
void ps_metrics_json(const struct golang_metrics *m, struct json *j);
