/* src/golang/binary/version.c: see version.h. */
#include "golang/binary/version.h"

#include <ctype.h>
#include <stdio.h>

#include "base/cleanup.h"

static struct view view_skip(struct view v, const char *prefix)
{
	size_t n = strlen(prefix);

	return view_starts_with(v, prefix) ? view_of(v.data + n, v.len - n) : v;
}

bool golang_version_parse(struct view text, struct golang_version *ret_version)
{
	struct view rest = view_skip(view_skip(text, "devel "), "go");
	struct golang_version version = {0};
	size_t digits = 0, len = 0;

	/* Do not guess about "go1" alone, or a future "go2.x". */
	if (!view_starts_with(rest, "1."))
		return false;
	rest = view_skip(rest, "1.");
	while (digits < rest.len && digits < 4 && isdigit(rest.data[digits]))
		version.minor = version.minor * 10 + (unsigned int)(rest.data[digits++] - '0');
	if (digits == 0 || digits == 4)
		return false;
	while (len < rest.len && isgraph(rest.data[len]))
		len++;
	(void)snprintf(version.text, sizeof(version.text), "go1.%.*s", (int)MIN(len, 48),
		       (const char *)rest.data);
	*ret_version = version;
	return true;
}
