/*
 * src/base/view.h: the one gate for bytes that others can forge.
 *
 * A view is borrowed memory with a length. Every accessor checks offset and length without
 * overflow, and returns false if the bytes are not there. All integers are little-endian.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct view {
	const uint8_t *data;
	size_t len;
};

static inline struct view view_of(const void *data, size_t len)
{
	return (struct view){.data = data, .len = len};
}

static inline struct view view_str(const char *s)
{
	return view_of(s, strlen(s));
}

static inline bool view_has(struct view v, uint64_t off, uint64_t len)
{
	return off <= v.len && len <= v.len - off;
}

static inline bool view_sub(struct view v, uint64_t off, uint64_t len, struct view *ret)
{
	if (!view_has(v, off, len))
		return false;
	*ret = (struct view){.data = v.data ? v.data + off : NULL, .len = len};
	return true;
}

static inline bool view_copy(struct view v, uint64_t off, void *dst, size_t len)
{
	if (!view_has(v, off, len))
		return false;
	/* An empty view may have no data, and memcpy must not get NULL. */
	if (len)
		memcpy(dst, v.data + off, len);
	return true;
}

static inline bool view_u8(struct view v, uint64_t off, uint8_t *ret)
{
	return view_copy(v, off, ret, sizeof(*ret));
}

static inline bool view_u16(struct view v, uint64_t off, uint16_t *ret)
{
	return view_copy(v, off, ret, sizeof(*ret));
}

static inline bool view_u32(struct view v, uint64_t off, uint32_t *ret)
{
	return view_copy(v, off, ret, sizeof(*ret));
}

static inline bool view_u64(struct view v, uint64_t off, uint64_t *ret)
{
	return view_copy(v, off, ret, sizeof(*ret));
}

static inline bool view_eq(struct view a, struct view b)
{
	return a.len == b.len &&
	       (a.len == 0 || (a.data && b.data && memcmp(a.data, b.data, a.len) == 0));
}

/* Takes the next line off the text, without its end; false if there is no complete line. */
static inline bool view_take_line(struct view *text, struct view *ret_line)
{
	const uint8_t *end = text->len ? memchr(text->data, '\n', text->len) : NULL;

	if (!end)
		return false;
	*ret_line = view_of(text->data, (size_t)(end - text->data));
	*text = view_of(end + 1, text->len - ret_line->len - 1);
	return true;
}

static inline bool view_ends_with(struct view v, const char *suffix)
{
	size_t len = strlen(suffix);

	return v.len >= len && memcmp(v.data + v.len - len, suffix, len) == 0;
}

static inline bool view_starts_with(struct view v, const char *prefix)
{
	size_t n = strlen(prefix);

	return n == 0 || (v.len >= n && memcmp(v.data, prefix, n) == 0);
}

/* The NUL-terminated string at off, without its NUL; false if the NUL is missing. */
bool view_cstr(struct view v, uint64_t off, struct view *ret);

/* Reads a LEB128 varint at *off and moves *off past it; false past the end or over 64 bits. */
bool view_varint(struct view v, size_t *off, uint64_t *ret);
