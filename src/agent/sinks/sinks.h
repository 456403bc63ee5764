/* src/agent/sinks/sinks.h: the table of sinks. */
#pragma once

#include "pipeline/pipeline.h"

struct store;

struct agent_sink_configs {
	struct store *store; /* borrowed while the sinks are open */
};

/* Opens the configured sinks, for struct agent_parts. */
int agent_sinks_open(const struct agent_sink_configs *configs,
		     struct sink_row ret_rows[PIPELINE_MAX_SINKS], size_t *ret_n, struct err *err);
