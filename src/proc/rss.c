/* src/proc/rss.c: see rss.h. */
#include "proc/rss.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"

/* The second word of statm: resident pages. */
uint64_t proc_rss_bytes(pid_t pid)
{
	_cleanup_(buf_release) struct buf text = buf_with_max(4096);
	const char *words, *blank;
	char path[32];

	if (pid)
		(void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	else
		(void)snprintf(path, sizeof(path), "/proc/self/statm");
	if (io_read_file(AT_FDCWD, path, &text, NULL) < 0)
		return 0;
	words = buf_cstr(&text);
	blank = words ? strchr(words, ' ') : NULL;
	return blank ? strtoull(blank, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}
