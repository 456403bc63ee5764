/* src/proc/text.c: see text.h. */
#include "proc/text.h"

#include "base/cleanup.h"

/* A C1 control is c2 80..c2 9f in UTF-8; U+009B opens an escape sequence as ESC [ does. */
static bool text_is_c1(struct view v, size_t i)
{
	return v.data[i] == 0xc2 && i + 1 < v.len && v.data[i + 1] >= 0x80 && v.data[i + 1] <= 0x9f;
}

void proc_text_copy(char *dst, size_t cap, struct view src)
{
	size_t n;

	if (cap == 0)
		return;
	n = MIN(src.len, cap - 1);
	for (size_t i = 0; i < n; i++) {
		uint8_t c = src.data[i];

		dst[i] = (char)c;
		if (c < 0x20 || c == 0x7f || text_is_c1(src, i))
			dst[i] = '?';
		else if (i > 0 && text_is_c1(src, i - 1))
			dst[i] = '?';
	}
	dst[n] = 0;
}
