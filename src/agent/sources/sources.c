/* src/agent/sources/sources.c: see sources.h. A new source is a row here. */
#include "agent/sources/sources.h"

#include <string.h>

size_t sources_list(const struct source_configs *c, struct source_row rows[SOURCES_MAX])
{
	const struct source_row table[] = {
		{&source_go_heap, &c->go},	 {&source_go_runtime, &c->go},
		{&source_go_goroutines, &c->go}, {&source_go_block, &c->go},
		{&source_go_mutex, &c->go},	 {&source_java_runtime, &c->java},
		{&source_java_alloc, &c->java},	 {&source_java_lock, &c->java},
		{&source_java_cpu, &c->java},	 {&source_cpu, &c->cpu},
		{&source_oom, &c->oom},
	};

	_Static_assert(ARRAY_SIZE(table) <= SOURCES_MAX, "the table fits");
	memcpy(rows, table, sizeof(table));
	return ARRAY_SIZE(table);
}
