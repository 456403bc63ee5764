/*
 * src/golang/binary/layout.h: what differs between Go releases, as data.
 *
 * Keyed by minor release: no patch release of 1.17 to 1.27 changed any of it. A release not in the
 * table is refused, unless the user names one to assume.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "golang/binary/pclntab.h"

struct golang_layout {
	unsigned int minor;
	enum golang_pcln_format pcln;

	/* runtime.moduledata; runtime/symtab.go */
	unsigned int md_gofunc; /* 0 if there is none */
	unsigned int md_textsectmap;
	unsigned int md_next;

	/* runtime.memRecord; runtime/mprof.go */
	unsigned int
		cycle_words; /* of a memRecordCycle: {allocs, frees [, alloc_bytes, free_bytes]} */
	unsigned int cycle_shift; /* mProfCycle holds cycle << 1 | flushed; mProf.cycle is plain */
	unsigned int max_depth;	  /* of the stacks that runtime/pprof sees */

	/* runtime/pprof/protomem.go */
	bool hides_internal_runtime; /* leading internal/runtime/ frames are dropped, too */
	bool label_always;	     /* "bytes" even if nothing was allocated */

	/* internal/abi/symtab.go, type FuncID */
	unsigned char id_gopanic;
	unsigned char id_panicwrap;
	unsigned char id_sigpanic;
	unsigned char id_wrapper;
};

/* Wrappers are omitted from stacks, unless called by a panic. */
static inline bool golang_layout_elides(const struct golang_layout *l, unsigned char func_id,
					unsigned char callee)
{
	return func_id == l->id_wrapper && callee != l->id_gopanic && callee != l->id_sigpanic &&
	       callee != l->id_panicwrap;
}

#define GOLANG_OLDEST_MINOR 17
#define GOLANG_NEWEST_MINOR 27

/* -ENOTSUP with a message that names the supported releases. */
int golang_layout_for(unsigned int minor, const struct golang_layout **ret_layout, struct err *err);
