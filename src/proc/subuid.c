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

/* Of a range whose user is given by number; 0: by name, or it is root. */
static uid_t user_by_number(const char *line)
{
	uint32_t uid;

	return take_number(&line, &uid) && *line == ':' ? uid : 0;
}

/* "name:first:count", or "uid:first:count" */
static bool parse_range(const char *line, struct proc_subuid_range *ret)
{
	size_t name = strcspn(line, ":\n");
	const char *at = line + name;

	if (name == 0 || *at++ != ':' || !take_number(&at, &ret->first) || *at++ != ':' ||
	    !take_number(&at, &ret->n) || (*at && *at != '\n'))
		return false;
	ret->user = hash_bytes(line, name);
	ret->owner = user_by_number(line);
	return ret->n > 0 && ret->first > 0;
}

static const char *next_line(const char *text)
{
	text += strcspn(text, "\n");
	return text + (*text == '\n');
}

/* A user may have several ranges: the first one stands for them. */
static uid_t first_of(const struct proc_subuids *s, uint64_t user)
{
	size_t i = 0;

	while (s->ranges[i].user != user)
		i++;
	return s->ranges[i].first;
}

void proc_subuids_parse(struct proc_subuids *s, const char *text)
{
	for (; *text && s->len < PROC_SUBUID_RANGES; text = next_line(text)) {
		struct proc_subuid_range *range = &s->ranges[s->len];

		if (!parse_range(text, range))
			continue;
		s->len++;
		if (!range->owner)
			range->owner = first_of(s, range->user);
	}
}

/* "name:password:uid:..." */
static bool parse_user(const char *line, uint64_t *ret_user, uint32_t *ret_uid)
{
	size_t name = strcspn(line, ":\n");
	const char *at = line + name;

	if (name == 0 || *at++ != ':')
		return false;
	at += strcspn(at, ":\n");
	if (*at++ != ':' || !take_number(&at, ret_uid) || *at != ':')
		return false;
	*ret_user = hash_bytes(line, name);
	return true;
}

void proc_subuids_parse_users(struct proc_subuids *s, const char *text)
{
	for (; *text; text = next_line(text)) {
		uint64_t user;
		uint32_t uid;

		if (!parse_user(text, &user, &uid) || uid == 0)
			continue;
		for (size_t i = 0; i < s->len; i++)
			if (s->ranges[i].user == user)
				s->ranges[i].owner = uid;
	}
}

static void read_with(struct proc_subuids *s, const char *path,
		      void (*parse)(struct proc_subuids *s, const char *text))
{
	_cleanup_(buf_release) struct buf text = buf_with_max(SUBUID_FILE_MAX);
	const char *t = NULL;

	if (io_read_file(AT_FDCWD, path, &text, NULL) == 0)
		t = buf_cstr(&text);
	if (t)
		parse(s, t);
}

void proc_subuids_read(struct proc_subuids *s, const char *path, const char *passwd_path)
{
	read_with(s, path, proc_subuids_parse);
	read_with(s, passwd_path, proc_subuids_parse_users);
}

uid_t proc_subuids_owner(const struct proc_subuids *s, uid_t uid)
{
	for (size_t i = 0; i < s->len; i++)
		if (uid - s->ranges[i].first < s->ranges[i].n)
			return s->ranges[i].owner;
	return uid;
}
