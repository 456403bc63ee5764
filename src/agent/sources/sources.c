/* src/agent/sources/sources.c: see sources.h. A new source is a row here. */
#include "agent/sources/sources.h"

#include <string.h>

size_t agent_sources_list(const struct agent_source_configs *c,
			  struct source_row rows[AGENT_SOURCES_MAX])
{
	const struct source_row table[] = {
		{&agent_source_go_heap, &c->go},       {&agent_source_go_runtime, &c->go},
		{&agent_source_go_goroutines, &c->go}, {&agent_source_go_block, &c->go},
		{&agent_source_go_mutex, &c->go},      {&agent_source_java_runtime, &c->java},
		{&agent_source_java_alloc, &c->java},  {&agent_source_java_lock, &c->java},
		{&agent_source_java_cpu, &c->java},    {&agent_source_cpu, &c->cpu},
		{&agent_source_oom, &c->oom},	       {&agent_source_node, &c->node},
	};

	_Static_assert(ARRAY_SIZE(table) <= AGENT_SOURCES_MAX, "the table fits");
	memcpy(rows, table, sizeof(table));
	return ARRAY_SIZE(table);
}
