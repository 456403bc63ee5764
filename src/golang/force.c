/* src/golang/force.c: see force.h. */
#include "golang/force.h"

#include "proc/lock.h"

int golang_force_lock(const struct proc_id *id, int *ret_fd, struct err *err)
{
	int r = proc_lock(id, "rate", ret_fd, err);

	if (r == -EBUSY)
		return err_lack(err, r, ERR_CAUSE_BUSY, "wait for it to end",
				"another sonde has set the sampling rate of process %d and will "
				"set it back",
				(int)id->pid);
	return r;
}
