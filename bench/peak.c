/*
 * bench/peak.c: runs a command and measures the most memory that it ever held, exactly.
 *
 * Private memory grows page by page and shrinks only in a few system calls. The command is stopped
 * before each of those (it is traced; what it profiles is not), and its smaps are added up. So the
 * greatest of these figures is the peak, however short it was. RSS also counts what it shares with
 * other processes: the C library and the pages of its own file.
 *
 * Prints {"rss_kb": N, "private_kb": N} to descriptor 3, so that the command's own output
 * stays apart. Usage: peak COMMAND [ARGUMENT...] 3>FILE
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

struct peak {
	uint64_t rss_kb;
	uint64_t private_kb;
};

/* The number of "Field:   123 kB", or 0 when line is of another field. */
static uint64_t field_kb(const char *line, const char *field)
{
	size_t len = strlen(field);

	return strncmp(line, field, len) == 0 ? strtoull(line + len, NULL, 10) : 0;
}

static void peak_look(struct peak *peak, pid_t pid)
{
	_cleanup_fclose_ FILE *f = NULL;
	uint64_t rss = 0, private_kb = 0;
	char path[64], line[256];

	(void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		rss += field_kb(line, "Rss:");
		private_kb += field_kb(line, "Private_Clean:") + field_kb(line, "Private_Dirty:");
	}
	peak->rss_kb = MAX(peak->rss_kb, rss);
	peak->private_kb = MAX(peak->private_kb, private_kb);
}

/* The system calls after which a process may hold less than before. */
static bool gives_back(uint64_t nr)
{
	return nr == SYS_munmap || nr == SYS_mremap || nr == SYS_madvise || nr == SYS_brk ||
	       nr == SYS_mmap || nr == SYS_exit_group;
}

static int follow(pid_t pid, struct peak *peak)
{
	struct __ptrace_syscall_info info;
	int status, sig = 0;

	for (;;) {
		if (ptrace(PTRACE_SYSCALL, pid, NULL, (void *)(uintptr_t)sig) < 0 ||
		    waitpid(pid, &status, 0) < 0)
			return 1;
		if (WIFEXITED(status))
			return WEXITSTATUS(status);
		if (WIFSIGNALED(status))
			return 128 + WTERMSIG(status);
		sig = WSTOPSIG(status);
		if (sig != (SIGTRAP | 0x80))
			continue;
		sig = 0;
		if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof(info), &info) > 0 &&
		    info.op == PTRACE_SYSCALL_INFO_ENTRY && gives_back(info.entry.nr))
			peak_look(peak, pid);
	}
}

int main(int argc, char **argv)
{
	struct peak peak = {0};
	int status, code;
	pid_t pid;

	if (argc < 2) {
		(void)fprintf(stderr, "usage: peak COMMAND [ARGUMENT...] 3>FILE\n");
		return 2;
	}
	pid = fork();
	if (pid == 0) {
		(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		(void)execvp(argv[1], argv + 1);
		_exit(127);
	}
	/* The stop after the exec. */
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_SETOPTIONS, pid, NULL,
		   (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)) < 0) {
		(void)fprintf(stderr, "cannot run %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	code = follow(pid, &peak);
	if (dprintf(3, "{\"rss_kb\": %" PRIu64 ", \"private_kb\": %" PRIu64 "}\n", peak.rss_kb,
		    peak.private_kb) < 0)
		return 1;
	return code;
}
