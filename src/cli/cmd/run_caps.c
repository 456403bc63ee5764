/* src/cli/cmd/run_caps.c: see run_caps.h. */
#include "cli/cmd/run_caps.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "java/recorder/note.h"
#include "oom/mounts.h"
#include "proc/caps.h"

uint64_t cmd_run_folder_caps(const char *data_dir)
{
	struct stat st;

	return stat(data_dir, &st) == 0 && st.st_uid != geteuid() ? PROC_CAP(CAP_DAC_OVERRIDE) : 0;
}

/* Whether limits of memory can only be read through a mount of our own. */
static bool caps_mount(const struct agent_config *agent)
{
	struct oom_mounts mounts;
	bool own;

	if (!agent->oom_percent || oom_mounts_open(&mounts, NULL) < 0)
		return false;
	own = mounts.v1.is_ours || mounts.v2.is_ours;
	oom_mounts_close(&mounts);
	return own;
}

/* Also to take out what an earlier sonde left in JVMs. */
static bool caps_java(const struct agent_config *agent)
{
	_cleanup_free_ struct java_note *notes = NULL;
	size_t n = 0;

	return agent->java || (java_notes_read(agent->state_dir, &notes, &n, NULL) == 0 && n > 0);
}

static bool caps_port(const char *listen)
{
	const char *colon = strrchr(listen, ':');
	unsigned long port = colon ? strtoul(colon + 1, NULL, 10) : 0;

	return port > 0 && port < IPPORT_RESERVED;
}

uint64_t cmd_run_caps(const struct agent_config *agent, const char *listen)
{
	uint64_t caps = PROC_CAP(CAP_BPF) | PROC_CAP(CAP_PERFMON) | PROC_CAP(CAP_SYS_PTRACE) |
			PROC_CAP(CAP_DAC_READ_SEARCH) | PROC_CAP(CAP_CHECKPOINT_RESTORE) |
			PROC_CAP(CAP_SYSLOG) | PROC_CAP(CAP_SYS_NICE) | PROC_CAP(CAP_SETUID) |
			PROC_CAP(CAP_SETGID) | cmd_run_folder_caps(agent->state_dir);

	if (caps_java(agent))
		caps |= PROC_CAP(CAP_SYS_ADMIN) | PROC_CAP(CAP_SYS_CHROOT) | PROC_CAP(CAP_KILL) |
			PROC_CAP(CAP_CHOWN) | PROC_CAP(CAP_FOWNER) | PROC_CAP(CAP_DAC_OVERRIDE);
	if (caps_mount(agent))
		caps |= PROC_CAP(CAP_SYS_ADMIN);
	if (caps_port(listen))
		caps |= PROC_CAP(CAP_NET_BIND_SERVICE);
	return proc_caps_to_read(caps);
}
