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

bool proc_id_alive(const struct proc_id *id)
{
	struct proc_id now = {0};

	return proc_id_of(id->pid, &now, NULL) == 0 && now.start_ticks == id->start_ticks;
}
