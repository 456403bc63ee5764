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

enum feature_id {
	FEATURE_CPU,
	FEATURE_OFFCPU,
	FEATURE_KERNEL_NAMES,
	FEATURE_PYTHON,
	FEATURE_GO,
	FEATURE_JAVA,
	FEATURE_JAVA_COUNTERS,
	FEATURE_OOM_KILLS,
	FEATURE_OOM_LIMITS,
	FEATURE_HOST_PIDS,
	FEATURE_STORE,
	FEATURES_N,
};

enum feature_state {
	FEATURE_ON,
	FEATURE_LIMITED, /* for some processes only */
	FEATURE_OFF,
};

struct feature {
	enum feature_state state;
	enum err_cause cause; /* the rest is set only if not on */
	char reason[512];
	char remedy[256]; /* "" if no fix is known */
};

/* All are on if zeroed. */
struct features {
	struct feature rows[FEATURES_N];
};

const char *feature_name(enum feature_id id);  /* "off-cpu" */
const char *feature_title(enum feature_id id); /* "Off-CPU profiles" */
const char *feature_state_name(enum feature_state state);

/* Records the result of a try: a negative code turns it off, with the error's reason and remedy. */
void features_set(struct features *features, enum feature_id id, int code, const struct err *err);
/* It works, but not for all processes. */
void features_limit(struct features *features, enum feature_id id, const struct err *err);
/* Not enabled; option says how, as in "start sonde run with --java". */
void features_disable(struct features *features, enum feature_id id, const char *reason,
		      const char *remedy);
/* Features that depend on another one follow it. Call this last. */
void features_settle(struct features *features);

/* Missing and worth a mention: not turned off on purpose. */
bool feature_is_missing(const struct feature *feature);
/* How many are. */
unsigned int features_missing(const struct features *features);

/* All features as an array, as in /api/health. */
void features_json(const struct features *features, struct json *j);
