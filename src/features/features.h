/*
 * src/features/features.h: what works on this machine; if not, the reason and the fix.
 *
 * One row per feature, on unless something was found missing. Whether one works is found by trying
 * it (probe.h), never by reading settings; those only explain a failure. Pure data.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/json.h"

enum features_id {
	FEATURES_CPU,
	FEATURES_OFFCPU,
	FEATURES_KERNEL_NAMES,
	FEATURES_PYTHON,
	FEATURES_GO,
	FEATURES_JAVA,
	FEATURES_JAVA_COUNTERS,
	FEATURES_OOM_KILLS,
	FEATURES_OOM_LIMITS,
	FEATURES_HOST_PIDS,
	FEATURES_STORE,
	FEATURES_N,
};

enum features_state {
	FEATURES_ON,
	FEATURES_LIMITED, /* for some processes only */
	FEATURES_OFF,
};

struct features_row {
	enum features_state state;
	enum err_cause cause; /* the rest is set only if not on */
	char reason[512];
	char remedy[256]; /* "" if no fix is known */
};

/* All are on if zeroed. */
struct features {
	struct features_row rows[FEATURES_N];
};

const char *features_name(enum features_id id);	 /* "off-cpu" */
const char *features_title(enum features_id id); /* "Off-CPU profiles" */
const char *features_state_name(enum features_state state);

/* Records the result of a try: a negative code turns it off, with the error's reason and remedy. */
void features_set(struct features *features, enum features_id id, int code, const struct err *err);
/* It works, but not for all processes. */
void features_limit(struct features *features, enum features_id id, const struct err *err);
/* Not enabled; option says how, as in "start sonde run with --java". */
void features_disable(struct features *features, enum features_id id, const char *reason,
		      const char *remedy);
/* Features that depend on another one follow it. Call this last. */
void features_settle(struct features *features);

/* Missing and worth a mention: not turned off on purpose. */
bool features_is_missing(const struct features_row *feature);
/* How many are. */
unsigned int features_missing(const struct features *features);

/* All features as an array, as in /api/health. */
void features_json(const struct features *features, struct json *j);
