/*
 * src/cpu/symbols/demangle.c: see demangle.h. The demanglers are libiberty's, used through the
 * interface that emits pieces of text and allocates nothing: a longjmp can then abandon a name that
 * expands without end (a few bytes of substitutions can stand for gigabytes). For Rust's newer
 * names libiberty does allocate, so those have their own demangler.
 */
#include "cpu/symbols/demangle.h"

#include <setjmp.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "cpu/symbols/demangle_rust.h"

struct demangle_text {
	jmp_buf full;
	char *dst;
	size_t cap;
	size_t len;
};

static void demangle_take(const char *piece, size_t len, void *context)
{
	struct demangle_text *text = context;
	size_t left = text->cap - 1 - text->len;
	size_t n = len < left ? len : left;

	memcpy(text->dst + text->len, piece, n);
	text->len += n;
	if (n < len)
		longjmp(text->full, 1);
}

typedef int demangler(const char *name, int options, demangle_callbackref take, void *context);

/* Never cut within a multibyte character. */
static void demangle_cut(char *dst, size_t cap)
{
	static const char more[] = "...";
	size_t at = cap - sizeof(more);

	while (at > 0 && ((unsigned char)dst[at] & 0xc0) == 0x80)
		at--;
	memcpy(dst + at, more, sizeof(more));
}

/* libiberty's recursion limit is on by default. */
static bool demangle_by(demangler *demangle, const char *name, char *dst, size_t cap)
{
	struct demangle_text text = {.dst = dst, .cap = cap};

	if (setjmp(text.full) != 0) {
		demangle_cut(text.dst, text.cap);
		return true;
	}
	if (!demangle(name, DMGL_NO_OPTS, demangle_take, &text))
		text.len = 0;
	text.dst[text.len] = 0;
	return text.len > 0;
}

static bool demangle_rust(const char *name, char *dst, size_t cap)
{
	bool is_cut;

	if (!cpu_demangle_rust(name, dst, cap, &is_cut)) {
		dst[0] = 0;
		return false;
	}
	if (is_cut)
		demangle_cut(dst, cap);
	return true;
}

bool cpu_demangle(const char *name, char *dst, size_t cap)
{
	if (cap <= 8)
		return false;
	dst[0] = 0;
	if (strnlen(name, CPU_DEMANGLE_MAX_INPUT + 1) > CPU_DEMANGLE_MAX_INPUT)
		return false;
	if (strncmp(name, "_R", 2) == 0)
		return demangle_rust(name, dst, cap);
	/* Rust's older names are C++ names that end in a hash: try Rust first. */
	if (strncmp(name, "_ZN", 3) == 0 && demangle_by(rust_demangle_callback, name, dst, cap))
		return true;
	if (strncmp(name, "_Z", 2) == 0 || strncmp(name, "_GLOBAL_", 8) == 0 ||
	    strncmp(name, "___Z", 4) == 0)
		return demangle_by(cplus_demangle_v3_callback, name, dst, cap);
	return false;
}
