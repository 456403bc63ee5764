/* tests/support/heap.c: see heap.h. */
#include "heap.h"

#include <malloc.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif

#if __has_feature(address_sanitizer) || defined(__SANITIZE_ADDRESS__)
#include <sanitizer/allocator_interface.h>

size_t heap_bytes(void)
{
	return __sanitizer_get_current_allocated_bytes();
}
#else
size_t heap_bytes(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}
#endif
