/*
 * src/agent/schedule/parents.c: which service a process belongs to that is gone in a moment.
 *
 * A build or a shell script runs thousands of processes that say nothing by themselves: they belong
 * to the nearest of their ancestors that has lived for a while. It is a label of a process, so it
 * is settled once, before the first record is written.
 */
#include <string.h>
#include <unistd.h>

#include "agent/state.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cpu/bpf/shared.h"

/* Ancestors that are looked at: more than this are no shell's work. */
#define PARENTS_MAX 32

/* Both are since boot. */
static bool is_elder(const struct proc_id *id, uint64_t now_ns)
{
	uint64_t tick_ns = NS_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);

	return id->start_ticks * tick_ns + CPU_SAMPLER_ELDER_NS <= now_ns;
}

void agent_targets_find_parent(const struct agent *a, struct proc_info *info)
{
	/* Who is its parent by now may have come later: a reused pid, or one that adopted it. */
	uint64_t start_ticks = info->id.start_ticks ? info->id.start_ticks : UINT64_MAX;
	pid_t pid = info->elder ? info->elder : info->parent;
	uint64_t now_ns = clock_boot_ns();

	info->parent_service[0] = 0;
	for (int i = 0; i < PARENTS_MAX && pid > 0; i++) {
		const struct agent_slot *slot = agent_targets_find(a, pid);
		const struct proc_info *parent;

		if (pid == a->self.id.pid)
			parent = &a->self;
		else if (slot)
			parent = &slot->target.info;
		else
			return;
		if (parent->id.start_ticks > start_ticks)
			return;
		if (is_elder(&parent->id, now_ns)) {
			/* At our start it may be examined later: then it is not known. */
			if (!slot || slot->looked_ns)
				memcpy(info->parent_service, parent->service,
				       sizeof(info->parent_service));
			return;
		}
		start_ticks = parent->id.start_ticks;
		pid = parent->parent;
	}
}
