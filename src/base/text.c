/* src/base/text.c: see text.h. */
#include "base/text.h"

#include <string.h>

#include "base/cleanup.h"

/* Sequences of UTF-8 that differ in their last byte only. */
static const struct text_range {
	const char *lead;
	uint8_t first, last;
} text_ranges[] = {
	{"\xc2", 0x80, 0x9f},	  /* C1; U+009B opens an escape sequence as ESC [ does */
	{"\xc2", 0xad, 0xad},	  /* U+00AD: soft hyphen */
	{"\xd8", 0x9c, 0x9c},	  /* U+061C: Arabic letter mark */
	{"\xe2\x80", 0x8b, 0x8b}, /* U+200B: a space without width */
	{"\xe2\x80", 0x8e, 0x8f}, /* U+200E, U+200F: left-to-right, right-to-left */
	{"\xe2\x80", 0xa8, 0xae}, /* U+2028 to U+202E: separators, embeddings, overrides */
	{"\xe2\x81", 0xa0, 0xa4}, /* U+2060 to U+2064: word joiner, operators that are not shown */
	{"\xe2\x81", 0xa6, 0xa9}, /* U+2066 to U+2069: isolates */
	{"\xef\xbb", 0xbf, 0xbf}, /* U+FEFF: byte order mark */
};

size_t text_unsafe(struct view v, size_t at)
{
	uint8_t c = v.data[at];

	if (c < 0x80)
		return c < 0x20 || c == 0x7f;
	for (size_t i = 0; i < ARRAY_SIZE(text_ranges); i++) {
		const struct text_range *r = &text_ranges[i];
		size_t n = strlen(r->lead);

		if (v.len - at > n && memcmp(v.data + at, r->lead, n) == 0 &&
		    v.data[at + n] >= r->first && v.data[at + n] <= r->last)
			return n + 1;
	}
	return 0;
}

void text_clean(char *text, size_t len)
{
	const struct view v = view_of(text, len);

	for (size_t i = 0; i < len;) {
		size_t n = text_unsafe(v, i);

		memset(text + i, '?', n);
		i += MAX(n, 1);
	}
}
