/* src/features/features.c: see features.h. */
#include "features/features.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

static const struct {
	const char *name;
	const char *title;
} rows[FEATURES_N] = {
	[FEATURES_CPU] = {"cpu", "CPU profiles"},
	[FEATURES_OFFCPU] = {"off-cpu", "Off-CPU profiles"},
	[FEATURES_KERNEL_NAMES] = {"kernel-names", "Kernel function names"},
	[FEATURES_PYTHON] = {"python", "Python function names"},
	[FEATURES_GO] = {"go", "Go profiles"},
	[FEATURES_JAVA] = {"java", "Java profiles"},
	[FEATURES_JAVA_COUNTERS] = {"java-counters", "JVM counters"},
	[FEATURES_OOM_KILLS] = {"oom-kills", "OOM kill snapshots"},
	[FEATURES_OOM_LIMITS] = {"oom-limits", "Memory limit watch"},
	[FEATURES_HOST_PIDS] = {"host-pids", "Host processes"},
	[FEATURES_STORE] = {"store", "Profile store"},
};

const char *features_name(enum features_id id)
{
	return rows[id].name;
}

const char *features_title(enum features_id id)
{
	return rows[id].title;
}

const char *features_state_name(enum features_state state)
{
	static const char *const names[] = {
		[FEATURES_ON] = "on", [FEATURES_LIMITED] = "limited", [FEATURES_OFF] = "off"};

	return names[state];
}

static void feature_write(struct features_row *f, enum features_state state, enum err_cause cause,
			  const char *reason, const char *remedy)
{
	f->state = state;
	/* A cause that concerns a single process is not the feature's. */
	f->cause = err_cause_is_of_machine(cause) ? cause : ERR_CAUSE_OTHER;
	(void)snprintf(f->reason, sizeof(f->reason), "%s", reason);
	(void)snprintf(f->remedy, sizeof(f->remedy), "%s", remedy);
}

void features_set(struct features *features, enum features_id id, int code, const struct err *err)
{
	struct features_row *f = &features->rows[id];

	if (code >= 0)
		*f = (struct features_row){.state = FEATURES_ON};
	else
		feature_write(f, FEATURES_OFF, err->cause,
			      err->text[0] ? err->text : strerror(-code), err->remedy);
}

void features_limit(struct features *features, enum features_id id, const struct err *err)
{
	feature_write(&features->rows[id], FEATURES_LIMITED, err->cause, err->text, err->remedy);
}

void features_disable(struct features *features, enum features_id id, const char *reason,
		      const char *remedy)
{
	feature_write(&features->rows[id], FEATURES_OFF, ERR_CAUSE_DISABLED, reason, remedy);
}

/* Python function names are read from memory, for the stacks of CPU profiles. */
static void settle_python(struct features *features)
{
	const struct features_row *cpu = &features->rows[FEATURES_CPU];
	const struct features_row *memory = &features->rows[FEATURES_GO];
	struct features_row *python = &features->rows[FEATURES_PYTHON];

	if (cpu->state == FEATURES_OFF) {
		bool asked = cpu->cause != ERR_CAUSE_DISABLED;

		feature_write(python, FEATURES_OFF,
			      asked ? ERR_CAUSE_NEEDS_FEATURE : ERR_CAUSE_DISABLED,
			      "needs CPU profiles, which are off", cpu->remedy);
	} else if (memory->state != FEATURES_ON) {
		*python = *memory;
	}
}

void features_settle(struct features *features)
{
	settle_python(features);
}

bool features_is_missing(const struct features_row *f)
{
	return f->state != FEATURES_ON && f->cause != ERR_CAUSE_DISABLED;
}

unsigned int features_missing(const struct features *features)
{
	unsigned int n = 0;

	for (size_t i = 0; i < FEATURES_N; i++)
		n += features_is_missing(&features->rows[i]);
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
		const struct features_row *f = &features->rows[i];

		json_object_begin(j);
		pair(j, "feature", rows[i].name);
		pair(j, "title", rows[i].title);
		pair(j, "state", features_state_name(f->state));
		pair(j, "cause", f->state == FEATURES_ON ? "" : err_cause_name(f->cause));
		pair(j, "reason", f->reason);
		pair(j, "remedy", f->remedy);
		json_object_end(j);
	}
	json_array_end(j);
}
