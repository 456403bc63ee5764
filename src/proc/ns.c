/* src/proc/ns.c: see ns.h. */
#include "proc/ns.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "proc/aide/aides.h"

/* The link reads "KIND:[NUMBER]". */
int proc_ns_read(pid_t pid, const char *kind, uint64_t *ret_number)
{
	_cleanup_(buf_release) struct buf text = buf_with_max(128);
	const char *bracket, *s;
	char name[32];
	int r;

	(void)snprintf(name, sizeof(name), "ns/%s", kind);
	r = proc_aides_read_link(pid, name, &text);
	if (r == -EBUSY)
		return -ETIMEDOUT;
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r == -EACCES ? -EPERM : r;
	s = buf_cstr(&text);
	bracket = s ? strchr(s, '[') : NULL;
	if (!bracket)
		return -EBADMSG;
	*ret_number = strtoull(bracket + 1, NULL, 10);
	return 0;
}
