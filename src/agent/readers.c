/* src/agent/readers.c: the table of readers (see reader.h). */
#include <stddef.h>

#include "agent/reader.h"

const struct reader_ops *const readers[] = {&reader_go_heap, NULL};
