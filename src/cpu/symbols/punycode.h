/* src/cpu/symbols/punycode.h: names with letters beyond ASCII, as RFC 3492 writes them in ASCII. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/view.h"

#define CPU_PUNYCODE_MAX_BYTES 512

/* The UTF-8 bytes written to dst (room for 4); 0 for what is no character. */
size_t cpu_punycode_utf8(uint32_t code, char *dst);
/* The number of bytes of UTF-8 written to dst, or -EBADMSG or -E2BIG. */
ssize_t cpu_punycode_decode(struct view text, char delimiter, char *dst, size_t cap);
