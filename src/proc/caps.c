/* src/proc/caps.c: see caps.h. Raw system calls: those of the C library would change all threads.
 */
#include "proc/caps.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct caps {
	struct __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3];
};

static int caps_call(long number, struct caps *caps)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};

	return syscall(number, &head, caps->words) < 0 ? -errno : 0;
}

uint64_t proc_caps_now(void)
{
	struct caps caps = {};

	if (caps_call(SYS_capget, &caps) < 0)
		return 0;
	return caps.words[0].effective | (uint64_t)caps.words[1].effective << 32;
}

uint64_t proc_caps_to_read(uint64_t caps)
{
	uint64_t now = proc_caps_now();

	return now & PROC_CAP(CAP_SYS_PTRACE) ? caps : now;
}

int proc_caps_keep(uint64_t keep, struct err *err)
{
	uint64_t now = proc_caps_now();
	struct caps caps = {};
	int r;

	keep &= now;
	/* Only who may set capabilities may lower this limit; others have nothing to gain by it. */
	for (unsigned long cap = 0; now >> CAP_SETPCAP & 1 && cap < 64; cap++)
		if (!(keep >> cap & 1) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			break; /* there are no more */
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		caps.words[i].effective = caps.words[i].permitted = (uint32_t)(keep >> (32 * i));
	r = caps_call(SYS_capset, &caps);
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	return r < 0 ? err_set(err, r, "cannot give up privileges: %s", strerror(-r)) : 0;
}
