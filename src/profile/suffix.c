/* src/profile/suffix.c: see suffix.h. */
#include "profile/suffix.h"

#include <string.h>

#include "base/cleanup.h"

static const struct {
	const char *word;
	bool numbered; /* always followed by a number */
} suffixes[] = {
	{"lto_priv", true}, {"constprop", true}, {"isra", true},	{"part", true},
	{"llvm", true},	    {"cold", false},	 {"localalias", false},
};

/* Where the last ".word" begins; 0 if there is none, or nothing before it. */
static size_t last_dot(struct view name)
{
	size_t i = name.len;

	while (i > 1 && name.data[i - 1] != '.')
		i--;
	return i > 1 ? i - 1 : 0;
}

static bool is_number(struct view text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] < '0' || text.data[i] > '9')
			return false;
	return text.len > 0;
}

static bool is_suffix(struct view word, bool numbered, enum profile_suffix_trust trust)
{
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
		if (view_eq(word, view_str(suffixes[i].word)))
			return numbered || (!suffixes[i].numbered && trust == PROFILE_SUFFIX_ALL);
	return false;
}

/* The length without the last suffix; the same if there is none. */
static size_t strip_one(struct view name, enum profile_suffix_trust trust)
{
	size_t dot = last_dot(name), end = name.len;
	bool numbered;

	if (dot == 0)
		return name.len;
	numbered = is_number(view_of(name.data + dot + 1, end - dot - 1));
	if (numbered) {
		end = dot;
		dot = last_dot(view_of(name.data, end));
	}
	if (dot == 0 || !is_suffix(view_of(name.data + dot + 1, end - dot - 1), numbered, trust))
		return name.len;
	return dot;
}

/* "f(int) [clone .isra.0]", as demanglers write it. */
static size_t strip_clone(struct view name)
{
	static const char clone[] = " [clone .";
	size_t len = strlen(clone);

	if (name.len < len + 2 || name.data[name.len - 1] != ']')
		return name.len;
	for (size_t i = name.len - len; i-- > 1;) {
		if (memcmp(name.data + i, clone, len) == 0)
			return i;
		if (name.data[i] == ']')
			break;
	}
	return name.len;
}

/* Go names have dots of their own, and so do those that a perf map gives Java methods. */
enum profile_suffix_trust profile_suffix_trust_of(struct view file, bool mapped)
{
	if (view_ends_with(file, ".go"))
		return PROFILE_SUFFIX_NEVER;
	return mapped ? PROFILE_SUFFIX_ALL : PROFILE_SUFFIX_NUMBERED;
}

size_t profile_suffix_start(struct view name, enum profile_suffix_trust trust)
{
	size_t len = 0;

	if (trust == PROFILE_SUFFIX_NEVER)
		return name.len;
	while (len != name.len) {
		len = name.len;
		name.len = strip_clone(name);
		name.len = strip_one(name, trust);
	}
	return name.len;
}
