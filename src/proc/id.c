/* src/proc/id.c: see id.h. */
#include "proc/id.h"

#include <errno.h>

#include "proc/stat.h"

int proc_id_of(pid_t pid, struct proc_id *ret_id, struct err *err)
{
	struct proc_stat st;
	int r = proc_stat_read_alive(pid, &st, err);

	if (r < 0)
		return r;
	*ret_id = (struct proc_id){.pid = pid, .start_ticks = st.start_ticks};
	return 0;
}

int proc_id_check(const struct proc_id *id, struct err *err)
{
	struct proc_id now = {0};
	int r = proc_id_of(id->pid, &now, err);

	if (r == 0 && now.start_ticks != id->start_ticks)
		r = -ESRCH;
	return r == -ESRCH ? err_set(err, r, "process %d has exited", (int)id->pid) : r;
}

bool proc_id_alive(const struct proc_id *id)
{
	return proc_id_check(id, NULL) == 0;
}

bool proc_id_gone(const struct proc_id *id)
{
	int r = proc_id_check(id, NULL);

	return r < 0 && !proc_stat_is_unknown(r);
}
