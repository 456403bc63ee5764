/* src/cpu/symbols/punycode.h: decodes non-ASCII names, which RFC 3492 encodes in ASCII. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/view.h"

#define CPU_PUNYCODE_MAX_BYTES 512

/* The number of UTF-8 bytes written to dst (room for 4); 0 if it is not a character. */
size_t cpu_punycode_utf8(uint32_t code, char *dst);
/* The number of UTF-8 bytes written to dst, or -EBADMSG or -E2BIG. */
ssize_t cpu_punycode_decode(struct view text, char delimiter, char *dst, size_t cap);
