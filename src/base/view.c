/* src/base/view.c: see view.h. */
#include "base/view.h"

bool view_cstr(struct view v, uint64_t off, struct view *ret)
{
	const uint8_t *end;

	if (off >= v.len)
		return false;
	end = memchr(v.data + off, 0, v.len - off);
	if (!end)
		return false;
	*ret = view_of(v.data + off, (size_t)(end - (v.data + off)));
	return true;
}

bool view_varint(struct view v, size_t *off, uint64_t *ret)
{
	uint64_t value = 0;
	size_t pos = *off;

	for (unsigned int shift = 0; shift < 64; shift += 7) {
		uint8_t byte;

		if (!view_u8(v, pos++, &byte))
			return false;
		/* The tenth byte holds one bit of a 64-bit number. */
		if (shift == 63 && byte > 1)
			return false;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*off = pos;
			*ret = value;
			return true;
		}
	}
	return false;
}
