/* src/features/features.c: see features.h. */
#include "features/features.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

static const struct {
	const char *name;
	const char *title;
} rows[FEATURES_N] = {
	[FEATURE_CPU] = {"cpu", "CPU profiles"},
	[FEATURE_OFFCPU] = {"off-cpu", "Off-CPU profiles"},
	[FEATURE_KERNEL_NAMES] = {"kernel-names", "Kernel function names"},
	[FEATURE_PYTHON] = {"python", "Python function names"},
	[FEATURE_GO] = {"go", "Go profiles"},
	[FEATURE_JAVA] = {"java", "Java profiles"},
	[FEATURE_JAVA_COUNTERS] = {"java-counters", "JVM counters"},
	[FEATURE_OOM_KILLS] = {"oom-kills", "OOM kill snapshots"},
	[FEATURE_OOM_LIMITS] = {"oom-limits", "Memory limit watch"},
	[FEATURE_HOST_PIDS] = {"host-pids", "Host processes"},
	[FEATURE_STORE] = {"store", "Profile store"},
};

const char *feature_name(enum feature_id id)
{
	return rows[id].name;
}

const char *feature_title(enum feature_id id)
{
	return rows[id].title;
}

const char *feature_state_name(enum feature_state state)
{
	static const char *const names[] = {
		[FEATURE_ON] = "on", [FEATURE_LIMITED] = "limited", [FEATURE_OFF] = "off"};

	return names[state];
}

static void feature_write(struct feature *f, enum feature_state state, enum err_cause cause,
			  const char *reason, const char *remedy)
{
	f->state = state;
	/* A cause that concerns one process is not that of a feature. */
	f->cause = err_cause_is_of_machine(cause) ? cause : ERR_CAUSE_OTHER;
	(void)snprintf(f->reason, sizeof(f->reason), "%s", reason);
	(void)snprintf(f->remedy, sizeof(f->remedy), "%s", remedy);
}

void features_set(struct features *features, enum feature_id id, int code, const struct err *err)
{
	struct feature *f = &features->rows[id];

	if (code >= 0)
		*f = (struct feature){.state = FEATURE_ON};
	else
		feature_write(f, FEATURE_OFF, err->cause,
			      err->text[0] ? err->text : strerror(-code), err->remedy);
}

void features_limit(struct features *features, enum feature_id id, const struct err *err)
{
	feature_write(&features->rows[id], FEATURE_LIMITED, err->cause, err->text, err->remedy);
}

void features_disable(struct features *features, enum feature_id id, const char *reason,
		      const char *remedy)
{
	feature_write(&features->rows[id], FEATURE_OFF, ERR_CAUSE_DISABLED, reason, remedy);
}

/* Names of Python functions are read from memory, for the stacks of CPU profiles. */
static void settle_python(struct features *features)
{
	const struct feature *cpu = &features->rows[FEATURE_CPU];
	const struct feature *memory = &features->rows[FEATURE_GO];
	struct feature *python = &features->rows[FEATURE_PYTHON];

	if (cpu->state == FEATURE_OFF) {
		bool asked = cpu->cause != ERR_CAUSE_DISABLED;

		feature_write(python, FEATURE_OFF,
			      asked ? ERR_CAUSE_NEEDS_FEATURE : ERR_CAUSE_DISABLED,
			      "needs CPU profiles, which are off", cpu->remedy);
	} else if (memory->state != FEATURE_ON) {
		*python = *memory;
	}
}

void features_settle(struct features *features)
{
	settle_python(features);
}

bool feature_is_missing(const struct feature *f)
{
	return f->state != FEATURE_ON && f->cause != ERR_CAUSE_DISABLED;
}

unsigned int features_missing(const struct features *features)
{
	unsigned int n = 0;

	for (size_t i = 0; i < FEATURES_N; i++)
		n += feature_is_missing(&features->rows[i]);
	return n;
}

static void pair(struct json *j, const char *key, const char *value)
{
	json_key(j, key);
	json_cstring(j, value[0] ? value : NULL);
}

void features_json(const struct features *features, struct json *j)
{
	json_array_begin(j);
	for (size_t i = 0; i < FEATURES_N; i++) {
		const struct feature *f = &features->rows[i];

		json_object_begin(j);
		pair(j, "feature", rows[i].name);
		pair(j, "title", rows[i].title);
		pair(j, "state", feature_state_name(f->state));
		pair(j, "cause", f->state == FEATURE_ON ? "" : err_cause_name(f->cause));
		pair(j, "reason", f->reason);
		pair(j, "remedy", f->remedy);
		json_object_end(j);
	}
	json_array_end(j);
}
