/* src/agent/readers.c: the table of readers (see reader.h). */
#include <stddef.h>

#include "agent/reader.h"

const struct reader_ops *const readers[] = {
	&reader_go_heap,  &reader_go_runtime, &reader_go_goroutines,
	&reader_go_block, &reader_go_mutex,   NULL,
};
