/* src/java/jfr/parser.h: the parser's state, shared by its files. */
#pragma once

#include "base/intern.h"
#include "java/jfr/chunk.h"
#include "java/jfr/jfr.h"
#include "java/jfr/source.h"

/* What the parser does with events of a type. */
struct java_jfr_binding {
	uint32_t tally;
	uint32_t query; /* JAVA_JFR_UNWANTED: none */
};

#define JAVA_JFR_UNWANTED UINT32_MAX

struct java_jfr {
	struct java_jfr_options options;
	char *name;
	struct java_jfr_source source;

	struct java_jfr_chunk chunk;
	uint64_t chunk_at; /* offset in the file */
	uint64_t position; /* of the next event, in the chunk */
	uint64_t metadata_seen, checkpoint_seen;
	bool is_begun; /* the chunk */

	struct java_jfr_meta meta;
	struct arena plans_arena;
	struct java_jfr_plan *plans;	   /* by query */
	struct java_jfr_binding *bindings; /* by type */

	struct java_jfr_pools pools[2]; /* of this chunk and the previous one */
	unsigned int current;
	uint64_t epochs;

	struct java_jfr_stats stats;
	int64_t duration_before_ns; /* of earlier chunks */
	struct intern tally_names;
	struct buf tallies; /* of struct java_jfr_tally */
	uint32_t metadata_tally, checkpoint_tally;

	struct java_jfr_value values[JAVA_JFR_MAX_SLOTS];
	struct buf scratch;
};

static inline struct java_jfr_pools *java_jfr_pools_now(struct java_jfr *j)
{
	return &j->pools[j->current];
}

/*
 * load.c: moves the parser to where the header says the chunk is complete. 1: there is data to
 * read; 0: not now.
 */
int java_jfr_load_chunk(struct java_jfr *j, struct err *err);
int java_jfr_load_more(struct java_jfr *j, struct err *err);
int java_jfr_tally_of(struct java_jfr *j, struct view name, uint32_t *ret_tally);
