/* src/agent/sources/sources.h: the table of sources. */
#pragma once

#include "agent/sources/cpu.h"
#include "agent/sources/go.h"
#include "agent/sources/java.h"
#include "agent/sources/node.h"
#include "agent/sources/oom.h"

/* Maximum number of sources of each kind. */
#define AGENT_SOURCES_MAX 16

struct agent_source_configs {
	struct agent_go_source_config go;
	struct agent_java_source_config java;
	struct agent_cpu_config cpu;
	struct agent_oom_config oom;
	struct agent_node_config node;
};

/* All sources, those that are asked first. Borrows the configs. Returns how many. */
size_t agent_sources_list(const struct agent_source_configs *configs,
			  struct source_row rows[AGENT_SOURCES_MAX]);
