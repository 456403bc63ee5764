/* src/proc/text.c: see text.h. */
#include "proc/text.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

void proc_text_copy(char *dst, size_t cap, struct view src)
{
	size_t n;

	if (cap == 0)
		return;
	n = MIN(src.len, cap - 1);
	if (n)
		memcpy(dst, src.data, n);
	dst[n] = 0;
	text_clean(dst, n);
}
