/* src/agent/sources/node.h: the source of the machine's own metrics: CPU time and memory. */
#pragma once

#include "pipeline/source.h"

struct agent_node_config {
	uint64_t interval_ns; /* of collections */
};

extern const struct source_ops agent_source_node;
