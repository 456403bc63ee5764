/*
 * src/java/jfr/metadata.h: the types of a chunk, from its metadata event.
 *
 *   size, 0, start, duration, id, strings, element
 *   element: name, attributes (key, value)*, children element*      (indexes of strings)
 *
 *   root ── metadata ── class (id, name, superType) ── field (name, class, constantPool, dimension)
 *
 * Nothing in a file can be read without them: values have no tags, and fields differ between
 * releases and writers in number and order. So fields are found by name, never by position.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/view.h"

enum java_jfr_kind {
	JAVA_JFR_STRUCT,
	JAVA_JFR_BOOLEAN,
	JAVA_JFR_BYTE,
	JAVA_JFR_CHAR,
	JAVA_JFR_SHORT,
	JAVA_JFR_INT,
	JAVA_JFR_LONG,
	JAVA_JFR_FLOAT,
	JAVA_JFR_DOUBLE,
	JAVA_JFR_STRING,
	JAVA_JFR_N_KINDS,
};

struct java_jfr_field {
	struct view name;
	uint64_t type_id;
	const struct java_jfr_type *type; /* NULL if the metadata lacks it */
	bool pooled;			  /* the value is a key in the pool of the type */
	bool array;
};

struct java_jfr_type {
	uint64_t id;
	struct view name;
	enum java_jfr_kind kind;
	uint32_t n_fields;
	const struct java_jfr_field *fields; /* only those with bytes */
	uint32_t n_declared;		     /* including those without */
	bool is_event;
	bool unreadable;  /* contains itself, nests too deep, or lacks a type */
	uint32_t nesting; /* of types inside it that are not pooled */
	uint32_t number;  /* index among the types */
};

/* Empty if zeroed; may be released. */
struct java_jfr_meta {
	struct arena arena;
	struct java_jfr_type *types;
	uint32_t n_types;
	struct map by_id;
	uint32_t *small; /* type number + 1 by id, for ids below JAVA_JFR_SMALL_IDS */
	uint64_t hash;	 /* of its contents */
};

#define JAVA_JFR_SMALL_IDS 65536

/* event: the complete metadata event. -EBADMSG, -E2BIG. ret_meta must not be in use. */
int java_jfr_meta_parse(struct view event, struct java_jfr_meta *ret_meta, struct err *err);
/* Equal for equivalent metadata; 0 if it is not a metadata event. */
uint64_t java_jfr_meta_hash(struct view event);
void java_jfr_meta_release(struct java_jfr_meta *m);

/* NULL if there is none. */
const struct java_jfr_type *java_jfr_meta_type(const struct java_jfr_meta *m, uint64_t id);
const struct java_jfr_type *java_jfr_meta_named(const struct java_jfr_meta *m, const char *name);
