/* src/proc/stat.c: see stat.h. */
#include "proc/stat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "proc/text.h"

/* From the kernel's include/linux/sched.h; the flags field of the file shows them as they are. */
#define STAT_PF_EXITING 0x00000004u
#define STAT_PF_KTHREAD 0x00200000u

/* Numbers as proc(5) counts them; field 3, the state, is the first one after the name. */
enum { STAT_FIELD_STATE = 3, STAT_FIELD_FLAGS = 9, STAT_FIELD_START = 22 };

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

/* The field with that number in the text after the name; empty when there is none. */
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
	*ret_stat = st;
	return 0;
}

int proc_stat_read(pid_t pid, struct proc_stat *ret_stat, struct err *err)
{
	_cleanup_(buf_release) struct buf text = buf_with_max(16 << 10);
	char path[64];
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	r = pid > 0 ? io_read_file(AT_FDCWD, path, &text, NULL) : -ESRCH;
	if (r == -ENOENT || r == -ESRCH)
		return err_set(err, -ESRCH, "there is no process %d", (int)pid);
	if (r == -EACCES || r == -EPERM)
		return err_set(
			err, -EPERM,
			"process %d is hidden from us: /proc is mounted with hidepid, run as "
			"root or as a member of the group that its gid= option names",
			(int)pid);
	if (r < 0)
		return err_set(err, r, "cannot read %s: %s", path, strerror(-r));
	r = proc_stat_parse(buf_view(&text), ret_stat);
	return r < 0 ? err_set(err, r, "cannot make sense of %s", path) : 0;
}

bool proc_stat_is_dead(const struct proc_stat *stat)
{
	return stat->exiting || stat->state == 'Z' || stat->state == 'X' || stat->state == 'x';
}
