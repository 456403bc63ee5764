/* src/golang/force.c: see force.h. */
#include "golang/force.h"

#include "proc/lock.h"

int golang_force_lock(const struct proc_id *id, int *ret_fd, struct err *err)
{
	int r = proc_lock(id, "rate", ret_fd, err);

	if (r == -EBUSY)
		err_write(err,
			  "another sonde has set the sampling rate of process %d and will set it "
			  "back: wait for it to end",
			  (int)id->pid);
	return r;
}
