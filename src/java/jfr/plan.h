/*
 * src/java/jfr/plan.h: how to extract the wanted fields of a type from its bytes.
 *
 * A plan is made once per type and chunk: names are compared then, not for every event.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "java/jfr/cursor.h"
#include "java/jfr/metadata.h"

#define JAVA_JFR_MAX_SLOTS 24

enum java_jfr_value_kind {
	JAVA_JFR_VALUE_NONE,	/* the type has no such field, or it is null */
	JAVA_JFR_VALUE_INTEGER, /* boolean, byte, char, short, int, long */
	JAVA_JFR_VALUE_REAL,	/* float, double */
	JAVA_JFR_VALUE_TEXT,
	JAVA_JFR_VALUE_KEY,   /* of a constant pool */
	JAVA_JFR_VALUE_BYTES, /* an array or a structure, not read */
};

struct java_jfr_value {
	enum java_jfr_value_kind kind;
	int64_t number;			  /* in its declared type; or the key */
	double real;			  /* also of an INTEGER */
	struct view text;		  /* of TEXT and BYTES */
	const struct java_jfr_type *type; /* of a KEY: the type of the pool */
};

struct java_jfr_plan {
	const struct java_jfr_type *type;
	const struct java_jfr_type *strings; /* the pool of strings */
	struct jfr_step *steps;
	uint32_t n_steps;
	uint32_t n_slots;
};

/*
 * names[i] goes to slot i. Several may be alternative names of the same field; slots whose field
 * the type lacks stay NONE. whole: skip to the end of the value even after the last wanted field.
 * -E2BIG.
 */
int java_jfr_plan_make(const struct java_jfr_meta *m, const struct java_jfr_type *type,
		       const char *const *names, size_t n_names, bool whole, struct arena *arena,
		       struct java_jfr_plan *ret_plan);
/* values has one entry per name. Texts are borrowed from the bytes, or from scratch. */
void java_jfr_plan_run(const struct java_jfr_plan *plan, struct java_jfr_cursor *c,
		       struct buf *scratch, struct java_jfr_value *values);
/* Skips one value of the type. */
void java_jfr_skip(const struct java_jfr_type *type, struct java_jfr_cursor *c);
