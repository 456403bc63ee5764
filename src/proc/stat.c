/* src/proc/stat.c: see stat.h. */
#include "proc/stat.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "proc/aide/aides.h"
#include "proc/text.h"

/* From the kernel's include/linux/sched.h; the file's flags field shows them unchanged. */
#define STAT_PF_EXITING 0x00000004u
#define STAT_PF_KTHREAD 0x00200000u

/* Fifty numbers of up to twenty digits, and a name. */
#define STAT_MAX_BYTES 2048

/* Numbered as in proc(5); field 3, the state, is the first after the name. */
enum {
	STAT_FIELD_STATE = 3,
	STAT_FIELD_PARENT = 4,
	STAT_FIELD_FLAGS = 9,
	STAT_FIELD_START = 22,
	STAT_FIELD_RSS = 24,
	STAT_FIELD_START_CODE = 26,
	STAT_FIELD_END_CODE = 27,
	STAT_FIELD_START_STACK = 28,
};

static bool stat_number(struct view field, uint64_t *ret)
{
	uint64_t value = 0;

	if (field.len == 0)
		return false;
	for (size_t i = 0; i < field.len; i++) {
		if (field.data[i] < '0' || field.data[i] > '9')
			return false;
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(field.data[i] - '0'), &value))
			return false;
	}
	*ret = value;
	return true;
}

/* The field with this number in the text after the name; empty if there is none. */
static struct view stat_field(struct view rest, int number)
{
	size_t at = 0;

	for (int i = STAT_FIELD_STATE;; i++) {
		size_t start;

		while (at < rest.len && rest.data[at] == ' ')
			at++;
		start = at;
		while (at < rest.len && rest.data[at] != ' ' && rest.data[at] != '\n')
			at++;
		if (i == number || at == start)
			return view_of(rest.data + start, i == number ? at - start : 0);
	}
}

/* 0 if it is missing, or no pid. */
static pid_t stat_parent(struct view rest)
{
	uint64_t pid;

	return stat_number(stat_field(rest, STAT_FIELD_PARENT), &pid) && pid <= INT_MAX ? (pid_t)pid
											: 0;
}

static uint64_t stat_rss(struct view rest)
{
	uint64_t pages, bytes;

	return stat_number(stat_field(rest, STAT_FIELD_RSS), &pages) &&
			       !__builtin_mul_overflow(pages, (uint64_t)sysconf(_SC_PAGESIZE),
						       &bytes)
		       ? bytes
		       : 0;
}

/* Zero or one on old kernels, or without permission. */
static uint64_t stat_image(struct view rest)
{
	uint64_t start, end, stack;

	if (!stat_number(stat_field(rest, STAT_FIELD_START_CODE), &start) ||
	    !stat_number(stat_field(rest, STAT_FIELD_END_CODE), &end) ||
	    !stat_number(stat_field(rest, STAT_FIELD_START_STACK), &stack) || stack == 0)
		return 0;
	return hash_mix(start ^ hash_mix(end ^ hash_mix(stack))) | 1;
}

int proc_stat_parse(struct view text, struct proc_stat *ret_stat)
{
	const uint8_t *open, *close;
	struct proc_stat st = {0};
	struct view rest, state;
	uint64_t flags;

	open = text.len ? memchr(text.data, '(', text.len) : NULL;
	close = text.len ? memrchr(text.data, ')', text.len) : NULL;
	if (!open || !close || close < open)
		return -EBADMSG;
	proc_text_copy(st.comm, sizeof(st.comm), view_of(open + 1, (size_t)(close - open - 1)));

	rest = view_of(close + 1, (size_t)(text.data + text.len - close - 1));
	state = stat_field(rest, STAT_FIELD_STATE);
	if (state.len != 1 || !stat_number(stat_field(rest, STAT_FIELD_FLAGS), &flags) ||
	    !stat_number(stat_field(rest, STAT_FIELD_START), &st.start_ticks))
		return -EBADMSG;
	st.state = (char)state.data[0];
	st.kernel_thread = flags & STAT_PF_KTHREAD;
	st.exiting = flags & STAT_PF_EXITING;
	st.parent = stat_parent(rest);
	st.rss_bytes = stat_rss(rest);
	st.image = stat_image(rest);
	*ret_stat = st;
	return 0;
}

static int stat_read_here(pid_t pid, struct proc_stat *ret_stat)
{
	_cleanup_close_ int fd = -1;
	char path[64], text[STAT_MAX_BYTES];
	ssize_t n = -1;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	/*
	 * The kernel produces the text in one go, so one read is enough; this runs for every
	 * process.
	 */
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		n = read(fd, text, sizeof(text));
	if (n < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return proc_stat_parse(view_of(text, (size_t)n), ret_stat);
}

void proc_stat_read_many(const pid_t *pids, size_t n, struct proc_stat_reading *readings)
{
	if (proc_aides_are_on()) {
		proc_aides_read_stats(pids, n, readings);
		return;
	}
	for (size_t i = 0; i < n; i++)
		readings[i].code = stat_read_here(pids[i], &readings[i].stat);
}

int proc_stat_read(pid_t pid, struct proc_stat *ret_stat, struct err *err)
{
	struct proc_stat_reading reading = {.code = -ESRCH};

	if (pid > 0)
		proc_stat_read_many(&pid, 1, &reading);
	switch (reading.code) {
	case 0:
		*ret_stat = reading.stat;
		return 0;
	case -ESRCH:
		return err_set(err, -ESRCH, "no such process: %d", (int)pid);
	case -EACCES:
	case -EPERM:
		return err_set(err, -EPERM,
			       "process %d is hidden: /proc is mounted with hidepid; run as root, "
			       "or as a member of the group in its gid= option",
			       (int)pid);
	case -ETIMEDOUT:
	case -EBUSY:
		return err_lack(err, -ETIMEDOUT, ERR_CAUSE_NO_ANSWER, "",
				"process %d is not responding", (int)pid);
	case -EAGAIN:
		return err_lack(err, -ETIMEDOUT, ERR_CAUSE_NO_ANSWER, "",
				"cannot look at process %d: no helper process starts", (int)pid);
	case -EBADMSG:
		return err_set(err, -EBADMSG, "cannot parse /proc/%d/stat", (int)pid);
	default:
		return err_set(err, reading.code, "cannot read /proc/%d/stat: %s", (int)pid,
			       strerror(-reading.code));
	}
}

bool proc_stat_is_unknown(int code)
{
	return code == -ETIMEDOUT || code == -EBUSY || code == -EAGAIN;
}

bool proc_stat_is_dead(const struct proc_stat *stat)
{
	return stat->exiting || stat->state == 'Z' || stat->state == 'X' || stat->state == 'x';
}

int proc_stat_read_alive(pid_t pid, struct proc_stat *ret_stat, struct err *err)
{
	struct proc_stat st = {};
	int r = proc_stat_read(pid, &st, err);

	if (r < 0)
		return r;
	if (proc_stat_is_dead(&st))
		return err_set(err, -ESRCH, "process %d (%s) has exited", (int)pid, st.comm);
	*ret_stat = st;
	return 0;
}
