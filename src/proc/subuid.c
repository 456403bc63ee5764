/* src/proc/subuid.c: see subuid.h. */
#include "proc/subuid.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/io.h"

#define SUBUID_FILE_MAX ((size_t)1 << 20)

/* A number and what follows it; false if there is none. */
static bool take_number(const char **at, uint32_t *ret)
{
	char *end;
	unsigned long long n = strtoull(*at, &end, 10);

	if (**at < '0' || **at > '9' || n > UINT32_MAX)
		return false;
	*ret = (uint32_t)n;
	*at = end;
	return true;
}

/* "name:first:count" */
static bool parse_range(const char *line, struct proc_subuid_range *ret)
{
	size_t name = strcspn(line, ":\n");
	const char *at = line + name;

	if (name == 0 || *at++ != ':' || !take_number(&at, &ret->first) || *at++ != ':' ||
	    !take_number(&at, &ret->n) || (*at && *at != '\n'))
		return false;
	ret->user = hash_bytes(line, name);
	return ret->n > 0 && ret->first > 0;
}

void proc_subuids_parse(struct proc_subuids *s, const char *text)
{
	while (*text) {
		if (s->len < PROC_SUBUID_RANGES && parse_range(text, &s->ranges[s->len]))
			s->len++;
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
}

void proc_subuids_read(struct proc_subuids *s, const char *path)
{
	_cleanup_(buf_release) struct buf text = buf_with_max(SUBUID_FILE_MAX);
	const char *t = NULL;

	if (io_read_file(AT_FDCWD, path, &text, NULL) == 0)
		t = buf_cstr(&text);
	if (t)
		proc_subuids_parse(s, t);
}

/* A user may have several ranges: the first one stands for them. */
static uid_t first_of(const struct proc_subuids *s, uint64_t user)
{
	size_t i = 0;

	while (s->ranges[i].user != user)
		i++;
	return s->ranges[i].first;
}

uid_t proc_subuids_owner(const struct proc_subuids *s, uid_t uid)
{
	for (size_t i = 0; i < s->len; i++)
		if (uid - s->ranges[i].first < s->ranges[i].n)
			return first_of(s, s->ranges[i].user);
	return uid;
}
