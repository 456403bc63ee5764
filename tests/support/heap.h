/* tests/support/heap.h: what the process holds of its heap. */
#pragma once

#include <stddef.h>

size_t heap_bytes(void);
