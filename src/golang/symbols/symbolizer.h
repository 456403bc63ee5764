/*
 * src/golang/symbols/symbolizer.h: turns stacks of return addresses into locations of a profile,
 * exactly as runtime/pprof does (runtime/pprof/proto.go: appendLocsForStack, pcDeck, emitLocation;
 * runtime/symtab.go: CallersFrames, runtime_expandFinalInlineFrame).
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "golang/process_state.h"
#include "golang/symbols/cgo.h"
#include "profile/profile.h"

struct golang_frame;
struct golang_location;

struct golang_symbolizer {
	struct golang_process *process; /* borrowed */
	struct profile *profile;	/* borrowed: receives the locations */
	struct golang_cgo cgo;
	struct arena arena;
	struct map frames;    /* return pc -> struct golang_frame */
	struct map locations; /* first return pc -> struct golang_location */
	struct map hidden;    /* return pc -> whether runtime/pprof hides it as a leaf */
	struct map functions; /* string id of the name -> function id, as runtime/pprof has it */
	uint64_t unknown;     /* addresses without any name */
	bool refreshed;	      /* plugins were searched again */
};

void golang_symbolizer_init(struct golang_symbolizer *s, struct golang_process *process,
			    struct profile *profile);
void golang_symbolizer_release(struct golang_symbolizer *s);

/* Adds the executable mappings to the profile; call before the first stack. */
int golang_symbolizer_mappings(struct golang_symbolizer *s, struct err *err);

/*
 * How many leading (leaf) entries runtime/pprof hides: runtime functions that implement allocation.
 * None if there is nothing else.
 */
size_t golang_symbolizer_hidden(struct golang_symbolizer *s, const uint64_t *pcs, size_t n);
/* Fills locations (room for at least n + GOLANG_MAX_INLINE ids); returns their number or -errno. */
#define GOLANG_MAX_INLINE 256
int golang_symbolizer_stack(struct golang_symbolizer *s, const uint64_t *pcs, size_t n,
			    uint32_t *locations, struct err *err);
/* Records in each mapping what was symbolized; call after the last stack. */
int golang_symbolizer_finish(struct golang_symbolizer *s, struct err *err);
/* Sets the message for a profile that could not be built; returns code. */
int golang_symbolizer_error(int code, struct err *err);
