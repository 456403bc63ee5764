/*
 * src/agent/schedule/departed.c: processes that have just exited.
 *
 * What the sampler has of a process's last seconds comes when the process is gone, and its
 * environment and command line with it. So who it was is remembered for a while.
 */
#include <string.h>

#include "agent/state.h"
#include "base/clock.h"
#include "base/hash.h"

/* Besides two intervals: the sampler may be late. */
#define DEPARTED_NS (30 * NS_PER_SEC)

void agent_departed_add(struct agent *a, const struct agent_slot *slot)
{
	const struct proc_info *info = &slot->target.info;
	struct agent_departed *d;

	if (!slot->looked_ns || !slot->resource)
		return;
	d = &a->departed[a->n_departed++ % AGENT_DEPARTED_MAX];
	resource_unref(d->resource);
	*d = (struct agent_departed){
		.id = info->id,
		.image = info->exec_image,
		.exe = hash_bytes(info->exe, strlen(info->exe)),
		.opted_out = info->opted_out,
		.resource = resource_ref(slot->resource),
		.until_ns = clock_mono_ns() + DEPARTED_NS + 2 * a->config.interval_ns,
	};
	memcpy(d->comm, info->comm, sizeof(d->comm));
}

/* The kernel keeps no more than a name of what has exited. */
static bool departed_ran(const struct agent_departed *d, const struct proc_info *info)
{
	if (!info->exe[0])
		return strncmp(d->comm, info->comm, AGENT_COMM_LENGTH) == 0;
	return (d->image && d->image == info->exec_image) ||
	       d->exe == hash_bytes(info->exe, strlen(info->exe));
}

const struct agent_departed *agent_departed_find(const struct agent *a,
						 const struct proc_info *info)
{
	for (size_t i = 0; info->id.start_ticks && i < AGENT_DEPARTED_MAX; i++) {
		const struct agent_departed *d = &a->departed[i];

		if (d->resource && d->id.pid == info->id.pid &&
		    d->id.start_ticks == info->id.start_ticks && departed_ran(d, info))
			return d;
	}
	return NULL;
}

void agent_departed_forget(struct agent *a, uint64_t now)
{
	for (size_t i = 0; i < AGENT_DEPARTED_MAX; i++) {
		struct agent_departed *d = &a->departed[i];

		if (!d->resource || now < d->until_ns)
			continue;
		resource_unref(d->resource);
		*d = (struct agent_departed){0};
	}
}
