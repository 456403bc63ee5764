/*
 * src/golang/binary/vars.h: the addresses of the runtime's variables.
 *
 * With a symbol table they have names. Stripped programs still have the functions that use them:
 * what those witnesses refer to, and how, identifies the variables. They are then verified by
 * contents (the head of the bucket list carries its own hash).
 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "golang/binary/layout.h"
#include "golang/binary/module.h"

struct golang_vars {
	uint64_t mbuckets;	   /* *bucket: the newest memory-profile bucket */
	uint64_t mprof_cycle;	   /* u32: runtime.mProfCycle, or mProf.cycle up to 1.18 */
	uint64_t mem_profile_rate; /* int: runtime.MemProfileRate */
	const char *how;	   /* "symbol table", "code references" */
};

/* ignore_symbols: as if the program were stripped. -ENOTSUP names the variables not found. */
int golang_vars_find(const struct golang_image *image, struct golang_module *module,
		     const struct golang_layout *layout, bool ignore_symbols,
		     struct golang_vars *ret_vars, struct err *err);

/* The version as runtime.buildVersion has it, for programs without build info. -ENOENT. */
int golang_vars_build_version(struct golang_module *module, struct golang_version *ret_version,
			      struct err *err);
