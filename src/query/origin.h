/*
 * src/query/origin.h: where a function comes from: the kind of its code, and the module it is part
 * of, as a reader would group functions: a Go or Java package, a Python module, a library, the
 * kernel or one of its modules.
 *
 * Told by name, file and mapping. What they do not say is "native" without a module, as of native
 * code stored before mappings were.
 */
#pragma once

#include "base/intern.h"
#include "base/map.h"
#include "base/view.h"
#include "profile/frames.h"

enum query_kind {
	QUERY_KIND_OTHER, /* a remark in brackets, "(other)" */
	QUERY_KIND_GO,
	QUERY_KIND_JAVA,
	QUERY_KIND_PYTHON,
	QUERY_KIND_JS,
	QUERY_KIND_NATIVE,
	QUERY_KIND_RUNTIME, /* the code of an interpreter or JVM itself */
	QUERY_KIND_KERNEL,
	QUERY_KIND_GROUP, /* the value of a label */
	QUERY_KIND_N,
};
/* "go"; for the API. */
const char *query_kind_name(enum query_kind kind);

/* mapping: the library or program, "libc.so.6". */
enum query_kind query_kind_of(struct view name, struct view file, struct view mapping);
/* Borrowed from the arguments, or constant. */
struct view query_module_of(enum query_kind kind, struct view name, struct view file,
			    struct view mapping);

/* Different suffixes that are told of one name: LLVM's ".llvm.1837" is another in each build. */
#define QUERY_VARIANTS_MAX 8

/*
 * What is known of names: the first file and mapping that a function of this name has, and what
 * compilers appended to it.
 */
struct query_origins {
	struct intern texts;
	struct map file_of;	/* name to text */
	struct map mapping_of;	/* the same */
	struct map variants_of; /* the same: the suffixes (profile/suffix.h), a NUL after each */
};
void query_origins_release(struct query_origins *o);
/* Adds what a profile knows of the names; those that are not among them are ignored. */
int query_origins_add(struct query_origins *o, const struct intern *names,
		      const struct profile_frames *frames);
/* "" if unknown. */
struct view query_origins_file(const struct query_origins *o, uint32_t name);
struct view query_origins_mapping(const struct query_origins *o, uint32_t name);
struct view query_origins_variants(const struct query_origins *o, uint32_t name);
