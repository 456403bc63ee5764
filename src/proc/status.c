/* src/proc/status.c: see status.h. */
#include "proc/status.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"

#define STATUS_BYTES_MAX ((size_t)64 << 10)

/*
 * The text behind "\nKey:\t". The target chose the name in the first line, so keys are searched
 * with the newline before them; the kernel escapes newlines in the name.
 */
static const char *status_value(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? at + strlen(key) : NULL;
}

/* Numbers up to the end of the line, at most max; returns how many. */
static size_t status_numbers(const char *at, unsigned long *numbers, size_t max)
{
	size_t n = 0;

	while (at && n < max) {
		char *end;

		at += strspn(at, " \t");
		if (*at < '0' || *at > '9')
			break;
		numbers[n++] = strtoul(at, &end, 10);
		at = end;
	}
	return n;
}

static int status_owner(const char *text, struct proc_status *s)
{
	unsigned long uids[4], gids[4], groups[PROC_STATUS_GROUPS_MAX];

	if (status_numbers(status_value(text, "\nUid:"), uids, 4) != 4 ||
	    status_numbers(status_value(text, "\nGid:"), gids, 4) != 4)
		return -EBADMSG;
	s->uid = (uid_t)uids[0];
	s->euid = (uid_t)uids[1];
	s->suid = (uid_t)uids[2];
	s->fsuid = (uid_t)uids[3];
	s->egid = (gid_t)gids[1];
	s->fsgid = (gid_t)gids[3];
	s->n_groups =
		status_numbers(status_value(text, "\nGroups:"), groups, PROC_STATUS_GROUPS_MAX);
	for (size_t i = 0; i < s->n_groups; i++)
		s->groups[i] = (gid_t)groups[i];
	return 0;
}

int proc_status_parse(const char *text, struct proc_status *ret_status)
{
	const char *state = status_value(text, "\nState:\t");
	const char *caught = status_value(text, "\nSigCgt:\t");
	struct proc_status s = {};
	unsigned long pids[32]; /* namespaces nest 32 deep */
	unsigned long asked = 0, forced = 0;
	size_t n_pids = status_numbers(status_value(text, "\nNSpid:"), pids, ARRAY_SIZE(pids));

	if (status_owner(text, &s) < 0 || !state || !caught || n_pids == 0)
		return -EBADMSG;
	if (pids[n_pids - 1] == 0 || pids[n_pids - 1] > INT_MAX)
		return -EBADMSG;
	s.inner_pid = (pid_t)pids[n_pids - 1];
	s.caught = strtoull(caught, NULL, 16);
	s.state = *state;
	(void)status_numbers(status_value(text, "\nvoluntary_ctxt_switches:"), &asked, 1);
	(void)status_numbers(status_value(text, "\nnonvoluntary_ctxt_switches:"), &forced, 1);
	s.switches = asked + forced;
	*ret_status = s;
	return 0;
}

int proc_status_read(pid_t pid, struct proc_status *ret_status, struct err *err)
{
	_cleanup_(buf_release) struct buf text = buf_with_max(STATUS_BYTES_MAX);
	const char *s = NULL;
	char path[48];

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (io_read_file(AT_FDCWD, path, &text, NULL) == 0)
		s = buf_cstr(&text);
	if (!s)
		return err_set(err, -ESRCH, "process %d has exited", (int)pid);
	if (proc_status_parse(s, ret_status) < 0)
		return err_set(err, -EBADMSG, "cannot parse %s", path);
	return 0;
}
