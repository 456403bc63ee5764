/* src/pipeline/registry/registry.c: looking things up in the tables; see registry.h. */
#include "pipeline/registry/registry.h"

#include <string.h>

const struct event_kind registry_events[EVENTS] = {
	[EVENT_OOM_KILL] = {"oom_kill", "OOM-killed",
			    "The kernel killed the process for lack of memory.", "go_oom"},
	[EVENT_OOM_NEAR] = {"oom_near", "Near its memory limit",
			    "A cgroup of the process reached the share of its memory limit set by "
			    "--oom-watch.",
			    "go_oom"},
};

const char *registry_mode_name(enum registry_mode mode)
{
	return mode == MODE_SNAPSHOT ? "snapshot" : "delta";
}

const char *metric_kind_name(enum metric_kind kind)
{
	static const char *const names[] = {
		[METRIC_GAUGE] = "gauge",
		[METRIC_COUNTER] = "counter",
		[METRIC_HISTOGRAM] = "histogram",
	};

	return names[kind];
}

const struct registry_type *registry_type_find(const char *family, const char *name,
					       const char *unit)
{
	for (size_t i = 0; i < TYPES; i++) {
		const struct registry_type *t = &registry_types[i];

		if (strcmp(t->family, family) == 0 && strcmp(t->name, name) == 0 &&
		    strcmp(t->unit, unit) == 0)
			return t;
	}
	return NULL;
}

int registry_type_add(struct profile *p, enum type_id id)
{
	return profile_add_type(p, registry_types[id].name, registry_types[id].unit);
}

uint32_t registry_snapshot_types(const char *family, const struct profile *p)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < profile_n_types(p); i++) {
		const struct profile_type *t = profile_type_at(p, i);
		const struct registry_type *type = registry_type_find(
			family, profile_cstring(p, t->type), profile_cstring(p, t->unit));

		if (type && type->mode == MODE_SNAPSHOT)
			bits |= UINT32_C(1) << i;
	}
	return bits;
}
